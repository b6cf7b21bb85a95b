"""A server that is killed under load: what a caller was told is there, and nothing is stuck."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.ports.store import Scope, TaskQuery
from dragoman.stores import open_store
from dragoman.testing.crashes import CrashRounds
from dragoman.testing.load import Crowd, Load, blocking, canceling, conversing, immediate, streaming, subscribing
from dragoman.testing.process import ServerProcess
from dragoman.testing.witness import Witness
from tests.faults.agents import words
from tests.faults.rounds import note, scaled
from tests.runtime.running import S, texts

ROOT = Path(__file__).parents[2]
LEASE = 0.4
WORK_SECONDS = 1.5
SAY = ["words 3", "words 20", "words 60"]
ASK = ["ask 1", "ask 3"]
CROWDS = [
    Crowd(blocking, 3, SAY + ASK),
    Crowd(immediate, 3, SAY + ASK),
    Crowd(streaming, 4, SAY + ASK),
    Crowd(subscribing, 2, SAY),
    Crowd(conversing, 3, ASK),
    Crowd(canceling, 1, SAY + ASK),
]


@pytest.mark.req("B179", "B045", "B091")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", ["once", "again"])
async def test_nothing_that_a_caller_was_told_is_lost_by_a_kill(
    agent: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path, witness = tmp_path / "tasks.db", Witness()
    server = ServerProcess(
        f"tests.faults.agents:{agent}", "--store", str(path), "--lease", str(LEASE), "--grace", "0.1", cwd=ROOT
    )

    async with server, Load(server.url, CROWDS, witness, seed=1) as load:
        crashes = CrashRounds(server, path, witness, agent="Working", bound=2 * LEASE + WORK_SECONDS, seed=2)
        for _ in range(scaled(6, 40)):
            await crashes.round()
        await crashes.round(kill=False)
        await load.finish()
        report = await crashes.finish()
        checked = await check_artifacts(path)

    note(request.node, f"{report}; {sum(load.report.done.values())} interactions ended, broken: {load.report.broken}")
    assert checked > 0
    assert report.found == []
    assert load.report.faults == []


async def test_a_server_that_shows_what_it_has_not_stored_is_found_out(tmp_path: Path) -> None:
    path, witness = tmp_path / "tasks.db", Witness()
    server = ServerProcess("tests.faults.hasty:once", "--store", str(path), "--lease", str(LEASE), cwd=ROOT)

    async with server, Load(server.url, CROWDS, witness, seed=1, patience=1):
        crashes = CrashRounds(server, path, witness, agent="Working", bound=0, seed=2)
        for _ in range(30):
            await crashes.round()
            if any("the log ends at" in text or "not in the store" in text for text in crashes.report.found):
                return

    pytest.fail("30 kills of a server that publishes before it persists showed nothing")


async def check_artifacts(path: Path) -> int:
    """Every completed task has exactly what the agent makes of its message; how many there are."""
    store, after, checked = open_store(str(path)), None, 0
    await store.open()
    while True:
        query = TaskQuery(
            scope=Scope(agent="Working"), state=S.COMPLETED, after=after, with_artifacts=True, with_history=True
        )
        page = await store.page(query)
        for task in page.tasks:
            verb, count = (task.history[0].parts[0].text or "").split()
            answers = ", ".join(f"answer {number}" for number in range(1, int(count) + 1))
            assert texts(task) == (words(int(count)) if verb == "words" else [answers])
        checked, after = checked + len(page.tasks), page.next
        if after is None:
            await store.close()
            return checked
