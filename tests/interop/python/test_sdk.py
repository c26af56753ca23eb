"""PyPI centrifuge-python, as published, in JSON and in Protobuf.

In: one development server and one with tokens -> out: the events the SDK reports.
May use the SDK's public interface and the server API only; never looks at bytes.
The same scenarios in JavaScript are in ../js/sdk.test.js; plain websockets in test_websockets.py.
"""

import asyncio
import time
import unittest

import centrifuge

from clients import Events, Sdk
from server import Server, token


class Scenarios(Sdk):
    """What both encodings must do; the test classes below say which one."""

    @classmethod
    def setUpClass(cls):
        cls.insecure = Server({"client": {"insecure": True, "channel_limit": 5}})
        options = {"allow_subscribe_for_client": True, "allow_publish_for_subscriber": True}
        cls.strict = Server({"channel": {"without_namespace": options}})

    @classmethod
    def tearDownClass(cls):
        cls.insecure.stop()
        cls.strict.stop()

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

    async def test_the_code_of_a_disconnect_decides_whether_it_comes_back(self):
        rows = [(3000, 1), (3014, 3014), (3499, 3499), (4000, 4000), (4499, 4499)]
        for code, seen in rows:
            client, events, before = await self.someone(self.strict, f"back-{code}")
            _, heard = await self.subscribed(client, f"back-{code}")
            await events.next("connecting")
            reason = {"code": code, "reason": "told to"}
            await self.api(self.strict, "disconnect", user=f"back-{code}", disconnect=reason)
            self.assertEqual((await events.next("connecting")).code, seen)
            self.assertNotEqual((await events.next("connected")).client, before)
            await heard.next("subscribed")
            await self.publish(self.strict, f"back-{code}", 1, 1)
            self.assertEqual(await self.numbers(heard, 1), [1])
        for code in (3500, 3501, 3999, 4500, 4999):
            _, events, _ = await self.someone(self.strict, f"gone-{code}")
            reason = {"code": code, "reason": "told to"}
            await self.api(self.strict, "disconnect", user=f"gone-{code}", disconnect=reason)
            context = await events.next("disconnected")
            self.assertEqual((context.code, context.reason), (code, "told to"))

    async def test_five_subscriptions_with_tokens_come_back_after_a_reconnect(self):
        client, _, _ = await self.someone(self.strict, "five")
        channels = [f"$test{n}" for n in range(1, 6)]
        heard = {}
        for channel in channels:
            good = token({"sub": "five", "channel": channel})
            _, heard[channel] = await self.subscribed(client, channel, token=good)
        reason = {"code": 4001, "reason": "come back"}
        await self.api(self.strict, "disconnect", user="five", disconnect=reason)
        for n, channel in enumerate(channels):
            await heard[channel].next("subscribed")
            await self.publish(self.strict, channel, n, n)
            self.assertEqual(await self.numbers(heard[channel], 1), [n])

    async def test_a_token_that_the_application_refuses_is_final(self):
        async def refuse(*_):
            raise centrifuge.UnauthorizedError()

        client, events = self.client(self.strict, get_token=refuse)
        await client.connect()
        self.assertEqual((await events.next("disconnected")).code, 1)
        client, _, _ = await self.someone(self.strict, "refused")
        await self.refused(client, "$refused", 1, get_token=refuse)

    async def test_connects_disconnects_and_subscribes_many_times(self):
        client, events = self.client(self.insecure)
        heard = Events()
        subscription = client.new_subscription("loop", events=heard)
        for n in range(10):
            await subscription.subscribe()
            await client.connect()
            await events.next("connected")
            await heard.next("subscribed")
            await self.publish(self.insecure, "loop", n, n)
            self.assertEqual(await self.numbers(heard, 1), [n])
            await subscription.unsubscribe()
            await client.disconnect()
            self.assertEqual((await events.next("disconnected")).code, 0)

    async def test_the_api_unsubscribes_a_client_for_good(self):
        client, _ = await self.connected(self.strict, token=token({"sub": "unsub"}))
        _, events = await self.subscribed(client, "unsub")
        await asyncio.to_thread(self.strict.api, "unsubscribe", user="unsub", channel="unsub")
        self.assertEqual((await events.next("unsubscribed")).code, 2000)


class Json(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The SDK's default encoding."""


class Protobuf(Scenarios, unittest.IsolatedAsyncioTestCase):
    """The same over binary frames."""

    use_protobuf = True


if __name__ == "__main__":
    unittest.main()
