"""The recipe of the container, done step by step in a clean folder, as no container engine is at hand."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import psutil
import pytest

from dragoman.model import TaskState
from dragoman.stores import open_store
from tests.agentcore.init.recipe import ROOT, Built, build, build_wheel

AGENT = """
import asyncio

from dragoman import Agent

agent = Agent("Tides", description="Answers questions about harbour tides")


@agent.task
async def tide(ctx):
    if ctx.text == "wait":
        await asyncio.sleep(60)
    return f"18:42, {ctx.text}"
"""
SESSION = {"x-amzn-bedrock-agentcore-runtime-session-id": "harbour-7c0d9f1e-2b64-4f0e-8a55-90d1c3b7e2aa"}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The recipe of an agent, followed to its last step."""
    context = tmp_path_factory.mktemp("context")
    (context / "tides.py").write_text(AGENT)
    subprocess.run(
        [sys.executable, "-m", "dragoman", "agentcore", "init", "--agent", "tides:agent"],
        cwd=context,
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    build_wheel(context / "wheels", tmp_path_factory.mktemp("wheel"))
    return build(context, tmp_path_factory.mktemp("image"))


def port_of_the_platform() -> str:
    """A free one of those that the control plane takes."""
    for port in range(8_001 + os.getpid() % 3_000, 12_000):
        with socket.socket() as probe:
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
        if port != 8443:
            return str(port)
    raise AssertionError("no port is free")


def start(built: Built, port: str, options: tuple[str, ...]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*built.command, *options],
        cwd=built.folder,
        env={**built.environment, "A2A_PORT": port, "PORT": "8080"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@asynccontextmanager
async def running(built: Built, *options: str) -> AsyncIterator[tuple[subprocess.Popen[bytes], str]]:
    """The entry command, serving; its address."""
    port = port_of_the_platform()
    process = start(built, port, options)
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx2.AsyncClient(trust_env=False) as client, asyncio.timeout(30):
            while not await _healthy(client, url):
                assert process.poll() is None
                await asyncio.sleep(0.05)
        yield process, url
    finally:
        process.kill()
        process.wait(10)


async def _healthy(client: httpx2.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(f"{url}/ping")).status_code == 200
    except httpx2.TransportError:
        return False


async def send(url: str, text: str, **configuration: bool) -> dict:
    message = {"messageId": f"m-{text}", "role": "ROLE_USER", "parts": [{"text": text}]}
    params = {"message": message, "configuration": configuration}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    async with httpx2.AsyncClient(trust_env=False, timeout=20) as client:
        answer = await client.post(f"{url}/", json=body, headers=SESSION)
    assert answer.status_code == 200
    return answer.json()["result"]["task"]


@pytest.mark.req("AC-S-07", "AC-S-01", "AC-S-02")
async def test_the_steps_make_an_agent_that_serves(built: Built) -> None:
    python = Path(built.environment["PATH"].partition(":")[0])
    async with running(built) as (process, url):
        task = await send(url, "Pier 6")
        executable = psutil.Process(process.pid).cmdline()
        healthy = await asyncio.to_thread(
            subprocess.run,
            [word.replace("9000", url.rpartition(":")[2]) for word in built.health],
            cwd=built.folder,
            env=built.environment,
            check=False,
            timeout=30,
        )

    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert Path(executable[0]).name.startswith("python")  # no shell between
    assert healthy.returncode == 0
    assert list((built.folder / "__pycache__").glob("tides.*.pyc"))
    size = sum(file.stat().st_size for file in python.parent.rglob("*") if file.is_file() and not file.is_symlink())
    assert size < 300_000_000  # the image has to stay below 2 GB, and a slim Python takes 0.15 of it


@pytest.mark.req("AC-S-07", "AC-S-75", "AC-S-76")
async def test_the_entry_command_hears_sigterm_and_ends_in_order(built: Built, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'tasks.db'}"
    async with running(built, "--store", store, "--grace", "0.5") as (process, url):
        task = await send(url, "wait", returnImmediately=True)
        process.send_signal(signal.SIGTERM)
        status = await asyncio.to_thread(process.wait, 20)

    assert status == 0
    assert await stored_state(store, task["id"]) == "TASK_STATE_FAILED"


async def stored_state(url: str, task_id: str) -> str:
    store = open_store(url)
    await store.open()
    try:
        found = await store.task(task_id, None)
    finally:
        await store.close()
    assert found is not None
    return str(TaskState(found.task.status.state).value)


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [text for texts in project["optional-dependencies"].values() for text in texts]
    return [*project["dependencies"], *(text for text in extras if not text.startswith("dragoman["))]


@pytest.mark.req("AC-S-06")
@pytest.mark.parametrize("version", [f"{sys.version_info.major}.{sys.version_info.minor}", "3.13"])
def test_every_dependency_has_wheels_for_arm64(version: str, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-cache-dir"]
    target = ["--platform", "manylinux2014_aarch64", "--python-version", version, "--implementation", "cp"]
    report = tmp_path / "report.json"
    done = subprocess.run(
        [
            *pip,
            *target,
            *("--only-binary", ":all:", "--target", str(tmp_path / "none"), "--report", str(report)),
            *requirements(),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text(encoding="utf-8"))["install"]
    files = [entry["download_info"]["url"].rpartition("/")[2] for entry in found]
    assert len(files) > 20
    assert all(name.endswith(("aarch64.whl", "-none-any.whl")) for name in files), files
