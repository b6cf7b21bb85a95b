"""Disks that are full, locked or read only: the operator is told what is wrong in one line, callers are told nothing of
it, and a running server is itself again when the trouble is over."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

import dragoman
from dragoman import Client, Task
from dragoman.errors import InternalError
from dragoman.stores import open_store
from dragoman.testing.crashes import tasks_in
from dragoman.testing.process import PROGRAM, ServerProcess
from dragoman.testing.witness import Witness
from tests.faults.agents import words
from tests.runtime.running import S, reaches, texts, within

ROOT = Path(__file__).parents[2]
LAUNCHER = (sys.executable, "-m", "tests.faults.launcher")
AGENT = "tests.faults.agents:once"
IMPATIENT = "tests.faults.impatient:app"
USAGE = 2


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can enter, unlike ``tmp_path``."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


async def refusal(path: Path, handicap: str = "", *, agent: str = AGENT) -> str:
    """What ``dragoman run`` says when it cannot start: one line, and its exit status says that the set-up is wrong."""
    environment = {"DRAGOMAN_TEST_DATABASE": str(path), "HOME": str(path.parent)}
    program = (*LAUNCHER, handicap) if handicap else PROGRAM
    server = ServerProcess(agent, "--store", str(path), program=program, cwd=ROOT, environment=environment)
    await server.launch()
    assert await server.wait() == USAGE, server.output
    (line,) = server.output
    start = f"dragoman: The store in {path} "
    assert line.startswith(start), line
    return line.removeprefix(start)


async def make_database(path: Path) -> None:
    store = open_store(str(path))
    await store.open()
    await store.close()


async def test_a_missing_folder_is_named(folder: Path) -> None:
    path = folder / "nowhere" / "tasks.db"
    assert await refusal(path) == f"cannot be opened: there is no folder {path.parent}"


async def test_a_read_only_folder_is_named(folder: Path) -> None:
    forbid(folder)
    said = await refusal(folder / "tasks.db", "nobody")
    assert said == "cannot be opened: the folder is missing, or this process may not use it"


async def test_a_read_only_file_is_named(folder: Path) -> None:
    path = folder / "tasks.db"
    await make_database(path)
    forbid(folder, path)
    said = await refusal(path, "nobody")
    assert said == "cannot be written: the file or its folder is read only for this process"


async def test_a_full_disk_is_named_at_the_start(folder: Path) -> None:
    assert "the disk is full" in await refusal(folder / "tasks.db", "full")


async def test_a_file_that_is_no_database_is_named(folder: Path) -> None:
    path = folder / "tasks.db"
    path.write_text("notes " * 1000)
    assert await refusal(path) == "is not a SQLite database"


async def test_a_locked_file_is_named_at_the_start(folder: Path) -> None:
    path = folder / "tasks.db"
    await make_database(path)
    with lock(path):
        assert await refusal(path, agent=IMPATIENT) == "is locked by another process"


def forbid(folder: Path, *files: Path) -> None:
    """Nobody but root may write here."""
    for file in files:
        file.chmod(0o444)
    folder.chmod(0o555)


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock of a database, as another process would that is in the midst of a write."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextlib.contextmanager
def fill(pid: int) -> Iterator[None]:
    """Let no file of a process grow."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, before[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[ServerProcess]:
    environment = {"DRAGOMAN_TEST_DATABASE": str(folder / "tasks.db")}
    async with ServerProcess(IMPATIENT, cwd=ROOT, environment=environment) as server:
        yield server


async def raw_errors(url: str) -> list[tuple[int, bytes]]:
    """What a send is answered over HTTP+JSON and over JSON-RPC, as status and body."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "words 3"}]}
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    async with httpx2.AsyncClient(headers={"A2A-Version": "1.0"}, timeout=20) as http:
        sends = [http.post(f"{url}/message:send", json={"message": message}), http.post(url, json=rpc)]
        return [(answer.status_code, answer.content) for answer in await asyncio.gather(*sends)]


@pytest.mark.req("B081", "ERR-13")
@pytest.mark.parametrize("trouble", ["full", "locked"])
async def test_a_running_server_answers_neutrally_while_its_disk_fails_and_recovers(
    trouble: str, server: ServerProcess, folder: Path
) -> None:
    path, witness = folder / "tasks.db", Witness()
    async with dragoman.connect(server.url) as client:
        done = await client.send("words 3")
        asked = await client.send("ask 1")
        working = await client.send("words 2000", wait=False)
        assert isinstance(done, Task)
        assert isinstance(asked, Task)
        assert isinstance(working, Task)

        with fill(server.pid) if trouble == "full" else lock(path):
            (status, over_rest), (_, over_rpc) = await within(raw_errors(server.url), 20)
            with pytest.raises(InternalError):
                await within(client.send("answer 1", task=asked), 20)
            assert (await client.get_task(done)) == done  # what is stored can be read
            assert (await client.list_tasks()).total_size == 3

        assert status == 500
        assert b'"code":-32603' in over_rpc
        for body in (over_rest, over_rpc):
            assert not any(word in body for word in (b"sqlite", b"disk", b"locked", b"full", str(folder).encode()))
        await check_recovery(client, working, asked)
        for task in (done, asked, working):
            witness.told(await client.get_task(task))
    await server.terminate()
    store = open_store(str(path))
    await store.open()
    assert await witness.compare(store) == []
    assert await tasks_in(store, "Working", S.WORKING, S.SUBMITTED) == []
    await store.close()


async def check_recovery(client: Client, working: Task, asked: Task) -> None:
    """New work is done, the work that was hit is over, and the question can be answered."""
    assert texts(await within(client.send("words 3"))) == words(3)
    assert (await reaches(client, working, S.FAILED)).status.state is S.FAILED
    await reaches(client, asked, S.INPUT_REQUIRED)
    assert texts(await within(client.send("answer 1", task=asked))) == ["answer 1"]
