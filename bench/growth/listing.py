"""ListTasks with few and with many tasks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from bench.growth.curve import Curve, Sizes
from bench.load import once
from bench.processes import Server, command_for, measure, serving, wait_until_up
from bench.requests import body_of, http

PAGE = "/tasks?pageSize=50"
PROOF = b'"totalSize"'
CONNECTIONS = 4


async def measure_listing(sizes: Sizes, folder: Path, sdk: Path | None) -> Curve:
    """Ask for pages of stores of some sizes: the first, one in the middle, those of a state and of a context."""
    rows = []
    file, seeded = folder / "listing.db", 0
    for count in sizes.listed:
        _seed(file, seeded, count)
        seeded = count
        rows.append(await _list("dragoman", None, str(file), count, sizes.seconds))
    rows += [await _list("dragoman", None, f"memory:{count}", count, sizes.seconds) for count in sizes.listed]
    if sdk is not None:
        rows += [await _list("a2a-sdk", sdk, f"memory:{count}", count, sizes.seconds) for count in sizes.sdk_listed]
    return Curve(
        "ListTasks, pages of 50",
        "the same µs at every number of tasks",
        ("server", "store", "tasks", "first µs", "middle µs", "by state µs", "by context µs"),
        rows,
    )


def _seed(file: Path, first: int, end: int) -> None:
    subprocess.run([sys.executable, "-m", "bench.seeding", str(file), str(first), str(end)], check=True)


async def _list(kind: str, python: Path | None, store: str, count: int, seconds: float) -> list[str]:
    with serving(command_for(kind, python), "task", store) as server:
        await wait_until_up(server.port)
        middle = await _token(server, count // 2)
        asked = (
            PAGE,
            f"{PAGE}&pageToken={middle}",
            f"{PAGE}&status=TASK_STATE_COMPLETED",
            f"{PAGE}&contextId=context-{count // 2:08d}",
        )
        found = [await measure(server, http("GET", one), PROOF, seconds=seconds, connections=4) for one in asked]
    name = "memory" if store.startswith("memory") else "SQLite"
    return [kind, name, f"{count:,}", *(f"{one.cpu:,.0f}" for one in found)]


async def _token(server: Server, skipped: int) -> str:
    """The token of the page after this many tasks."""
    token = ""
    for _ in range(max(1, skipped // 100)):
        answer = await once(server.port, http("GET", f"/tasks?pageSize=100&pageToken={token}"))
        token = str(msgspec.json.decode(body_of(answer))["nextPageToken"])
    return token
