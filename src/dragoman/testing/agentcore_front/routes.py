"""The paths of the public side. Pure.

Spec: AC-F-01.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from urllib.parse import parse_qs, quote, unquote

import msgspec

from dragoman.testing.agentcore_front.refusals import Fault, Refusal
from dragoman.testing.agentcore_front.settings import FrontSettings


class Kind(enum.StrEnum):
    """What a request wants."""

    CALL = "call"
    CARD = "card"
    METADATA = "metadata"
    STOP = "stop"


_CARD = ".well-known/agent-card.json"
_METADATA = ".well-known/oauth-protected-resource"
_REST: Mapping[str, tuple[str, Kind]] = {
    "invocations": ("POST", Kind.CALL),
    "invocations/": ("POST", Kind.CALL),
    f"invocations/{_CARD}": ("GET", Kind.CARD),
    f"invocations/{_METADATA}": ("GET", Kind.METADATA),
    "stopruntimesession": ("POST", Kind.STOP),
}


class Route(msgspec.Struct, frozen=True):
    """Where a request goes."""

    kind: Kind
    qualifier: str


def runtime_path(arn: str) -> str:
    """The path of a runtime: nothing of its ARN is left unescaped."""
    return f"/runtimes/{quote(arn, safe='')}"


def find_route(method: str, raw_path: bytes, query: bytes, settings: FrontSettings) -> Route:
    """The route of a request. ``raw_path`` is as it was on the line; the runtime in it is unescaped once.

    Raises Refusal: NOT_FOUND for what is not there, VALIDATION for a method that it does not take.
    """
    words = raw_path.decode("latin-1").split("/", 3)
    if len(words) != 4 or words[:2] != ["", "runtimes"] or words[3] not in _REST:
        raise Refusal(Fault.NOT_FOUND)
    verb, kind = _REST[words[3]]
    if method != verb:
        raise Refusal(Fault.VALIDATION)
    asked = parse_qs(query.decode("latin-1"), keep_blank_values=True)
    _check_runtime(unquote(words[2]), kind, asked, settings)
    qualifier = asked.get("qualifier", ["DEFAULT"])[-1] or "DEFAULT"
    if qualifier not in settings.qualifiers:
        raise Refusal(Fault.NOT_FOUND)
    return Route(kind, qualifier)


def _check_runtime(name: str, kind: Kind, asked: Mapping[str, list[str]], settings: FrontSettings) -> None:
    """A call may name the runtime by its bare id and an account; everything else needs the ARN."""
    if name == settings.arn:
        return
    if name != settings.runtime_id or kind is not Kind.CALL:
        raise Refusal(Fault.NOT_FOUND)
    account = asked.get("accountId", [""])[-1]
    if len(account) != 12 or not account.isdecimal():
        raise Refusal(Fault.VALIDATION)
    if account != settings.account:
        raise Refusal(Fault.NOT_FOUND)
