"""What a server makes of messages that a client of ours would never send."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent
from dragoman.bindings.websocket import WebSocketBinding
from dragoman.bindings.websocket.frames import BadFrameError, decode_client_frame, decode_server_frame
from tests.websocket.conftest import Dial, Serve
from tests.websocket.raw import call, say

GOOD = call(99)


@pytest.mark.req("BIND-06")
@pytest.mark.parametrize(
    ("bad", "code", "call_id"),
    [
        ("{", 400, None),
        ("", 400, None),
        ("[]", 400, None),
        ("null", 400, None),
        ({}, 400, None),
        ({"type": "call"}, 400, None),
        ({"type": "call", "id": 1}, 400, 1),
        ({"type": "nonsense", "id": 2}, 400, 2),
        ({"type": 5, "id": 3}, 400, 3),
        ({"type": "call", "id": "1", "operation": "GetTask"}, 400, None),
        ({"type": "call", "id": -1, "operation": "GetTask"}, 400, None),
        ({"type": "call", "id": 2**60, "operation": "GetTask"}, 400, None),
        ({"type": "call", "id": 1.5, "operation": "GetTask"}, 400, None),
        ({"type": "call", "id": 4, "operation": 7}, 400, 4),
        ({"type": "call", "id": 5, "operation": "GetTask", "parameters": {"a": 1}}, 400, 5),
        ({"type": "call", "id": 6, "operation": "GetTask", "credit": -1}, 400, 6),
        ({"type": "result", "id": 7, "result": {}}, 400, 7),
        ("[" * 100_000, 400, None),
        (call(8, "getTask", {"id": "x"}), 404, 8),
        (call(9, "GetTask", []), 400, 9),
        (call(10, "GetTask", "text"), 400, 10),
        (call(11, "GetTask", {}), 400, 11),
        (call(12, "SendMessage", {"message": {"parts": [{"text": 5}]}}), 400, 12),
    ],
)
async def test_a_bad_message_is_answered_and_the_socket_goes_on(
    agent: Agent, serve: Serve, dial: Dial, bad: Any, code: int, call_id: int | None
) -> None:
    socket = await dial(await serve(agent))

    answer = await socket.ask(bad)
    good = await socket.ask(GOOD)

    assert (answer["type"], answer.get("id"), answer["error"]["code"]) == ("error", call_id, code)
    assert "Traceback" not in json.dumps(answer)
    assert (good["type"], good["id"]) == ("result", 99)


@pytest.mark.req("BIND-06", "ERR-08")
async def test_fields_that_are_wrong_are_named_by_their_path(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent))
    request = say()
    request["message"]["parts"] = [{"text": 5}]

    answer = await socket.ask(call(1, "SendMessage", request))

    violations = answer["error"]["details"][0]["fieldViolations"]
    assert [violation["field"] for violation in violations] == ["message.parts[0].text"]


async def test_members_that_are_not_known_are_ignored(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent))

    assert (await socket.ask(call(1, later={"a": 1})))["type"] == "result"


@pytest.mark.req("BIND-05", "VER-08")
async def test_a_call_without_a_version_is_refused_with_the_remedy(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent))

    answer = await socket.ask(call(1, parameters={}))

    assert answer["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


@pytest.mark.req("BIND-05")
async def test_a_parameter_of_the_handshake_holds_for_all_calls(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent), a2a_version="1.0")

    first = await socket.ask(call(1, parameters={}))
    other = await socket.ask(call(2, parameters={"A2A-Version": "9.0"}))

    assert first["type"] == "result"
    assert other["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


async def test_a_binary_message_closes_the_socket(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent))
    await socket.send(b"{}")

    assert await socket.until_closed() == (1003, [])


@pytest.mark.req("SEC-03", "BIND-12")
async def test_a_message_over_the_limit_is_refused_and_one_far_over_it_closes_the_socket(
    agent: Agent, serve: Serve, dial: Dial
) -> None:
    socket = await dial(await serve(agent, max_body_bytes=10_000))

    over = await socket.ask(call(1, "SendMessage", say("x" * 11_000)))
    wide = await socket.ask(json.dumps(call(2, "SendMessage", say("é" * 5_100)), ensure_ascii=False))
    await socket.send(call(3, "SendMessage", say("x" * 200_000)))
    code, _ = await socket.until_closed()

    assert (over["id"], over["error"]["code"], over["error"]["status"]) == (1, 413, "RESOURCE_EXHAUSTED")
    assert (wide["id"], wide["error"]["code"]) == (2, 413)
    assert code == 1009


async def test_a_number_in_use_closes_the_socket(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent))
    await socket.send(call(1, "SendMessage", say("wait")), call(1))

    assert await socket.until_closed() == (1002, [])


@pytest.mark.req("SEC-10")
async def test_too_many_calls_at_a_time_are_refused_one_by_one(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent, binding=WebSocketBinding(max_calls=2)))
    await socket.send(call(1, "SendMessage", say("wait")), call(2, "SendMessage", say("wait")))

    third = await socket.ask(call(3))
    await socket.send({"type": "cancel", "id": 1})
    ended = await socket.next()
    fourth = await socket.ask(call(4))

    assert (third["id"], third["error"]["code"]) == (3, 429)
    assert ended == {"type": "end", "id": 1}
    assert (fourth["type"], fourth["id"]) == ("result", 4)


async def test_words_about_calls_that_are_not_open_are_ignored(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent))
    await socket.send({"type": "cancel", "id": 5}, {"type": "credit", "id": 5, "credit": 1}, {"type": "pong"})

    assert (await socket.ask(call(1)))["type"] == "result"


async def test_a_ping_is_answered_with_its_data(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent))

    assert await socket.ask({"type": "ping", "data": "ü"}) == {"type": "pong", "data": "ü"}


NAMES = ["type", "id", "operation", "request", "parameters", "credit", "events", "event", "number", "error", "x"]
TYPES = ["call", "credit", "cancel", "ping", "pong", "result", "open", "events", "end", "error", "drain", "?"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)
FRAMES = st.dictionaries(st.sampled_from(NAMES), ANYTHING) | st.builds(
    lambda kind, rest: {**rest, "type": kind}, st.sampled_from(TYPES), st.dictionaries(st.sampled_from(NAMES), ANYTHING)
)


@given(FRAMES.map(json.dumps) | st.text())
def test_any_text_is_a_message_or_a_bad_message(text: str) -> None:
    with contextlib.suppress(BadFrameError):
        decode_client_frame(text)
    with contextlib.suppress(BadFrameError):
        decode_server_frame(text.encode("utf-8", "surrogatepass"))
