"""Races for the end of a task: one outcome wins, everybody sees that one, and nobody waits for ever.

Each round draws from a seeded generator who moves after how many turns of the event loop.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping

import pytest

from dragoman import Agent
from dragoman.errors import InvalidAgentResponseError, TaskNotCancelableError, UnsupportedOperationError
from dragoman.model import (
    CANCEL_TASK,
    GET_TASK,
    SEND_MESSAGE,
    CancelTaskRequest,
    GetTaskRequest,
    Role,
    SendMessageResponse,
    Task,
)
from dragoman.ports.operations import CallContext
from tests.faults.onlookers import Ids, Onlookers, request, turns
from tests.faults.rounds import note, rounds
from tests.runtime.running import S, Server, status, texts, within

pytestmark = pytest.mark.timeout(900)


def many(item: pytest.Item, server: Server):
    """Rounds on the memory store; fewer on SQLite, where each costs some commits."""
    durable = server.app.runtime._store.durable
    return rounds(item, least=60 if durable else 200, seconds=1.5 if durable else 2.0)


def pace(server: Server) -> int:
    """By how much an agent has to be slower than its onlookers to be raced by them, since they wait for commits."""
    return 60 if server.app.runtime._store.durable else 1


async def cancel(server: Server, task_id: str, after: int = 0) -> str:
    """What a canceler is answered."""
    await turns(after)
    try:
        answer = await server.app.operations.call(CANCEL_TASK, CancelTaskRequest(id=task_id), CallContext())
    except TaskNotCancelableError:
        return "refused"
    assert isinstance(answer, Task)
    assert answer.status.state is S.CANCELED
    return "canceled"


def check_answers(answers: list[str], state: S) -> None:
    """A canceler is told that the task is canceled exactly when it is."""
    assert set(answers) == ({"canceled"} if state is S.CANCELED else {"refused"})


def check_outcomes(server: Server, outcomes: Mapping[str, int], *expected: str) -> None:
    """That it was a race at all. On SQLite the speed of the disk may decide each time."""
    assert server.app.runtime._store.durable or all(outcomes.get(each) for each in expected), outcomes


def ending(ids: Ids) -> Agent:
    """Ends after as many turns as its text says."""
    agent = Agent("Ending", description="Ends after some turns.")

    @agent.task
    async def work(ctx):
        ids.say(ctx.text, ctx.task_id)
        await turns(int(ctx.text.split()[1]))
        return "done"

    return agent


@pytest.mark.req("B047", "SUB-01", "SUB-03")
async def test_who_subscribes_at_the_instant_of_completion_sees_the_end_or_is_refused(
    arena: Server, request: pytest.FixtureRequest
) -> None:
    ids, dice, refused, seen = Ids(), random.Random(1), 0, 0
    await arena(ending(ids))

    for number in many(request.node, arena):
        onlookers, text = Onlookers(arena.app), f"{number} {dice.randrange(12)}"
        (onlookers.send if number % 2 else onlookers.stream)(text)
        task_id = await ids.of(text)
        for _ in range(4):
            onlookers.subscribe(task_id, dice.randrange(24) * pace(arena))

        assert await onlookers.agree(task_id) is S.COMPLETED
        refused, seen = refused + onlookers.refused, seen + 4 - onlookers.refused

    note(request.node, f"{seen} saw the end, {refused} were refused")
    check_outcomes(arena, {"seen": seen, "refused": refused}, "seen", "refused")


@pytest.mark.req("B085", "CANCEL-02", "CANCEL-04")
async def test_of_cancel_and_completion_one_wins_everywhere(arena: Server, request: pytest.FixtureRequest) -> None:
    ids, dice, ends = Ids(), random.Random(2), Counter()
    await arena(ending(ids))

    for number in many(request.node, arena):
        onlookers, text = Onlookers(arena.app), f"{number} {dice.randrange(10)}"
        (onlookers.send if number % 2 else onlookers.stream)(text)
        task_id = await ids.of(text)
        onlookers.subscribe(task_id, dice.randrange(10))
        answers = await within(asyncio.gather(*(cancel(arena, task_id, dice.randrange(14)) for _ in range(2))))

        state = await onlookers.agree(task_id)
        check_answers(answers, state)
        ends[state.name] += 1

    note(request.node, str(dict(ends)))
    check_outcomes(arena, ends, "COMPLETED", "CANCELED")


@pytest.mark.req("STRM-09", "B085")
async def test_of_two_final_events_at_once_one_wins_everywhere(arena: Server, request: pytest.FixtureRequest) -> None:
    ids, dice, ends = Ids(), random.Random(3), Counter()
    agent = Agent("Torn", description="Two parts of it end the task, each in its own way.")

    @agent.task
    async def work(ctx):
        ids.say(ctx.text, ctx.task_id)

        async def end(after: str, state: S) -> None:
            await turns(int(after))
            await ctx.status(state, state.name)

        _, first, second = ctx.text.split()
        outcomes = await asyncio.gather(end(first, S.COMPLETED), end(second, S.FAILED), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes if outcome is not None] == [InvalidAgentResponseError]

    await arena(agent)
    for number in many(request.node, arena):
        onlookers, text = Onlookers(arena.app), f"{number} {dice.randrange(6)} {dice.randrange(6)}"
        (onlookers.send if number % 2 else onlookers.stream)(text)
        task_id = await ids.of(text)
        onlookers.subscribe(task_id, dice.randrange(10))

        ends[(await onlookers.agree(task_id)).name] += 1

    note(request.node, str(dict(ends)))
    check_outcomes(arena, ends, "COMPLETED", "FAILED")


@pytest.mark.req("STRM-09", "B085")
async def test_of_two_final_events_of_one_agent_of_events_the_first_wins(
    arena: Server, request: pytest.FixtureRequest
) -> None:
    ids, dice = Ids(), random.Random(4)
    agent = Agent("Twice", description="Ends twice.")

    @agent.events
    async def work(ctx):
        yield status(S.WORKING)
        ids.say(ctx.text, ctx.task_id)
        _, between, first, second = ctx.text.split()
        yield status(S[first])
        await turns(int(between))
        yield status(S[second])

    await arena(agent)
    for number in many(request.node, arena):
        first, second = dice.sample(["COMPLETED", "FAILED", "REJECTED", "CANCELED"], 2)
        onlookers, text = Onlookers(arena.app), f"{number} {dice.randrange(3)} {first} {second}"
        (onlookers.send if number % 2 else onlookers.stream)(text)
        task_id = await ids.of(text)
        onlookers.subscribe(task_id, dice.randrange(6))

        assert await onlookers.agree(task_id) is S[first]


@pytest.mark.req("CANCEL-01", "B087")
@pytest.mark.parametrize("slots", [1_000, 1], ids=["started", "waiting"])
async def test_a_cancel_before_the_first_event_ends_the_task_once(
    arena: Server, slots: int, request: pytest.FixtureRequest
) -> None:
    dice, ends, ran = random.Random(5), Counter(), Counter()
    agent = Agent("Slow to start", description="Says nothing for some turns.")

    @agent.task
    async def work(ctx):
        ran["begun"] += 1
        await turns(int(ctx.text.split()[1]))
        await ctx.update("first")
        return "done"

    await arena(agent, running_tasks=slots)
    for number in many(request.node, arena):
        onlookers = Onlookers(arena.app)
        others = [Onlookers(arena.app) for _ in range(2 if slots == 1 else 0)]
        for other in others:
            other.send(f"{number} 3")
        task_id = await begin(arena, f"{number} {dice.randrange(1, 6) * 3 * pace(arena)}")
        onlookers.subscribe(task_id, dice.randrange(3))
        answers = await within(asyncio.gather(*(cancel(arena, task_id, dice.randrange(3)) for _ in range(2))))

        state = await onlookers.agree(task_id)
        check_answers(answers, state)
        ends[state.name] += 1
        await within(asyncio.gather(*(seeing for other in others for seeing in other._seeing)))

    note(request.node, f"{dict(ends)}, the code began {ran['begun']} times")
    check_outcomes(arena, ends, "COMPLETED", "CANCELED")


async def begin(server: Server, text: str) -> str:
    """An immediate send."""
    answer = await server.app.operations.call(SEND_MESSAGE, request(text, immediately=True), CallContext())
    assert isinstance(answer, SendMessageResponse)
    assert answer.task is not None
    return answer.task.id


@pytest.mark.req("B079", "CTX-16")
async def test_an_answer_that_races_the_timeout_of_its_question_is_taken_or_refused(
    arena: Server, request: pytest.FixtureRequest
) -> None:
    dice, outcomes = random.Random(6), Counter()
    agent = Agent("Impatient", description="Waits a little for an answer.")

    @agent.task
    async def work(ctx):
        try:
            return f"answer {await ctx.ask('?', timeout=int(ctx.text.split()[1]) / 2_000)}"
        except TimeoutError:
            await turns(int(ctx.text.split()[2]))
            return "default"

    await arena(agent)
    loop = asyncio.get_running_loop()
    for number in many(request.node, arena):
        patience = dice.randrange(1, 5)
        onlookers = Onlookers(arena.app)
        task_id = await begin(arena, f"{number} {patience} {dice.randrange(4)}")
        onlookers.subscribe(task_id)
        due = asyncio.Event()
        loop.call_later(patience / 2_000 + dice.uniform(-0.001, 0.001), due.set)
        await within(due.wait())
        taken = await answer(arena, f"{number} yes", task_id)

        assert await onlookers.agree(task_id) is S.COMPLETED
        task = await arena.app.operations.call(GET_TASK, GetTaskRequest(id=task_id), CallContext())
        assert isinstance(task, Task)
        heard = [message for message in task.history if message.role is Role.USER]
        assert len(heard) == (2 if taken else 1)
        assert texts(task) == ["default"] or taken
        outcomes[f"{'taken' if taken else 'refused'}, {(texts(task)[0] or '').split()[0]}"] += 1

    note(request.node, str(dict(outcomes)))
    check_outcomes(arena, outcomes, "taken, answer", "refused, default")


async def answer(server: Server, text: str, task_id: str) -> bool:
    """Send a follow-up and wait; whether it was taken."""
    try:
        response = await within(server.app.operations.call(SEND_MESSAGE, request(text, task_id=task_id), CallContext()))
    except UnsupportedOperationError:
        return False
    assert isinstance(response, SendMessageResponse)
    assert response.task is not None
    assert response.task.status.state is S.COMPLETED
    return True
