"""Errors arrive with their type and everything that is in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dragoman.errors import (
    A2A_ERRORS,
    A2AError,
    FieldViolation,
    InternalError,
    InvalidParamsError,
    MethodNotFoundError,
    PayloadTooLargeError,
    PermissionDeniedError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
    VersionNotSupportedError,
)
from dragoman.model import GET_TASK, SEND_MESSAGE, GetTaskRequest, Message, Part, Role, SendMessageRequest
from dragoman.ports.operations import CallContext, Caller
from dragoman.testing.binding_contract.operations import echo
from dragoman.testing.binding_contract.reaching import Reach, proves, refusal
from dragoman.testing.binding_contract.scripted import Scripted, sample_message

GET = GetTaskRequest(id="t-1")

TOLD: tuple[type[A2AError], ...] = (
    *A2A_ERRORS,
    InvalidParamsError,
    MethodNotFoundError,
    InternalError,
    UnavailableError,
    UnauthenticatedError,
    PermissionDeniedError,
    RateLimitedError,
)
"""The errors that a call may be answered with."""


class FailureContract:
    """What the agent raises is what the client raises.

    ``coarser``: errors that the binding cannot tell apart, and what they arrive as.
    """

    coarser: ClassVar[Mapping[type[A2AError], type[A2AError]]] = {}

    @proves("BIND-06", "ERR-19")
    async def test_every_error_arrives_with_its_type_and_its_message(self, reach: Reach) -> None:
        """Every one that the protocol has."""
        scripted = Scripted()
        operations = (await reach(echo(), interceptors=[scripted])).operations

        for kind in TOLD:
            scripted.answers["GetTask"] = kind(f"It is {kind.__name__} – ünïcode")
            error = await refusal(operations.call(GET_TASK, GET, CallContext()))
            assert type(error) is self.coarser.get(kind, kind), kind
            assert error.message == f"It is {kind.__name__} – ünïcode"

    @proves("BIND-06")
    async def test_the_details_of_an_error_arrive(self, reach: Reach) -> None:
        """Metadata, and details of a type that nobody knows."""
        detail = {"@type": "type.googleapis.com/google.rpc.DebugInfo", "detail": "ünïcode"}
        raised = VersionNotSupportedError("No", metadata={"supportedVersions": "1.0, 2.0"}, extra_details=[detail])
        reached = await reach(echo(), interceptors=[Scripted({"GetTask": raised})])

        error = await refusal(reached.operations.call(GET_TASK, GET, CallContext()))

        assert error.metadata == raised.metadata
        assert list(error.extra_details) == [detail]
        assert error.origin is not None or not reached.binding

    @proves("BIND-06", "ERR-08")
    async def test_fields_that_are_wrong_are_named(self, reach: Reach) -> None:
        """As the agent's own rules find them."""
        operations = (await reach(echo())).operations
        bad = SendMessageRequest(message=Message(message_id="", role=Role.USER, parts=[Part()]))

        error = await refusal(operations.call(SEND_MESSAGE, bad, CallContext()))

        assert isinstance(error, InvalidParamsError)
        assert {violation.field for violation in error.violations} >= {"message.messageId"}

    @proves("BIND-06", "AMB-38")
    async def test_the_time_to_come_back_arrives(self, reach: Reach) -> None:
        """With the refusals that pass."""
        scripted = Scripted()
        operations = (await reach(echo(), interceptors=[scripted])).operations

        for kind in (RateLimitedError, UnavailableError):
            scripted.answers["GetTask"] = kind("Later", retry_after=7)
            error = await refusal(operations.call(GET_TASK, GET, CallContext()))
            assert error.retry_after == 7, kind

    @proves("BIND-06")
    async def test_several_violations_arrive_in_order(self, reach: Reach) -> None:
        """With their descriptions."""
        violations = [FieldViolation("a.b[0]", "is ünïcode"), FieldViolation("c", 'is "quoted"')]
        raised = InvalidParamsError(violations=violations)
        operations = (await reach(echo(), interceptors=[Scripted({"GetTask": raised})])).operations

        error = await refusal(operations.call(GET_TASK, GET, CallContext()))

        assert list(error.violations) == violations

    @proves("BIND-06", "ERR-13")
    async def test_an_unknown_failure_tells_nothing_of_itself(self, reach: Reach) -> None:
        """InternalError, without the text of the exception."""
        scripted = Scripted({"GetTask": ValueError("secret")})
        operations = (await reach(echo(), interceptors=[scripted])).operations

        error = await refusal(operations.call(GET_TASK, GET, CallContext()))

        assert type(error) is InternalError
        assert "secret" not in str(error)

    @proves("BIND-12", "SEC-03")
    async def test_a_request_beyond_the_limit_is_refused_and_the_next_is_served(self, reach: Reach) -> None:
        """By PayloadTooLargeError; in process nothing is too large."""
        reached = await reach(echo(), max_body_bytes=20_000)
        large = SendMessageRequest(message=sample_message("x" * 30_000))
        if not reached.binding:
            return

        error = await refusal(reached.operations.call(SEND_MESSAGE, large, CallContext()))

        assert type(error) is self.coarser.get(PayloadTooLargeError, PayloadTooLargeError)
        assert (await reached.client.run("small")).text == "You said: small"

    @proves("BIND-09", "AUTH-05")
    async def test_a_caller_without_credentials_is_told_so_and_one_with_them_is_known(self, reach: Reach) -> None:
        """Over the same ``identify`` as everywhere; a task belongs to who made it."""

        async def identify(scope: object) -> Caller:
            assert isinstance(scope, dict)
            headers = dict(scope["headers"])
            if b"authorization" not in headers:
                raise UnauthenticatedError("Who are you?", metadata={"challenge": 'Bearer realm="here"'})
            return Caller(id=headers[b"authorization"].decode())

        stranger = await reach(echo(), identify=identify)
        if not stranger.binding:
            return  # whoever is in the process needs no credentials
        ada = await reach(stranger.app, client_settings={"headers": {"Authorization": "Bearer ada"}})
        bob = await reach(stranger.app, client_settings={"headers": {"Authorization": "Bearer bob"}})

        refused = await refusal(stranger.client.send("hello"))
        await ada.client.send("hello")

        assert type(refused) is self.coarser.get(UnauthenticatedError, UnauthenticatedError)
        assert len((await ada.client.list_tasks()).tasks) == 1
        assert (await bob.client.list_tasks()).tasks == []
