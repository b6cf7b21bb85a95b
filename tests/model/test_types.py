"""Messages and enums as Python values."""

from __future__ import annotations

import copy
import pickle

import pytest

from dragoman.model import (
    AgentCapabilities,
    GetTaskRequest,
    ImplicitOAuthFlow,
    Message,
    OAuthFlows,
    Part,
    PasswordOAuthFlow,
    Role,
    SecurityScheme,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
)
from tests.model.samples import ANSWER, CARD, EVENTS, QUESTION, TASK


@pytest.mark.req("DATA-04", "DATA-20")
def test_enum_values_are_the_names_of_the_proto() -> None:
    assert TaskState.INPUT_REQUIRED.value == "TASK_STATE_INPUT_REQUIRED"
    assert TaskState("TASK_STATE_CANCELED") is TaskState.CANCELED
    assert [role.value for role in Role] == ["ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"]
    assert [state.number for state in TaskState] == list(range(9))


@pytest.mark.req("AMB-42")
def test_a_known_enum_number_becomes_the_member_and_an_unknown_one_stays() -> None:
    assert TaskStatus(state=6).state is TaskState.INPUT_REQUIRED
    assert TaskStatus(state=0).state is TaskState.UNSPECIFIED
    assert TaskStatus(state=42).state == 42
    assert Message(message_id="m", role=2, parts=[]).role is Role.AGENT


@pytest.mark.parametrize("state", ["TASK_STATE_WORKING", True, 1.0, None, Role.USER])
def test_what_is_neither_member_nor_number_is_no_state(state: object) -> None:
    with pytest.raises(TypeError):
        TaskStatus(state=state)  # type: ignore[arg-type]


def test_an_enum_number_beyond_32_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bits"):
        TaskStatus(state=2**31)


def test_enum_members_are_found_in_sets_also_after_pickling() -> None:
    state = pickle.loads(pickle.dumps(TaskState.FAILED))

    assert state is TaskState.FAILED
    assert state in {TaskState.FAILED}


@pytest.mark.req("DATA-17", "DATA-27", "DATA-32")
@pytest.mark.parametrize(
    ("kind", "members"),
    [
        (Part, {"text": "", "data": None}),
        (Part, {"text": "", "raw": b""}),
        (Part, {"raw": b"", "url": ""}),
        (Part, {"url": "", "data": 0}),
        (Part, {"text": "a", "url": "b"}),
        (StreamResponse, {"task": TASK, "message": QUESTION}),
        (StreamResponse, {"status_update": EVENTS[2].status_update, "artifact_update": EVENTS[3].artifact_update}),
        (SecurityScheme, dict.fromkeys(()) | {
            "api_key_security_scheme": CARD.security_schemes["key"].api_key_security_scheme,
            "oauth2_security_scheme": CARD.security_schemes["oauth"].oauth2_security_scheme,
        }),
    ],
)  # fmt: skip
def test_a_message_cannot_hold_two_members_of_one_oneof(kind: type, members: dict[str, object]) -> None:
    for name in members:
        kind(**{name: members[name]})

    with pytest.raises(ValueError, match="must hold one of"):
        kind(**members)


@pytest.mark.req("AMB-54")
def test_several_oauth_flows_can_be_held_as_old_cards_have_them() -> None:
    flows = OAuthFlows(implicit=ImplicitOAuthFlow(), password=PasswordOAuthFlow())

    assert flows.implicit is not None
    assert flows.password is not None


@pytest.mark.req("DATA-15")
def test_absent_and_default_differ_where_the_proto_says_optional() -> None:
    assert GetTaskRequest(id="t") != GetTaskRequest(id="t", history_length=0)
    assert AgentCapabilities().streaming is None


@pytest.mark.req("DATA-12")
def test_required_fields_must_be_given() -> None:
    with pytest.raises(TypeError, match="status"):
        Task(id="t")  # type: ignore[call-arg]


def test_defaults_are_not_shared_between_messages() -> None:
    first, second = (Task(id="t", status=TaskStatus(state=TaskState.WORKING)) for _ in range(2))

    first.history.append(QUESTION)

    assert second.history == []


def test_messages_can_be_compared_copied_and_pickled() -> None:
    for message in (TASK, CARD, ANSWER, *EVENTS):
        assert copy.deepcopy(message) == message
        assert pickle.loads(pickle.dumps(message)) == message
