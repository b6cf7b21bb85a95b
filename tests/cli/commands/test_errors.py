"""Failures: the code, the exit status, the hint; the same over both bindings."""

from __future__ import annotations

import socket

import pytest

from dragoman.cli import classify
from tests.cli.commands.peer import Answer, Peer, refusal
from tests.cli.commands.program import Dragoman

Where = tuple[str, ...]


@pytest.mark.req("A2ACLI_OUT_004", "A2ACLI_EXIT_001", "A2ACLI_TX_004")
@pytest.mark.parametrize(
    "name",
    [
        "TaskNotFoundError",
        "TaskNotCancelableError",
        "PushNotificationNotSupportedError",
        "UnsupportedOperationError",
        "ContentTypeNotSupportedError",
        "InvalidAgentResponseError",
        "ExtendedAgentCardNotConfiguredError",
        "ExtensionSupportRequiredError",
        "VersionNotSupportedError",
        "InvalidParamsError",
        "InternalError",
    ],
)
def test_an_error_of_the_protocol_has_its_name_over_both_bindings(dragoman: Dragoman, here: Where, name: str) -> None:
    runs = [
        dragoman.inside("send", *here, "--transport", binding, "--wait-mode", "block", "-o", "json", f"!error {name}")
        for binding in ("JSONRPC", "HTTP+JSON")
    ]

    assert [(done.status, done.error["code"]) for done in runs] == [(1, name)] * 2
    assert runs[0].error["a2aCode"] < -32000
    assert runs[1].error["a2aCode"] >= 400


def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.req("A2ACLI_EXIT_001", "A2ACLI_OUT_004")
def test_what_cannot_be_reached_is_status_3(dragoman: Dragoman, peer: Peer) -> None:
    nobody = f"http://127.0.0.1:{closed_port()}"

    refused = dragoman.inside("card", "get", nobody, "-o", "json")
    unknown = dragoman.inside("card", "get", "https://no-such-host.invalid", "-o", "json")
    missing = dragoman.inside("card", "get", f"{peer.url}/agents/x", "-o", "json")
    no_file = dragoman.inside("card", "get", "./missing.json", "-o", "json")

    assert [(done.status, done.error["code"]) for done in (refused, unknown, missing, no_file)] == [
        (3, "A2ACLI_ERR_UNREACHABLE"),
        (3, "A2ACLI_ERR_UNREACHABLE"),
        (3, "A2ACLI_ERR_CARD_NOT_FOUND"),
        (3, "A2ACLI_ERR_CARD_NOT_FOUND"),
    ]
    assert nobody.removeprefix("http://") in refused.error["hint"]
    assert missing.error["hint"] == f"dragoman card get {peer.url}/agents/x/.well-known/agent-card.json"
    assert missing.error["a2aCode"] == 404


@pytest.mark.req("A2ACLI_EXIT_001", "A2ACLI_OUT_004")
@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (Answer(500, b""), 3, "A2ACLI_ERR_CARD_NOT_FOUND"),
        (Answer(401, b""), 4, "A2ACLI_ERR_CREDENTIALS_MISSING"),
        (Answer(403, b""), 4, "A2ACLI_ERR_CREDENTIALS_MISSING"),
        (Answer(200, b"<html>"), 1, "A2ACLI_ERR_CARD_INVALID"),
        (Answer(200, b"[]"), 1, "A2ACLI_ERR_CARD_INVALID"),
        (Answer(200, b'{"name": "x"}'), 1, "A2ACLI_ERR_CARD_INVALID"),
        (Answer(200, b'{"name": "x", "url": "http://x", "protocolVersion": "0.3.0"}'), 1, "VersionNotSupportedError"),
    ],
)
def test_a_card_that_is_none_says_what_it_is(
    dragoman: Dragoman, peer: Peer, answer: Answer, status: int, code: str
) -> None:
    peer.card_answer = answer

    done = dragoman.inside("send", "-a", peer.url, "-o", "json", "hello")

    assert (done.status, done.error["code"]) == (status, code)


