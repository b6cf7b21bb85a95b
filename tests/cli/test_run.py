"""``dragoman run``: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import psutil
import pytest

import dragoman
from dragoman import Agent, App, Reconnect, TaskState
from dragoman.cli import loading
from dragoman.errors import ConfigurationError, DragomanError, UnavailableError
from dragoman.model import TaskArtifactUpdateEvent
from tests.cli.conftest import Run
from tests.runtime.running import said, texts, within


def refused(folder: Path, *arguments: str) -> str:
    """What ``dragoman`` says when it does not start: one line, exit code 2."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments], cwd=folder, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("dragoman: ")
    return line


async def test_it_prints_where_the_card_is_and_what_is_served(run: Run, folder: Path) -> None:
    process = run("errand:agent", "--store", "tasks.db")
    url = process.url

    assert process.url.startswith("http://127.0.0.1:")
    async with dragoman.connect(process.url) as client:
        task = await client.send("go")
    assert (task.status.state, texts(task)) == (TaskState.COMPLETED, ["done False"])
    assert (folder / "tasks.db").exists()
    assert process.stop() == 0
    output = "".join(process.output)
    assert re.search(r"Errand 1\.0\.0 serves A2A 1\.0 and 0\.3 over JSONRPC, HTTP\+JSON", output)
    assert f"card   {url}/.well-known/agent-card.json" in output
    assert "store  tasks.db" in output


@pytest.mark.req("TEN-03", "TEN-04", "TEN-05")
async def test_several_agents_are_served_by_their_names_on_one_store(run: Run, folder: Path) -> None:
    process = run("errand:agent", "again=errand:again", "--store", "tasks.db")
    url = "/".join(process.url.split("/")[:3])

    async with dragoman.connect(f"{url}/errand") as one, dragoman.connect(f"{url}/again") as other:
        task = await one.send("go")
        assert (task.status.state, texts(task)) == (TaskState.COMPLETED, ["done False"])
        assert (await other.list_tasks()).total_size == 0
    assert process.stop() == 0
    output = "".join(process.output)
    assert f"card   {url}/errand/.well-known/agent-card.json" in output
    assert f"card   {url}/again/.well-known/agent-card.json" in output
    assert output.count("store  tasks.db") == 1


def test_two_agents_of_one_name_are_refused(folder: Path) -> None:
    command = [sys.executable, "-m", "dragoman", "run", "errand:agent", "errand:agent"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30)

    assert done.returncode == 2
    assert "two agents would be called 'errand'; say NAME=errand:agent" in done.stderr


def test_the_card_names_the_public_url(run: Run) -> None:
    process = run("errand.py:again", "--public-url", "http://agent.example:8443/base", "--cors", "https://page.example")

    assert process.url == "http://agent.example:8443/base"
    here = f"http://127.0.0.1:{_listening(process)}"
    card = httpx2.get(f"{here}/.well-known/agent-card.json", headers={"origin": "https://page.example"})
    urls = {interface["url"] for interface in card.json()["supportedInterfaces"]}
    assert all(url.startswith("http://agent.example:8443/base") for url in urls)
    assert card.headers["access-control-allow-origin"] == "https://page.example"


def _listening(process) -> int:
    connections = psutil.Process(process._process.pid).net_connections("inet")
    return next(c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN)


def test_a_store_that_cannot_be_used_is_named(folder: Path) -> None:
    (folder / "text.db").write_text("this is no database, but a text of some length " * 50)
    runs = ("run", "errand:agent", "--port", "0", "--store")

    for store, words in (
        ("missing/folder/tasks.db", "missing"),
        ("text.db", "text.db"),
        ("mysql://user:secret@host/db", "mysql"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", *runs, store], cwd=folder, capture_output=True, text=True, timeout=30
        )
        assert done.returncode != 0
        assert words in done.stderr
        assert "secret" not in done.stderr


def test_a_port_that_is_taken_is_named(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        line = refused(folder, "run", "errand:agent", "--port", str(port))

    assert f"127.0.0.1:{port}" in line
    assert "another port" in line


def test_a_target_that_is_not_there_is_one_line(folder: Path) -> None:
    assert "no module 'nowhere'" in refused(folder, "run", "nowhere:agent")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere_at_all:agent", "no module 'nowhere_at_all'"),
        ("nowhere/at_all.py:agent", "no module 'at_all'"),
        ("errand_for_load:other", "has no 'other'; it has agent, again, blocking, limited"),
        ("errand_for_load:not_an_agent", "is int, not an Agent or an App"),
        ("errand_for_load:", ""),
        ("errand_for_load:again", ""),
        ("errand_for_load:limited", ""),
    ],
)
def test_a_target_is_a_module_and_a_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, target: str, words: str
) -> None:
    (folder / "errand.py").rename(folder / "errand_for_load.py")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "errand_for_load", raising=False)

    if words:
        with pytest.raises(ConfigurationError, match=re.escape(words)):
            loading.load(target)
    else:
        assert isinstance(loading.load(target), Agent | App)


