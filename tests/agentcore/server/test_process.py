"""``dragoman run --agentcore`` as a process: where it listens, how it starts, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import psutil
import pytest

from dragoman.agentcore.address import check_port, choose_port
from dragoman.errors import ConfigurationError
from dragoman.testing.process import NotServingError, ServerProcess
from tests.agentcore.server.hosts import PATIENCE, checked, ping, post, rpc, send, until

AGENTS = """
import asyncio, os, time
from dragoman import Agent, agentcore

agent = Agent("desk", description="Does what it is told.")

@agent.task
async def work(ctx):
    kind, _, seconds = ctx.text.partition(" ")
    if kind == "sleep":
        yield "begun"
        await asyncio.sleep(float(seconds))
    if kind == "block":
        yield "begun"
        time.sleep(float(seconds))
    yield f"done {os.getpid()}"

replying = Agent("replying", description="Replies")

@replying.reply
async def reply(ctx):
    await asyncio.sleep(float(ctx.text))
    return "done"

threaded = Agent("threaded", description="Leaves a thread behind.")

@threaded.task
async def leave(ctx):
    await asyncio.to_thread(time.sleep, 60)

def slow():
    time.sleep(float(os.environ["HOOK"]))

hooked = agentcore.app(agent, on_start=[slow], start_limit=1.5)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with ``desk.py`` in it."""
    (tmp_path / "desk.py").write_text(AGENTS)
    return tmp_path


@asynccontextmanager
async def running(
    folder: Path, target: str = "desk:agent", *options: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[ServerProcess, httpx2.AsyncClient]]:
    """The process, on a free port of loopback, and a client of it."""
    process = ServerProcess(target, "--agentcore", *options, cwd=folder, environment=environment)
    async with process, httpx2.AsyncClient(base_url=process.url, timeout=PATIENCE) as client:
        yield process, client


async def asked(client: httpx2.AsyncClient, text: str, immediately: bool = True) -> str:
    """Begin a task; its id."""
    return (await post(client, send(text, immediately=immediately)))["result"]["task"]["id"]


# Where it listens.


@pytest.mark.req("AC-S-03", "AC-S-04")
@pytest.mark.parametrize(
    ("argument", "environment", "port"),
    [
        (None, {}, 9000),
        (None, {"A2A_PORT": "9100"}, 9100),
        (9200, {"A2A_PORT": "9100"}, 9200),
        (None, {"PORT": "8080"}, 9000),
        (None, {"A2A_PORT": " "}, 9000),
    ],
)
def test_the_port_is_the_argument_else_the_variable_else_9000(argument, environment, port):
    assert choose_port(argument, environment) == port


@pytest.mark.parametrize("text", ["x", "-1", "70000", "9e3"])
def test_a_variable_that_is_no_port_is_refused(text: str):
    with pytest.raises(ConfigurationError):
        choose_port(None, {"A2A_PORT": text})


@pytest.mark.req("AC-S-05")
def test_ports_are_warned_of_or_refused_only_where_others_could_reach_them():
    assert check_port("0.0.0.0", 9000) == ""
    assert "port" in check_port("0.0.0.0", 9100)
    assert check_port("127.0.0.1", 54321) == ""
    assert check_port("localhost", 8443) == ""
    for port in (8443, 7000, 12_001):
        with pytest.raises(ConfigurationError):
            check_port("0.0.0.0", port)


def outside_address() -> str:
    """An address of this machine that is not loopback."""
    for entries in psutil.net_if_addrs().values():
        for entry in entries:
            if entry.family is socket.AF_INET and not entry.address.startswith("127."):
                return entry.address
    pytest.skip("this machine has loopback only")


def free_port_that_agentcore_takes() -> int:
    for port in range(8_100, 8_400):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("0.0.0.0", port))
            return port
    pytest.skip("no port is free")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.req("AC-S-01", "AC-S-02", "AC-S-04", "AC-S-05")
@pytest.mark.parametrize("usual", [True, False])
async def test_it_is_reachable_from_outside_without_an_argument(folder: Path, usual: bool):
    if usual and not is_free(9000):
        pytest.skip("port 9000 is in use")
    port = 9000 if usual else free_port_that_agentcore_takes()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("A2A", "DRAGOMAN", "DOCKER"))}
    environment |= {"PORT": "8080", **({} if usual else {"A2A_PORT": str(port)})}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", "run", "desk:agent", "--agentcore"),
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with httpx2.AsyncClient(base_url=f"http://{outside_address()}:{port}") as client:
            await until(lambda: answers(client))
            assert "result" in checked(await client.post("/", json=send("go")))
        process.terminate()
        output = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    assert f"http://127.0.0.1:{port}/.well-known/agent-card.json" in output
    assert ("container port" in output) is not usual
    assert "Tasks live in memory" in output


async def answers(client: httpx2.AsyncClient) -> bool:
    try:
        return (await client.get("/ping")).status_code == 200
    except httpx2.ConnectError:
        return False


@pytest.mark.req("AC-S-05")
@pytest.mark.parametrize("port", ["8443", "7000"])
async def test_a_port_that_agentcore_does_not_take_is_refused_at_the_start(folder: Path, port: str):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", "run", "desk:agent", "--agentcore", "--port", port),
        cwd=folder,
        stderr=asyncio.subprocess.PIPE,
    )
    errors = (await process.communicate())[1].decode()
    assert (process.returncode, f"not {port}" in errors) == (2, True)


@pytest.mark.parametrize("option", ["--websocket", "--grpc-port=0", "--cors=https://x.example"])
async def test_what_does_not_pass_the_front_is_refused(folder: Path, option: str):
    process = ServerProcess("desk:agent", "--agentcore", option, cwd=folder)
    with pytest.raises(NotServingError, match="only JSON-RPC"):
        await process.start()


# The start.


@pytest.mark.req("AC-S-70", "P17")
async def test_until_the_hooks_are_done_pings_are_503_and_calls_are_refused(folder: Path):
    process = ServerProcess("desk:hooked", cwd=folder, environment={"HOOK": "1"})
    await process.launch()
    try:
        async with httpx2.AsyncClient(base_url=process.url, timeout=PATIENCE) as client:
            await until(lambda: up(client))
            began = time.time()
            assert (await client.get("/ping")).status_code == 503
            refusal = await post(client, send(id="q-7"))
            assert (refusal["id"], refusal["error"]["code"]) == ("q-7", -32603)
            assert (await client.get("/.well-known/agent-card.json")).status_code == 200
            await until(lambda: answers(client))
            status, since = await ping(client)
            assert (status, since >= int(began)) == ("Healthy", True)
            assert "result" in await post(client, send("go"))
    finally:
        assert await process.terminate() == 0


async def up(client: httpx2.AsyncClient) -> bool:
    try:
        await client.get("/ping")
    except httpx2.ConnectError:
        return False
    return True


@pytest.mark.req("AC-S-71")
@pytest.mark.parametrize(("hook", "line"), [("60", "not done after 1.5 s"), ("no number", "a start-up hook raised")])
async def test_hooks_that_fail_or_take_too_long_end_the_process(folder: Path, hook: str, line: str):
    process = ServerProcess("desk:hooked", cwd=folder, environment={"HOOK": hook})
    await process.launch()
    assert await process.wait(15) == 1
    assert any(line in text for text in process.output)


# The end.


async def state_of(folder: Path, task_id: str) -> tuple[str, str]:
    """State and last message of a task, read by another process from the same store."""
    async with running(folder, "desk:agent", "--store", "tasks.db", "--lease", "0.5") as (_, client):
        task = (await post(client, rpc("GetTask", {"id": task_id})))["result"]
        parts = task["status"].get("message", {}).get("parts", [{}])
        return task["status"]["state"], parts[0].get("text", "")


@pytest.mark.req("AC-S-75")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_running_work_ends_within_the_grace_and_new_work_is_refused(folder: Path, how: signal.Signals):
    async with running(folder, "desk:agent", "--store", "tasks.db", "--grace", "8") as (process, client):
        background = await asked(client, "sleep 1")
        blocking = asyncio.create_task(post(client, send("sleep 1")))
        streaming = asyncio.create_task(client.post("/", json=send("sleep 1", method="SendStreamingMessage")))
        await client.post("/", json=rpc("GetTask", {"id": background}))
        await asyncio.sleep(0.3)  # so that all three are at work
        os.kill(process.pid, how)
        refusal = await refused(client)
        assert refusal["error"]["code"] == -32603
        assert (await blocking)["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert "TASK_STATE_COMPLETED" in (await streaming).text
        assert await process.wait(8) == 0
    assert (await state_of(folder, background))[0] == "TASK_STATE_COMPLETED"


async def refused(client: httpx2.AsyncClient) -> dict:
    """The first answer that is an error; its status is 200 like any other's."""
    while "error" not in (found := await post(client, send("go"))):
        pass
    return found


