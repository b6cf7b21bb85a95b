"""Makes ``gauges.csv``, a year of readings of four river gauges: ``python -m examples.analyst.make_data``.

The seed is fixed, so the file comes out the same every time.
"""

from __future__ import annotations

import csv
import io
import math
import random
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

TARGET = Path(__file__).parent / "gauges.csv"
COLUMNS = ("date", "hour", "gauge", "rain_mm", "level_cm", "flow_m3s", "water_c")
GAUGES = {"Aldersbridge": 1.0, "Fenmouth": 2.4, "Holt Weir": 0.6, "Old Lock": 1.5}
HOURS = (0, 8, 16)
FIRST_DAY = date(2025, 1, 1)
DAYS = 365


def _season(day: int) -> float:
    """-1 at the end of January, 1 at the end of July."""
    return math.sin(2 * math.pi * (day - 120) / 365)


def _rain(rng: random.Random, day: int) -> float:
    wet = rng.random() < 0.32 - 0.1 * _season(day)
    return round(rng.expovariate(1 / 3.5), 1) if wet else 0.0


def _readings(rng: random.Random) -> Iterator[tuple[object, ...]]:
    soaked = dict.fromkeys(GAUGES, 0.0)
    for day, hour in ((day, hour) for day in range(DAYS) for hour in HOURS):
        for gauge, size in GAUGES.items():
            rain = _rain(rng, day)
            soaked[gauge] = 0.93 * soaked[gauge] + rain
            level = 60 + 40 * size + 3.2 * soaked[gauge] + rng.gauss(0, 4)
            flow = size * 0.021 * max(level - 40, 1) ** 1.5
            water = 11 + 7.5 * _season(day) + 0.4 * math.sin(hour / 24 * 2 * math.pi) + rng.gauss(0, 0.6)
            missing = rng.random() < 0.004
            yield (
                (FIRST_DAY + timedelta(days=day)).isoformat(),
                hour,
                gauge,
                rain,
                round(level, 1),
                round(flow, 2),
                "" if missing else round(water, 1),
            )


def make_csv(seed: int = 2025) -> str:
    """The whole file as text."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerows(_readings(random.Random(seed)))
    return text.getvalue()


if __name__ == "__main__":
    TARGET.write_text(make_csv(), encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")
