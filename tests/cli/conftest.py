"""``dragoman run`` as a process, with an agent in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from examples.process import AgentProcess

Run = Callable[..., AgentProcess]

AGENT = '''
"""An agent that waits, asks or answers, as its message says."""

import asyncio
import time

from dragoman import Agent, App, Limits

agent = Agent("Errand", description="Does what it is told.", output_modes=["*/*"])
again = Agent("Errand again", description="The same, and may be run again.")
not_an_agent = 7
runs = 0


async def work(ctx):
    if ctx.text == "ask":
        first = await ctx.ask("First?")
        return f"{first} {await ctx.ask('Second?')}"
    if ctx.text == "wait" and not ctx.recovered:
        await ctx.artifact("half")
        await asyncio.sleep(60)
    if ctx.text.startswith("sleep "):
        await ctx.artifact("begun")
        await asyncio.sleep(float(ctx.text.removeprefix("sleep ")))
    return f"done {ctx.recovered}"


blocking = Agent("Blocking", description="Cannot be interrupted.")


@blocking.task
def block(ctx):
    time.sleep(60)


agent.task(work)
again.task(rerun=True)(work)
limited = App(agent, store="limited.db", limits=Limits(running_tasks=1, lease=0.6, shutdown_grace=0.2))
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with ``errand.py`` in it."""
    (tmp_path / "errand.py").write_text(AGENT)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Iterator[Run]:
    """``process = run("errand:agent", "--store", "tasks.db")``: started, and ended with the test."""
    with ExitStack() as stack:

        def start(target: str, *options: str) -> AgentProcess:
            return stack.enter_context(AgentProcess.serving(target, *options, cwd=folder))

        yield start