@pytest.mark.req("AC-S-75", "AC-S-76")
async def test_work_that_takes_longer_than_the_grace_is_failed_kept_and_told(folder: Path):
    async with running(folder, "desk:agent", "--store", "tasks.db", "--grace", "0.3") as (process, client):
        background = await asked(client, "sleep 60")
        blocking = asyncio.create_task(post(client, send("sleep 60")))
        streaming = asyncio.create_task(client.post("/", json=send("sleep 60", method="SendStreamingMessage")))
        await asyncio.sleep(0.3)  # so that all three are at work
        began = time.monotonic()
        assert await process.terminate(10) == 0
        assert time.monotonic() - began < 5
        assert (await blocking)["result"]["task"]["status"]["state"] == "TASK_STATE_FAILED"
        assert "TASK_STATE_FAILED" in (await streaming).text
    assert await state_of(folder, background) == (
        "TASK_STATE_FAILED",
        "The agent was shut down while it worked on this task.",
    )


@pytest.mark.req("AC-S-75")
@pytest.mark.parametrize(("seconds", "is_done"), [("0.5", True), ("60", False)])
async def test_direct_replies_have_their_grace_and_are_answered_in_any_case(folder: Path, seconds: str, is_done: bool):
    async with running(folder, "desk:replying", "--grace", "1.5") as (process, client):
        call = asyncio.create_task(post(client, send(seconds)))
        await asyncio.sleep(0.2)  # so that it is at work
        assert await process.terminate(8) == 0
        assert ("result" in await call) is is_done


