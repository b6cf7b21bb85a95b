"""What an answer to the request for a card says when it holds none. Pure.

Spec: AC-C-40, AC-C-60.
"""

from __future__ import annotations

import msgspec

from dragoman.agentcore.errors import AccessDenied
from dragoman.agentcore.failures import service_error
from dragoman.bindings import jsonrpc
from dragoman.errors import A2AError, CardError
from dragoman.http.client import Answer
from dragoman.http.guard import shown
from dragoman.model import GET_EXTENDED_AGENT_CARD

CARD_ACTION = "bedrock-agentcore:GetAgentCard"


class _Shape(msgspec.Struct):
    jsonrpc: str
    error: msgspec.Raw


def check_card_answer(answer: Answer) -> None:
    """Raise for an answer that is no card: AgentCoreError, A2AError, or CardError for a redirect."""
    if 300 <= answer.status < 400 and answer.status != 304:
        there = shown(answer.headers.get("location", "nowhere"))
        raise CardError(f"The card at {shown(answer.url)} redirects to {there}; no redirect is followed")
    if answer.status < 300 and not _is_error(answer.body):
        return
    if answer.status == 304:
        return
    try:
        jsonrpc.decode_result(
            GET_EXTENDED_AGENT_CARD, answer.status, answer.headers, answer.body, url=shown(answer.url)
        )
    except A2AError as error:
        raise _explained(service_error(error, safe=True) or error) from None


def _is_error(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=_Shape)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _explained(error: Exception) -> Exception:
    """A refusal, with the action that a caller needs for the card; that for calls is another one. Spec: AC-C-60."""
    if not isinstance(error, AccessDenied) or error.origin is None:
        return error
    text = f"{error.message} (the card needs the permission {CARD_ACTION}; card=False does without it)"
    return AccessDenied(text, origin=error.origin)
