"""PyPI prometheus-client's parsers, as published: they read every page of metrics as it was meant.

In: a server that was used a little; pages of the example `scrape` with random labels -> out: families with their samples.
May use the parsers and, to have somebody there, centrifuge-python; the one of OpenMetrics refuses what version 1.0 does not allow.
Which metrics there are is tested in the crate `metrics`, and that they are served in ../js/operation.test.js.
"""

import asyncio
import os
import random
import struct
import subprocess
import unittest
import urllib.request
from pathlib import Path

from prometheus_client import parser as prometheus
from prometheus_client.openmetrics import parser as openmetrics

from clients import Sdk
from server import PATIENCE_S, Server

_OPEN = {"allow_subscribe_for_client": True}
_ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = os.environ.get("FANWIRE_SCRAPE", str(_ROOT / "target/debug/examples/scrape"))
_TEXTS = 2000
_SEED = int(os.environ.get("FANWIRE_SEED", "1"))
_PARSERS = {"prometheus": prometheus, "openmetrics": openmetrics}
_ALPHABETS = ["\\\"\n", "\\n\"", "\r\n\\", ' ,={}"#', "abc", "äöü\ufeff\u2028\x85", "🚀日", "".join(map(chr, range(256)))]


class Metrics(Sdk, unittest.IsolatedAsyncioTestCase):
    """One page, after a few publications and calls of the API."""

    async def page(self, **settings):
        settings = {"prometheus": {"enabled": True}, "channel": {"without_namespace": _OPEN}} | settings
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
        families = {family.name: family for family in _families(openmetrics, await self.page())}
        calls = families["fanwire_api_commands"].samples
        self.assertEqual([call.value for call in calls if call.labels["method"] == "publish"], [4])
        self.assertEqual(families["fanwire_node_num_clients"].samples[0].value, 1)

    async def test_the_page_with_the_names_of_centrifugo_is_openmetrics(self):
        page = await self.page(compatibility={"centrifugo_metrics": True})
        values = {}
        for family in _families(openmetrics, page):
            for sample in family.samples:
                values[sample.name, tuple(sample.labels.values())] = sample.value
        self.assertEqual(values["centrifugo_node_num_clients", ()], 1)
        for ours, theirs in [
            ("fanwire_client_connections_accepted_total", "centrifugo_client_connections_accepted"),
            ("fanwire_build_info", "centrifugo_node_build"),
            ("fanwire_api_command_duration_seconds_count", "centrifugo_api_command_duration_seconds_histogram_count"),
        ]:
            same = [(labels, value) for (name, labels), value in values.items() if name == ours]
            self.assertEqual([(labels, value) for (name, labels), value in values.items() if name == theirs], same)
            self.assertTrue(same)

    async def test_every_histogram_ends_with_its_count(self):
        families = list(_families(openmetrics, await self.page()))
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


class Labels(unittest.TestCase):
    """Labels with texts that no name of a configuration may have today."""

    def test_a_label_with_any_text_is_read_as_it_was_meant(self):
        texts = _texts(_SEED, _TEXTS)
        data = b"".join(struct.pack("<I", len(text)) + text for text in map(str.encode, texts))
        for format, parser in _PARSERS.items():
            made = subprocess.run([_PROGRAM, format], input=data, stdout=subprocess.PIPE, check=True, timeout=60)
            samples = {}
            for family in _families(parser, made.stdout.decode()):
                for sample in family.samples:
                    name = (sample.name.removesuffix("_total"), sample.labels.get("le"))
                    samples.setdefault(name, []).append(sample.labels["text"])
            self.assertEqual(len(samples), 2 * (2 + 4), "two names of a gauge, a counter, and a histogram with two buckets")
            for name, found in samples.items():
                self.assertEqual(found, texts, f"{name} in {format}, seed {_SEED}")


def _texts(seed, count):
    """Distinct texts of characters that mean something in one of the formats, or could."""
    dice = random.Random(seed)
    texts = {}
    while len(texts) < count:
        texts["".join(dice.choices(dice.choice(_ALPHABETS), k=dice.randrange(12)))] = True
    return list(texts)


def _families(parser, page):
    return parser.text_string_to_metric_families(page)
