"""Agents on AgentCore: named by ``--arn``, or by a URL of theirs, and called by their own client.

Spec: AC-C-07, AC-C-10, AC-C-60, B163.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from dragoman.cli.credentials import Attachment
from dragoman.cli.failures import CredentialsMissingError, UsageError
from dragoman.cli.resume import Words
from dragoman.cli.session import Session
from dragoman.client import Interceptor, Poll, Reconnect
from dragoman.client.card_cache import FetchedCard
from dragoman.client.cards import PRESENT, generation_of
from dragoman.http.client import HttpxClient
from dragoman.http.guard import is_loopback_host, parse_target

if TYPE_CHECKING:
    from dragoman.agentcore import RuntimeClient, RuntimeConnection

_HOST = "bedrock-agentcore"


def runtime_of(session: Session, given: str | None) -> str:
    """The ARN or URL of the runtime that is meant, empty when the agent is another one. Raises UsageError."""
    arn = session.configuration.find("arn")
    named = [given, *(session.configuration.find(key) for key in ("agent_card", "endpoint"))]
    on_command_line = [item for item in named if item and (isinstance(item, str) or item.source == "flag")]
    if arn.source == "flag" and on_command_line:
        raise UsageError("--arn excludes --agent-card and --endpoint")
    if arn.value and not on_command_line:
        return str(arn.value)
    card = given or session["agent_card"] or ""
    # Only what may be one is looked at, so that other agents are reached without loading all this.
    if _HOST in card and not session["endpoint"]:
        from dragoman.agentcore.runtime_address import recognize

        return card if recognize(card) else ""
    return ""


@asynccontextmanager
async def reach_runtime(
    session: Session, runtime: str, client: HttpxClient, interceptors: Sequence[Interceptor], reconnect: Reconnect
) -> AsyncIterator[RuntimeClient]:
    """Connect to a runtime, with its card; without one where the caller may not read it."""
    options = _options(session, client) | {"interceptors": interceptors, "reconnect": reconnect}
    async with AsyncExitStack() as stack:
        connection = await _open(session, runtime, options, stack)
        if connection.client.session_id and not session["session_id"]:
            session.notes.say("Session", connection.client.session_id)
        session.words = _words(session, runtime, connection.client.session_id)
        yield connection.client


async def read_runtime_card(session: Session, runtime: str, client: HttpxClient) -> FetchedCard:
    """Only read the card, whatever address it names."""
    options = _options(session, client) | {"own_address": True}
    session.words = _words(session, runtime, session["session_id"] or "")
    async with AsyncExitStack() as stack:
        return (await _open(session, runtime, options, stack, needs_card=True)).fetched


async def _open(
    session: Session, runtime: str, options: dict[str, Any], stack: AsyncExitStack, *, needs_card: bool = False
) -> RuntimeConnection:
    """Open a connection; another one without what turned out not to be had."""
    from dragoman import agentcore

    while True:
        connection = agentcore.connect(runtime, **options)
        session.card_reference = connection.url
        try:
            await stack.enter_async_context(connection)
            return connection
        except agentcore.AccessDenied as error:
            if needs_card or options.get("card") is False:
                raise
            session.notes.note(f"the card cannot be read, and the agent is called without it: {error}")
            options |= {"card": False}
        except agentcore.CredentialsNotFoundError as error:
            if not is_loopback_host(parse_target(connection.url).host):
                hint = "export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=..."
                raise CredentialsMissingError(str(error), hint=hint) from error
            session.notes.note("there are no AWS credentials; the stand-in on this machine is called without")
            session.attached = Attachment()
            options |= {"anonymous": True}


def _options(session: Session, client: HttpxClient) -> dict[str, Any]:
    """The arguments of agentcore.connect."""
    _check_options(session)
    session.attached = Attachment(headers={"Authorization": ""}, declared=True)
    version, interval = session["a2a_version"] or PRESENT, session["poll_interval"]
    return {
        "region": session["region"] or "",
        "qualifier": session["qualifier"] or "",
        "endpoint": session["endpoint_url"] or "",
        "bearer": session["bearer"] or None,
        "session_id": session["session_id"],
        "version": version,
        "versions": (generation_of(version) or version,),
        "timeout": session["request_timeout"],
        "idle_timeout": None,
        "connect_timeout": session["connect_timeout"],
        "headers": dict(session["svc_param"]),
        "extensions": session["extension"],
        "http": client,
        "poll": Poll(first=interval, longest=interval),
        "check_capabilities": not session["ignore_capabilities"],
    }


def _check_options(session: Session) -> None:
    if any(binding != "JSONRPC" for binding in session["transport"]):
        raise UsageError("an agent on AgentCore speaks JSONRPC only")
    for key, flag in (("api_key", "--api-key"), ("basic", "--basic")):
        if session[key]:
            session.notes.warn(f"{flag} is not sent: AgentCore takes AWS credentials or --bearer")


def _words(session: Session, runtime: str, session_id: str) -> Words:
    """How to reach the same agent in the same session."""
    where = ["--arn", runtime]
    for flag, value in (
        ("--endpoint-url", session["endpoint_url"]),
        ("--qualifier", session["qualifier"]),
        ("--region", session["region"]),
        ("--session-id", session_id),
        ("--a2a-version", session["a2a_version"]),
    ):
        where += [flag, str(value)] if value else []
    return Words(tuple(where))
