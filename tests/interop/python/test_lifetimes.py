"""PyPI centrifuge-python, as published, in JSON and in Protobuf: what expires, is invalidated or lost while it is in use.

In: servers with tokens, with a short grace, and with little memory -> out: the events the SDK reports.
May use the SDK's public interface and the server API only; never looks at bytes.
Tokens that expired before are in test_sdk.py and test_edges.py; the same in Go is in ../go/sdk/lifetime_test.go.
"""

import asyncio
import time
import unittest

from clients import Sdk
from server import PATIENCE_S, Server, token

_KEPT = {
    "allow_subscribe_for_client": True,
    "history_size": 10,
    "history_ttl": "300s",
    "force_recovery": True,
}


class Tokens:
    """An application's `get_token`: tokens that live this long, one after the other."""

    def __init__(self, *lives, **claims):
        self._lives = lives
        self._claims = claims
        self._asked = asyncio.Queue()
        self.count = 0

    def make(self):
        life = self._lives[self.count]
        self.count += 1
        return token(self._claims | {"exp": int(time.time()) + life})

    async def __call__(self, *_):
        made = self.make()
        await self._asked.put(self.count)
        return made

    async def asked(self, times):
        """Waits until it was asked for so many tokens, the first one made by `make`."""
        while await asyncio.wait_for(self._asked.get(), PATIENCE_S) < times:
            pass


class Scenarios(Sdk):
    """What both encodings must do; the test classes below say which one."""

    @classmethod
    def setUpClass(cls):
        channel = {"without_namespace": _KEPT}
        hurry = {"expired_close_delay": "0s", "expired_sub_close_delay": "0s"}
        cls.server = Server({"channel": channel})
        cls.hurried = Server({"channel": channel, "client": hurry})
        cls.little = Server({"channel": channel | {"history_memory_max": 1_048_576}})

    @classmethod
    def tearDownClass(cls):
        for server in (cls.server, cls.hurried, cls.little):
            server.stop()

    def name(self, channel):
        return f"{channel}-{self.use_protobuf}"

    async def test_refreshes_short_lived_tokens_and_stays_connected(self):
        """Asked for the third token because the server has accepted the second."""
        tokens = Tokens(3, 3, 3600, sub="42")
        client, events = await self.connected(self.server, token=tokens.make(), get_token=tokens)
        await tokens.asked(3)
        await self.fence(client)
        found = [events.seen(kind) for kind in ("connecting", "disconnected", "error")]
        self.assertEqual(found, [1, 0, 0])

    async def test_refreshes_short_lived_subscription_tokens_and_stays_subscribed(self):
        client, _, _ = await self.someone(self.server, "42")
        channel = self.name("$short")
        tokens = Tokens(3, 3, 3600, sub="42", channel=channel)
        options = {"token": tokens.make(), "get_token": tokens}
        _, events = await self.subscribed(client, channel, **options)
        await tokens.asked(3)
        await self.publish(self.server, channel, 1, 1)
        self.assertEqual(await self.numbers(events, 1), [1])
        found = [events.seen(kind) for kind in ("subscribing", "unsubscribed", "error")]
        self.assertEqual(found, [1, 0, 0])

    async def test_a_subscription_that_is_not_refreshed_in_time_ends_with_2501_and_is_made_anew(self):
        client, _, _ = await self.someone(self.hurried, "42")
        channel = self.name("$late")
        ended = asyncio.Event()
        tokens = Tokens(3, 3600, sub="42", channel=channel)

        async def too_late(name):
            if not ended.is_set():
                await ended.wait()
                raise RuntimeError("too late, on purpose")
            return await tokens(name)

        options = {"token": tokens.make(), "get_token": too_late}
        _, events = await self.subscribed(client, channel, **options)
        self.assertEqual((await events.next("subscribing")).code, 0)
        self.assertEqual((await events.next("subscribing")).code, 2501)
        ended.set()
        await events.next("subscribed")
        await self.publish(self.hurried, channel, 1, 1)
        self.assertEqual(await self.numbers(events, 1), [1])

    async def test_3014_makes_it_forget_its_token_and_its_positions(self):
        user = self.name("invalid")
        channels = {name: self.name(name) for name in ("$client", "server")}
        tokens = Tokens(3600, 3600, sub=user, channels=[channels["server"]])
        client, events = await self.connected(self.server, get_token=tokens)
        await events.next("subscribed")
        seats = Tokens(3600, 3600, sub=user, channel=channels["$client"])
        _, heard = await self.subscribed(client, channels["$client"], get_token=seats)
        self.assertEqual((tokens.count, seats.count), (1, 1))
        for channel in channels.values():
            await self.publish(self.server, channel, 1, 2)
        self.assertEqual(await self.numbers(heard, 2), [1, 2])
        self.assertEqual(await self.numbers(events, 2), [1, 2])
        reason = {"code": 3014, "reason": "state invalidated"}
        await self.api(self.server, "disconnect", user=user, disconnect=reason)
        for seen in (heard, events):
            context = await seen.next("subscribed")
            self.assertEqual((context.was_recovering, context.recovered), (True, False))
            self.assertEqual(context.stream_position.offset, 2)
        self.assertEqual((tokens.count, seats.count), (2, 2))
        for channel in channels.values():
            await self.publish(self.server, channel, 3, 3)
        self.assertEqual(await self.numbers(heard, 1), [3])
        self.assertEqual(await self.numbers(events, 1), [3])

    async def test_a_subscriber_whose_stream_was_lost_is_told_2500_and_subscribes_again(self):
        client, _, _ = await self.someone(self.little, "42")
        channel = self.name("lost")
        _, events = await self.subscribed(client, channel)
        await self.publish(self.little, channel, 1, 1)
        self.assertEqual(await self.numbers(events, 1), [1])
        self.assertEqual((await events.next("subscribing")).code, 0)
        await self.crowd_out(channel)
        await self.publish(self.little, channel, 2, 2)
        self.assertEqual((await events.next("subscribing")).code, 2500)
        context = await events.next("subscribed")
        self.assertEqual((context.was_recovering, context.recovered), (True, False))
        await self.publish(self.little, channel, 3, 3)
        self.assertEqual(await self.numbers(events, 1), [3])

    async def crowd_out(self, channel):
        """Fills the memory of histories with other channels until the stream of this one begins anew."""
        before = (await self.api(self.little, "history", channel=channel))["epoch"]
        rounds = iter(range(1_000_000))

        async def lost():
            # Many between two looks: a stream that is looked at is in use, and outlives some that are not.
            others = [f"other-{next(rounds)}" for _ in range(3000)]
            await self.api(self.little, "broadcast", channels=others, data="x" * 1000)
            return (await self.api(self.little, "history", channel=channel))["epoch"] != before

        await self.eventually(lost, "loss of the stream")


class Json(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The SDK's default encoding."""


class Protobuf(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The same over binary frames."""

    use_protobuf = True


if __name__ == "__main__":
    unittest.main()
