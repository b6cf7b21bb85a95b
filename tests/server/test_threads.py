"""Plain functions run in threads of their own."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextvars import ContextVar

import pytest

from dragoman import Agent
from dragoman.server.threads import call_in_thread
from tests.runtime.running import S, Server, said, texts, within

variable: ContextVar[str] = ContextVar("variable", default="unset")


async def test_slow_functions_do_not_keep_each_other_waiting(server: Server) -> None:
    agent = Agent("Slow", description="All must be there before one may go.")
    barrier = threading.Barrier(60)

    @agent.task
    def work(ctx):
        barrier.wait(10)
        return ctx.text

    client = await server(agent)
    tasks = await within(asyncio.gather(*(client.send(f"{n}") for n in range(60))), 10)

    assert [texts(task) for task in tasks] == [[f"{n}"] for n in range(60)]


async def test_the_callers_context_variables_are_there() -> None:
    variable.set("mine")

    assert await call_in_thread(variable.get) == "mine"


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit("x"), StopIteration("x")])
async def test_what_a_function_raises_fails_its_task(server: Server, error: BaseException) -> None:
    agent = Agent("Raising", description="Raises.")

    @agent.task
    def work(ctx):
        raise error

    task = await within((await server(agent)).send("go"))

    assert (task.status.state, said(task)) == (S.FAILED, "The agent failed while it worked on this task.")


async def test_a_generator_in_a_thread_that_exits_fails_its_task(server: Server) -> None:
    agent = Agent("Leaving", description="Leaves.")

    @agent.task
    def work(ctx):
        yield "half"
        sys.exit(1)

    task = await within((await server(agent)).send("go"))

    assert (task.status.state, texts(task)) == (S.FAILED, ["half"])


async def test_what_a_function_gives_after_its_caller_left_is_dropped() -> None:
    began, go, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> str:
        began.set()
        go.wait(5)
        ended.set()
        return "late"

    calling = asyncio.create_task(call_in_thread(work))
    while not began.is_set():  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    go.set()
    while not ended.is_set():  # noqa: ASYNC110
        await asyncio.sleep(0.001)

    assert calling.cancelled()
