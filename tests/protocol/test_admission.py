"""What is decided about a call before anything is looked up."""

from __future__ import annotations

import pytest

from dragoman.errors import (
    A2AError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from dragoman.model import (
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    OPERATIONS,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentCapabilities,
    AgentExtension,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    Operation,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from dragoman.protocol.admission import Admission
from dragoman.protocol.validation import RequestRules

GET = GetTaskRequest(id="t")


def admission(*extensions: AgentExtension, infer_version: bool = False, **capabilities: bool) -> Admission:
    declared = AgentCapabilities(extensions=list(extensions), **capabilities)
    return Admission(declared, RequestRules(), infer_version=infer_version)


def refusal(rules: Admission, version: str = "1.0", extensions: tuple[str, ...] = (), **call: object) -> type | None:
    try:
        rules.admit(call.get("op", GET_TASK), call.get("request", GET), version, extensions)
    except A2AError as error:
        return type(error)
    return None


@pytest.mark.req("EXT-02", "EXT-09", "AMB-25")
def test_declared_extensions_become_active_in_the_order_of_the_client() -> None:
    rules = admission(AgentExtension(uri="a"), AgentExtension(uri="b"))

    assert rules.admit(GET_TASK, GET, "1.0", ("b", "unknown", "a")) == ("b", "a")
    assert rules.admit(GET_TASK, GET, "1.0", ()) == ()


@pytest.mark.req("EXT-03", "AMB-24")
def test_a_required_extension_must_be_named_but_not_to_fetch_the_card() -> None:
    rules = admission(AgentExtension(uri="a", required=True), extended_agent_card=True)

    assert refusal(rules) is ExtensionSupportRequiredError
    assert refusal(rules, extensions=("a",)) is None
    assert refusal(rules, op=GET_EXTENDED_AGENT_CARD, request=GetExtendedAgentCardRequest()) is None


@pytest.mark.req("STREAM-08", "SUB-05", "PCFG-10", "AMB-40")
def test_what_the_card_does_not_declare_is_refused() -> None:
    push = TaskPushNotificationConfig(task_id="t", url="https://x.example")

    assert refusal(admission(), op=SUBSCRIBE_TO_TASK, request=SubscribeToTaskRequest(id="t")) is (
        UnsupportedOperationError
    )
    assert refusal(admission(), op=CREATE_TASK_PUSH_NOTIFICATION_CONFIG, request=push) is (
        PushNotificationNotSupportedError
    )
    assert refusal(admission(), op=GET_EXTENDED_AGENT_CARD, request=GetExtendedAgentCardRequest()) is (
        UnsupportedOperationError
    )
    assert refusal(admission(streaming=True), op=SUBSCRIBE_TO_TASK, request=SubscribeToTaskRequest(id="t")) is None


@pytest.mark.parametrize("op", [op for op in OPERATIONS.values() if op.capability], ids=lambda op: op.name)
def test_every_operation_with_a_capability_is_refused_without_it(op: Operation) -> None:
    refused = refusal(admission(), op=op, request=None)

    assert refused in (UnsupportedOperationError, PushNotificationNotSupportedError)


@pytest.mark.req("AMB-39", "AMB-23")
def test_version_comes_before_extension_before_capability_before_fields() -> None:
    required = AgentExtension(uri="a", required=True)
    bad = SubscribeToTaskRequest(id="")

    def first(*, version: str, extensions: tuple[str, ...], **capabilities: bool) -> type | None:
        return refusal(admission(required, **capabilities), version, extensions, op=SUBSCRIBE_TO_TASK, request=bad)

    assert first(version="0.2", extensions=()) is VersionNotSupportedError
    assert first(version="1.0", extensions=()) is ExtensionSupportRequiredError
    assert first(version="1.0", extensions=("a",)) is UnsupportedOperationError
    assert first(version="1.0", extensions=("a",), streaming=True) is InvalidParamsError


def test_streaming_is_the_capability_of_both_streams() -> None:
    assert {SEND_STREAMING_MESSAGE.capability, SUBSCRIBE_TO_TASK.capability} == {"streaming"}
