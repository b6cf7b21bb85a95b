"""Nothing that a peer sends gets through as something else than a message or an error of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.bindings.remote_error import Answer
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.cards import hybrid_card, read_card
from dragoman.compat.v03.failures import read_grpc_error, read_rest_error, read_rpc_error
from dragoman.compat.v03.fields import FIELDS
from dragoman.compat.v03.kinds import write_kind
from dragoman.compat.v03.protojson import write_proto
from dragoman.compat.v03.reading import read
from dragoman.compat.v03.upward import up_create_push, up_event, up_send
from dragoman.errors import A2AError, InvalidParamsError
from dragoman.model import GET_TASK, encode_json
from tests.compat.translation.test_reading import KIND_JSON, PROTO_JSON, SNAKE_CASE
from tests.model.strategies import JSON_VALUES

BOUNDED = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))

NAMES = sorted({name for fields in FIELDS.values() for field in fields for name in (field.name, field.json_name)})
MEMBERS = st.sampled_from([*NAMES, "kind", "parts", "bytes", "uri", "id", "raw", "type", "in", "tenant", "scheme"])
LEAVES = JSON_VALUES | st.sampled_from(
    ["task", "message", "status-update", "text", "file", "data", "user", "ROLE_AGENT", "completed", "tasks/t", "oauth2"]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=5),
    max_leaves=25,
)


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """A value in which something was taken out, put in, or replaced."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        changed = dict(value)
        changed[key] = draw(damaged(value[key]))
        if draw(st.integers(0, 3)) == 0:
            changed[draw(MEMBERS)] = draw(VALUES)
        if draw(st.integers(0, 5)) == 0:
            del changed[key]
        return changed
    if isinstance(value, list) and value and draw(st.booleans()):
        return [draw(damaged(item)) for item in value]
    return draw(VALUES) if draw(st.integers(0, 2)) == 0 else value


def attempt(read_it: Callable[[], Any]) -> Any:
    """What is read, or None when it was refused with a reason."""
    try:
        return read_it()
    except InvalidParamsError as error:
        if not error.violations:
            raise
        return None


@pytest.mark.req("V03-01")
@given(kind=st.sampled_from(list(FIELDS)), answer=st.booleans(), value=VALUES)
@settings(BOUNDED, max_examples=600)
def test_any_json_is_a_message_or_invalid_params(kind: type[Any], answer: bool, value: Any) -> None:
    message = attempt(lambda: read(kind, value, answer=answer))

    assert message is None or isinstance(write_proto(message), dict)


@pytest.mark.req("V03-01")
@given(value=st.sampled_from([KIND_JSON, PROTO_JSON, SNAKE_CASE]).flatmap(damaged), rpc=st.booleans())
@BOUNDED
def test_a_damaged_request_is_a_request_or_invalid_params(value: Any, rpc: bool) -> None:
    request = attempt(lambda: read(v03.SendMessageRequest, value))

    if request is not None:
        assert encode_json(up_send(request, rpc=rpc))
        assert write_kind(read(v03.SendMessageRequest, write_kind(request))) == write_kind(request)


@given(value=VALUES)
@BOUNDED
def test_any_event_goes_upward_and_is_written_again(value: Any) -> None:
    event = attempt(lambda: read(v03.StreamResponse, value, answer=True))

    if event is not None:
        assert encode_json(up_event(event))
        assert write_kind(event)["kind"]


@given(value=VALUES)
@BOUNDED
def test_any_creation_of_a_webhook_is_one_or_invalid_params(value: Any) -> None:
    config = attempt(lambda: up_create_push(read(v03.CreateTaskPushNotificationConfigRequest, value)))

    assert config is None or config.task_id


@given(value=st.dictionaries(MEMBERS, VALUES, max_size=6))
@BOUNDED
def test_any_object_is_a_card_or_invalid_params(value: dict[str, Any]) -> None:
    card = attempt(lambda: read_card(value))

    assert card is None or hybrid_card(card)["supportedInterfaces"]


@given(value=VALUES, status=st.sampled_from([200, 400, 404, 418, 500, 503]))
@BOUNDED
def test_any_error_of_a_peer_is_an_error_of_the_protocol(value: Any, status: int) -> None:
    answer = Answer(op=GET_TASK, status=status)
    details = [value] if isinstance(value, dict) else []

    assert isinstance(read_rpc_error(answer, value), A2AError)
    assert isinstance(read_rpc_error(answer, {"code": -32602, "data": value}), A2AError)
    assert isinstance(read_rest_error(answer), A2AError)
    assert isinstance(read_grpc_error(Answer(op=GET_TASK, status=0), "NOT_FOUND", 5, "x", details), A2AError)
