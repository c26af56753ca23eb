"""The server API over gRPC: PyPI grpcio with stubs that its tools make of our `.proto` files.

In: servers with `grpc_api` -> out: responses, statuses, trailers and publications as the libraries read them.
May use grpcio, its tools and its reflection, and centrifuge-python as a subscriber; never looks at bytes.
That gRPC and HTTP answer equally is tested in crates/api/src/grpc/tests.rs.
"""

import asyncio
import unittest
from pathlib import Path

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from clients import Sdk
from grpc_stubs import modules
from server import API_KEY, PATIENCE_S, Server

pb, stubs, _, fanwire_stubs = modules("api", "api.proto", "fanwire.proto")

_KEYS = Path(__file__).resolve().parents[2] / "keys"
_OPEN = {"allow_subscribe_for_client": True, "history_size": 100, "history_ttl": "300s", "presence": True}
_AUTHORIZED = (("authorization", f"apikey {API_KEY}"),)


class Grpc(Sdk, unittest.IsolatedAsyncioTestCase):
    """Calls of one server, with a key."""

    settings = {}

    def setUp(self):
        grpc_api = {"enabled": True, "address": "127.0.0.1", "port": 0, "key": API_KEY} | self.settings
        # Any bytes may be published into `raw`; channels with JSON clients need JSON.
        raw = {"name": "raw", "publication_data_format": "binary"} | _OPEN
        channel = {"without_namespace": _OPEN, "namespaces": [raw]}
        self.server = Server({"grpc_api": grpc_api, "channel": channel, "prometheus": {"enabled": True}})
        self.addCleanup(self.server.stop)
        self.address = self.server.line_with(r"\bgRPC API +(\S+)")

    def opened(self, credentials=None):
        options = [("grpc.enable_http_proxy", 0)]
        if credentials is None:
            channel = grpc.aio.insecure_channel(self.address, options=options)
        else:
            options.append(("grpc.ssl_target_name_override", "localhost"))
            channel = grpc.aio.secure_channel(self.address, credentials, options=options)
        self.addAsyncCleanup(channel.close)
        return channel

    def stub(self, credentials=None):
        return stubs.CentrifugoApiStub(self.opened(credentials))

    async def fails(self, call, code):
        with self.assertRaises(grpc.aio.AioRpcError) as raised:
            await call
        self.assertEqual(raised.exception.code(), code)
        return raised.exception

    async def call(self, api, method, request, **options):
        return await getattr(api, method)(request, metadata=_AUTHORIZED, timeout=PATIENCE_S, **options)


