"""PyPI centrifuge-python, as published, in JSON and in Protobuf: history, recovery, presence, joins and leaves.

In: one server with Centrifugo's keys for channel state -> out: the results and events the SDK reports.
May use the SDK's public interface and the server API only; never looks at bytes.
The same in JavaScript is in ../js/recovery.test.js and ../js/presence.test.js; connections in test_sdk.py.
"""

import unittest

import centrifuge

from clients import Events, Sdk
from server import Server

_OPEN = {
    "allow_subscribe_for_client": True,
    "allow_publish_for_subscriber": True,
    "allow_history_for_subscriber": True,
    "allow_presence_for_subscriber": True,
}
_HISTORY = _OPEN | {"history_size": 100, "history_ttl": "300s", "force_recovery": True}


class Scenarios(Sdk):
    """What both encodings must do; the test classes below say which one."""

    @classmethod
    def setUpClass(cls):
        namespaces = [
            {"name": "plain"} | _OPEN,
            {"name": "smallhistory"} | _HISTORY | {"history_size": 2},
            {"name": "wished"} | _HISTORY | {"force_recovery": False},
            {"name": "positioned"} | _HISTORY | {"force_recovery": False, "force_positioning": True},
            {"name": "room", "presence": True, "join_leave": True, "force_push_join_leave": True} | _OPEN,
        ]
        settings = {"channel": {"without_namespace": _HISTORY, "namespaces": namespaces}}
        cls.server = Server(settings)
        cls.insecure = Server(settings | {"client": {"insecure": True}})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.insecure.stop()

    async def disconnected(self, client, events):
        await client.disconnect()
        await events.next("disconnected")

    async def recovers(self, events, was_recovering, recovered):
        context = await events.next("subscribed")
        self.assertTrue(context.recoverable)
        self.assertEqual((context.was_recovering, context.recovered), (was_recovering, recovered))
        return context.stream_position

    async def test_a_page_of_history_is_what_was_asked_for(self):
        client, _, _ = await self.someone(self.server, "42")
        subscription, _ = await self.subscribed(client, "pages")
        await self.publish(self.server, "pages", 1, 6)
        top = await subscription.history()
        self.assertEqual((top.publications, top.offset), ([], 6))
        self.assertRegex(top.epoch, "^[a-zA-Z]{8}$")

        def since(offset):
            return centrifuge.StreamPosition(offset=offset, epoch=top.epoch)

        for options, expected in [
            ({"limit": -1}, [1, 2, 3, 4, 5, 6]),
            ({"limit": 2}, [1, 2]),
            ({"limit": 2, "reverse": True}, [6, 5]),
            ({"limit": 2, "since": since(2)}, [3, 4]),
            ({"limit": 2, "since": since(3), "reverse": True}, [2, 1]),
            ({"limit": 10, "since": since(6)}, []),
        ]:
            page = await subscription.history(**options)
            self.assertEqual([self.value(pub.data)["n"] for pub in page.publications], expected)
            self.assertEqual((page.offset, page.epoch), (6, top.epoch))
        foreign = centrifuge.StreamPosition(offset=1, epoch="foreign")
        await self.fails(subscription.history(limit=1, since=foreign), 112)

    async def test_what_a_channel_does_not_have_is_error_108(self):
        client, _, _ = await self.someone(self.server, "42")
        subscription, _ = await self.subscribed(client, "plain:nothing")
        await self.fails(subscription.history(limit=1), 108)
        await self.fails(subscription.presence(), 108)
        await self.fails(subscription.presence_stats(), 108)

    async def test_recovers_what_was_published_while_it_was_away(self):
        client, events, _ = await self.someone(self.server, "42")
        _, heard = await self.subscribed(client, "away")
        for start in range(1, 41, 10):
            await self.publish(self.server, "away", start, start + 2)
            self.assertEqual(await self.numbers(heard, 3), list(range(start, start + 3)))
            await self.disconnected(client, events)
            await self.publish(self.server, "away", start + 3, start + 9)
            await client.connect()
            await self.recovers(heard, True, True)
            self.assertEqual(await self.numbers(heard, 7), list(range(start + 3, start + 10)))

    async def test_recovers_what_another_client_published_while_it_was_unsubscribed(self):
        client, _, _ = await self.someone(self.server, "42")
        other, _, _ = await self.someone(self.server, "43")
        subscription, heard = await self.subscribed(client, "between")
        publisher, _ = await self.subscribed(other, "between")
        await subscription.unsubscribe()
        for n in (1, 2, 3):
            await publisher.publish(self.payload({"n": n}))
        await subscription.subscribe()
        await self.recovers(heard, True, True)
        await self.publish(self.server, "between", 4, 4)
        self.assertEqual(await self.numbers(heard, 4), [1, 2, 3, 4])

    async def test_recovery_is_the_clients_wish_where_it_may_read_history(self):
        client, _, _ = await self.someone(self.server, "42")
        for namespace in ["wished", "positioned"]:
            channel = f"{namespace}:channel-{self.use_protobuf}"
            wish = {"recoverable": True, "positioned": True}
            subscription, events = await self.subscribed(client, channel, **wish)
            await subscription.unsubscribe()
            await self.publish(self.server, channel, 1, 3)
            await subscription.subscribe()
            await self.recovers(events, True, True)
            self.assertEqual(await self.numbers(events, 3), [1, 2, 3])

    async def test_recovery_is_the_clients_wish_in_insecure_mode_too(self):
        client, events = await self.connected(self.insecure)
        wish = {"recoverable": True, "positioned": True}
        channel = f"positioned:insecure-{self.use_protobuf}"
        _, heard = await self.subscribed(client, channel, **wish)
        await self.disconnected(client, events)
        await self.publish(self.insecure, channel, 1, 3)
        await client.connect()
        await self.recovers(heard, True, True)
        self.assertEqual(await self.numbers(heard, 3), [1, 2, 3])

    async def test_a_positioned_subscription_knows_its_position_and_does_not_recover(self):
        client, _, _ = await self.someone(self.server, "42")
        channel = f"positioned:only-{self.use_protobuf}"
        subscription, events = await self.subscribed(client, channel)
        await subscription.unsubscribe()
        await self.publish(self.server, channel, 1, 3)
        await subscription.subscribe()
        context = await events.next("subscribed")
        found = (context.positioned, context.recoverable, context.was_recovering, context.stream_position.offset)
        self.assertEqual(found, (True, False, False, 3))
        await self.publish(self.server, channel, 4, 4)
        self.assertEqual(await self.numbers(events, 1), [4])

    async def test_does_not_recover_more_than_is_kept(self):
        client, events, _ = await self.someone(self.server, "42")
        _, heard = await self.subscribed(client, "smallhistory:lost")
        await self.publish(self.server, "smallhistory:lost", 1, 1)
        self.assertEqual(await self.numbers(heard, 1), [1])
        await self.disconnected(client, events)
        await self.publish(self.server, "smallhistory:lost", 2, 6)
        await client.connect()
        position = await self.recovers(heard, True, False)
        self.assertEqual(position.offset, 6)
        await self.publish(self.server, "smallhistory:lost", 7, 7)
        self.assertEqual(await self.numbers(heard, 1), [7])

    async def position(self, channel):
        """Of the newest publication, as a backend knows it."""
        top = await self.api(self.server, "history", channel=channel)
        return centrifuge.StreamPosition(offset=top["offset"], epoch=top["epoch"])

    async def test_the_state_is_loaded_once_and_again_when_recovery_is_impossible(self):
        client, events, _ = await self.someone(self.server, "42")
        channel, loaded = f"smallhistory:state-{self.use_protobuf}", []

        async def get_state(channel):
            loaded.append(channel)
            return await self.position(channel)

        _, heard = await self.subscribed(client, channel, get_state=get_state)
        for first, last, count in [(1, 2, 1), (3, 7, 2), (8, 8, 2)]:
            await self.disconnected(client, events)
            await self.publish(self.server, channel, first, last)
            await client.connect()
            self.assertTrue((await heard.next("subscribed")).recovered)
            self.assertEqual(loaded, [channel] * count)
        self.assertEqual(await self.numbers(heard, 3), [1, 2, 8])
        self.assertEqual(heard.seen("error"), 0)

    async def test_a_state_that_cannot_be_or_cannot_be_loaded_is_loaded_again(self):
        client, _, _ = await self.someone(self.server, "42")
        channel = f"unloaded-{self.use_protobuf}"
        await self.publish(self.server, channel, 1, 3)
        top = await self.position(channel)
        future = centrifuge.StreamPosition(offset=2**40, epoch=top.epoch)
        foreign = centrifuge.StreamPosition(offset=1, epoch="foreign")
        good = centrifuge.StreamPosition(offset=1, epoch=top.epoch)
        states = iter([RuntimeError("not yet"), future, foreign, RuntimeError("not now"), good])

        async def get_state(_):
            state = next(states)
            if isinstance(state, RuntimeError):
                raise state
            return state

        _, heard = await self.subscribed(client, channel, get_state=get_state)
        self.assertEqual(list(states), [])
        self.assertEqual([(await heard.next("error")).code for _ in range(2)], [15, 15])
        await self.publish(self.server, channel, 4, 4)
        self.assertEqual(await self.numbers(heard, 3), [2, 3, 4])

    async def test_an_invalidated_state_is_not_recovered(self):
        client, _, _ = await self.someone(self.server, "invalid")
        _, heard = await self.subscribed(client, "invalid")
        await self.publish(self.server, "invalid", 1, 2)
        self.assertEqual(await self.numbers(heard, 2), [1, 2])
        reason = {"code": 3014, "reason": "state invalidated"}
        await self.api(self.server, "disconnect", user="invalid", disconnect=reason)
        position = await self.recovers(heard, True, False)
        self.assertEqual(position.offset, 2)

    async def test_a_subscription_of_the_token_recovers_after_a_reconnect(self):
        client, events, _ = await self.someone(self.server, "42", channels=["server"])
        first = await events.next("subscribed")
        self.assertEqual((first.channel, first.recoverable), ("server", True))
        await self.publish(self.server, "server", 1, 1)
        self.assertEqual(await self.numbers(events, 1), [1])
        await self.disconnected(client, events)
        await self.publish(self.server, "server", 2, 4)
        await client.connect()
        again = await events.next("subscribed")
        self.assertEqual((again.was_recovering, again.recovered), (True, True))
        await self.publish(self.server, "server", 5, 5)
        self.assertEqual(await self.numbers(events, 4), [2, 3, 4, 5])

    async def test_presence_counts_one_client_and_two(self):
        ada, _, ada_id = await self.someone(self.server, "ada")
        bob, _, bob_id = await self.someone(self.server, "bob")
        subscription, _ = await self.subscribed(ada, "room:count")
        other, _ = await self.subscribed(bob, "room:count")
        clients = (await subscription.presence()).clients
        self.assertEqual(set(clients), {ada_id, bob_id})
        self.assertEqual(clients[bob_id].user, "bob")
        self.assertEqual(self.value(clients[bob_id].conn_info), {"name": "bob"})
        stats = await subscription.presence_stats()
        self.assertEqual((stats.num_clients, stats.num_users), (2, 2))
        await other.unsubscribe()
        await self.fence(bob)
        stats = await subscription.presence_stats()
        self.assertEqual((stats.num_clients, stats.num_users), (1, 1))
        await subscription.unsubscribe()
        await self.fence(ada)
        empty = await self.api(self.server, "presence_stats", channel="room:count")
        self.assertEqual(empty, {"num_clients": 0, "num_users": 0})

    async def test_hears_who_joins_and_leaves(self):
        ada, _, ada_id = await self.someone(self.server, "ada")
        bob, _, bob_id = await self.someone(self.server, "bob")
        _, doors = await self.subscribed(ada, "room:doors")
        self.assertEqual((await doors.next("join")).info.client, ada_id)
        other, _ = await self.subscribed(bob, "room:doors")
        joined = (await doors.next("join")).info
        self.assertEqual((joined.client, joined.user), (bob_id, "bob"))
        self.assertEqual(self.value(joined.conn_info), {"name": "bob"})
        await other.unsubscribe()
        self.assertEqual((await doors.next("leave")).info.client, bob_id)
        await other.subscribe()
        self.assertEqual((await doors.next("join")).info.client, bob_id)
        await bob.disconnect()
        self.assertEqual((await doors.next("leave")).info.user, "bob")


class Json(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The SDK's default encoding."""

    async def test_what_is_not_json_never_leaves_the_client(self):
        client, _, _ = await self.someone(self.server, "42")
        subscription, heard = await self.subscribed(client, "plain:test")
        with self.assertRaises(centrifuge.CentrifugeError):
            await subscription.publish(b"boom")
        await self.publish(self.server, "plain:test", 1, 1)
        self.assertEqual(await self.numbers(heard, 1), [1])


class Protobuf(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The same over binary frames."""

    use_protobuf = True

    async def test_publishes_bytes_that_are_not_json(self):
        client, _, _ = await self.someone(self.server, "42")
        events = Events()
        subscription = client.new_subscription("plain:test", events=events)
        await subscription.subscribe()
        await subscription.publish(b"boom")
        self.assertEqual((await events.next("publication")).pub.data, b"boom")


if __name__ == "__main__":
    unittest.main()