@pytest.mark.req("AC-S-75")
@pytest.mark.parametrize(("target", "text"), [("desk:agent", "block 60"), ("desk:threaded", "x")])
async def test_code_that_nothing_interrupts_does_not_keep_the_process(folder: Path, target: str, text: str):
    async with running(folder, target, "--grace", "0.2") as (process, client):
        call = asyncio.create_task(post(client, send(text, immediately=True, id="q-8")))
        await until(lambda: is_busy(client))
        began = time.monotonic()
        assert await process.terminate(12) == 0
        assert time.monotonic() - began < 0.2 + 2 + 3
        assert (await call)["id"] == "q-8"


async def is_busy(client: httpx2.AsyncClient) -> bool:
    return (await ping(client))[0] == "HealthyBusy"


@pytest.mark.req("AC-S-77")
async def test_what_a_killed_process_left_is_failed_by_the_next_one(folder: Path):
    options = ("--store", "tasks.db", "--lease", "0.5")
    async with running(folder, "desk:agent", *options) as (process, client):
        task_id = await asked(client, "sleep 60")
        await process.kill()
        await process.start()

        async def is_failed() -> bool:
            task = (await post(client, rpc("GetTask", {"id": task_id})))["result"]
            return task["status"]["state"] == "TASK_STATE_FAILED"

        await until(is_failed)


@pytest.mark.req("AC-S-78")
async def test_a_durable_store_is_not_warned_of(folder: Path):
    async with running(folder, "desk:agent", "--store", "tasks.db") as (process, _):
        pass
    assert not any("memory" in line for line in process.output)
