"""PyPI cent, as published: every method of the server API that the library knows and the server has.

In: one server with Centrifugo's keys for history and presence -> out: results and errors as the library reads them.
May use cent and, to have somebody there, centrifuge-python; never looks at bytes.
The API by hand is tested in ../js/api.test.js, the Go library in ../go/sdk/gocent_test.go.
"""

import asyncio
import time
import unittest
import warnings

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
        _, third_events, third_id = await self.someone(self.server, "42")
        await self.ask(cent.DisconnectRequest(user="42", client=third_id))
        self.assertEqual((await third_events.next("disconnected")).code, 3503)
        await self.fence(other)
        reason = cent.Disconnect(code=4501, reason="told to")
        await self.ask(cent.DisconnectRequest(user="42", disconnect=reason))
        context = await other_events.next("disconnected")
        self.assertEqual((context.code, context.reason), (4501, "told to"))
        await self.ask(cent.DisconnectRequest(user="nobody"))

    async def test_subscribes_and_refreshes(self):
        one, events, one_id = await self.someone(self.server, "42")
        _, other_events, other_id = await self.someone(self.server, "42")
        await self.publish(self.server, "given", 1, 3)
        epoch = (await self.ask(cent.HistoryRequest(channel="given"))).epoch
        override = cent.ChannelOptionsOverride(
            force_recovery=cent.BoolValue(value=True),
            presence=cent.BoolValue(value=False),
        )
        given = {"user": "42", "channel": "given", "client": one_id, "data": {"why": "cent"}}
        since = cent.StreamPosition(offset=1, epoch=epoch)
        await self.ask(cent.SubscribeRequest(**given, override=override, recover_since=since))
        context = await events.next("subscribed")
        self.assertEqual((context.channel, context.data, context.recoverable), ("given", {"why": "cent"}, True))
        await self.publish(self.server, "given", 4, 4)
        self.assertEqual(await self.numbers(events, 3), [2, 3, 4])
        self.assertEqual((await self.ask(cent.PresenceRequest(channel="given"))).presence, {})
        given = {"user": "42", "channel": "given", "client": other_id, "info": {"seat": 7}}
        await self.ask(cent.SubscribeRequest(**given))
        self.assertFalse((await other_events.next("subscribed")).recoverable)
        there = (await self.ask(cent.PresenceRequest(channel="given"))).presence
        self.assertEqual({client: at.chan_info for client, at in there.items()}, {other_id: {"seat": 7}})
        later = int(time.time()) + 3600
        await self.ask(cent.RefreshRequest(user="42", client=one_id, expire_at=later))
        await self.ask(cent.RefreshRequest(user="42", client=other_id, expired=True))
        self.assertEqual((await other_events.next("connecting")).code, 0)
        self.assertEqual((await other_events.next("connecting")).code, 3005)
        await self.fence(one)
        self.assertEqual(events.seen("connecting"), 1)

    async def test_a_batch_with_failures_does_the_rest_although_the_library_cannot_read_it(self):
        client, _, _ = await self.someone(self.server, "42")
        for parallel in (False, True):
            _, events = await self.subscribed(client, f"mixed-{parallel}")
            commands = [
                cent.PublishRequest(channel=f"mixed-{parallel}", data={"n": 1}),
                cent.PublishRequest(channel="nowhere:x", data={"n": 2}),
                cent.PresenceRequest(channel="plain:none"),
                cent.PublishRequest(channel=f"mixed-{parallel}", data={"n": 3}),
            ]
            with self.assertRaises(KeyError):
                await self.ask(cent.BatchRequest(requests=commands, parallel=parallel))
            self.assertEqual(sorted(await self.numbers(events, 2)), [1, 3])

    async def test_channels_that_cannot_be_are_102_or_107_whatever_is_asked(self):
        for channel, code in [("nowhere:x", 102), ("", 107)]:
            for request in [
                cent.PublishRequest(channel=channel, data={}),
                cent.SubscribeRequest(user="42", channel=channel),
                cent.PresenceRequest(channel=channel),
                cent.PresenceStatsRequest(channel=channel),
                cent.HistoryRequest(channel=channel, limit=1),
                cent.HistoryRemoveRequest(channel=channel),
            ]:
                await self.refused(request, code)
        await self.refused(cent.UnsubscribeRequest(user="42", channel="nowhere:x"), 102)
        await self.refused(cent.BroadcastRequest(channels=[], data={}), 107)
        await self.refused(cent.PublishRequest(channel="wrong", data=None, b64data="*"), 107)
        await self.refused(cent.DisconnectRequest(user="42", disconnect=cent.Disconnect(code=70_000)), 107)

    async def test_history_beyond_its_ends(self):
        await self.publish(self.server, "beyond", 1, 3)
        epoch = (await self.ask(cent.HistoryRequest(channel="beyond"))).epoch

        def page(offset, epoch=epoch, **options):
            since = cent.StreamPosition(offset=offset, epoch=epoch)
            return cent.HistoryRequest(channel="beyond", since=since, **options)

        for request, count in [(page(0, limit=-7), 3), (page(1, limit=10), 2), (page(2**40, limit=10), 0)]:
            found = await self.ask(request)
            self.assertEqual((len(found.publications), found.offset), (count, 3))
        await self.refused(page(1, "foreign", limit=10), 112)
        await self.refused(page(0, limit=10, reverse=True), 107)

    async def test_wrong_types_are_status_400_and_nothing_is_done(self):
        client, _, _ = await self.someone(self.server, "42")
        _, events = await self.subscribed(client, "types")
        publish, position = cent.PublishRequest.model_construct, cent.StreamPosition.model_construct
        for wrong in [
            publish(channel=1, data={}),
            publish(channel=["types"], data={}),
            publish(channel="types", data={}, tags=["a"]),
            publish(channel="types", data={}, skip_history="yes"),
            publish(channel="types", data={}, version=-1),
            cent.BroadcastRequest.model_construct(channels="types", data={}),
            cent.HistoryRequest.model_construct(channel="types", limit="all"),
            cent.HistoryRequest.model_construct(channel="types", limit=2**31),
            cent.HistoryRequest.model_construct(channel="types", since=position(offset=-1)),
            cent.DisconnectRequest.model_construct(user=42),
            cent.BatchRequest(requests=[publish(channel="types", data={}), publish(channel=1, data={})]),
        ]:
            with self.assertRaises(cent.CentTransportError, msg=wrong) as raised, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # The library warns of what it sends.
                await self.ask(wrong)
            self.assertEqual(raised.exception.status_code, 400)
        await self.publish(self.server, "types", 1, 1)
        self.assertEqual(await self.numbers(events, 1), [1])

    async def test_methods_that_are_not_there_are_status_404(self):
        for request in [
            cent.DeviceListRequest(filter=cent.DeviceFilter()),
        ]:
            with self.assertRaises(cent.CentTransportError) as raised:
                await self.ask(request)
            self.assertEqual(raised.exception.status_code, 404)

    async def test_lists_the_connections_of_a_user(self):
        client, _, client_id = await self.someone(self.server, "42")
        await self.subscribed(client, "room")
        listed = (await self.ask(cent.ConnectionsRequest(user="42", expression=""))).connections
        self.assertEqual(list(listed), [client_id])
        connection = listed[client_id]
        self.assertEqual((connection.user, connection.transport), ("42", "websocket"))
        self.assertEqual(list(connection.state.channels), ["room"])
        nobody = await self.ask(cent.ConnectionsRequest(user="nobody", expression=""))
        self.assertEqual(nobody.connections, {})

    async def test_keeps_the_status_of_users(self):
        _, _, _ = await self.someone(self.server, "42")
        await self.ask(cent.UpdateUserStatusRequest(users=["42"]))
        of = cent.GetUserStatusRequest(users=["42", "nobody"])
        known, unknown = (await self.ask(of)).statuses
        self.assertEqual((known.user, unknown.user), ("42", "nobody"))
        self.assertGreater(known.active, 0)
        self.assertGreater(known.online, 0)
        await self.ask(cent.DeleteUserStatusRequest(users=["42"]))
        self.assertFalse((await self.ask(of)).statuses[0].active)

    async def test_blocks_a_user_and_revokes_tokens(self):
        _, events, _ = await self.someone(self.server, "42")
        await self.ask(cent.BlockUserRequest(user="42"))
        self.assertEqual((await events.next("disconnected")).code, 3507)
        await self.ask(cent.UnblockUserRequest(user="42"))
        _, events, _ = await self.someone(self.server, "42")
        await self.ask(cent.RevokeTokenRequest(uid="none"))
        await self.refused(cent.RevokeTokenRequest(uid=""), 107)
        await self.refused(cent.BlockUserRequest(user="42", expire_at=1), 107)
        await self.ask(cent.InvalidateUserTokensRequest(user="another", issued_before=int(time.time())))
        listed = await self.ask(cent.ConnectionsRequest(user="42", expression=""))
        self.assertEqual(len(listed.connections), 1)

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
