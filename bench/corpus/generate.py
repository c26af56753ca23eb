#!/usr/bin/env python3
"""Writes the small corpus beside this script: ticks, chat, score (JSON lines) and game (binary records).

Seeded, so that a second run writes the same bytes. Names, instruments and texts are made up.
"""

import json
import pathlib
import random
import struct

HERE = pathlib.Path(__file__).parent
draw = random.Random(20260101)


def write_lines(name, messages):
    text = "".join(json.dumps(m, ensure_ascii=False, separators=(",", ":")) + "\n" for m in messages)
    (HERE / name).write_text(text, encoding="utf-8")


def ticks(count=60):
    prices = {"NORDA": 104.25, "KELP": 17.806, "TIDE": 2210.5, "MOSSX": 0.9312}
    time_ms = 1_790_000_000_000
    for number in range(count):
        symbol = draw.choice(list(prices))
        prices[symbol] *= 1 + draw.gauss(0, 0.0004)
        time_ms += draw.randint(1, 90)
        price = prices[symbol]
        yield {
            "kind": "trade", "symbol": symbol, "price": f"{price:.5g}", "size": f"{draw.expovariate(0.3):.3f}",
            "bid": f"{price * 0.9998:.5g}", "ask": f"{price * 1.0002:.5g}", "maker": draw.random() < 0.5,
            "time": time_ms, "seq": 88_120_400 + number * 3,
        }


def chat(count=60):
    names = ["Ida", "Björn", "Chiara", "Дмитро", "Ewa", "小林", "Zoë"]
    openings = ["Did anybody look at", "I just merged", "Can we talk about", "Still waiting for", "No idea who broke"]
    things = ["the nightly build", "that <b>bold</b> headline", "\"release notes\"", "the R&D budget", "café menus",
              "C:\\temp\\logs", "the graph from Tuesday", "step 3 of the plan\nand step 4"]
    endings = ["?", " 🎉", "… twice.", " — please!", ".\tThanks", " (see ticket 1204)", " 👩‍🚀 lol"]
    for number in range(count):
        words = [f"{draw.choice(openings)} {draw.choice(things)}{draw.choice(endings)}" for _ in range(draw.randint(1, 4))]
        yield {
            "id": f"{draw.getrandbits(64):016x}", "room": draw.choice(["lobby", "backend", "off-topic"]),
            "author": {"name": draw.choice(names), "id": draw.randint(100, 140), "badge": None},
            "text": " ".join(words), "edited": draw.random() < 0.1, "at": f"2026-05-04T09:{number % 60:02}:17Z",
        }


def score(count=42):
    def side(team, start):
        return {"name": team, "goals": 0, "players": [
            {"n": start + i, "name": f"{draw.choice('ABCDEFGH')}. {draw.choice(['Okoro', 'Lind', 'Sousa', 'Reyes', 'Maas', 'Petit'])}",
             "passes": 0, "rating": 6.0} for i in range(11)]}
    match = {"match": 5117, "minute": 0, "status": "first half", "home": side("Harbour Town", 1),
             "away": side("Upper Valley", 1), "possession": [50, 50], "events": []}
    for minute in range(count):
        match["minute"] = minute
        for team in ("home", "away"):
            for player in draw.sample(match[team]["players"], 3):
                player["passes"] += draw.randint(1, 4)
                player["rating"] = round(min(10, max(4, player["rating"] + draw.gauss(0, 0.15))), 1)
        share = draw.randint(38, 62)
        match["possession"] = [share, 100 - share]
        if draw.random() < 0.06:
            team = draw.choice(["home", "away"])
            match[team]["goals"] += 1
            match["events"].append({"minute": minute, "kind": "goal", "team": team})
        yield match


def game(count=60):
    units = [[draw.uniform(0, 900), draw.uniform(0, 900), draw.uniform(-3, 3), draw.uniform(-3, 3)] for _ in range(24)]
    for tick in range(count):
        record = struct.pack("<IH", tick * 50, len(units))
        for number, unit in enumerate(units):
            unit[0] += unit[2]
            unit[1] += unit[3]
            record += struct.pack("<HffBB", 500 + number, unit[0], unit[1], draw.choice([100, 100, 100, 93]), number % 3)
        yield record


write_lines("ticks.jsonl", ticks())
write_lines("chat.jsonl", chat())
write_lines("score.jsonl", score())
(HERE / "game.bin").write_bytes(b"".join(struct.pack("<I", len(record)) + record for record in game()))
