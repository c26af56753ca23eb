"""Unidirectional gRPC: PyPI grpcio with the messages of our `.proto` files, of which centrifuge-python has its own here.

In: servers with `uni_grpc` -> out: pushes, statuses.
May use grpcio and its tools; never looks at bytes.
Other unidirectional transports are tested in test_unidirectional.py.
"""

import asyncio
import unittest
from pathlib import Path

import grpc
from google.protobuf.message_factory import GetMessageClass

from grpc_stubs import pool
from server import PATIENCE_S, Server, token

_POOL = pool("protocol", "unistream.proto")
_CONSUME = _POOL.FindServiceByName("centrifugal.centrifugo.unistream.CentrifugoUniStream").methods_by_name["Consume"]
_PATH = f"/{_CONSUME.containing_service.full_name}/{_CONSUME.name}"


def message(name):
    return GetMessageClass(_POOL.FindMessageTypeByName(f"centrifugal.centrifuge.protocol.{name}"))


ConnectRequest, SubscribeRequest, Push = message("ConnectRequest"), message("SubscribeRequest"), message("Push")

_KEYS = Path(__file__).resolve().parents[2] / "keys"
_OPEN = {"allow_subscribe_for_client": True, "history_size": 100, "history_ttl": "300s", "force_recovery": True}


class UniGrpc(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        # The debug mode that unittest switches on takes longer than everything else.
        asyncio.get_running_loop().set_debug(False)

    def serve(self, uni_grpc=None, client=None):
        listener = {"enabled": True, "address": "127.0.0.1", "port": 0} | (uni_grpc or {})
        self.server = Server({"uni_grpc": listener, "client": client or {}, "channel": {"without_namespace": _OPEN}})
        self.addCleanup(self.server.stop)
        self.address = self.server.line_with(r"\buni gRPC +(\S+)")

    def consume(self, request, credentials=None):
        options = [("grpc.enable_http_proxy", 0), ("grpc.ssl_target_name_override", "localhost")]
        if credentials is None:
            channel = grpc.aio.insecure_channel(self.address, options=options)
        else:
            channel = grpc.aio.secure_channel(self.address, credentials, options=options)
        self.addAsyncCleanup(channel.close)
        return channel.unary_stream(_PATH, ConnectRequest.SerializeToString, Push.FromString)(request)

    def request(self, *channels, **fields):
        subs = {channel: SubscribeRequest(recover=False) for channel in channels}
        return ConnectRequest(token=token({"sub": "42"}), subs=subs, **fields)

    async def next(self, call):
        push = await asyncio.wait_for(call.read(), PATIENCE_S)
        self.assertIsNot(push, grpc.aio.EOF)
        return push

    async def ends(self, call, code=grpc.StatusCode.OK):
        self.assertEqual(await asyncio.wait_for(call.code(), PATIENCE_S), code)

    async def test_publications_come_until_a_disconnect(self):
        self.serve()
        call = self.consume(self.request("news"))
        connect = (await self.next(call)).connect
        self.assertIn("news", connect.subs)
        self.assertEqual(connect.ping, 25)
        for n in range(50):
            await asyncio.to_thread(self.server.api, "publish", channel="news", data={"n": n}, tags={"t": "x"})
        for n in range(50):
            push = await self.next(call)
            self.assertEqual((push.channel, push.pub.data, push.pub.offset), ("news", b'{"n": %d}' % n, n + 1))
            self.assertEqual(dict(push.pub.tags), {"t": "x"})
        clients = await asyncio.to_thread(self.server.api, "channels")
        self.assertEqual(clients["channels"]["news"]["num_clients"], 1)
        large = "x" * 300_000
        await asyncio.to_thread(self.server.api, "publish", channel="news", data=large)
        self.assertEqual((await self.next(call)).pub.data, f'"{large}"'.encode())
        await asyncio.to_thread(
            self.server.api, "disconnect", user="42", disconnect={"code": 4000, "reason": "enough"}
        )
        disconnect = (await self.next(call)).disconnect
        self.assertEqual((disconnect.code, disconnect.reason), (4000, "enough"))
        await self.ends(call)

    async def test_a_client_that_leaves_is_gone(self):
        self.serve()
        call = self.consume(self.request("news"))
        await self.next(call)
        call.cancel()
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while (await asyncio.to_thread(self.server.api, "channels"))["channels"]:
            self.assertLess(asyncio.get_running_loop().time(), deadline, "it is still subscribed")

    async def test_pings_are_empty_pushes(self):
        self.serve(client={"ping_interval": "1s", "pong_timeout": "500ms"})
        call = self.consume(self.request())
        self.assertEqual((await self.next(call)).connect.ping, 1)
        for _ in range(2):
            self.assertEqual(await self.next(call), Push())

    async def test_missed_publications_are_recovered(self):
        self.serve()
        published = [
            await asyncio.to_thread(self.server.api, "publish", channel="news", data=n) for n in range(3)
        ]
        position = SubscribeRequest(recover=True, offset=1, epoch=published[0]["epoch"])
        request = ConnectRequest(token=token({"sub": "42"}), subs={"news": position})
        result = (await self.next(self.consume(request))).connect.subs["news"]
        self.assertTrue(result.recovered)
        self.assertEqual([publication.data for publication in result.publications], [b"1", b"2"])

    async def test_a_refused_connect_is_a_disconnect(self):
        self.serve()
        call = self.consume(ConnectRequest(token="nonsense"))
        self.assertEqual((await self.next(call)).disconnect.code, 3500)
        await self.ends(call)

    async def test_a_request_of_no_bytes_is_a_connect(self):
        self.serve(client={"allow_anonymous_connect_without_token": True})
        call = self.consume(ConnectRequest())
        self.assertTrue((await self.next(call)).connect.client)

    async def test_large_requests_and_other_methods_are_refused(self):
        self.serve({"max_receive_message_size": 1000})
        await self.ends(self.consume(self.request(data=bytes(1001))), grpc.StatusCode.RESOURCE_EXHAUSTED)
        async with grpc.aio.insecure_channel(self.address, options=[("grpc.enable_http_proxy", 0)]) as channel:
            call = channel.unary_stream("/centrifugal.centrifugo.unistream.CentrifugoUniStream/Other")(b"")
            self.assertEqual(await call.code(), grpc.StatusCode.UNIMPLEMENTED)

    async def test_the_end_of_the_server_is_a_disconnect_to_reconnect_after(self):
        self.serve()
        call = self.consume(self.request())
        await self.next(call)
        stopped = asyncio.create_task(asyncio.to_thread(self.server.stop))
        self.assertEqual((await self.next(call)).disconnect.code, 3001)
        await self.ends(call)
        self.assertEqual(await stopped, 0)

    async def test_with_tls(self):
        names = {"cert_pem": "localhost.pem", "key_pem": "localhost.private.pem"}
        self.serve({"tls": {"enabled": True} | {key: str(_KEYS / name) for key, name in names.items()}})
        credentials = grpc.ssl_channel_credentials((_KEYS / "ca.pem").read_bytes())
        call = self.consume(self.request("news"), credentials)
        await self.next(call)
        await asyncio.to_thread(self.server.api, "publish", channel="news", data=1)
        self.assertEqual((await self.next(call)).pub.data, b"1")


if __name__ == "__main__":
    unittest.main()
