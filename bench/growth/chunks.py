"""One task with many chunks: time, memory and disk for each chunk stay the same."""

from __future__ import annotations

import time
from pathlib import Path

from bench.agents import PIECE
from bench.growth.curve import Curve, Sizes
from bench.load import WrongAnswer, once
from bench.processes import command_for, serving, wait_until_up
from bench.requests import request_for

SUFFIXES = ("", "-wal", "-journal")
WARM = 10
ENOUGH = 30_000
"""Chunks that are measured, in as many tasks as it takes: the processor time comes in steps of 10 ms."""


async def measure_chunks(sizes: Sizes, folder: Path, sdk: Path | None) -> Curve:
    """Stream tasks of some lengths, each from a fresh server."""
    ours = {False: sizes.chunks, True: sizes.chunks}
    theirs = {False: sizes.sdk_chunks, True: sizes.sdk_durable_chunks}
    rows = []
    for kind, python, counts in (("dragoman", None, ours), ("a2a-sdk", sdk, theirs)):
        if kind == "dragoman" or python is not None:
            for durable in (False, True):
                rows += [await _stream(kind, python, count, folder, durable=durable) for count in counts[durable]]
    return Curve(
        "One task of many chunks, made without a pause",
        "µs, MB and bytes for a chunk do not grow with their number",
        ("server", "store", "chunks", "s", "µs a chunk", "MB grown", "database bytes a chunk"),
        rows,
    )


async def _stream(kind: str, python: Path | None, count: int, folder: Path, *, durable: bool) -> list[str]:
    file = folder / f"{kind}-chunks-{count}.db"
    times = max(1, ENOUGH // count) if kind == "dragoman" else 1
    with serving(command_for(kind, python), "chunks", str(file) if durable else "") as server:
        await wait_until_up(server.port)
        await _read(server.port, WARM)
        memory = server.memory()
        took = await _read(server.port, count)
        grown, cpu = server.memory() - memory, server.cpu()
        for _ in range(times):
            took = min(took, await _read(server.port, count))
        spent = server.cpu() - cpu
        server.stop()
    disk = _size(file) / ((1 + times) * count + WARM)
    return [
        kind,
        "SQLite" if durable else "memory",
        f"{count:,}",
        f"{took:.2f}",
        f"{spent / count / times * 1e6:.0f}",
        f"{grown:.1f}",
        f"{disk:,.0f}" if durable else "",
    ]


async def _read(port: int, count: int) -> float:
    """Read one such stream; how many seconds it took."""
    began = time.perf_counter()
    answer = await once(port, request_for("stream", "HTTP+JSON", text=str(count)))
    took = time.perf_counter() - began
    if answer.count(PIECE.encode()) != count or b"TASK_STATE_COMPLETED" not in answer:
        raise WrongAnswer(f"a stream of {count} chunks has {answer.count(PIECE.encode())}")
    return took


def _size(file: Path) -> int:
    parts = [Path(f"{file}{suffix}") for suffix in SUFFIXES]
    return sum(part.stat().st_size for part in parts if part.exists())
