"""Clients for the tests: PyPI centrifuge-python in both encodings, and its events in order.

In: a server -> out: clients that are disconnected when their test ends.
May use the SDK's public interface only; never holds expectations, which stand in the tests.
How a client connects is changed here; how a server starts is in server.py.
"""

import asyncio
import json
import time
import zlib
from collections import defaultdict

import centrifuge

from server import PATIENCE_S, token


class Sdk:
    """What the scenarios of both encodings share; a test class says which one it speaks."""

    use_protobuf = False

    async def asyncSetUp(self):
        # The debug mode that unittest switches on takes longer than everything else.
        asyncio.get_running_loop().set_debug(False)

    def payload(self, value):
        return json.dumps(value).encode() if self.use_protobuf else value

    def value(self, data):
        return json.loads(data) if self.use_protobuf else data

    def client(self, server, **options):
        events = Events()
        client = centrifuge.Client(
            server.websocket,
            events=events,
            use_protobuf=self.use_protobuf,
            max_reconnect_delay=0.2,
            proxy=None,
            **options,
        )
        self.addAsyncCleanup(client.disconnect)
        return client, events

    async def connected(self, server, **options):
        client, events = self.client(server, **options)
        await client.connect()
        await events.next("connected")
        return client, events

    async def subscribed(self, client, channel, events=None, **options):
        events = events or Events()
        subscription = client.new_subscription(channel, events=events, **options)
        await subscription.subscribe()
        await events.next("subscribed")
        return subscription, events

    async def refused(self, client, channel, code, **options):
        events = Events()
        subscription = client.new_subscription(channel, events=events, **options)
        await subscription.subscribe()
        self.assertEqual((await events.next("unsubscribed")).code, code)

    async def someone(self, server, user, **claims):
        """A connected client with a token for this user, and its client id."""
        claims = {"sub": user, "info": {"name": user}} | claims
        client, events = self.client(server, token=token(claims))
        await client.connect()
        context = await events.next("connected")
        return client, events, context.client

    async def subscribers(self, server, channel):
        """How many the server counts."""
        channels = (await self.api(server, "channels", pattern=channel))["channels"]
        return channels.get(channel, {}).get("num_clients", 0)

    async def eventually(self, question, what):
        """Asks again and again until the answer is yes."""
        end = time.monotonic() + PATIENCE_S
        while not await question():
            self.assertLess(time.monotonic(), end, f"waited {PATIENCE_S} s for {what}")

    async def api(self, server, method, **request):
        """Calls the server API without keeping the loop from its work."""
        return await asyncio.to_thread(server.api, method, **request)

    async def publish(self, server, channel, first, last):
        """Publishes `{"n": n}` for every number from `first` to `last`, in order."""
        for n in range(first, last + 1):
            await self.api(server, "publish", channel=channel, data={"n": n})

    async def numbers(self, events, count):
        """The numbers of the next publications, as `publish` made them."""
        return [self.value((await events.next("publication")).pub.data)["n"] for _ in range(count)]

    async def fails(self, call, code):
        """Expects an error of the protocol."""
        with self.assertRaises(centrifuge.ReplyError) as raised:
            await call
        self.assertEqual(raised.exception.code, code)

    async def fence(self, client):
        """An rpc that is answered with 108, after everything that was sent before it."""
        with self.assertRaises(centrifuge.ReplyError) as raised:
            await client.rpc("fence", self.payload({}))
        self.assertEqual(raised.exception.code, 108)


class Events:
    """Handlers of a client or a subscription that keep every event until a test asks for it."""

    def __init__(self):
        self._queues = defaultdict(asyncio.Queue)

    def __getattr__(self, name):
        if not name.startswith("on_"):
            raise AttributeError(name)

        async def keep(context):
            await self._queues[name[3:]].put(context)

        return keep

    def seen(self, kind):
        """How many events of this kind nobody has asked for yet."""
        return self._queues[kind].qsize()

    async def next(self, kind):
        """The oldest event of this kind that was not asked for yet."""
        try:
            return await asyncio.wait_for(self._queues[kind].get(), PATIENCE_S)
        except asyncio.TimeoutError:
            seen = {kind: queue.qsize() for kind, queue in self._queues.items()}
            raise AssertionError(f"waited {PATIENCE_S} s for {kind}; waiting now: {seen}") from None


class Slow(Events):
    """The same of an application that has some work with every publication."""

    async def on_publication(self, context):
        await asyncio.to_thread(zlib.compress, bytes(100_000))
        await self._queues["publication"].put(context)
