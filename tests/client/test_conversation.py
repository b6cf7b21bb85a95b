"""Turns that belong together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.client.words import connect_to, message, status, task
from tests.http.peer import Peer, peer, result, stream


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def ids(server: Peer) -> list[tuple[str | None, str | None]]:
    """Task id and context id of the messages, as they were on the wire."""
    sent: list[dict[str, Any]] = [request.json["params"]["message"] for request in server.received]
    return [(said.get("taskId"), said.get("contextId")) for said in sent]


@pytest.mark.req("B095", "B161", "CTX-05", "CTX-16")
async def test_a_question_is_answered_in_its_task_and_afterwards_only_the_context_is_kept(server: Peer) -> None:
    server.on(
        "POST",
        "/",
        result({"task": task("INPUT_REQUIRED", "t1")}),
        result({"task": task("COMPLETED", "t1")}),
        result({"task": task("COMPLETED", "t2")}),
    )

    async with connect_to(server) as client:
        talk = client.conversation()
        for words in ("book", "Rome", "thanks"):
            await talk.send(words)

    assert ids(server) == [(None, None), ("t1", "c1"), (None, "c1")]


@pytest.mark.req("B161")
async def test_messages_keep_the_context_that_the_agent_named(server: Peer) -> None:
    server.on("POST", "/", result({"message": message("hello", contextId="c9")}), result({"message": message("bye")}))

    async with connect_to(server) as client:
        talk = client.conversation()
        for words in ("hi", "bye", "again"):
            await talk.send(words)

    assert ids(server) == [(None, None), (None, "c9"), (None, "c9")]


@pytest.mark.req("B095")
async def test_streamed_and_followed_turns_keep_the_ids_too(server: Peer) -> None:
    server.on(
        "POST",
        "/",
        stream({"task": task("WORKING", "t1")}, status("INPUT_REQUIRED", "where?")),
        stream({"task": task("WORKING", "t1")}, status("INPUT_REQUIRED", "when?")),
        stream({"task": task("WORKING", "t1")}, status("COMPLETED")),
    )

    async with connect_to(server) as client:
        talk = client.conversation()
        async for _ in talk.stream("book"):
            pass
        assert (await talk.run("Rome")).question == "when?"
        assert talk.task_id == "t1"
        assert (await talk.run("tomorrow")).ok

    assert ids(server) == [(None, None), ("t1", "c1"), ("t1", "c1")]
    assert (talk.task_id, talk.context_id) == ("", "c1")


async def test_ids_that_the_caller_names_win(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("INPUT_REQUIRED", "t1")}))

    async with connect_to(server) as client:
        talk = client.conversation(context_id="c0")
        await talk.send("hi", context_id="other")
        await talk.send("hi")

    assert ids(server) == [(None, "other"), ("t1", "c1")]


async def test_a_conversation_can_be_taken_up_again(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("COMPLETED", "t5")}))

    async with connect_to(server) as client:
        await client.conversation(context_id="c1", task_id="t5").send("Rome")

    assert ids(server) == [("t5", "c1")]
