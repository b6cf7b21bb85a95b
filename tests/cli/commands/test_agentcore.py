"""Agents on AgentCore from the command line: ``--arn``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tests.agentcore.client.front import (
    ARN,
    CALLS,
    CARD,
    KEYS,
    ONE,
    SESSION,
    busy,
    done,
    forbidden,
    refusal,
    runtime_card,
    sessions,
)
from tests.agentcore.client.sigv4 import is_genuine
from tests.cli.commands.program import Dragoman
from tests.client.words import artifact, status, task
from tests.http.peer import Peer, as_json, peer, result, stream

AWS = {
    "AWS_ACCESS_KEY_ID": KEYS.access_key,
    "AWS_SECRET_ACCESS_KEY": KEYS.secret_key,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture
def front() -> Iterator[Peer]:
    """The scripted front, on an event loop of its own."""
    ready, over = threading.Event(), asyncio.Event()
    found: list[tuple[Peer, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        async with peer() as made:
            found.append((made, asyncio.get_running_loop()))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    made, loop = found[0]
    try:
        yield made.on("GET", CARD, as_json(runtime_card(made)))
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)


def named(front: Peer, *more: str) -> tuple[str, ...]:
    return ("--arn", ARN, "--endpoint-url", front.url, *more)


@pytest.mark.req("AC-C-10", "AC-C-22", "AC-C-60")
def test_send_signs_and_keeps_to_one_session(dragoman: Dragoman, front: Peer) -> None:
    front.on("POST", CALLS, stream({"task": task("WORKING")}, artifact("18:42"), status("COMPLETED")))

    told = dragoman.inside("send", *named(front), "hi", env=AWS)

    assert told.status == 0
    assert "18:42" in told.out
    assert front.targets() == [f"GET {CARD}", f"POST {CALLS}"]
    assert all(map(is_genuine, front.received))
    (session_id,) = set(sessions(front))
    assert f"Session: {session_id}" in told.err


@pytest.mark.req("B163", "AC-C-84")
def test_events_are_shown_as_they_come(dragoman: Dragoman, front: Peer) -> None:
    front.on("POST", CALLS, stream({"task": task("WORKING")}, artifact("a"), status("COMPLETED")))

    told = dragoman.inside("send", *named(front), "--stream", "-o", "json", "hi", env=AWS)

    assert [next(iter(line)) for line in told.lines] == ["task", "artifactUpdate", "statusUpdate"]


@pytest.mark.req("AC-C-04", "AC-C-13")
def test_the_next_command_is_told_with_its_session(dragoman: Dragoman, front: Peer) -> None:
    front.on("POST", CALLS, stream({"task": task("WORKING")}, status("INPUT_REQUIRED", "Which pier?")))

    told = dragoman.inside("send", *named(front, "--qualifier", "prod", "--session-id", ONE), "hi", env=AWS)

    assert f"--arn {ARN} --endpoint-url {front.url} --qualifier prod --session-id {ONE}" in told.err + told.out
    assert set(sessions(front)) == {ONE}
    assert all(target.endswith("?qualifier=prod") for target in front.targets())


@pytest.mark.req("AC-C-13")
def test_a_task_is_looked_at_in_its_session(dragoman: Dragoman, front: Peer) -> None:
    front.on("POST", CALLS, result(task("COMPLETED")))

    told = dragoman.inside("task", "get", "t1", *named(front, "--session-id", ONE), env=AWS)

    assert told.status == 0
    assert set(sessions(front)) == {ONE}


@pytest.mark.req("AC-C-20", "AC-C-24")
def test_a_bearer_token_is_used_in_place_of_keys(dragoman: Dragoman, front: Peer) -> None:
    front.on("POST", CALLS, stream({"task": task("COMPLETED")}))

    told = dragoman.inside("send", *named(front), "--debug", "hi", env={**AWS, "A2ACLI_BEARER": "t-secret"})

    assert {request.headers["authorization"] for request in front.received} == {"Bearer t-secret"}
    assert "t-secret" not in told.out + told.err


@pytest.mark.req("AC-C-60")
def test_without_leave_for_the_card_the_agent_is_called_all_the_same(dragoman: Dragoman, front: Peer) -> None:
    front._routes.clear()
    front.on("GET", CARD, forbidden("Access denied")).on("POST", CALLS, stream({"task": task("COMPLETED")}))

    told = dragoman.inside("send", *named(front), "hi", env=AWS)

    assert told.status == 0
    assert "GetAgentCard" in told.err


@pytest.mark.req("AC-C-60", "AC-C-62")
def test_the_card_is_shown_whatever_address_it_names(dragoman: Dragoman, front: Peer) -> None:
    front._routes.clear()
    front.on("GET", CARD, as_json({**runtime_card(front), "name": "Tide desk"}))

    told = dragoman.inside("card", "get", *named(front), env=AWS)

    assert told.field("Name") == "Tide desk"
    assert front.targets() == [f"GET {CARD}"]


@pytest.mark.req("AC-C-07")
def test_a_url_of_a_runtime_is_as_good_as_its_arn(dragoman: Dragoman, front: Peer) -> None:
    front.on("POST", CALLS, stream({"task": task("COMPLETED")}))

    told = dragoman.inside("send", "--arn", f"{front.url}{CALLS}", "hi", env=AWS)

    assert told.status == 0
    assert all(map(is_genuine, front.received))


@pytest.mark.req("AC-C-80")
def test_a_stand_in_without_authentication_is_called_without(dragoman: Dragoman, front: Peer) -> None:
    front.on("POST", CALLS, stream({"task": task("COMPLETED")}))

    told = dragoman.inside("send", *named(front), "hi", env={"AWS_EC2_METADATA_DISABLED": "true"})

    assert told.status == 0
    assert all("authorization" not in request.headers for request in front.received)


@pytest.mark.req("AC-C-80")
def test_missing_credentials_are_told_before_there_is_a_connection(dragoman: Dragoman) -> None:
    told = dragoman.inside("send", "--arn", ARN, "hi", env={"AWS_EC2_METADATA_DISABLED": "true"})

    assert told.status == 4
    assert "AWS_ACCESS_KEY_ID" in told.err


@pytest.mark.req("AC-C-40")
@pytest.mark.parametrize(
    ("answer", "code", "status"),
    [
        (refusal(404, -32051, "Resource not found"), "DRAGOMAN_ERR_SERVICE", 1),
        (refusal(424, -32055, "Runtime client error"), "DRAGOMAN_ERR_SERVICE", 1),
        (forbidden("Access denied"), "A2ACLI_ERR_AUTH_FAILED", 4),
    ],
)
def test_what_the_service_answers_is_told(
    dragoman: Dragoman, front: Peer, answer: object, code: str, status: int
) -> None:
    front.on("POST", CALLS, answer)  # type: ignore[arg-type]

    told = dragoman.inside("send", *named(front), "--wait-mode", "block", "-o", "json", "hi", env=AWS)

    assert (told.error["code"], told.status) == (code, status)


@pytest.mark.req("AC-C-50")
def test_a_session_that_is_set_up_is_waited_for(dragoman: Dragoman, front: Peer) -> None:
    front.on("POST", CALLS, busy(), done())

    told = dragoman.inside("send", *named(front), "--wait-mode", "block", "hi", env=AWS)

    assert told.status == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--arn", ARN, "-a", "agent.example"),
        ("--arn", ARN, "-e", "http://agent.example", "--transport", "JSONRPC"),
        ("--arn", ARN, "--transport", "GRPC"),
        ("--arn", "arn:aws:s3:::bucket"),
        ("--arn", ARN, "--session-id", "short"),
        ("--arn", ARN, "--endpoint-url", "http://front.example"),
    ],
)
def test_what_does_not_go_together_is_a_usage_error(dragoman: Dragoman, arguments: tuple[str, ...]) -> None:
    told = dragoman.inside("send", *arguments, "hi", env=AWS)

    assert told.status == 2


def test_an_arn_of_the_environment_gives_way_to_an_agent_on_the_command_line(
    dragoman: Dragoman, here: tuple[str, ...]
) -> None:
    told = dragoman.inside("send", *here, "hi", env={**AWS, "DRAGOMAN_ARN": ARN})

    assert told.status == 0


def test_an_arn_can_come_out_of_the_environment(dragoman: Dragoman, front: Peer) -> None:
    front.on("POST", CALLS, stream({"task": task("COMPLETED")}))

    told = dragoman.inside("send", "hi", env={**AWS, "DRAGOMAN_ARN": ARN, "DRAGOMAN_ENDPOINT_URL": front.url})

    assert told.status == 0
    assert SESSION in front.received[0].headers
