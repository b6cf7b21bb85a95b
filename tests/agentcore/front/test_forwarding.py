"""What comes back: streams as they come, failures of the container, faults by order, limits."""

from __future__ import annotations

import asyncio
import json
import time

import httpx2
import pytest

from dragoman.http.asgi import Receive, Send
from dragoman.testing.agentcore_front import Delay, Fault, FrontLimits, FrontSettings, Shared, Truncate
from dragoman.testing.agentcore_front.headers import ERROR_TYPE, SESSION_ID
from dragoman.testing.agentcore_front.refusals import ROWS
from dragoman.testing.process import free_port
from tests.agentcore.front.parts import (
    BUSY_TEXT,
    OTHER,
    SESSION,
    Caller,
    Container,
    ManualClock,
    event,
    rehearsal,
    result,
    rpc,
    until,
)

CRASHED = (424, -32055)


def seen(answer: httpx2.Response) -> tuple[int, int]:
    return answer.status_code, answer.json()["error"]["code"]


async def read_until_cut(caller: Caller) -> tuple[bytes, Exception | None]:
    """What came of a stream, and what its end was."""
    received = b""
    async with caller.stream() as answer:
        try:
            async for piece in answer.aiter_bytes():
                received += piece
        except httpx2.RemoteProtocolError as error:
            return received, error
    return received, None


@pytest.mark.req("AC-F-06")
async def test_only_the_content_type_and_the_session_come_back(container: Container) -> None:
    container.answers = container.say(**{"content-type": "application/problem+json", "cache-control": "no-cache"})
    async with rehearsal(container) as caller:
        answer = await caller.post()
        card = await caller.card()

    assert set(answer.headers) == {"content-type", SESSION_ID, "content-length", "date"}
    assert answer.headers["content-type"] == "application/problem+json"
    assert "etag" not in card.headers


@pytest.mark.req("AC-F-06")
async def test_events_pass_as_they_come(container: Container) -> None:
    go_on = asyncio.Event()
    container.answers = container.stream(event(1), go_on, event(2))
    async with rehearsal(container) as caller, caller.stream() as answer:
        pieces = answer.aiter_bytes()
        first = await anext(pieces)
        go_on.set()
        second = b"".join([piece async for piece in pieces])

    assert (first, second) == (event(1), event(2))
    assert (answer.headers["content-type"], answer.headers[SESSION_ID]) == ("text/event-stream", SESSION)
    assert "cache-control" not in answer.headers


async def test_a_container_hears_that_the_caller_has_gone(container: Container) -> None:
    container.answers = container.stream(event(1), forever=True)
    async with rehearsal(container) as caller:
        async with caller.stream() as answer:
            await anext(answer.aiter_bytes())
            assert caller.front.sessions[SESSION].life.in_flight == 1
        async with asyncio.timeout(5):
            await container.gone.wait()
        await until(lambda: caller.front.sessions[SESSION].life.in_flight == 0)


@pytest.mark.req("AC-F-06")
@pytest.mark.parametrize("status", [302, 400, 404, 500, 503])
async def test_what_a_container_says_with_another_status_is_lost(container: Container, status: int) -> None:
    container.answers = container.say(b'{"secret":"of the container"}', status=status)
    async with rehearsal(container) as caller:
        answer = await caller.post()

    assert seen(answer) == CRASHED
    assert answer.json()["id"] == "q-1"
    assert "secret" not in answer.text


@pytest.mark.req("AC-F-06")
async def test_no_container_is_a_failed_agent() -> None:
    async with rehearsal("", upstream=Shared(f"http://127.0.0.1:{free_port()}")) as caller:
        assert seen(await caller.post()) == CRASHED


@pytest.mark.req("AC-F-06")
async def test_a_container_that_ends_its_answer_too_soon_is_a_failed_agent(container: Container) -> None:
    async def breaks(body: bytes, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"100")]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        receive.__self__.transport.abort()  # type: ignore[attr-defined]

    container.answers = breaks
    async with rehearsal(container) as caller:
        assert seen(await caller.post()) == CRASHED


