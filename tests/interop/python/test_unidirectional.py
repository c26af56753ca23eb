"""Unidirectional transports with PyPI websockets and aiohttp, neither of which knows the protocol.

In: servers with uni_websocket, uni_sse and uni_http_stream -> out: pushes, codes and statuses as an application reads them.
May use these libraries only; never an SDK, which none of these transports needs.
Bytes of frames and heads are tested in crates/fanwire/tests/it/uni; here is what other programs make of them.
"""

import asyncio
import json
import unittest

import aiohttp
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from server import PATIENCE_S, Server, token

SETTINGS = {
    "uni_websocket": {"enabled": True, "compression": True, "compression_min_size": 0},
    "uni_sse": {"enabled": True},
    "uni_http_stream": {"enabled": True},
    "client": {"ping_interval": "2s", "pong_timeout": "1s"},
    "channel": {
        "without_namespace": {
            "allow_subscribe_for_client": True,
            "history_size": 100,
            "history_ttl": "60s",
            "force_recovery": True,
        }
    },
}
TRANSPORTS = ("uni_websocket", "uni_sse", "uni_http_stream")


class Stream:
    """Pushes of the body of a response, or of messages of a WebSocket."""

    def __init__(self, source):
        self.source = source
        self.lines = []

    async def push(self):
        while not self.lines:
            self.lines = await asyncio.wait_for(self.read(), PATIENCE_S)
        return json.loads(self.lines.pop(0))

    async def next(self):
        """The next push that is no ping."""
        while not (push := await self.push()):
            pass
        return push

    async def read(self):
        if isinstance(self.source, aiohttp.ClientResponse):
            line = (await self.source.content.readline()).decode()
            if not line:
                raise EOFError
            return [line.removeprefix("data: ")] if line.strip() and not line.startswith("id: ") else []
        return (await self.source.recv()).split("\n")


class Unidirectional(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(SETTINGS)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    async def asyncSetUp(self):
        self.http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_connect=PATIENCE_S))
        self.addAsyncCleanup(self.http.close)

    async def open(self, transport, request, server=None):
        http = (server or self.server).http
        url = f"{http}/connection/{transport}"
        text = json.dumps(request)
        if transport == "uni_websocket":
            socket = await connect(url.replace("http://", "ws://"), proxy=None)
            self.addAsyncCleanup(socket.close)
            await socket.send(text)
            return Stream(socket)
        if transport == "uni_sse":
            response = await self.http.get(url, params={"cf_connect": text})
        else:
            response = await self.http.post(url, data=text)
        self.addCleanup(response.close)
        return Stream(response)

    async def connected(self, transport, subs, server=None):
        stream = await self.open(transport, {"token": token({"sub": "42"}), "subs": subs}, server)
        return stream, (await stream.next())["connect"]

    async def publish(self, channel, data, server=None):
        await asyncio.to_thread((server or self.server).api, "publish", channel=channel, data=data)

    async def test_publications_arrive_in_order_behind_the_connect_push(self):
        for transport in TRANSPORTS:
            with self.subTest(transport):
                stream, connect_push = await self.connected(transport, {transport: {}})
                self.assertEqual(connect_push["subs"][transport]["recoverable"], True)
                self.assertEqual((connect_push["ping"], "pong" in connect_push), (2, False))
                for n in range(1, 31):
                    await self.publish(transport, {"n": n, "text": "ü" * 100})
                for n in range(1, 31):
                    push = await stream.next()
                    self.assertEqual((push["channel"], push["pub"]["offset"]), (transport, n))
                    self.assertEqual(push["pub"]["data"], {"n": n, "text": "ü" * 100})

    async def test_what_was_missed_is_recovered_at_the_next_connect(self):
        for transport in TRANSPORTS:
            with self.subTest(transport):
                channel = f"missed_{transport}"
                _, connect_push = await self.connected(transport, {channel: {}})
                epoch = connect_push["subs"][channel]["epoch"]
                for n in range(3):
                    await self.publish(channel, n)
                position = {"recover": True, "offset": 1, "epoch": epoch}
                stream, connect_push = await self.connected(transport, {channel: position})
                sub = connect_push["subs"][channel]
                self.assertTrue(sub["recovered"])
                self.assertEqual([one["data"] for one in sub["publications"]], [1, 2])
                await self.publish(channel, 3)
                self.assertEqual((await stream.next())["pub"]["data"], 3)

    async def test_pings_come_and_keep_the_connection(self):
        for transport in TRANSPORTS:
            with self.subTest(transport):
                stream, _ = await self.connected(transport, {"pinged": {}})
                for _ in range(2):
                    self.assertEqual(await stream.push(), {})
                await self.publish("pinged", transport)
                self.assertEqual((await stream.next())["pub"]["data"], transport)

    async def test_the_end_comes_as_a_push_and_on_a_websocket_as_a_close_code_too(self):
        for transport in TRANSPORTS:
            with self.subTest(transport):
                stream, connect_push = await self.connected(transport, {})
                disconnect = {"code": 4001, "reason": "bye"}
                await asyncio.to_thread(
                    self.server.api, "disconnect", user="42", client=connect_push["client"], disconnect=disconnect
                )
                self.assertEqual(await stream.next(), {"disconnect": disconnect})
                with self.assertRaises((EOFError, ConnectionClosed)) as ended:
                    await stream.push()
                if isinstance(ended.exception, ConnectionClosed):
                    self.assertEqual((ended.exception.rcvd.code, ended.exception.rcvd.reason), (4001, "bye"))

    async def test_a_refused_connect_is_a_disconnect_push(self):
        expired = token({"sub": "42", "exp": 1})
        for transport in TRANSPORTS:
            for request, code in (({"token": expired}, 3005), ({"token": "x"}, 3500), ({}, 3501)):
                with self.subTest(transport, code=code):
                    stream = await self.open(transport, request)
                    self.assertEqual((await stream.next())["disconnect"]["code"], code)

    async def test_a_refused_connect_is_a_status_where_configured(self):
        transforms = [{"code": 109, "to": {"status_code": 401, "body": "expired"}}]
        responses = {"connect_code_to_http_response": {"enabled": True, "transforms": transforms}}
        with Server({**SETTINGS, **{name: {"enabled": True, **responses} for name in TRANSPORTS[1:]}}) as server:
            for transport in TRANSPORTS[1:]:
                with self.subTest(transport):
                    expired = {"token": token({"sub": "42", "exp": 1})}
                    response = (await self.open(transport, expired, server)).source
                    self.assertEqual((response.status, await response.text()), (401, "expired"))
                    response = (await self.open(transport, {"token": "x"}, server)).source
                    self.assertEqual((response.status, await response.text()), (500, "Internal Server Error"))
                    stream, _ = await self.connected(transport, {"a": {}}, server)
                    await self.publish("a", 1, server)
                    self.assertEqual((await stream.next())["pub"]["data"], 1)

    async def test_a_stop_of_the_server_is_3001(self):
        with Server(SETTINGS) as server:
            streams = [(await self.connected(transport, {}, server))[0] for transport in TRANSPORTS]
            stopping = asyncio.create_task(asyncio.to_thread(server.stop))
            for stream in streams:
                self.assertEqual(await stream.next(), {"disconnect": {"code": 3001, "reason": "shutdown"}})
            for stream in streams:
                with self.assertRaises((EOFError, ConnectionClosed)):
                    await stream.push()
            self.assertEqual(await stopping, 0)


if __name__ == "__main__":
    unittest.main()
