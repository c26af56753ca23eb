"""PyPI centrifuge-python, as published, in JSON and in Protobuf: many connections, forced reconnects, slow handlers.

In: one server with Centrifugo's keys for history -> out: every client heard everything once and in order.
May use the SDK's public interface and the server API only; never looks at bytes.
A thousand clients at a time are played by `fanwire-bench churn`.
"""

import asyncio
import unittest

from clients import Events, Sdk, Slow
from server import Server, token

_ROUNDS, _EACH, _CLIENTS = 5, 30, 10


class Scenarios(Sdk):
    """What both encodings must do; the test classes below say which one."""

    @classmethod
    def setUpClass(cls):
        history = {"history_size": 100, "history_ttl": "300s", "force_recovery": True}
        options = {"allow_subscribe_for_client": True} | history
        cls.server = Server({"channel": {"without_namespace": options}})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    async def test_forced_reconnects_lose_and_repeat_nothing(self):
        """A third of the clients lose the transport, half of them have work with every publication."""
        listeners = []
        for n in range(_CLIENTS):
            client, _, _ = await self.someone(self.server, f"stress-{n}")
            listeners.append(Slow() if n % 2 == 0 else Events())
            await self.subscribed(client, "stress", listeners[n])
        for start in range(1, _ROUNDS * _EACH, _EACH):
            for n in range(_CLIENTS):
                away = {"code": 3000 if n % 3 == 0 else 4001, "reason": "again"}
                await self.api(self.server, "disconnect", user=f"stress-{n}", disconnect=away)
                await self.publish(self.server, "stress", start + n * 3, start + n * 3 + 2)
            for events in listeners:
                self.assertEqual(await self.numbers(events, _EACH), list(range(start, start + _EACH)))
                self.assertTrue((await events.next("subscribed")).recovered)
        self.assertEqual([events.seen("publication") for events in listeners], [0] * _CLIENTS)

    async def test_one_hundred_clients_connect_and_close_at_once(self):
        """Two of three wait for their connection, the third does not."""

        async def come_and_go(n):
            client, events = self.client(self.server, token=token({"sub": f"crowd-{n}"}))
            connecting = asyncio.create_task(client.connect())
            await events.next("connected" if n % 3 else "connecting")
            await client.disconnect()
            await connecting
            self.assertEqual((await events.next("disconnected")).code, 0)

        await asyncio.gather(*(come_and_go(n) for n in range(100)))

        async def nobody():
            return (await self.api(self.server, "info"))["nodes"][0]["num_clients"] == 0

        await self.eventually(nobody, "no connection left")


class Json(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The SDK's default encoding."""


class Protobuf(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The same over binary frames."""

    use_protobuf = True


if __name__ == "__main__":
    unittest.main()
