"""What a caller is told of a call that failed behind the proxy: what the agent said, or neutral words."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.errors import (
    CardError,
    ConfigurationError,
    ConnectError,
    ConnectionLostError,
    DragomanError,
    ErrorOrigin,
    InternalError,
    InvalidAgentResponseError,
    OutboundUrlError,
    RequestTimeoutError,
    StreamInterruptedError,
    TaskNotFoundError,
    UnavailableError,
)
from dragoman.model import (
    CANCEL_TASK,
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    GET_TASK,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    Operation,
)
from dragoman.proxy.failures import told
from dragoman.proxy.open_work import OpenWork

ADDRESS = "http://10.0.0.7:8080/secret"


@pytest.mark.req("ERR-13")
@pytest.mark.parametrize(
    ("error", "op", "expected"),
    [
        (ConnectError(f"Cannot connect to {ADDRESS}", url=ADDRESS), SEND_MESSAGE, UnavailableError),
        (ConnectionLostError(f"{ADDRESS} broke", url=ADDRESS), GET_TASK, UnavailableError),
        (ConnectionLostError(f"{ADDRESS} broke", url=ADDRESS), CANCEL_TASK, UnavailableError),
        (ConnectionLostError(f"{ADDRESS} broke", url=ADDRESS), SEND_MESSAGE, InternalError),
        (RequestTimeoutError(f"{ADDRESS} is slow", url=ADDRESS), GET_TASK, UnavailableError),
        (RequestTimeoutError(f"{ADDRESS} is slow", url=ADDRESS), SEND_STREAMING_MESSAGE, InternalError),
        (RequestTimeoutError(f"{ADDRESS} is slow"), CREATE_TASK_PUSH_NOTIFICATION_CONFIG, InternalError),
        (StreamInterruptedError(f"{ADDRESS} was cut", task_id="t"), SEND_STREAMING_MESSAGE, UnavailableError),
        (CardError(f"{ADDRESS} is no card"), GET_TASK, UnavailableError),
        (OutboundUrlError(f"{ADDRESS} is refused"), GET_TASK, UnavailableError),
        (ConfigurationError(f"{ADDRESS} is set up wrongly"), GET_TASK, InternalError),
    ],
)
def test_what_only_this_side_knows_is_told_without_addresses(
    error: DragomanError, op: Operation, expected: type[DragomanError]
) -> None:
    found = told(error, op)

    assert type(found) is expected
    assert ADDRESS not in str(found)


def test_what_the_agent_said_is_the_same_object() -> None:
    error = TaskNotFoundError()

    assert told(error, GET_TASK) is error


@pytest.mark.req("AMB-37")
def test_an_answer_that_our_client_could_not_read_is_told_apart_from_the_agents_own_word() -> None:
    ours = InvalidAgentResponseError(f"The answer of {ADDRESS} is larger than 3 bytes")
    read_here = InvalidAgentResponseError(f"{ADDRESS}: no JSON", origin=ErrorOrigin(url=ADDRESS, status=200))
    theirs = InvalidAgentResponseError("I said nonsense", origin=ErrorOrigin(reason="INVALID_AGENT_RESPONSE"))
    by_code = InvalidAgentResponseError("I said nonsense", origin=ErrorOrigin(code=-32006))

    messages = [told(error, GET_TASK).message for error in (ours, read_here, theirs, by_code)]

    assert messages == [InvalidAgentResponseError.default_message] * 2 + ["I said nonsense"] * 2


async def test_a_cancellation_from_outside_is_no_end_of_the_server() -> None:
    work = OpenWork()
    call = asyncio.create_task(work.run(asyncio.Event().wait()))
    await asyncio.sleep(0)

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call


async def test_the_end_of_the_server_is_not_a_cancellation_of_the_caller() -> None:
    work = OpenWork()
    call = asyncio.create_task(work.run(asyncio.Event().wait()))
    await asyncio.sleep(0)

    await work.drain(0)

    with pytest.raises(UnavailableError):
        await call
    assert not call.cancelled()
    assert call.cancelling() == 0
