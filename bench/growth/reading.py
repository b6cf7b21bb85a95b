"""What a client spends on reading a stream, next to raw HTTP."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from bench.growth.curve import Curve, Sizes
from bench.load import once
from bench.processes import PROGRAMS, Server, command_for, serving, wait_until_up
from bench.ratios import BareAnswer, as_bare
from bench.requests import request_for

EVENTS = 1_000


async def measure_reading(sizes: Sizes, folder: Path, sdk: Path | None) -> Curve:
    """Have each client read the same stream from the bare app, in a process of its own."""
    with serving(command_for("dragoman"), "chunks", "") as server:
        await wait_until_up(server.port)
        answer = await once(server.port, request_for("stream", "HTTP+JSON", text=str(EVENTS)))
    file = folder / "stream.json"
    file.write_bytes(msgspec.json.encode(_one_by_one(as_bare(answer))))
    with serving(command_for("bare"), str(file)) as server:
        await wait_until_up(server.port)
        rows = _rows(server, sizes, [sys.executable, "-m", "bench.reading"], "httpx2", "dragoman")
        if sdk is not None:
            command = [str(sdk), str(PROGRAMS / "a2a_sdk_reading.py")]
            rows += _rows(server, sizes, command, "httpx", "a2a-sdk")
    return Curve(
        f"A client reads a stream of {EVENTS:,} chunks, HTTP+JSON",
        "at most 1.5 times raw HTTP",
        ("client", "µs an event", "times its raw HTTP"),
        rows,
    )


def _one_by_one(answer: BareAnswer) -> BareAnswer:
    """The same with a send for each event."""
    events = "".join(answer["pieces"]).split("\n\n")
    return {**answer, "pieces": [f"{event}\n\n" for event in events if event]}


def _rows(server: Server, sizes: Sizes, command: list[str], raw: str, client: str) -> list[list[str]]:
    bare, full = (_read(command, kind, server.port, sizes.streams_read) for kind in ("raw", "client"))
    return [[f"{raw}, raw", f"{bare:.1f}", "1.0"], [client, f"{full:.1f}", f"{full / bare:.1f}"]]


def _read(command: list[str], kind: str, port: int, times: int) -> float:
    """Microseconds of processor time for an event."""
    done = subprocess.run([*command, kind, str(port), str(times)], capture_output=True, text=True, check=True)
    events, spent = done.stdout.split()
    if int(events) < times * EVENTS:
        raise SystemExit(f"a client saw {events} events of {times} streams")
    return float(spent) / int(events) * 1e6