class Calls(Grpc):
    settings = {"reflection": True}

    async def test_publishes_to_clients_and_reads_back(self):
        client, _, _ = await self.someone(self.server, "42")
        _, news = await self.subscribed(client, "news")
        api = self.stub()
        published = await self.call(api, "Publish", pb.PublishRequest(channel="news", data=b'{"n":1}', tags={"a": "b"}))
        self.assertEqual(published.result.offset, 1)
        self.assertEqual((await news.next("publication")).pub.data, {"n": 1})
        presence = await self.call(api, "Presence", pb.PresenceRequest(channel="news"))
        self.assertEqual([info.user for info in presence.result.presence.values()], ["42"])
        stats = await self.call(api, "PresenceStats", pb.PresenceStatsRequest(channel="news"))
        self.assertEqual((stats.result.num_clients, stats.result.num_users), (1, 1))
        [node] = (await self.call(api, "Info", pb.InfoRequest())).result.nodes
        self.assertEqual((node.num_clients, node.num_channels), (1, 1))
        channels = await self.call(api, "Channels", pb.ChannelsRequest(pattern="n*"))
        self.assertEqual(channels.result.channels["news"].num_clients, 1)
        await self.call(api, "Disconnect", pb.DisconnectRequest(user="42"))

    async def test_keeps_any_bytes(self):
        api, data = self.stub(), bytes(range(256))
        request = pb.BroadcastRequest(channels=["raw:a", "raw:b", "none:a"], data=data)
        responses = (await self.call(api, "Broadcast", request)).result.responses
        self.assertEqual([response.error.code for response in responses], [0, 0, 102])
        history = await self.call(api, "History", pb.HistoryRequest(channel="raw:a", limit=-1))
        self.assertEqual([publication.data for publication in history.result.publications], [data])

    async def test_errors_are_in_the_response_or_in_the_status(self):
        api, request = self.stub(), pb.PublishRequest(channel="none:a", data=b"{}")
        response = await self.call(api, "Publish", request)
        self.assertEqual(response.error.code, 102)
        self.assertEqual(response.error.message, "unknown channel")
        metadata = (*_AUTHORIZED, ("x-centrifugo-error-mode", "transport"))
        error = await self.fails(api.Publish(request, metadata=metadata), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(error.details(), response.error.message)
        [details] = [value for key, value in error.trailing_metadata() if key == "grpc-status-details-bin"]
        # A google.rpc.Status, whose only detail ends with the error.
        self.assertTrue(details.endswith(response.error.SerializeToString()))
        self.assertIn(b"type.googleapis.com/centrifugal.centrifugo.api.Error", details)

    async def test_a_batch_of_10000_commands_keeps_their_order(self):
        commands = [pb.Command(publish=pb.PublishRequest(channel=f"c{n % 7}", data=b"%d" % n)) for n in range(9998)]
        commands += [pb.Command(), pb.Command(rpc=pb.RPCRequest(method="m"))]
        response = await self.call(self.stub(), "Batch", pb.BatchRequest(commands=commands, parallel=True))
        self.assertEqual(len(response.replies), 10_000)
        self.assertEqual([reply.error.code for reply in response.replies[-2:]], [104, 104])
        offsets = [reply.publish.offset for reply in response.replies[:-2]]
        self.assertEqual(offsets, [n // 7 + 1 for n in range(9998)])

    async def test_a_wrong_key_is_unauthenticated(self):
        api = self.stub()
        for metadata in [(), (("authorization", "apikey wrong"),), (("authorization", f"APIKEY {API_KEY}"),)]:
            call = api.Info(pb.InfoRequest(), metadata=metadata)
            error = await self.fails(call, grpc.StatusCode.UNAUTHENTICATED)
            self.assertEqual(error.details(), "unauthenticated")

    async def test_a_message_of_5_mib_is_too_large(self):
        api = self.stub()
        for compression in [None, grpc.Compression.Gzip]:
            request = pb.PublishRequest(channel="raw:a", data=bytes(5 << 20))
            call = self.call(api, "Publish", request, compression=compression)
            await self.fails(call, grpc.StatusCode.RESOURCE_EXHAUSTED)
        request = pb.PublishRequest(channel="raw:a", data=bytes(3 << 20))
        response = await self.call(api, "Publish", request, compression=grpc.Compression.Gzip)
        self.assertEqual(response.result.offset, 1)

    async def test_other_methods_are_unimplemented(self):
        call = self.opened().unary_unary("/centrifugal.centrifugo.api.CentrifugoApi/DeviceRegister")
        await self.fails(call(b"", metadata=_AUTHORIZED), grpc.StatusCode.UNIMPLEMENTED)

    async def test_calls_are_counted_by_their_protocol(self):
        api = self.stub()
        await self.call(api, "Publish", pb.PublishRequest(channel="news", data=b"1"))
        await self.fails(api.Info(pb.InfoRequest()), grpc.StatusCode.UNAUTHENTICATED)
        text = await asyncio.to_thread(self.server.metrics)
        self.assertIn('fanwire_api_commands_total{protocol="grpc",method="publish"} 1\n', text)
        self.assertIn('fanwire_api_refusals_total{protocol="grpc",reason="unauthorized"} 1\n', text)

    async def test_reflection_describes_the_services(self):
        def described():
            with grpc.insecure_channel(self.address, [("grpc.enable_http_proxy", 0)]) as channel:
                database = ProtoReflectionDescriptorDatabase(channel)
                service = DescriptorPool(database).FindServiceByName("centrifugal.centrifugo.api.CentrifugoApi")
                return database.get_services(), [method.name for method in service.methods]

        services, methods = await asyncio.to_thread(described)
        self.assertIn("fanwire.api.FanwireApi", services)
        for version in ("v1", "v1alpha"):
            self.assertIn(f"grpc.reflection.{version}.ServerReflection", services)
        self.assertEqual(set(methods), {method.name for method in pb.DESCRIPTOR.services_by_name["CentrifugoApi"].methods})

    async def test_a_stream_answers_while_it_goes_on(self):
        client, _, _ = await self.someone(self.server, "42")
        _, news = await self.subscribed(client, "news")
        stub = fanwire_stubs.FanwireApiStub(self.opened())
        call = stub.CommandStream(metadata=_AUTHORIZED)
        for n in range(3):
            await call.write(pb.Command(publish=pb.PublishRequest(channel="news", data=b"%d" % n)))
            self.assertEqual((await call.read()).publish.offset, n + 1)
            self.assertEqual((await news.next("publication")).pub.data, n)

        async def write():
            for n in range(20_000):
                await call.write(pb.Command(publish=pb.PublishRequest(channel=f"s{n % 3}", data=b"1")))
            await call.write(pb.Command())
            await call.done_writing()

        writing = asyncio.create_task(write())
        offsets = [(await call.read()).publish.offset for _ in range(20_000)]
        self.assertEqual(offsets, [n // 3 + 1 for n in range(20_000)])
        self.assertEqual((await call.read()).error.code, 104)
        await writing
        self.assertEqual(await call.read(), grpc.aio.EOF)
        self.assertEqual(await call.code(), grpc.StatusCode.OK)
        refused = stub.CommandStream()
        self.assertEqual(await refused.code(), grpc.StatusCode.UNAUTHENTICATED)

    async def test_a_stream_ends_with_the_server(self):
        call = fanwire_stubs.FanwireApiStub(self.opened()).CommandStream(metadata=_AUTHORIZED)
        await call.write(pb.Command(publish=pb.PublishRequest(channel="news", data=b"1")))
        self.assertEqual((await call.read()).publish.offset, 1)
        stopped = asyncio.create_task(asyncio.to_thread(self.server.stop))
        self.assertEqual(await call.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(await stopped, 0)


class WithTls(Grpc):
    """A listener that asks for certificates of clients, without a key, in transport mode."""

    settings = {
        "key": "",
        "error_mode": "transport",
        "max_receive_message_size": 1000,
        "tls": {
            "enabled": True,
            "cert_pem": str(_KEYS / "localhost.pem"),
            "key_pem": str(_KEYS / "localhost.private.pem"),
            "client_ca_pem": str(_KEYS / "ca.pem"),
        },
    }

    async def test_a_client_needs_a_certificate(self):
        ca, certificate, key = [
            (_KEYS / name).read_bytes() for name in ("ca.pem", "localhost.pem", "localhost.private.pem")
        ]
        known = self.stub(grpc.ssl_channel_credentials(ca, key, certificate))
        self.assertEqual(len((await known.Info(pb.InfoRequest())).result.nodes), 1)
        call = known.Presence(pb.PresenceRequest(channel="none:a"))
        await self.fails(call, grpc.StatusCode.NOT_FOUND)
        call = known.Publish(pb.PublishRequest(channel="news", data=bytes(1000)))
        await self.fails(call, grpc.StatusCode.RESOURCE_EXHAUSTED)
        # A batch has its errors in the response.
        batch = await known.Batch(pb.BatchRequest(commands=[pb.Command()]))
        self.assertEqual(batch.replies[0].error.code, 104)
        unknown = self.stub(grpc.ssl_channel_credentials(ca))
        await self.fails(unknown.Info(pb.InfoRequest()), grpc.StatusCode.UNAVAILABLE)


if __name__ == "__main__":
    unittest.main()
