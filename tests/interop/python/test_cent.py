"""PyPI cent, as published: every method of the server API that the library knows and the server has.

In: one server with Centrifugo's keys for history and presence -> out: results and errors as the library reads them.
May use cent and, to have somebody there, centrifuge-python; never looks at bytes.
The API by hand is tested in ../js/api.test.js, the Go library in ../go/sdk/gocent_test.go.
"""

import asyncio
import unittest

import cent
import requests

from clients import Sdk
from server import API_KEY, Server

_OPEN = {"allow_subscribe_for_client": True, "allow_publish_for_subscriber": True}
_KEPT = _OPEN | {"history_size": 100, "history_ttl": "300s", "presence": True}


class Cent(Sdk, unittest.IsolatedAsyncioTestCase):
    """Both clients of the library: the blocking one in a thread, and in one test the other."""

    def setUp(self):
        namespaces = [{"name": "plain"} | _OPEN]
        self.server = Server({"channel": {"without_namespace": _KEPT, "namespaces": namespaces}})
        self.addCleanup(self.server.stop)
        self.cent = self.library(API_KEY)

    def library(self, key):
        session = requests.Session()
        session.trust_env = False
        self.addCleanup(session.close)
        return cent.Client(f"{self.server.http}/api", key, session=session)

    async def ask(self, request, of=None):
        """Calls the library's method for this request."""
        return await asyncio.to_thread(getattr(of or self.cent, request.api_method), request)

    async def refused(self, request, code):
        with self.assertRaises(cent.CentApiResponseError) as raised:
            await self.ask(request)
        self.assertEqual(raised.exception.code, code)

    async def test_publishes_and_broadcasts(self):
        client, _, _ = await self.someone(self.server, "42")
        _, news = await self.subscribed(client, "news")
        _, sport = await self.subscribed(client, "sport")
        first = await self.ask(cent.PublishRequest(channel="news", data={"n": 1}, tags={"a": "b"}))
        again = cent.PublishRequest(channel="news", data={"n": 2}, idempotency_key="once")
        second = await self.ask(again)
        self.assertEqual(await self.ask(again), second)
        self.assertEqual((first.offset, second.offset), (1, 2))
        self.assertEqual(first.epoch, second.epoch)
        skipped = cent.PublishRequest(channel="news", data={"n": 3}, skip_history=True)
        self.assertEqual((await self.ask(skipped)).offset, 0)
        encoded = cent.PublishRequest(channel="news", data=None, b64data="eyJuIjo0fQ==")
        self.assertEqual((await self.ask(encoded)).offset, 3)
        channels = ["sport", "plain:x", "nowhere:x"]
        responses = (await self.ask(cent.BroadcastRequest(channels=channels, data={"n": 5}))).responses
        self.assertEqual(responses[0].result.offset, 1)
        self.assertEqual(responses[1].result, cent.PublishResult())
        self.assertEqual(responses[2].error.code, 102)
        self.assertEqual((await news.next("publication")).pub.tags, {"a": "b"})
        self.assertEqual(await self.numbers(news, 3), [2, 3, 4])
        self.assertEqual(await self.numbers(sport, 1), [5])
        await self.refused(cent.PublishRequest(channel="nowhere:x", data={}), 102)
        await self.refused(cent.PublishRequest(channel="", data={}), 107)

    async def test_reads_and_removes_history(self):
        await self.publish(self.server, "kept", 1, 5)
        top = await self.ask(cent.HistoryRequest(channel="kept"))
        self.assertEqual((top.publications, top.offset), ([], 5))
        since = cent.StreamPosition(offset=2, epoch=top.epoch)
        page = await self.ask(cent.HistoryRequest(channel="kept", limit=2, since=since))
        self.assertEqual([(pub.offset, pub.data) for pub in page.publications], [(3, {"n": 3}), (4, {"n": 4})])
        last = await self.ask(cent.HistoryRequest(channel="kept", limit=-1, reverse=True))
        self.assertEqual([pub.data["n"] for pub in last.publications], [5, 4, 3, 2, 1])
        await self.ask(cent.HistoryRemoveRequest(channel="kept"))
        gone = await self.ask(cent.HistoryRequest(channel="kept", limit=-1))
        self.assertEqual((gone.publications, gone.offset, gone.epoch), ([], 5, top.epoch))
        await self.refused(cent.HistoryRequest(channel="plain:none"), 108)
        await self.refused(cent.HistoryRemoveRequest(channel="plain:none"), 108)

    async def test_sees_who_is_there(self):
        ada, _, ada_id = await self.someone(self.server, "ada")
        bob, _, bob_id = await self.someone(self.server, "bob")
        await self.subscribed(ada, "room")
        await self.subscribed(bob, "room")
        await self.subscribed(bob, "plain:room")
        there = (await self.ask(cent.PresenceRequest(channel="room"))).presence
        self.assertEqual(set(there), {ada_id, bob_id})
        self.assertEqual((there[bob_id].user, there[bob_id].conn_info), ("bob", {"name": "bob"}))
        stats = await self.ask(cent.PresenceStatsRequest(channel="room"))
        self.assertEqual((stats.num_clients, stats.num_users), (2, 2))
        await self.refused(cent.PresenceRequest(channel="plain:room"), 108)
        channels = (await self.ask(cent.ChannelsRequest())).channels
        self.assertEqual({name: at.num_clients for name, at in channels.items()}, {"room": 2, "plain:room": 1})
        plain = (await self.ask(cent.ChannelsRequest(pattern="plain:*"))).channels
        self.assertEqual(list(plain), ["plain:room"])
        (node,) = (await self.ask(cent.InfoRequest())).nodes
        counts = (node.num_clients, node.num_users, node.num_subs, node.num_channels)
        self.assertEqual(counts, (2, 2, 3, 2))
        self.assertTrue(node.uid and node.name and node.version)

    async def test_unsubscribes_and_disconnects(self):
        one, one_events, one_id = await self.someone(self.server, "42")
        other, other_events, other_id = await self.someone(self.server, "42")
        _, left = await self.subscribed(one, "room")
        _, kept = await self.subscribed(other, "room")
        await self.ask(cent.UnsubscribeRequest(user="42", channel="room", client=one_id))
        self.assertEqual((await left.next("unsubscribed")).code, 2000)
        await self.ask(cent.UnsubscribeRequest(user="42", channel="room"))
        self.assertEqual((await kept.next("unsubscribed")).code, 2000)
        await self.ask(cent.DisconnectRequest(user="42", whitelist=[other_id]))
        self.assertEqual((await one_events.next("disconnected")).code, 3503)
        await self.fence(other)
        reason = cent.Disconnect(code=4501, reason="told to")
        await self.ask(cent.DisconnectRequest(user="42", disconnect=reason))
        context = await other_events.next("disconnected")
        self.assertEqual((context.code, context.reason), (4501, "told to"))
        await self.ask(cent.DisconnectRequest(user="nobody"))

    async def test_sends_a_batch(self):
        for parallel in (False, True):
            commands = [
                cent.PublishRequest(channel=f"batch-{parallel}", data={"n": 1}),
                cent.BroadcastRequest(channels=["one", "other"], data={"n": 2}),
                cent.PresenceStatsRequest(channel="empty"),
                cent.HistoryRequest(channel="unread", limit=1),
            ]
            replies = (await self.ask(cent.BatchRequest(requests=commands, parallel=parallel))).replies
            self.assertEqual(replies[0].offset, 1)
            self.assertEqual(len(replies[1].responses), 2)
            self.assertEqual((replies[2].num_clients, replies[2].num_users), (0, 0))
            self.assertEqual(replies[3].publications, [])

    async def test_a_wrong_key_is_unauthorized(self):
        with self.assertRaises(cent.CentUnauthorizedError):
            await self.ask(cent.InfoRequest(), of=self.library("another"))

    async def test_the_other_client_of_the_library_does_the_same(self):
        client = cent.AsyncClient(f"{self.server.http}/api", API_KEY)
        self.addAsyncCleanup(client.close)
        published = await client.publish(cent.PublishRequest(channel="async", data={"n": 1}))
        self.assertEqual(published.offset, 1)
        self.assertEqual((await client.info(cent.InfoRequest())).nodes[0].num_clients, 0)
        with self.assertRaises(cent.CentApiResponseError):
            await client.publish(cent.PublishRequest(channel="nowhere:x", data={}))


if __name__ == "__main__":
    unittest.main()
