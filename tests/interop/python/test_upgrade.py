"""PyPI centrifuge-python, as published, in JSON and in Protobuf, while `fanwire upgrade` replaces the server.

In: clients of a channel, publications without a break -> out: no client reconnects; each one gets each publication once, in order.
May use the SDK's public interface and the server API only; never looks at bytes.
Other kinds of connections, faults and times are in crates/cli/tests/it/takeover.rs.
"""

import asyncio
import unittest

from clients import Sdk
from server import Server

_CLIENTS = 10


class Scenarios(Sdk):
    """What both encodings must do; the test classes below say which one."""

    async def test_clients_notice_nothing_of_an_upgrade(self):
        options = {"allow_subscribe_for_client": True}
        with Server({"pid_file": "pid", "channel": {"without_namespace": options}}) as server:
            clients = [await self.someone(server, f"user-{n}") for n in range(_CLIENTS)]
            listeners = [(await self.subscribed(client, "news"))[1] for client, _, _ in clients]
            upgrade = asyncio.create_task(asyncio.to_thread(server.upgrade))
            published = 0
            while not upgrade.done():
                published += 1
                await self.publish_once(server, published)
            await upgrade
            for events in listeners:
                heard = await self.numbers(events, published)
                self.assertEqual(heard, list(range(1, published + 1)))
                self.assertEqual(events.seen("publication"), 0)
            for _, events, _ in clients:
                self.assertEqual(events.seen("connecting"), 1)
                self.assertEqual(events.seen("disconnected"), 0)
            for client, _, _ in clients:
                await client.disconnect()

    async def publish_once(self, server, number):
        """Publishes until it is accepted: a connection that the server closes before it has read the request fails."""

        async def is_accepted():
            key = f"{number}"
            request = {"channel": "news", "data": {"n": number}, "idempotency_key": key}
            try:
                await self.api(server, "publish", **request)
            except OSError:
                return False
            return True

        await self.eventually(is_accepted, f"publication {number}")


class Json(Scenarios, unittest.IsolatedAsyncioTestCase):
    pass


class Protobuf(Scenarios, unittest.IsolatedAsyncioTestCase):
    use_protobuf = True


if __name__ == "__main__":
    unittest.main()
