"""PyPI centrifuge-python, as published, in JSON and in Protobuf: the order of calls, refusals, and what comes twice.

In: one development server and one with tokens -> out: the events the SDK reports.
May use the SDK's public interface and the server API only; never looks at bytes.
An ordinary day is in test_sdk.py, many clients in test_stress.py; the same in JavaScript in ../js/edges.test.js.
"""

import asyncio
import socket
import time
import types
import unittest

import centrifuge

from clients import Events, Sdk
from gate import Gate
from server import PATIENCE_S, Server, token

_OPEN = {
    "allow_subscribe_for_client": True,
    "allow_subscribe_for_anonymous": True,
    "allow_publish_for_client": True,
    "allow_publish_for_anonymous": True,
    "allow_history_for_subscriber": True,
    "history_size": 100,
    "history_ttl": "300s",
}


def nobody():
    """Something to connect to where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return types.SimpleNamespace(websocket=f"ws://127.0.0.1:{port}/connection/websocket")


class Scenarios(Sdk):
    """What both encodings must do; the test classes below say which one."""

    @classmethod
    def setUpClass(cls):
        cls.insecure = Server({"client": {"insecure": True}})
        cls.strict = Server({"channel": {"without_namespace": _OPEN, "namespaces": [{"name": "closed"}]}})

    @classmethod
    def tearDownClass(cls):
        cls.insecure.stop()
        cls.strict.stop()

    def name(self, channel):
        return f"{channel}-{self.use_protobuf}"

    async def test_unsubscribes_between_the_connect_command_and_its_reply(self):
        stays, goes = self.name("stays"), self.name("goes")
        async with Gate(self.insecure) as gate:
            client, events = self.client(gate)
            heard = {channel: Events() for channel in (stays, goes)}
            for channel in heard:
                await client.new_subscription(channel, events=heard[channel]).subscribe()
            connecting = asyncio.create_task(client.connect())
            await asyncio.wait_for(gate.commanded.wait(), PATIENCE_S)
            self.assertEqual(client.state, centrifuge.ClientState.CONNECTING)
            await client.get_subscription(goes).unsubscribe()
            gate.opened.set()
            await connecting
            await events.next("connected")
            await heard[stays].next("subscribed")
            self.assertEqual((await heard[goes].next("unsubscribed")).code, 0)
            await self.fence(client)
            self.assertEqual(heard[goes].seen("subscribed"), 0)
            self.assertEqual(await self.subscribers(self.insecure, goes), 0)
            self.assertEqual(await self.subscribers(self.insecure, stays), 1)
            await client.disconnect()

    async def test_what_is_unsubscribed_at_once_is_gone(self):
        client, _ = self.client(self.insecure)
        hasty, events = client.new_subscription(self.name("hasty")), Events()
        stays = client.new_subscription(self.name("hasty-stays"), events=events)
        await hasty.subscribe()
        await stays.subscribe()
        await client.connect()
        await hasty.unsubscribe()
        for _ in range(20):
            await hasty.subscribe()
            await hasty.unsubscribe()
        await events.next("subscribed")
        await self.fence(client)
        self.assertEqual(await self.subscribers(self.insecure, hasty.channel), 0)
        self.assertEqual(await self.subscribers(self.insecure, stays.channel), 1)

    async def test_a_client_has_one_subscription_of_a_channel(self):
        client, _ = await self.connected(self.insecure)
        subscription, events = await self.subscribed(client, self.name("once"))
        with self.assertRaises(centrifuge.DuplicateSubscriptionError):
            client.new_subscription(subscription.channel)
        await subscription.subscribe()
        await self.publish(self.insecure, subscription.channel, 1, 2)
        self.assertEqual(await self.numbers(events, 2), [1, 2])
        self.assertEqual(events.seen("subscribed"), 0)

    async def test_an_expired_token_is_renewed_on_an_insecure_server_too(self):
        asked = []

        async def get_token():
            asked.append(1)
            return token({"sub": "42", "exp": int(time.time()) + 3600})

        expired = token({"sub": "42", "exp": int(time.time()) - 10})
        await self.connected(self.insecure, token=expired, get_token=get_token)
        self.assertEqual(asked, [1])

    async def test_an_application_that_refuses_a_token_ends_the_connection_before_it_is_opened(self):
        async def refuse():
            raise centrifuge.UnauthorizedError()

        client, events = self.client(nobody(), get_token=refuse)
        await client.connect()
        self.assertEqual((await events.next("disconnected")).code, 1)
        self.assertEqual(events.seen("error"), 0)

    async def test_no_server_at_the_address_is_a_transport_error_and_the_client_tries_again(self):
        client, events = self.client(nobody())
        await client.connect()
        for _ in range(2):
            context = await events.next("error")
            self.assertEqual((context.code, type(context.error)), (2, ConnectionRefusedError))
        self.assertEqual(client.state, centrifuge.ClientState.CONNECTING)

    async def test_a_token_without_a_subject_is_that_of_an_anonymous_user(self):
        client, _ = await self.connected(self.strict, token=token({"exp": int(time.time()) + 3600}))
        subscription, events = await self.subscribed(client, self.name("anonymous"))
        await subscription.publish(self.payload({"n": 1}))
        info = (await events.next("publication")).pub.info
        self.assertEqual((info.user, info.client), ("", client.client_id))

    async def test_a_subscription_token_is_for_one_channel_and_one_user(self):
        for channel, claims in [
            ("$channel", {"sub": "42", "channel": "$another"}),
            ("$user", {"sub": "43", "channel": "$user"}),
        ]:
            client, events, _ = await self.someone(self.strict, "42")
            await client.new_subscription(channel, token=token(claims)).subscribe()
            self.assertEqual((await events.next("disconnected")).code, 3500)

    async def test_renews_an_expired_subscription_token(self):
        client, _, _ = await self.someone(self.strict, "42")
        asked = []

        async def get_token(channel):
            asked.append(channel)
            return token({"sub": "42", "channel": channel, "exp": int(time.time()) + 3600})

        expired = token({"sub": "42", "channel": "$renewed", "exp": int(time.time()) - 10})
        await self.subscribed(client, "$renewed", token=expired, get_token=get_token)
        self.assertEqual(asked, ["$renewed"])

    async def test_an_insecure_server_takes_subscription_tokens_and_does_without_them(self):
        client, _ = await self.connected(self.insecure)
        await self.subscribed(client, "$with", token=token({"sub": "", "channel": "$with"}))
        await self.subscribed(client, "without")
        await self.refused(client, "$without", 103)

    async def test_channels_that_cannot_be_are_102_or_107_whatever_is_asked(self):
        client, _, _ = await self.someone(self.strict, "42")
        for channel, code in [("nowhere:x", 102), ("x" * 256, 107), ("straße", 107)]:
            await self.refused(client, channel, code)
            await self.fails(client.publish(channel, self.payload({})), code)
            await self.fails(client.history(channel, limit=1), code)
            await self.fails(client.presence(channel), code)
            await self.fails(client.presence_stats(channel), code)
        await self.refused(client, "closed:x", 103)
        await self.fails(client.publish("closed:x", self.payload({})), 103)
        await self.fails(client.history("not-subscribed", limit=1), 103)

    async def test_a_page_of_history_beyond_its_ends(self):
        client, _, _ = await self.someone(self.strict, "42")
        subscription, _ = await self.subscribed(client, self.name("beyond"))
        await self.publish(self.strict, subscription.channel, 1, 3)
        epoch = (await subscription.history()).epoch

        def since(offset, epoch=epoch):
            return centrifuge.StreamPosition(offset=offset, epoch=epoch)

        for options, count in [
            ({"limit": -7}, 3),
            ({"limit": 2**31 - 1}, 3),
            ({"limit": 10, "since": since(0, "")}, 3),
            ({"limit": 10, "since": since(2**40)}, 0),
            ({"limit": 10, "since": since(1), "reverse": True}, 0),
        ]:
            page = await subscription.history(**options)
            self.assertEqual((len(page.publications), page.offset), (count, 3), options)
        await self.fails(subscription.history(limit=10, since=since(2**40, "foreign")), 112)
        await self.fails(subscription.history(limit=10, since=since(0), reverse=True), 107)


class Json(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The SDK's default encoding."""


class Protobuf(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The same over binary frames."""

    use_protobuf = True


if __name__ == "__main__":
    unittest.main()
