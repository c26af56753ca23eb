"""PyPI prometheus-client's OpenMetrics parser, as published: every page of metrics is one that it accepts.

In: a server that was used a little -> out: families with their samples, as the parser reads them.
May use the parser and, to have somebody there, centrifuge-python; the parser refuses what OpenMetrics 1.0 does not allow.
Which metrics there are is tested in the crate `server`, and that they are served in ../js/operation.test.js.
"""

import asyncio
import unittest
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from clients import Sdk
from server import PATIENCE_S, Server

_OPEN = {"allow_subscribe_for_client": True}


class Metrics(Sdk, unittest.IsolatedAsyncioTestCase):
    """One page, after a few publications and calls of the API."""

    async def page(self):
        settings = {"prometheus": {"enabled": True}, "channel": {"without_namespace": _OPEN}}
        server = Server(settings)
        self.addCleanup(server.stop)
        client, _, _ = await self.someone(server, "42")
        _, events = await self.subscribed(client, "news")
        for n in range(4):
            await self.api(server, "publish", channel="news", data={"n": n})
            await events.next("publication")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
        call = urllib.request.Request(f"{server.http}/metrics", headers=accept)
        return await asyncio.to_thread(lambda: opener.open(call, timeout=PATIENCE_S).read().decode())

    async def test_the_whole_page_is_openmetrics(self):
        families = {family.name: family for family in text_string_to_metric_families(await self.page())}
        calls = families["fanwire_api_commands"].samples
        self.assertEqual([call.value for call in calls if call.labels["method"] == "publish"], [4])
        self.assertEqual(families["fanwire_node_num_clients"].samples[0].value, 1)

    async def test_every_histogram_ends_with_its_count(self):
        families = list(text_string_to_metric_families(await self.page()))
        histograms = [family for family in families if family.type == "histogram"]
        self.assertEqual(
            {family.name for family in histograms},
            {
                "fanwire_node_publish_latency_seconds",
                "fanwire_api_command_duration_seconds",
                "fanwire_client_message_duration_seconds",
                "fanwire_client_ping_pong_duration_seconds",
                "fanwire_delivery_waiting_age_seconds",
                "fanwire_shard_turn_duration_seconds",
                "fanwire_transport_write_duration_seconds",
            },
        )
        for family in histograms:
            ends = {}
            for sample in family.samples:
                rest = tuple(pair for pair in sample.labels.items() if pair[0] != "le")
                if sample.labels.get("le") == "+Inf" or sample.name.endswith("_count"):
                    ends.setdefault(rest, []).append(sample.value)
            self.assertTrue(ends)
            for bucket, count in ends.values():
                self.assertEqual(bucket, count)