def test_an_error_inside_the_module_is_shown_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "broken_agent.py").write_text("import a_package_that_is_missing\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))

    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_missing"):
        loading.load("broken_agent:agent")


@pytest.mark.req("ERR-11", "AMB-10")
async def test_at_sigterm_new_work_is_refused_running_work_ends_and_the_exit_code_is_0(run: Run) -> None:
    process = run("errand:agent", "--store", "tasks.db", "--grace", "20")
    no_more = Reconnect(attempts=0)  # else it would wait for the server to come back
    async with dragoman.connect(process.url, reconnect=no_more) as client, httpx2.AsyncClient() as http:
        asking = await client.send("ask")
        await http.get(f"{process.url}/.well-known/agent-card.json")  # a connection that is there already
        stream = client.stream("sleep 0.7")
        begun = asyncio.Event()
        events = asyncio.create_task(_collect(stream, begun))
        subscribed = asyncio.create_task(_collect(client.subscribe(asking, timeout=5), asyncio.Event()))
        await within(begun.wait())

        os.kill(process._process.pid, signal.SIGTERM)
        refusal = await _refusal(http, process.url)
        streamed = await within(events)
        with pytest.raises(DragomanError) as ended:
            await within(subscribed, 20)

    causes = [ended.value, ended.value.__cause__]
    assert any(isinstance(cause, UnavailableError) and "shutting down" in str(cause) for cause in causes)
    assert refusal.status_code == 503
    assert refusal.json()["error"]["status"] == "UNAVAILABLE"
    assert streamed[-1].status.state is TaskState.COMPLETED
    assert process._process.wait(15) == 0


async def _collect(stream, begun: asyncio.Event) -> list:
    events = []
    async for event in stream:
        events.append(event)
        if isinstance(event, TaskArtifactUpdateEvent):
            begun.set()
    return events


async def _refusal(http: httpx2.AsyncClient, url: str) -> httpx2.Response:
    """The first answer that is not that of a server at work."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "late"}]}
    while True:
        answer = await http.post(f"{url}/message:send", json={"message": message}, headers={"A2A-Version": "1.0"})
        if answer.status_code != 200:
            return answer


@pytest.mark.req("ERR-11")
async def test_at_sigterm_work_that_does_not_end_in_time_is_recorded(run: Run) -> None:
    process = run("errand:agent", "--store", "tasks.db", "--grace", "0.1")
    async with dragoman.connect(process.url) as client:
        task = await client.send("wait", wait=False)
        code = await asyncio.to_thread(process.stop)
        process.start()
        stored = await client.get_task(task)

    assert code == 0
    assert (stored.status.state, said(stored)) == (
        TaskState.FAILED,
        "The agent was shut down while it worked on this task.",
    )


@pytest.mark.req("ERR-11")
async def test_functions_that_nothing_interrupts_do_not_keep_the_process_from_ending(run: Run) -> None:
    process = run("errand:blocking", "--store", "tasks.db", "--grace", "0.1")
    async with dragoman.connect(process.url) as client:
        for _ in range(40):
            task = await client.send("go", wait=False)
        code = await asyncio.to_thread(process.stop, 8)
        process.start()
        stored = await client.get_task(task)

    assert code == 0
    assert stored.status.state is TaskState.FAILED


def test_ctrl_c_ends_it_as_well(run: Run) -> None:
    process = run("errand:agent")

    os.kill(process._process.pid, signal.SIGINT)

    assert process._process.wait(15) == 0
    assert "Traceback" not in "".join(process.output)


async def test_with_reload_a_changed_file_is_served(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dragoman", "run", "errand:agent", "--reload", "--port", str(port)]
    parent = _begin(command, folder)
    try:
        url = f"http://127.0.0.1:{port}/.well-known/agent-card.json"
        await _serves(url, "Errand")
        (folder / "errand.py").write_text((folder / "errand.py").read_text().replace('"Errand"', '"Changed"'))
        await _serves(url, "Changed")
    finally:
        parent.terminate()
        output, _ = parent.communicate(timeout=20)

    assert parent.returncode == 0
    assert b"a file changed" in output
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(url)


def _begin(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


async def _serves(url: str, name: str, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    async with httpx2.AsyncClient() as http:
        while time.monotonic() < deadline:
            try:
                if (await http.get(url)).json()["name"] == name:
                    return
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.05)
    raise AssertionError(f"{name} is not served")