@pytest.mark.req("AC-F-06", "AC-F-15")
async def test_a_container_that_is_silent_on_a_new_session_is_a_failed_agent(container: Container) -> None:
    silent = asyncio.Event()
    container.answers = container.stream(silent)
    head = asyncio.Event()

    async def waits(body: bytes, receive: Receive, send: Send) -> None:
        await head.wait()

    container.answers = waits
    settings = FrontSettings(limits=FrontLimits(init_s=120), time_scale=0.001)
    async with rehearsal(container, settings=settings) as caller:
        began = time.monotonic()
        answer = await caller.post()
        head.set()

    assert seen(answer) == CRASHED
    assert 0.1 < time.monotonic() - began < 5


@pytest.mark.req("AC-F-10")
@pytest.mark.parametrize("fault", list(ROWS))
async def test_each_row_of_the_table_can_be_ordered(container: Container, fault: Fault) -> None:
    row = ROWS[fault]
    async with rehearsal(container) as caller:
        caller.front.fail_next(fault, 3)
        failed = [await caller.post(), await caller.card()]
        async with caller.stream() as stream:
            await stream.aread()
        after = await caller.post()

    for answer in (*failed, stream):
        assert answer.status_code == row.status
        if row.code is None:
            assert answer.json() == {"message": "Access denied"}
            assert answer.headers[ERROR_TYPE] == "AccessDeniedException"
            assert "www-authenticate" not in answer.headers
        else:
            assert answer.json()["error"] == {"code": row.code, "message": row.message}
    assert failed[0].json().get("id") == ("q-1" if row.code is not None and row.status != 401 else None)
    assert after.status_code == 200
    assert len(container.posts) == 1


def test_the_table_is_that_of_the_service() -> None:
    assert {(row.exception, row.status, row.code) for row in ROWS.values()} == {
        ("UnauthorizedException", 401, -32001),
        ("AccessDeniedException", 403, None),
        ("ResourceNotFoundException", 404, -32051),
        ("ValidationException", 400, -32052),
        ("ThrottlingException", 429, -32053),
        ("ServiceQuotaExceededException", 429, -32053),
        ("ConflictException", 409, -32054),
        ("RetryableConflictException", 409, -32054),
        ("RuntimeClientError", 424, -32055),
        ("InternalServerException", 500, -32603),
    }
    assert ROWS[Fault.BUSY].message == BUSY_TEXT


@pytest.mark.parametrize(("error_id", "wanted"), [("echo", "q-1"), ("absent", None), ("text", "null")])
async def test_ids_in_errors_of_the_front_differ_as_they_do_in_the_field(
    container: Container, error_id, wanted: str | None
) -> None:
    async with rehearsal(container, settings=FrontSettings(error_id=error_id)) as caller:
        caller.front.fail_next(Fault.NOT_FOUND)
        body = (await caller.post()).json()

    assert body.get("id") == wanted
    assert ("id" in body) == (wanted is not None)


@pytest.mark.req("AC-F-10")
async def test_answers_that_no_table_has(container: Container) -> None:
    async with rehearsal(container) as caller:
        caller.front.fail_next(Fault.HTML_502)
        caller.front.fail_next(Fault.EMPTY_500)
        caller.front.fail_next(Fault.DROP)
        html, empty = await caller.post(), await caller.post()
        with pytest.raises(httpx2.RemoteProtocolError):
            await caller.post()
        after = await caller.post()

    assert (html.status_code, html.headers["content-type"]) == (502, "text/html")
    assert (empty.status_code, empty.content) == (500, b"")
    assert after.status_code == 200


@pytest.mark.req("AC-F-10")
async def test_a_stream_is_cut_after_so_many_events(container: Container) -> None:
    container.answers = container.stream(event(1) + b": quiet\r\n\r\n" + event(2) + event(3), event(4))
    async with rehearsal(container) as caller:
        caller.front.fail_next(Truncate(after_events=2), method="SendStreamingMessage")
        received, error = await read_until_cut(caller)

    assert received == event(1) + b": quiet\r\n\r\n" + event(2)
    assert error is not None


@pytest.mark.req("AC-F-10")
async def test_any_other_answer_is_cut_in_its_middle(container: Container) -> None:
    async with rehearsal(container) as caller:
        caller.front.fail_next(Truncate(after_events=0))
        with pytest.raises(httpx2.RemoteProtocolError):
            await caller.post()

    assert len(container.posts) == 1


