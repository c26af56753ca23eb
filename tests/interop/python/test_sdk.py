"""PyPI centrifuge-python, as published, in JSON and in Protobuf.

In: one development server and one with tokens -> out: the events the SDK reports.
May use the SDK's public interface and the server API only; never looks at bytes.
The same scenarios in JavaScript are in ../js/sdk.test.js; plain websockets in test_websockets.py.
"""

import asyncio
import json
import time
import unittest
from collections import defaultdict

import centrifuge

from server import PATIENCE_S, Server, token


class Scenarios:
    """What both encodings must do; the test classes below say how payloads look."""

    use_protobuf = False

    @classmethod
    def setUpClass(cls):
        cls.insecure = Server({"client": {"insecure": True, "channel_limit": 5}})
        options = {"allow_subscribe_for_client": True, "allow_publish_for_subscriber": True}
        cls.strict = Server({"channel": {"without_namespace": options}})

    @classmethod
    def tearDownClass(cls):
        cls.insecure.stop()
        cls.strict.stop()

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

    async def subscribed(self, client, channel, **options):
        events = Events()
        subscription = client.new_subscription(channel, events=events, **options)
        await subscription.subscribe()
        await events.next("subscribed")
        return subscription, events

    async def refused(self, client, channel, code, **options):
        events = Events()
        subscription = client.new_subscription(channel, events=events, **options)
        await subscription.subscribe()
        self.assertEqual((await events.next("unsubscribed")).code, code)

    async def test_connects_without_a_token_to_an_insecure_server(self):
        client, _ = await self.connected(self.insecure)
        self.assertEqual(client.state, centrifuge.ClientState.CONNECTED)

    async def test_is_refused_without_a_token_by_a_strict_server(self):
        client, events = self.client(self.strict)
        await client.connect()
        self.assertEqual((await events.next("disconnected")).code, 3501)

    async def test_a_token_of_another_secret_ends_with_3500(self):
        client, events = self.client(self.strict, token=token({"sub": "42"}, "another-secret"))
        await client.connect()
        self.assertEqual((await events.next("disconnected")).code, 3500)

    async def test_renews_an_expired_token(self):
        asked = []

        async def get_token():
            asked.append(1)
            return token({"sub": "42", "exp": int(time.time()) + 3600})

        expired = token({"sub": "42", "exp": int(time.time()) - 10})
        await self.connected(self.strict, token=expired, get_token=get_token)
        self.assertEqual(asked, [1])

    async def test_receives_its_own_publication_with_its_info(self):
        claims = {"sub": "42", "info": {"name": "Ada"}}
        client, _ = await self.connected(self.strict, token=token(claims))
        subscription, events = await self.subscribed(client, "own")
        await subscription.publish(self.payload({"text": "hällo <b> & \"quotes\" \u2028"}))
        publication = (await events.next("publication")).pub
        self.assertEqual(self.value(publication.data), {"text": "hällo <b> & \"quotes\" \u2028"})
        self.assertEqual(publication.info.user, "42")
        self.assertEqual(self.value(publication.info.conn_info), {"name": "Ada"})

    async def test_receives_200_publications_of_the_http_api_in_order(self):
        client, _ = await self.connected(self.insecure)
        _, events = await self.subscribed(client, "order")

        def publish():
            for n in range(200):
                self.insecure.api("publish", channel="order", data={"n": n}, tags={"n": str(n)})

        await asyncio.to_thread(publish)
        publications = [(await events.next("publication")).pub for _ in range(200)]
        self.assertEqual([self.value(pub.data)["n"] for pub in publications], list(range(200)))
        self.assertEqual(publications[7].tags, {"n": "7"})

    async def test_hears_nothing_after_it_unsubscribed_and_again_after_it_subscribed(self):
        client, _ = await self.connected(self.insecure)
        subscription, events = await self.subscribed(client, "again")
        await subscription.unsubscribe()
        await self.fence(client)
        await asyncio.to_thread(self.insecure.api, "publish", channel="again", data=1)
        await subscription.subscribe()
        await events.next("subscribed")
        await asyncio.to_thread(self.insecure.api, "publish", channel="again", data=2)
        self.assertEqual(self.value((await events.next("publication")).pub.data), 2)

    async def test_subscribes_with_a_subscription_token(self):
        client, _ = await self.connected(self.strict, token=token({"sub": "42"}))
        good = token({"sub": "42", "channel": "$secret"})
        await self.subscribed(client, "$secret", token=good)
        await self.refused(client, "$bare", 103)
        forged = token({"sub": "42", "channel": "$forged"}, "another-secret")
        await self.refused(client, "$forged", 103, token=forged)

    async def test_an_unknown_namespace_is_error_102(self):
        client, _ = await self.connected(self.strict, token=token({"sub": "42"}))
        await self.refused(client, "nowhere:channel", 102)

    async def test_the_channel_limit_is_error_106(self):
        client, _ = await self.connected(self.insecure)
        for n in range(5):
            await self.subscribed(client, f"limit-{n}")
        await self.refused(client, "limit-5", 106)

    async def test_what_is_not_there_yet_is_error_108(self):
        client, _ = await self.connected(self.insecure)
        subscription, _ = await self.subscribed(client, "absent")
        await self.fence(client)
        for call in (subscription.presence(), subscription.presence_stats(), subscription.history(1)):
            with self.assertRaises(centrifuge.ReplyError) as raised:
                await call
            self.assertEqual(raised.exception.code, 108)

    async def test_a_forced_disconnect_is_final(self):
        client, events = await self.connected(self.strict, token=token({"sub": "out"}))
        await asyncio.to_thread(self.strict.api, "disconnect", user="out")
        self.assertEqual((await events.next("disconnected")).code, 3503)
        self.assertEqual(client.state, centrifuge.ClientState.DISCONNECTED)

    async def test_a_custom_disconnect_of_4001_reconnects_with_the_subscriptions(self):
        client, events = await self.connected(self.strict, token=token({"sub": "back"}))
        _, subscription_events = await self.subscribed(client, "back")
        await events.next("connecting")
        disconnect = {"code": 4001, "reason": "come back"}
        await asyncio.to_thread(self.strict.api, "disconnect", user="back", disconnect=disconnect)
        self.assertEqual((await events.next("connecting")).code, 4001)
        await subscription_events.next("subscribed")
        await asyncio.to_thread(self.strict.api, "publish", channel="back", data={"n": 1})
        publication = (await subscription_events.next("publication")).pub
        self.assertEqual(self.value(publication.data), {"n": 1})

    async def test_the_api_unsubscribes_a_client_for_good(self):
        client, _ = await self.connected(self.strict, token=token({"sub": "unsub"}))
        _, events = await self.subscribed(client, "unsub")
        await asyncio.to_thread(self.strict.api, "unsubscribe", user="unsub", channel="unsub")
        self.assertEqual((await events.next("unsubscribed")).code, 2000)

    async def fence(self, client):
        """An rpc that is answered with 108, after everything that was sent before it."""
        with self.assertRaises(centrifuge.ReplyError) as raised:
            await client.rpc("fence", self.payload({}))
        self.assertEqual(raised.exception.code, 108)


class Json(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The SDK's default encoding."""


class Protobuf(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The same over binary frames."""

    use_protobuf = True


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

    async def next(self, kind):
        """The oldest event of this kind that was not asked for yet."""
        try:
            return await asyncio.wait_for(self._queues[kind].get(), PATIENCE_S)
        except asyncio.TimeoutError:
            seen = {kind: queue.qsize() for kind, queue in self._queues.items()}
            raise AssertionError(f"waited {PATIENCE_S} s for {kind}; waiting now: {seen}") from None


if __name__ == "__main__":
    unittest.main()
