"""``dragoman run --websocket``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman import WebSocketBinding
from dragoman.testing.process import ServerProcess

AGENT = """
from dragoman import Agent, App

agent = Agent("Echo", description="Repeats what you say")


@agent.task
async def echo(ctx):
    return f"You said: {ctx.text}"


app = App(agent)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "echo.py").write_text(AGENT)
    return tmp_path


@pytest.mark.req("BIND-14")
async def test_the_command_serves_the_binding_when_it_is_asked_to_and_ends_in_order(folder: Path) -> None:
    process = ServerProcess("echo:agent", "--websocket", cwd=folder)

    async with process, dragoman.connect(process.url, bindings=[WebSocketBinding()]) as client:
        result = await client.run("hello")
        await process.terminate()

    assert result.text == "You said: hello"


def test_an_app_names_its_bindings_itself(folder: Path) -> None:
    command = [sys.executable, "-m", "dragoman", "run", "echo:app", "--port", "0", "--websocket"]

    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30)

    assert done.returncode == 2
    assert "App(bindings=[" in done.stderr
