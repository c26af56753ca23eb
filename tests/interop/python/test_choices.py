"""PyPI centrifuge-python, as published, in JSON and in Protobuf: deltas, tag filters, and what the server subscribes.

In: one server with Centrifugo's keys for them -> out: the publications and events the SDK reports.
May use the SDK's public interface and the server API only; never looks at bytes.
The same in JavaScript is in ../js/delta.test.js, ../js/filters.test.js and ../js/server_side.test.js.
"""

import asyncio
import re
import time
import unittest
import urllib.request

import centrifuge

from clients import Sdk
from server import PATIENCE_S, Server, token

_OPEN = {"allow_subscribe_for_client": True, "history_size": 100, "history_ttl": "300s", "force_recovery": True}
_TEXTS = ["gleich", "gleich", "über Straßen 🚀 " * 20, "über Straßen 🛸 " * 20, "kurz", "über Straßen 🚀 " * 20]


class Choices(Sdk):
    """What both encodings must do; the test classes below say which one."""

    @classmethod
    def setUpClass(cls):
        namespaces = [
            {"name": "delta", "allowed_delta_types": ["fossil"], "delta_publish": True} | _OPEN,
            {"name": "latest", "allow_subscribe_for_client": True, "allowed_delta_types": ["fossil"],
             "delta_publish": True, "keep_latest_publication": True},
            {"name": "tags", "allow_tags_filter": True} | _OPEN,
        ]
        personal = {"subscribe_to_user_personal_channel": {"enabled": True}}
        cls.server = Server({
            "client": personal,
            "prometheus": {"enabled": True},
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

    async def deltas_sent(self):
        """How many deltas the server has sent."""
        call = urllib.request.Request(f"{self.server.http}/metrics")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        text = await asyncio.to_thread(lambda: opener.open(call, timeout=PATIENCE_S).read().decode())
        return int(re.search(r"^fanwire_client_deltas_total (\d+)", text, re.MULTILINE).group(1))

    async def deltas_since(self, before, count):
        """How many deltas were sent since; waits for so many, because the server counts after it has sent."""
        deadline = time.monotonic() + PATIENCE_S
        while (sent := await self.deltas_sent() - before) < count and time.monotonic() < deadline:
            pass
        return sent

    async def states(self, events, channel, first, last):
        """Publishes states that differ a little and expects them."""
        expected = [f"{n} of Malmö 🚀 " * 20 for n in range(first, last + 1)]
        for text in expected:
            await self.api(self.server, "publish", channel=channel, data={"text": text})
        self.assertEqual(await self.texts(events, len(expected)), expected)

    async def test_similar_publications_are_one_full_and_otherwise_deltas(self):
        client, _, _ = await self.someone(self.server, "42")
        for namespace in ("delta", "latest"):
            channel = f"{namespace}:counted-{self.use_protobuf}"
            _, events = await self.subscribed(client, channel, delta=centrifuge.DeltaType.FOSSIL)
            before = await self.deltas_sent()
            await self.states(events, channel, 1, 10)
            self.assertEqual(await self.deltas_since(before, 9), 9)

    async def test_where_no_deltas_are_allowed_none_are_sent(self):
        client, _, _ = await self.someone(self.server, "42")
        channel = f"plain-{self.use_protobuf}"
        _, events = await self.subscribed(client, channel, delta=centrifuge.DeltaType.FOSSIL)
        before = await self.deltas_sent()
        await self.states(events, channel, 1, 5)
        self.assertEqual(await self.deltas_sent(), before)

    async def test_deltas_go_on_after_recovery_with_and_without_publications(self):
        client, client_events, _ = await self.someone(self.server, "42")
        channel = f"delta:away-{self.use_protobuf}"
        _, events = await self.subscribed(client, channel, delta=centrifuge.DeltaType.FOSSIL)
        await self.states(events, channel, 1, 2)
        for missed in (3, 0, 1):
            await client.disconnect()
            await client_events.next("disconnected")
            texts = [f"missed {n} of Malmö 🚀 " * 20 for n in range(missed)]
            for text in texts:
                await self.api(self.server, "publish", channel=channel, data={"text": text})
            await client.connect()
            context = await events.next("subscribed")
            self.assertEqual((context.was_recovering, context.recovered), (True, True))
            self.assertEqual(await self.texts(events, missed), texts)
            before = await self.deltas_sent()
            await self.states(events, channel, 1, 3)
            self.assertGreaterEqual(await self.deltas_since(before, 2), 2)
        self.assertEqual(events.seen("publication"), 0)

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

    async def test_a_filter_that_is_none_or_nested_too_deep_is_107(self):
        client, _, _ = await self.someone(self.server, "42")
        deep = centrifuge.Filter.exists("team")
        for _ in range(30):
            deep = centrifuge.Filter.negate(deep)
        for number, wrong in enumerate([deep, centrifuge.Filter.eq("team", ""), centrifuge.Filter.all()]):
            await self.refused(client, f"tags:wrong-{number}", 107, tags_filter=wrong)

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
