"""The travel example, as a process."""

from __future__ import annotations

from pathlib import Path

import pytest

import dragoman
from dragoman.client import Client, Result
from dragoman.model import TaskState
from examples.process import AgentProcess

AGENT = "examples.travel.agent:agent"


def question(result: Result) -> str:
    assert result.state is TaskState.INPUT_REQUIRED
    assert result.task is not None
    assert result.task.status.message is not None
    return result.task.status.message.parts[0].text or ""


def plan(result: Result) -> dict[str, object]:
    assert result.state is TaskState.COMPLETED
    (found,) = (artifact for artifact in result.artifacts if artifact.name == "plan")
    data = found.parts[0].data
    assert isinstance(data, dict)
    return data


async def test_a_complete_wish_is_planned_at_once(client: Client) -> None:
    result = await client.run("From Vienna to Lisbon on 2026-05-03, 4 nights, 2 people")

    found = plan(result)
    assert (found["origin"], found["destination"], found["return"]) == ("Vienna", "Lisbon", "2026-05-07")
    assert "Vienna to Lisbon (2,298 km)" in result.text


@pytest.mark.req("CTX-16", "STRM-12")
async def test_what_is_missing_is_asked_for_over_several_turns(client: Client) -> None:
    turn = await client.run("I want to go to Rome, 3 nights")
    assert question(turn) == "Where do you start?"
    turn = await client.run("Prague", task=turn.task)
    assert question(turn) == "When do you leave? (year-month-day)"
    turn = await client.run("soon", task=turn.task)
    assert question(turn).startswith("I did not understand that. A date looks like 2026-05-03.")
    turn = await client.run("2026-06-01", task=turn.task)
    assert question(turn) == "How many people travel?"

    done = await client.run("just 1", task=turn.task)

    assert plan(done)["costs"] == [{"what": "travel", "euros": 203}, {"what": "1 room(s)", "euros": 390}]


async def test_a_data_part_tells_wishes_too(client: Client) -> None:
    turn = await client.run({"origin": "Paris", "destination": "Athens", "departure": "2026-09-01", "nights": 2})

    assert question(turn) == "How many people travel?"


async def test_three_answers_that_cannot_be_understood_reject_the_task(client: Client) -> None:
    turn = await client.run("From Vienna to Rome on 2026-05-03, 4 nights")
    for answer in ("several", "some"):
        turn = await client.run(answer, task=turn.task)
        assert "A number from 1 to 9 is needed" in question(turn)

    done = await client.run("many", task=turn.task)

    assert done.state is TaskState.REJECTED


@pytest.mark.req("CTX-16", "B091")
async def test_a_conversation_goes_on_after_the_server_was_killed_between_two_questions(tmp_path: Path) -> None:
    with AgentProcess.serving(AGENT, "--store", str(tmp_path / "tasks.db")) as process:
        async with dragoman.connect(process.url) as client:
            turn = await client.run("From Krakow to Berlin, 2 people")
            turn = await client.run("2026-10-01", task=turn.task)
            process.kill()
            process.start()

            assert turn.task is not None
            assert (await client.get_task(turn.task.id)).status.state is TaskState.INPUT_REQUIRED
            done = await client.run("5", task=turn.task)

        assert plan(done)["return"] == "2026-10-06"
        assert done.task is not None
        assert [m.parts[0].text for m in done.task.history if m.role.name == "USER"][-2:] == ["2026-10-01", "5"]
