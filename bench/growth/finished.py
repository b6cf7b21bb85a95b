"""Finished tasks on a durable store: the server keeps none of them."""

from __future__ import annotations

from pathlib import Path

from bench.growth.curve import Curve, Sizes
from bench.load import Load
from bench.processes import command_for, serving, wait_until_up
from bench.requests import request_for


async def measure_finished(sizes: Sizes, folder: Path) -> Curve:
    """Have one server finish more and more tasks, and look at its memory on the way."""
    rows, done = [], 0
    with serving(command_for("dragoman"), "task", str(folder / "finished.db")) as server:
        await wait_until_up(server.port)
        load = Load(request_for("send", "HTTP+JSON"), b"TASK_STATE_COMPLETED")
        await load.connect(server.port, 16)
        for count in sizes.finished:
            answers, _ = await load.run(answers=count - done)
            done += answers
            rows.append([f"{done:,}", f"{server.memory():.1f}"])
        load.close()
    return Curve("Finished tasks, SQLite", "memory does not grow with them", ("tasks", "MB"), rows)
