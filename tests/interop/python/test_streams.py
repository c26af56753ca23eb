"""Compressed streams in Python: PyPI httpx, aiohttp and requests decode them by themselves.

In: one insecure server -> out: each message when it was published, in event streams and HTTP streams.
May use these packages only; never an SDK.
Bytes are tested in Rust; other programs and browsers in ../js/streams_compressed.test.js and ../browser/streams.test.js.
"""

import asyncio
import json
import unittest

import aiohttp
import httpx
import requests

from server import PATIENCE_S, Server

COUNT = 40
PATHS = ("sse", "http_stream", "uni_sse", "uni_http_stream")


def commands(channel, path="sse"):
    """Connects and subscribes; what clients without commands send is a connect request."""
    if path.startswith("uni_"):
        return f'{{"subs":{{"{channel}":{{}}}}}}'
    return f'{{"id":1,"connect":{{}}}}\n{{"id":2,"subscribe":{{"channel":"{channel}"}}}}'


def state(n):
    rows = [{"player": f"Spieler ☺ {at}", "score": n if at == n % 7 else at} for at in range(3 + n % 5 * 20)]
    return {"n": n, "players": rows}


def is_subscribed(got):
    """Whether it is the reply to subscribe, or the connect push of a client without commands."""
    return got.get("id") == 2 or "id" not in got and "connect" in got


def message(line):
    """The message of a line or an event; None for what is around it."""
    text = line.strip().removeprefix("data: ")
    return json.loads(text) if text and not text.startswith("id: ") else None


class Streams(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        on = {"enabled": True}
        transports = {path: on for path in PATHS}
        history = {"history_size": 10, "history_ttl": "60s", "force_recovery": True}
        channel = {"without_namespace": {"allow_subscribe_for_client": True, **history}}
        cls.server = Server({"client": {"insecure": True}, "channel": channel, **transports})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def url(self, path):
        return f"{self.server.http}/connection/{path}"

    async def one_by_one(self, channel, lines):
        """Publishes each state when the one before has arrived; `lines` are those of the body."""

        async def until(wanted):
            async for line in lines:
                got = message(line)
                if got and wanted(got):
                    return got
            raise AssertionError("the stream ended")

        await asyncio.wait_for(until(is_subscribed), PATIENCE_S)
        for n in range(COUNT):
            await asyncio.to_thread(self.server.api, "publish", channel=channel, data=state(n))
            got = await asyncio.wait_for(until(lambda got: "pub" in got.get("push", got)), PATIENCE_S)
            self.assertEqual(got.get("push", got)["pub"]["data"], state(n))

    async def test_httpx(self):
        for path in PATHS:
            with self.subTest(path):
                async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as client:
                    async with client.stream("POST", self.url(path), content=commands(f"httpx_{path}", path)) as response:
                        self.assertEqual(response.headers["content-encoding"], "gzip")
                        await self.one_by_one(f"httpx_{path}", response.aiter_lines())

    async def test_aiohttp(self):
        for path in PATHS:
            with self.subTest(path):
                async with aiohttp.ClientSession() as client:
                    async with client.post(self.url(path), data=commands(f"aiohttp_{path}", path)) as response:
                        self.assertEqual(response.headers["content-encoding"], "gzip")
                        lines = (line.decode() async for line in response.content)
                        await self.one_by_one(f"aiohttp_{path}", lines)

    async def test_requests(self):
        with requests.Session() as client:
            client.trust_env = False
            body = commands("requests")
            with client.post(self.url("sse"), data=body, stream=True, timeout=PATIENCE_S) as response:
                self.assertEqual(response.headers["content-encoding"], "gzip")
                lines = response.iter_lines(chunk_size=1)

                async def read():
                    while (line := await asyncio.to_thread(next, lines, None)) is not None:
                        yield line.decode()

                await self.one_by_one("requests", read())


if __name__ == "__main__":
    unittest.main()