@pytest.mark.req("AC-F-10", "AC-F-15")
async def test_a_delay_is_scaled_and_passes_the_call_on(container: Container) -> None:
    async with rehearsal(container, settings=FrontSettings(time_scale=0.01)) as caller:
        caller.front.fail_next(Delay(10))
        began = time.monotonic()
        answer = await caller.post()

    assert answer.status_code == 200
    assert 0.1 <= time.monotonic() - began < 5


@pytest.mark.req("AC-F-10")
async def test_faults_are_for_the_calls_that_they_name(container: Container) -> None:
    async with rehearsal(container) as caller:
        caller.front.fail_next(Fault.BUSY, method="GetTask")
        caller.front.fail_next(Fault.NOT_FOUND, session=OTHER)
        caller.front.fail_next(Fault.THROTTLED, path="agent-card.json")
        passed = [await caller.post(rpc("SendMessage"))]
        failed = [await caller.post(rpc("GetTask")), await caller.post(session=OTHER), await caller.card()]
        passed += [await caller.post(rpc("GetTask")), await caller.post(session=OTHER), await caller.card()]

    assert [answer.status_code for answer in passed] == [200] * 4
    assert [answer.status_code for answer in failed] == [409, 404, 429]


@pytest.mark.req("AC-F-11")
async def test_bodies_and_events_have_their_limits(container: Container) -> None:
    limits = FrontLimits(body_bytes=1_000, event_bytes=500)
    async with rehearsal(container, settings=FrontSettings(limits=limits)) as caller:
        fits = await caller.post(rpc("SendMessage", text="x" * 800))
        large = await caller.post(rpc("SendMessage", text="x" * 1_000))
        container.answers = container.stream(event(1), b"data: " + b"x" * 495, event(2))
        received, error = await read_until_cut(caller)

    assert fits.status_code == 200
    assert seen(large) == (400, -32052)
    assert len(container.posts) == 2
    assert error is not None
    assert received.startswith(event(1))
    assert b"x" * 495 + b"data" not in received


@pytest.mark.req("AC-F-11", "AC-F-15")
async def test_a_stream_that_has_had_its_time_ends_between_two_events(container: Container) -> None:
    never = asyncio.Event()
    container.answers = container.stream(event(1), event(2), never)
    settings = FrontSettings(limits=FrontLimits(stream_s=3_600), time_scale=0.3 / 3_600)
    async with rehearsal(container, settings=settings) as caller, caller.stream() as answer:
        received = await answer.aread()
        never.set()

    assert received == event(1) + event(2)


@pytest.mark.req("AC-F-11", "AC-F-15")
async def test_a_call_that_takes_too_long_is_a_failed_agent(container: Container) -> None:
    async with rehearsal(
        container, settings=FrontSettings(limits=FrontLimits(call_s=900), time_scale=0.3 / 900)
    ) as caller:
        await caller.post()
        never = asyncio.Event()

        async def waits(body: bytes, receive: Receive, send: Send) -> None:
            await never.wait()

        container.answers = waits
        answer = await caller.post()
        never.set()

    assert seen(answer) == CRASHED


@pytest.mark.req("AC-F-11")
async def test_too_many_calls_in_one_second_are_throttled(container: Container, clock: ManualClock) -> None:
    async with rehearsal(container, clock=clock, settings=FrontSettings(limits=FrontLimits(rate=3))) as caller:
        first = [(await caller.post()).status_code for _ in range(4)]
        clock.advance(0.5)
        second = [(await caller.post()).status_code for _ in range(2)]

    assert first == [200, 200, 200, 429]
    assert second == [200, 429]


@pytest.mark.req("B167")
async def test_the_body_passes_byte_by_byte(container: Container) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": "ü", "method": "SendMessage"}, ensure_ascii=False).encode() + b"\n  "
    container.answers = container.say(result("ü"))
    async with rehearsal(container) as caller:
        answer = await caller.post(body)

    assert container.posts[0][1] == body
    assert answer.content == result("ü")