@pytest.mark.req("A2ACLI_EXIT_001", "A2ACLI_OUT_004", "B057")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (Answer(401, b"no"), 4, "A2ACLI_ERR_CREDENTIALS_MISSING"),
        (Answer(502, b"<html>", "text/html"), 1, "A2ACLI_ERR_INTERNAL"),
        (Answer(200, b"<html>", "text/html"), 1, "InvalidAgentResponseError"),
        (Answer(200, b"", ""), 1, "InvalidAgentResponseError"),
        (Answer(content_type="text/event-stream", events=(b"data: {",), cut=True), 3, "A2ACLI_ERR_UNREACHABLE"),
        (Answer(content_type="text/event-stream", events=()), 1, "InvalidAgentResponseError"),
    ],
)
def test_an_answer_that_is_none_is_a_failure_with_words(
    dragoman: Dragoman, peer: Peer, binding: str, answer: Answer, status: int, code: str
) -> None:
    peer.play = lambda seen: answer

    done = dragoman.inside("send", "-a", peer.url, "--transport", binding, "-o", "json", "--stream", "hello")
    as_text = dragoman.inside("send", "-a", peer.url, "--transport", binding, "--stream", "hello")

    assert (done.status, done.lines[-1]["error"]["code"]) == (status, code)
    assert (as_text.status, as_text.out) == (status, "")
    assert as_text.err.startswith(f"Error: {code}\nMessage: ")


@pytest.mark.req("A2ACLI_OUT_004", "B057")
def test_an_error_in_place_of_a_stream_is_not_an_empty_stream(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: refusal(seen, -32001, "TASK_NOT_FOUND", "No task t-1", 404)

    done = dragoman("send", "-a", peer.url, "--task-id", "t-1", "--stream", "hello")

    assert (done.status, done.out) == (1, "")
    assert "Error: TaskNotFoundError\nMessage: No task t-1\nHint: " in done.err
    assert "Code: -32001\n" in done.err


@pytest.mark.req("A2ACLI_EXIT_002", "A2ACLI_TX_004")
@pytest.mark.parametrize(
    ("word", "state", "number"),
    [
        ("!fail", "FAILED", 10),
        ("!reject", "REJECTED", 11),
        ("!input", "INPUT_REQUIRED", 13),
        ("!auth", "AUTH_REQUIRED", 14),
    ],
)
def test_an_outcome_is_no_failure_of_the_program_unless_that_is_asked_for(
    dragoman: Dragoman, at: Where, word: str, state: str, number: int
) -> None:
    plain = dragoman.inside("send", *at, "-o", "json", f"{word} because")
    asked = dragoman.inside("send", *at, "--exit-status", f"{word} because")

    assert (plain.status, plain.json["task"]["status"]["state"]) == (0, f"TASK_STATE_{state}")
    assert f" is {state}\n" in plain.err
    assert (asked.status, asked.field("State")) == (number, state)


@pytest.mark.req("A2ACLI_OUT_004")
def test_local_codes_are_those_of_the_specification(dragoman: Dragoman) -> None:
    codes = {value for name, value in vars(classify).items() if isinstance(value, str) and value.startswith("A2ACLI_")}

    assert codes == {
        f"A2ACLI_ERR_{name}"
        for name in (
            *("USAGE", "CARD_NOT_FOUND", "CARD_INVALID", "UNREACHABLE"),
            *("CREDENTIALS_MISSING", "AUTH_FAILED", "TIMEOUT", "INTERNAL"),
        )
    }


@pytest.mark.req("A2ACLI_OUT_004", "A2ACLI_EXIT_001")
def test_usage_errors_go_through_the_same_envelope(dragoman: Dragoman) -> None:
    by_option = dragoman("task", "get", "--nonsense", "-o", "json")
    by_variable = dragoman.inside("nonsense", env={"A2ACLI_OUTPUT": "json"})
    as_text = dragoman.inside("send", "--nonsense")

    assert (by_option.status, by_option.error["code"]) == (2, "A2ACLI_ERR_USAGE")
    assert by_option.error["hint"] == "dragoman task get --help"
    assert (by_variable.status, by_variable.error["code"]) == (2, "A2ACLI_ERR_USAGE")
    assert (as_text.status, as_text.out) == (2, "")
    assert as_text.err.startswith("Usage: dragoman send [OPTIONS] [TEXT]\nError: A2ACLI_ERR_USAGE\n")


@pytest.mark.req("A2ACLI_EXIT_001")
def test_a_request_that_takes_too_long_is_a_timeout(dragoman: Dragoman, here: Where) -> None:
    done = dragoman.inside("send", *here, "--timeout", "600ms", "-o", "json", "!slow 3s")

    assert (done.status, done.error["code"]) == (5, "A2ACLI_ERR_TIMEOUT")
