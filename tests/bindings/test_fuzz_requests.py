"""Whatever bytes come in, an answer of the protocol goes out: never a 500, never an exception."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pytest

from dragoman.bindings import jsonrpc, rest
from dragoman.errors import A2AError
from dragoman.model import OPERATIONS, SEND_MESSAGE, SEND_STREAMING_MESSAGE
from tests.bindings.parts import PARAMS, RecordingOperations, ask, endpoint, rpc

ROUNDS = 1500

SEEDS = [rpc(), rpc("GetTask", '{"id":"t"}'), rpc("ListTasks", '{"pageSize":5,"status":"TASK_STATE_WORKING"}'), PARAMS]
SCRAPS = [
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\\",
    b"\xff",
    b"\xc3",
    b"\x00",
    b"null",
    b"1e999",
    b"-",
    b'"\\ud800"',
]
SCRAPS += [b"9" * 400, b"[" * 3000, b'{"a":' * 3000, b"true", b'{"$":1}', b"\xed\xa0\x80", b"NaN", b"Infinity"]


def mutated(random_: random.Random, text: str) -> bytes:
    """Some valid bytes with a few wounds."""
    data = bytearray(text.encode())
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(data) + 1)
        match random_.randrange(4):
            case 0:
                data[at:at] = random_.choice(SCRAPS)
            case 1:
                del data[at : at + random_.randint(1, 12)]
            case 2:
                data[at : at + 1] = bytes([random_.randrange(256)])
            case _:
                data = data[:at] or data
    return bytes(data)


async def test_random_and_mutated_bodies_are_answered_by_the_protocol() -> None:
    random_, app = random.Random(20), endpoint()
    for n in range(ROUNDS):
        body = random_.randbytes(n % 60) if n % 5 == 0 else mutated(random_, random_.choice(SEEDS))
        over_rpc = await ask(app, "POST", "/", body)
        assert over_rpc.status == 200, body
        if over_rpc.header("content-type") == "application/json":
            answer = over_rpc.json
            assert answer["jsonrpc"] == "2.0"
            assert ("result" in answer) != ("error" in answer)
            assert answer.get("error", {}).get("code") != -32603, body
        over_rest = await ask(
            app, "POST", random_.choice(["/message:send", "/tasks/t:cancel", "/message:stream"]), body
        )
        assert over_rest.status in (200, 400), body


async def test_random_paths_queries_and_headers_are_answered_by_the_protocol() -> None:
    random_, app = random.Random(21), endpoint()
    pieces = [
        "tasks",
        "message:send",
        "extendedAgentCard",
        "pushNotificationConfigs",
        "",
        ":",
        "..",
        "%2F",
        "a:cancel",
        "%ff",
        "é",
    ]
    for _ in range(ROUNDS):
        path = "/" + "/".join(random_.choice(pieces) for _ in range(random_.randint(1, 5)))
        query = "&".join(
            f"{random_.choice(['pageSize', 'tenant', 'status', 'id', '', '%'])}={quote(random_.randbytes(3))}"
            for _ in range(2)
        )
        headers = [
            (name, random_.randbytes(8).decode("latin-1")) for name in ("A2A-Version", "A2A-Extensions", "Accept")
        ]
        method = random_.choice(["GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "BREW"])
        answer = await ask(app, method, f"{quote(path, safe='/%:')}?{query}", headers=headers)
        assert answer.status in (200, 204, 400, 404, 405), (method, path, query)


@pytest.mark.req("AMB-30", "AMB-37")
@pytest.mark.parametrize("codec", [jsonrpc, rest], ids=["JSONRPC", "HTTP+JSON"])
def test_random_and_mutated_answers_give_a_result_or_a_protocol_error(codec: Any) -> None:
    random_ = random.Random(22)
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org",
    }
    answers = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"message": {"messageId": "m", "role": 1, "parts": []}}}),
        json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "x", "data": [info]}}),
        json.dumps({"error": {"code": 404, "status": "NOT_FOUND", "message": "x", "details": [info]}}),
        json.dumps({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}}),
    ]
    for n in range(ROUNDS):
        body = random_.randbytes(n % 40) if n % 7 == 0 else mutated(random_, random_.choice(answers))
        status = random_.choice([200, 200, 204, 400, 401, 404, 500, 503])
        headers = {"retry-after": random_.randbytes(3).decode("latin-1"), "date": "x"}
        op = random_.choice(list(OPERATIONS.values()))
        assert_understood(codec.decode_result, op, status, headers, body, request_id=1)
        assert_understood(codec.decode_result, SEND_MESSAGE, status, headers, body)
        assert_understood(codec.decode_event, SEND_STREAMING_MESSAGE, body, request_id=1)


def assert_understood(decode: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """A value, or an error that keeps what was seen; anything else fails the test."""
    with suppress(A2AError):
        decode(*args, **kwargs)
        return
    with pytest.raises(A2AError) as raised:
        decode(*args, **kwargs)
    assert raised.value.origin is not None
    assert str(raised.value)


async def test_many_requests_at_once_do_not_mix() -> None:
    operations = RecordingOperations()
    app = endpoint(operations)
    answers = await asyncio.gather(
        *(ask(app, "POST", "/", rpc("GetTask", '{"id":"t"}', id=str(n))) for n in range(300))
    )
    assert [answer.json["id"] for answer in answers] == list(range(300))
