"""What the README shows works as shown."""

from __future__ import annotations

import asyncio
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman
from dragoman import App, Task, TaskState
from dragoman.model import TaskPushNotificationConfig
from dragoman.push import PushSettings
from examples.process import DRAGOMAN, AgentProcess
from tests.bindings.parts import served as listening
from tests.house.snippets import read_blocks, read_commands

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
SHOWN_URL = "http://127.0.0.1:8000"
SHOWN_TOKEN = "open sesame"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the README shows."""
    folder = tmp_path_factory.mktemp("readme")
    for block in read_blocks(README):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    """The address of the first agent of the README, served by the first command of the README."""
    command = next(words for words in read_commands(README) if words[:2] == ["dragoman", "run"])
    with AgentProcess.serving(*command[2:], cwd=folder) as process:
        yield process.url


def run_python(program: str, folder: Path, **further: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONIOENCODING": "utf-8", **further}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_client_prints_what_the_readme_says(folder: Path, served: str) -> None:
    assert run_shown("call.py", folder, served) == "You said: hello\n"


def test_programs_without_a_server_run_as_they_are(folder: Path) -> None:
    programs = [block.text for block in read_blocks(README) if block.language == "python" and not block.file]

    outputs = [run_python(program, folder) for program in programs]

    assert len(outputs) == 1
    assert "You said: hello" in outputs[0]


def test_the_shown_agent_asks_and_then_streams_its_plan(folder: Path) -> None:
    program = """
import asyncio, dragoman
from planner import agent

async def main():
    async with dragoman.connect(agent) as client:
        asked = await client.run("work")
        done = await client.run("2", task=asked.task)
        print(asked.state.name, done.state.name, repr(done.text))

asyncio.run(main())
"""
    assert run_python(program, folder).strip() == r"INPUT_REQUIRED COMPLETED '9:00 work\n10:00 work\n'"


def run_shown(file: str, folder: Path, url: str, **replaced: str) -> str:
    """Run a client that the README shows, with the address of a server that there is."""
    program = (folder / file).read_text(encoding="utf-8").replace(SHOWN_URL, url)
    for old, new in replaced.items():
        assert old in program
        program = program.replace(old, new)
    return run_python(program, folder)


def test_the_shown_vault_opens_to_the_shown_caller_with_its_key_only(folder: Path) -> None:
    with AgentProcess.serving("vault:agent", cwd=folder, environment={"BACKUP_KEY": "s3cret"}) as process:
        assert run_shown("caller.py", folder, process.url) == "Kept for backup\n"

        with pytest.raises(AssertionError, match="UnauthenticatedError"):
            run_shown("caller.py", folder, process.url, s3cret="guess")


async def test_the_shown_receiver_hears_of_the_shown_herald(folder: Path) -> None:
    heard: asyncio.Queue[tuple[object, ...]] = asyncio.Queue()
    hook = runpy.run_path(str(folder / "hearing.py"), {"print": lambda *words: heard.put_nowait(words)})["hook"]
    agent = runpy.run_path(str(folder / "herald.py"))["agent"]

    app = App(agent, push=PushSettings(allow_private=True))
    async with asyncio.timeout(30), listening(hook) as (host, port), dragoman.connect(app) as client, app:
        task = await client.send(
            "ride", push=TaskPushNotificationConfig(url=f"http://{host}:{port}/", token=SHOWN_TOKEN)
        )
        states = [(await heard.get())[1] for _ in range(4)]

    assert isinstance(task, Task)
    assert states[-1] == TaskState.COMPLETED


def test_the_shown_cashier_pays_once(folder: Path) -> None:
    program = """
import asyncio, dragoman
from cashier import agent
from dragoman.extensions import IdempotentSends

async def main():
    async with dragoman.connect(agent, extensions=[IdempotentSends()]) as client:
        first, again = [await client.send("5 francs", message_id="1") for _ in range(2)]
        print(first.id == again.id, first.artifacts[0].parts[0].text)

asyncio.run(main())
"""
    assert run_python(program, folder) == "True Paid 5 francs\n"


def test_the_shown_agent_is_hosted_as_agentcore_has_it_and_called_by_its_arn(folder: Path) -> None:
    program = """
import asyncio, runpy
from dragoman import agentcore
from dragoman.testing.agentcore_front import Front, Open, Shared
from dragoman.testing.serving import serving
from hosted import app

connect = agentcore.connect

async def main():
    async with serving(app) as url, Front(Shared(url), auth=Open()) as front:
        agentcore.connect = lambda arn: connect(front.arn, endpoint=front.url, anonymous=True, own_address=True)
        await asyncio.to_thread(runpy.run_path, "remote.py")

asyncio.run(main())
"""
    assert run_python(program, folder) == "You said: hello\n"


def test_the_shown_client_speaks_0_3(folder: Path, served: str) -> None:
    assert run_shown("older.py", folder, served) == "0.3 You said: hello\n"


def test_the_shown_herald_takes_webhooks(folder: Path) -> None:
    program = """
import asyncio, dragoman
from dragoman.model import TaskPushNotificationConfig
from herald import agent

async def main():
    async with dragoman.connect(agent) as client:
        hook = TaskPushNotificationConfig(url="https://hooks.invalid/a2a", token="open sesame")
        task = await client.send("ride", push=hook)
        (config,) = (await client.list_push_configs(task.id)).configs
        print(config.url, repr(config.token))

asyncio.run(main())
"""
    assert run_python(program, folder).strip() == "https://hooks.invalid/a2a ''"


def test_a_card_is_signed_and_verified_as_shown(folder: Path) -> None:
    for command in (words for words in read_commands(README) if words[:3] == ["dragoman", "card", "key"]):
        subprocess.run([DRAGOMAN, *command[1:]], cwd=folder, check=True, timeout=60, capture_output=True)

    with AgentProcess.serving("tides:agent", cwd=folder) as process:
        assert run_shown("careful.py", folder, process.url) == "verified (kid tides-2026, ES256)\n"


def test_every_option_of_the_shown_server_is_accepted(folder: Path) -> None:
    *_, command = (words for words in read_commands(README) if words[:2] == ["dragoman", "run"])
    options = [word for word in command[3:] if word.startswith("--")]

    shown = subprocess.run([DRAGOMAN, "run", "--help"], capture_output=True, text=True, timeout=60)

    assert options
    assert [option for option in options if option not in shown.stdout] == []


def test_verbs_and_extras_of_the_readme_exist() -> None:
    text = README.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

    assert all(f"\n{verb}:" in makefile for verb in ("demo", "test", "run", "rows") if f"make {verb}" in text)
    assert "all" in extras


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([\w./]+\.(?:py|proto)|tools/\w+)`", text))

    missing = [name for name in names if not (ROOT / name).exists() and not (ROOT / "src/dragoman" / name).exists()]

    assert names
    assert missing == []
