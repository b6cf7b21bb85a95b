"""Continuing an interaction, with nothing remembered between two runs."""

from __future__ import annotations

import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cli.commands.peer import Peer, events, refusal, task
from tests.cli.commands.program import Dragoman

Where = tuple[str, ...]


@pytest.mark.req("A2ACLI_INTERACT_001", "A2ACLI_INTERACT_003")
def test_a_context_alone_is_a_new_task_in_it(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: events(seen, {"task": task(id="t-2")})

    dragoman("send", "-a", peer.url, "--context-id", "c-1", "more")

    assert peer.calls[0].message["contextId"] == "c-1"
    assert "taskId" not in peer.calls[0].message


@pytest.mark.req("A2ACLI_INTERACT_002")
@pytest.mark.parametrize("context", [(), ("--context-id", "c-9")])
def test_a_task_that_is_refused_is_an_error_and_creates_nothing(
    dragoman: Dragoman, peer: Peer, context: tuple[str, ...]
) -> None:
    peer.play = lambda seen: refusal(seen, -32001, "TASK_NOT_FOUND", "No task t-9", 404)

    done = dragoman("send", "-a", peer.url, "-o", "json", "--task-id", "t-9", *context, "hello")

    assert (done.status, done.error["code"]) == (1, "TaskNotFoundError")
    assert "--debug" in done.error["hint"]
    assert len(peer.calls) == 1
    assert peer.calls[0].message["taskId"] == "t-9"


@pytest.mark.req("A2ACLI_INTERACT_002", "A2ACLI_TX_004")
def test_a_finished_task_takes_no_more_messages(dragoman: Dragoman, at: Where) -> None:
    over = dragoman("send", *at, "-o", "json", "hello").json["task"]["id"]

    done = dragoman("send", *at, "-o", "json", "--task-id", over, "again")

    assert (done.status, done.error["code"]) == (1, "UnsupportedOperationError")


@pytest.mark.req("A2ACLI_INTERACT_004", "A2ACLI_INTERACT_002", "A2ACLI_TX_004")
def test_the_command_that_is_printed_continues_the_task_in_any_shell(dragoman: Dragoman, at: Where) -> None:
    asked = dragoman("send", *at, "!input Which floor?")
    assert (asked.field("State"), asked.status) == ("INPUT_REQUIRED", 0)
    assert asked.out.endswith("Status message:\n  Which floor?\n\n")

    words = shlex.split(asked.field("Resume").replace("<reply>", "the third"))
    answered = dragoman(*words[1:])

    assert words[0] == "dragoman"
    assert answered.field("Task") == asked.field("Task")
    assert answered.out.endswith("Text:\n  You said: the third\n\n")
    again = shlex.split(answered.field("Continue").replace("<text>", "hello"))
    assert dragoman(*again[1:]).field("Context") == asked.field("Context")


@pytest.mark.req("A2ACLI_INTERACT_005", "A2ACLI_CONFIG_001")
def test_nothing_is_kept_and_two_runs_do_not_meet(dragoman: Dragoman, here: Where) -> None:
    before = dragoman.files()

    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(dragoman, "send", *here, "-o", "json", text) for text in ("one", "!input two")]
        one, two = (run.result().json["task"] for run in runs)

    assert one["id"] != two["id"]
    assert one["contextId"] != two["contextId"]
    assert dragoman.files() == before
    assert dragoman("send", *here, "--continue", "x").status == 2
