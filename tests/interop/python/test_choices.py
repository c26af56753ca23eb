"""PyPI centrifuge-python, as published, in JSON and in Protobuf: deltas, tag filters, and what the server subscribes.

In: one server with Centrifugo's keys for them -> out: the publications and events the SDK reports.
May use the SDK's public interface and the server API only; never looks at bytes.
The same in JavaScript is in ../js/delta.test.js, ../js/filters.test.js and ../js/server_side.test.js.
"""

import unittest

import centrifuge

from clients import Sdk
from server import Server, token

_OPEN = {"allow_subscribe_for_client": True, "history_size": 100, "history_ttl": "300s", "force_recovery": True}
_TEXTS = ["gleich", "gleich", "über Straßen 🚀 " * 20, "über Straßen 🛸 " * 20, "kurz", "über Straßen 🚀 " * 20]


class Choices(Sdk):
    """What both encodings must do; the test classes below say which one."""

    @classmethod
    def setUpClass(cls):
        namespaces = [
            {"name": "delta", "allowed_delta_types": ["fossil"], "delta_publish": True} | _OPEN,
            {"name": "tags", "allow_tags_filter": True} | _OPEN,
        ]
        personal = {"subscribe_to_user_personal_channel": {"enabled": True}}
        cls.server = Server({
            "client": personal,
            "channel": {"without_namespace": _OPEN, "namespaces": namespaces},
        })

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    async def texts(self, events, count):
        return [self.value((await events.next("publication")).pub.data)["text"] for _ in range(count)]

    async def test_deltas_bring_what_was_published(self):
        client, _, _ = await self.someone(self.server, "42")
        subscription, events = await self.subscribed(client, "delta:live", delta=centrifuge.DeltaType.FOSSIL)
        for text in _TEXTS:
            await self.api(self.server, "publish", channel="delta:live", data={"text": text})
        self.assertEqual(await self.texts(events, len(_TEXTS)), _TEXTS)
        await subscription.unsubscribe()
        for text in _TEXTS:
            await self.api(self.server, "publish", channel="delta:live", data={"text": text})
        await subscription.subscribe()
        self.assertEqual(await self.texts(events, len(_TEXTS)), _TEXTS)

    async def test_a_filter_leaves_out_what_was_not_chosen(self):
        client, _, _ = await self.someone(self.server, "42")
        chosen = centrifuge.Filter.eq("team", "red")
        _, events = await self.subscribed(client, "tags:live", tags_filter=chosen)
        for number, team in enumerate(["red", "blue", "red"], start=1):
            data = {"n": number}
            await self.api(self.server, "publish", channel="tags:live", data=data, tags={"team": team})
        self.assertEqual(await self.numbers(events, 2), [1, 3])

    async def test_a_filter_where_none_is_allowed_is_107(self):
        client, _, _ = await self.someone(self.server, "42")
        await self.refused(client, "plain", 107, tags_filter=centrifuge.Filter.eq("a", "b"))

    async def test_the_server_subscribes_and_unsubscribes(self):
        user = f"steered-{self.use_protobuf}"
        client, events = self.client(self.server, token=token({"sub": user}))
        await client.connect()
        self.assertEqual((await events.next("subscribed")).channel, f"#{user}")
        await self.publish(self.server, f"#{user}", 1, 1)
        personal = await events.next("publication")
        self.assertEqual((personal.channel, self.value(personal.pub.data)), (f"#{user}", {"n": 1}))
        await self.api(self.server, "subscribe", user=user, channel="ordered")
        self.assertEqual((await events.next("subscribed")).channel, "ordered")
        await self.publish(self.server, "ordered", 1, 2)
        self.assertEqual(await self.numbers(events, 2), [1, 2])
        await self.api(self.server, "unsubscribe", user=user, channel="ordered")
        self.assertEqual((await events.next("unsubscribed")).channel, "ordered")
        await self.api(self.server, "refresh", user=user, expired=True)
        self.assertEqual((await events.next("connecting")).code, 0)
        self.assertEqual((await events.next("connecting")).code, 3005)


class ChoicesInJson(Choices, unittest.IsolatedAsyncioTestCase):
    """JSON."""


class ChoicesInProtobuf(Choices, unittest.IsolatedAsyncioTestCase):
    """Protobuf."""

    use_protobuf = True
