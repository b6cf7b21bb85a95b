"""Every kind of answer, for every kind of call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from dragoman.agentcore import (
    AccessDenied,
    AgentCoreError,
    AgentFailed,
    AuthenticationRequired,
    RequestRejected,
    RuntimeClient,
    RuntimeNotFound,
    ServiceError,
    SessionConflict,
    Throttled,
)
from dragoman.errors import (
    A2AError,
    CardError,
    ClientError,
    InternalError,
    InvalidAgentResponseError,
    InvalidParamsError,
    PermissionDeniedError,
    RateLimitedError,
    TaskNotFoundError,
    UnauthenticatedError,
)
from tests.agentcore.client.front import (
    CALLS,
    CARD,
    ONE,
    SESSION,
    FakeTime,
    call,
    done,
    empty,
    forbidden,
    refusal,
)
from tests.client.words import status, task
from tests.http.peer import Answer, Peer, as_json, error, peer, plain, result, stream


@pytest.fixture
async def front() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


async def first_event(client: RuntimeClient) -> Any:
    return await anext(client.stream("hi"))


USES: dict[str, Callable[[RuntimeClient], Awaitable[Any]]] = {
    "send": lambda client: client.send("hi"),
    "stream": first_event,
    "get": lambda client: client.get_task("t1"),
}

HTML = plain(502, b"<html><body>Bad Gateway</body></html>", kind="text/html")
ROWS: list[tuple[str, Answer, type[Exception], int | None]] = [
    ("401", refusal(401, -32001, "Missing Authentication Token", id=None), AuthenticationRequired, -32001),
    ("403", forbidden("Access denied"), AccessDenied, None),
    ("403 empty", empty(403), AccessDenied, None),
    ("404", refusal(404, -32051, "Resource not found"), RuntimeNotFound, -32051),
    ("400", refusal(400, -32052, "Validation error - Invalid request data"), RequestRejected, -32052),
    ("429", refusal(429, -32053, "Rate limit exceeded – Too many requests"), Throttled, -32053),
    ("409", refusal(409, -32054, "Resource conflict - Resource already exists"), SessionConflict, -32054),
    ("424", refusal(424, -32055, "Runtime client error - Please check your logs"), AgentFailed, -32055),
    ("500", refusal(500, -32603, "Internal error - An unexpected error occurred"), ServiceError, -32603),
    ("404 empty", empty(404), RuntimeNotFound, None),
    ("400 empty", empty(400), RequestRejected, None),
    ("402 empty", empty(402), Throttled, None),
    ("429 empty", empty(429), Throttled, None),
    ("409 empty", empty(409), SessionConflict, None),
    ("424 empty", empty(424), AgentFailed, None),
    ("500 empty", empty(500), ServiceError, None),
    ("502 page", HTML, ServiceError, None),
    ("503 empty", empty(503), ServiceError, None),
    ("200 with a code of the front", refusal(200, -32055, "Runtime client error"), AgentFailed, -32055),
]


@pytest.mark.req("AC-C-40", "AC-C-43", "AC-C-45")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize(("answer", "expected", "code"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
async def test_what_the_front_answers_is_typed_whatever_is_called(
    front: Peer, use: str, version: str, answer: Answer, expected: type[Exception], code: int | None
) -> None:
    front.on("POST", CALLS, answer)
    time = FakeTime()

    async with call(front, timing=time.timing, session_id=ONE, version=version) as client:
        with pytest.raises(expected) as caught:
            await USES[use](client)

    origin = caught.value.origin  # type: ignore[attr-defined]
    assert isinstance(caught.value, ClientError)
    assert origin.code == code
    assert origin.status is not None
    assert (origin.session_id, origin.attempts) == (ONE, len(front.received))
    assert origin.url == f"{front.url}{CALLS}"
    assert "content-length" in origin.headers


@pytest.mark.req("AC-C-40", "AC-C-60")
@pytest.mark.parametrize(("answer", "expected", "code"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
async def test_for_the_card_it_is_the_same(
    front: Peer, answer: Answer, expected: type[Exception], code: int | None
) -> None:
    front.on("GET", CARD, answer)

    with pytest.raises(expected) as caught:
        async with call(front, card=True, session_id=ONE):
            raise AssertionError("the card was taken")

    assert isinstance(caught.value, ClientError)
    origin = caught.value.origin
    assert origin is not None
    assert (origin.session_id, origin.attempts, origin.code) == (ONE, len(front.received), code)


@pytest.mark.req("AC-C-45")
@pytest.mark.parametrize("kind", AgentCoreError.__subclasses__()[1:])
def test_every_class_is_a_client_error(kind: type[Exception]) -> None:
    assert issubclass(kind, ClientError)


@pytest.mark.req("AC-C-45")
def test_what_every_gateway_may_answer_is_the_class_of_the_protocol_too() -> None:
    assert issubclass(AuthenticationRequired, UnauthenticatedError)
    assert issubclass(AccessDenied, PermissionDeniedError)
    assert issubclass(Throttled, RateLimitedError)


@pytest.mark.req("AC-C-40")
async def test_a_401_is_no_missing_task_and_a_missing_task_is_no_401(front: Peer) -> None:
    front.on("POST", CALLS, refusal(401, -32001, "Missing Authentication Token"), error(-32001, "Task not found"))

    async with call(front) as client:
        with pytest.raises(AuthenticationRequired):
            await client.get_task("t1")
        with pytest.raises(TaskNotFoundError):
            await client.get_task("t1")


@pytest.mark.req("AC-C-40")
@pytest.mark.parametrize(
    ("code", "expected"), [(-32602, InvalidParamsError), (-32603, InternalError), (-32001, TaskNotFoundError)]
)
@pytest.mark.parametrize("use", USES)
async def test_errors_of_the_agent_are_those_of_the_protocol(
    front: Peer, use: str, code: int, expected: type[A2AError]
) -> None:
    front.on("POST", CALLS, error(code, "said by the agent"))

    async with call(front) as client:
        with pytest.raises(expected, match="said by the agent") as caught:
            await USES[use](client)

    assert not isinstance(caught.value, AgentCoreError)
    assert caught.value.origin is not None
    assert (caught.value.origin.session_id, caught.value.origin.status) == (client.session_id, 200)


@pytest.mark.req("AC-C-40")
@pytest.mark.parametrize("use", USES)
async def test_an_answer_that_is_neither_json_rpc_nor_events_is_kept_in_the_error(front: Peer, use: str) -> None:
    front.on("POST", CALLS, plain(200, b"hello there, " * 100, kind="text/plain"))

    async with call(front) as client:
        with pytest.raises(InvalidAgentResponseError) as caught:
            await USES[use](client)

    assert caught.value.origin is not None
    assert caught.value.origin.body.startswith((b"hello there, " * 100)[:200])


@pytest.mark.req("AC-C-40")
async def test_a_page_in_place_of_the_card_is_a_card_error(front: Peer) -> None:
    front.on("GET", CARD, plain(200, b"<html>hello</html>", kind="text/html"))

    with pytest.raises(CardError, match="HTML"):
        async with call(front, card=True):
            raise AssertionError("the card was taken")


@pytest.mark.req("AC-C-41")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("id", [None, "null", 99, ""])
async def test_the_id_of_an_error_of_the_front_does_not_matter(front: Peer, use: str, id: Any) -> None:
    front.on("POST", CALLS, refusal(424, -32055, "Runtime client error", id=id))

    async with call(front) as client:
        with pytest.raises(AgentFailed):
            await USES[use](client)


@pytest.mark.req("AC-C-41")
@pytest.mark.parametrize("kind", ["text/event-stream", "text/html", ""])
@pytest.mark.parametrize("use", USES)
async def test_the_content_type_of_an_error_does_not_matter(front: Peer, use: str, kind: str) -> None:
    body = b'{"jsonrpc":"2.0","id":"null","error":{"code":-32051,"message":"Resource not found"}}'
    front.on("POST", CALLS, plain(404, body, kind=kind))

    async with call(front) as client:
        with pytest.raises(RuntimeNotFound) as caught:
            await USES[use](client)

    assert caught.value.origin is not None
    assert caught.value.origin.code == -32051


@pytest.mark.req("AC-C-41")
@pytest.mark.parametrize("use", USES)
async def test_of_a_huge_error_body_a_mebibyte_is_read(front: Peer, use: str) -> None:
    front.on("POST", CALLS, plain(424, b" " * 5_000_000, kind="text/plain"))

    async with call(front) as client:
        with pytest.raises(AgentFailed) as caught:
            await USES[use](client)

    assert caught.value.origin is not None
    assert len(caught.value.origin.body) <= 64 * 1024


@pytest.mark.req("AC-C-42")
async def test_a_streaming_call_may_be_answered_with_one_json_result(front: Peer) -> None:
    front.on("POST", CALLS, result({"task": task("COMPLETED")}))

    async with call(front) as client:
        events = [event async for event in client.stream("hi")]

    assert [event.id for event in events] == ["t1"]  # type: ignore[union-attr]


@pytest.mark.req("AC-C-43")
async def test_an_exception_keeps_data_and_headers_but_no_cookie(front: Peer) -> None:
    body = {"jsonrpc": "2.0", "error": {"code": -32052, "message": "Validation error", "data": ["a", 1]}}
    front.on("POST", CALLS, as_json(body, 400, x_amzn_requestid="r-1", set_cookie="secret=1"))

    async with call(front, qualifier="prod") as client:
        with pytest.raises(RequestRejected) as caught:
            await client.send("hi")

    assert caught.value.data == ["a", 1]
    assert caught.value.origin is not None
    assert caught.value.origin.headers["x-amzn-requestid"] == "r-1"
    assert "set-cookie" not in caught.value.origin.headers
    assert "?" not in caught.value.origin.url


@pytest.mark.req("AC-C-40", "AC-C-97")
async def test_a_403_keeps_its_text_and_type(front: Peer) -> None:
    front.on("POST", CALLS, forbidden("Authorization method mismatch"))

    async with call(front) as client:
        with pytest.raises(AccessDenied, match="Authorization method mismatch") as caught:
            await client.send("hi")

    assert caught.value.origin is not None
    assert caught.value.origin.headers["x-amzn-errortype"] == "AccessDeniedException"
    assert len(front.received) == 1


@pytest.mark.req("AC-C-40")
async def test_an_error_of_the_front_inside_a_stream_is_typed(front: Peer) -> None:
    broken = {"error": {"code": -32055, "message": "Runtime client error"}}
    front.on("POST", CALLS, stream({"task": task("WORKING")}, status("WORKING"), broken))

    async with call(front) as client:
        with pytest.raises(AgentFailed) as caught:
            [event async for event in client.stream("hi")]

    assert caught.value.session_id == client.session_id


@pytest.mark.req("AC-C-43")
async def test_the_session_of_an_error_is_the_one_that_the_service_named(front: Peer) -> None:
    front.on("POST", CALLS, refusal(424, -32055, "Runtime client error", **{SESSION: ONE}), done())

    async with call(front, session_id="") as client:
        with pytest.raises(AgentFailed) as caught:
            await client.send("hi")

    assert caught.value.session_id == ONE
