"""PyPI websockets, a strict RFC 6455 and RFC 7692 client, speaking the JSON protocol by hand.

In: one insecure server -> out: negotiated extensions, replies, close codes.
May use websockets only; never an SDK.
The long list of malformed input is in ../js/raw.test.js; here is what another library sees.
"""

import asyncio
import json
import unittest

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory

from server import PATIENCE_S, Server

SCORES = {"rows": [{"n": n, "team": f"team {n % 7}", "score": n * 3} for n in range(400)]}


class WebSockets(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server({"client": {"insecure": True, "allowed_origins": ["https://good.example"]}})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    async def open(self, **options):
        socket = await connect(self.server.websocket, proxy=None, **options)
        self.addAsyncCleanup(socket.close)
        return socket

    async def subscriber(self, channel, **options):
        socket = await self.open(**options)
        subscribe = {"id": 2, "subscribe": {"channel": channel}}
        await socket.send('{"id":1,"connect":{}}\n' + json.dumps(subscribe))
        replies = []
        while not any(reply.get("id") == 2 for reply in replies):
            replies += await receive(socket)
        self.assertIn("client", replies[0]["connect"])
        self.assertEqual(replies[1], {"id": 2, "subscribe": {}})
        return socket

    async def heard(self, socket, channel):
        await asyncio.to_thread(self.server.api, "publish", channel=channel, data=SCORES)
        [reply] = await receive(socket)
        return reply["push"]["pub"]["data"]

    async def test_the_default_offer_is_agreed_and_a_large_message_arrives_equal(self):
        socket = await self.subscriber("large")
        names = [extension.name for extension in socket.protocol.extensions]
        self.assertEqual(names, ["permessage-deflate"])
        self.assertEqual(await self.heard(socket, "large"), SCORES)

    async def test_offers_with_parameters_are_answered_within_the_rules(self):
        for offer in (
            {"server_no_context_takeover": True},
            {"client_no_context_takeover": True},
            {"server_max_window_bits": 9},
            {"client_max_window_bits": 9},
            {"server_max_window_bits": 12, "client_max_window_bits": True},
        ):
            with self.subTest(offer):
                factory = ClientPerMessageDeflateFactory(**offer)
                socket = await self.subscriber("offers", compression=None, extensions=[factory])
                self.assertEqual(await self.heard(socket, "offers"), SCORES)

    async def test_no_offer_means_no_compression(self):
        socket = await self.subscriber("bare", compression=None)
        self.assertEqual(socket.protocol.extensions, [])
        self.assertEqual(await self.heard(socket, "bare"), SCORES)

    async def test_a_ping_is_answered(self):
        socket = await self.open()
        latency = await asyncio.wait_for(await socket.ping(), PATIENCE_S)
        self.assertGreaterEqual(latency, 0)

    async def test_a_fragmented_command_is_read(self):
        socket = await self.open()
        await socket.send(['{"id":1,', '"connect"', ":{}}"])
        [reply] = await receive(socket)
        self.assertIn("connect", reply)

    async def test_a_close_is_answered_with_its_code(self):
        socket = await self.open()
        await asyncio.wait_for(socket.close(4000, "bye"), PATIENCE_S)
        self.assertEqual((socket.protocol.close_rcvd.code, socket.protocol.close_rcvd_then_sent), (4000, False))

    async def test_malformed_json_ends_with_3501(self):
        socket = await self.open()
        await socket.send("{")
        code, reason = await closed(socket)
        self.assertEqual((code, reason.split(": ")[0]), (3501, "bad request"))

    async def test_an_oversized_message_ends_with_1009(self):
        socket = await self.open(compression=None)
        await socket.send("a" * 70_000)
        self.assertEqual((await closed(socket))[0], 1009)

    async def test_a_decompression_bomb_ends_with_1009(self):
        socket = await self.open()
        await socket.send("a" * 10_000_000)
        self.assertEqual((await closed(socket))[0], 1009)

    async def test_a_subprotocol_is_echoed(self):
        socket = await self.open(subprotocols=["centrifuge-json"])
        self.assertEqual(socket.subprotocol, "centrifuge-json")

    async def test_a_wrong_origin_is_refused_with_403(self):
        with self.assertRaises(InvalidStatus) as raised:
            await self.open(origin="https://evil.example")
        self.assertEqual(raised.exception.response.status_code, 403)
        await self.open(origin="https://good.example")


class Takeover(unittest.IsolatedAsyncioTestCase):
    """Messages of the client refer to its earlier ones (RFC 7692 §7.1.1.2)."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server({"client": {"insecure": True}, "websocket": {"client_context_takeover": True}})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    async def test_commands_in_one_context_are_read_in_every_window(self):
        for offer, window_bits in (
            ({"client_max_window_bits": True}, 12),
            ({"client_max_window_bits": 15}, 12),
            ({"client_max_window_bits": 9}, 9),
            ({"client_max_window_bits": None}, 15),
        ):
            with self.subTest(offer):
                factory = ClientPerMessageDeflateFactory(**offer)
                socket = await connect(self.server.websocket, proxy=None, compression=None, extensions=[factory])
                self.addAsyncCleanup(socket.close)
                [extension] = socket.protocol.extensions
                self.assertFalse(extension.local_no_context_takeover)
                self.assertEqual(extension.local_max_window_bits, window_bits)
                await socket.send('{"id":1,"connect":{}}')
                await receive(socket)
                for command in range(2, 200):
                    data = SCORES["rows"][command : command + 1 + command % 60]
                    await socket.send(json.dumps({"id": command, "rpc": {"method": "none", "data": data}}))
                    [reply] = await receive(socket)
                    self.assertEqual((reply["id"], reply["error"]["code"]), (command, 108))

    async def test_a_client_may_do_without(self):
        factory = ClientPerMessageDeflateFactory(client_no_context_takeover=True)
        socket = await connect(self.server.websocket, proxy=None, compression=None, extensions=[factory])
        self.addAsyncCleanup(socket.close)
        [extension] = socket.protocol.extensions
        self.assertTrue(extension.local_no_context_takeover)
        for command in range(1, 20):
            await socket.send(json.dumps({"id": command, "connect" if command == 1 else "presence": {"channel": "x"}}))
            [reply] = await receive(socket)
            self.assertEqual(reply["id"], command)


async def receive(socket):
    """The replies of the next message."""
    text = await asyncio.wait_for(socket.recv(), PATIENCE_S)
    return [json.loads(line) for line in text.split("\n")]


async def closed(socket):
    """The code and the reason the server closed with."""
    try:
        while True:
            await asyncio.wait_for(socket.recv(), PATIENCE_S)
    except ConnectionClosed as end:
        return (end.rcvd.code, end.rcvd.reason) if end.rcvd else (1006, "")


if __name__ == "__main__":
    unittest.main()
