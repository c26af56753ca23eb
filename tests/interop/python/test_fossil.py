"""The decoder of deltas inside PyPI centrifuge-python, as published, on what our encoder makes of random pairs.

In: pairs of payloads, a function of a seed -> out: deltas of the example `deltas`, applied by the library.
May use the library's module `fossil`; starts no server.
More kinds of pairs, and bytes compared with npm fossil-delta's, are in ../js/fossil.test.js.
"""

import os
import random
import struct
import subprocess
import unittest
from pathlib import Path

from centrifuge import fossil

_ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = os.environ.get("FANWIRE_DELTAS", str(_ROOT / "target/debug/examples/deltas"))
_PAIRS = 2000
_SEED = int(os.environ.get("FANWIRE_SEED", "1"))
_ALPHABETS = ["abcdefgh ,", "ab", "äöüßéè aeiou", "日本語中文 ", "🚀🎉👍x"]


def _pairs(seed, count):
    dice = random.Random(seed)
    for _ in range(count):
        alphabet = dice.choice(_ALPHABETS)
        size = dice.choice([0, 1, 15, 16, 17, 40, 300, 300, 1000, 1000])
        source = dice.choices(alphabet, k=size + dice.randrange(3))
        target = list(source)
        for _ in range(dice.randrange(6)):
            start = dice.randrange(len(target) + 1)
            end = start + dice.choice([0, 1, 5, 60])
            part, target[start:end] = target[start:end], dice.choices(alphabet, k=dice.randrange(9))
            if dice.random() < 0.5:
                place = dice.randrange(len(target) + 1)
                target[place:place] = part
        yield "".join(source).encode(), "".join(target).encode()


def _deltas(work, pairs):
    """What the example makes of pairs; `work` is `create` or `create-text`."""
    data = b"".join(struct.pack("<I", len(record)) + record for pair in pairs for record in pair)
    made = subprocess.run([_PROGRAM, work], input=data, stdout=subprocess.PIPE, check=True, timeout=60).stdout
    at = 0
    while at < len(made):
        (size,) = struct.unpack_from("<I", made, at)
        yield made[at + 4:at + 4 + size]
        at += 4 + size


class Fossil(unittest.TestCase):
    """Both ways in which the server makes deltas: for Protobuf and, cut between characters, for JSON."""

    def test_what_our_encoder_makes_is_applied_as_it_was_meant(self):
        pairs = list(_pairs(_SEED, _PAIRS))
        for work in ("create", "create-text"):
            made = list(_deltas(work, pairs))
            self.assertEqual(len(made), _PAIRS)
            for number, ((source, target), delta) in enumerate(zip(pairs, made)):
                applied = bytes(fossil.apply_delta(source, delta))
                self.assertEqual(applied, target, f"{work}, pair {number} of the seed {_SEED}")
