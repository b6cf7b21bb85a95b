"""What AgentCore says beside a call, typed.

The front adds headers to every request, and passes some of the caller's on. A handler reads them with
``agentcore.of(ctx)``, or ``agentcore.current()`` where it has no context at hand. Values belong to one call; those that
are secrets are shown by no ``repr``, and nothing of this is kept with a task.

Spec: AC-S-40 to AC-S-44, AC-S-47; section 3.1 of the register.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import unquote

PREFIX = "x-amzn-bedrock-agentcore-runtime-"
SESSION_ID = f"{PREFIX}session-id"
REQUEST_ID = f"{PREFIX}request-id"
USER_ID = f"{PREFIX}user-id"
CUSTOM = f"{PREFIX}custom-"
WORKLOAD_TOKEN = "workloadaccesstoken"
IDENTITY_WAT = "x-amz-bedrock-agentcore-identity-wat"
CALLBACK_URL = "oauth2callbackurl"
AUTHORIZATION = "authorization"
TRACE_HEADERS = ("x-amzn-trace-id", "traceparent", "tracestate", "baggage")

SECRETS = frozenset({WORKLOAD_TOKEN, IDENTITY_WAT, AUTHORIZATION, "cookie", "proxy-authorization"})
"""Headers whose values are shown nowhere."""

_OWN = frozenset({SESSION_ID, REQUEST_ID, USER_ID, CALLBACK_URL, *SECRETS, *TRACE_HEADERS})
#: Of the transport between front and container; nothing that a caller said.
_TRANSPORT = frozenset(
    {"host", "connection", "content-length", "content-type", "transfer-encoding", "accept", "accept-encoding", "te"}
)


class HasParameters(Protocol):
    """Something that knows the headers of a call: a handler's Context, or a CallContext."""

    @property
    def parameters(self) -> Mapping[str, str]:
        """Headers, keys in lower case."""
        ...


class AgentCoreContext:
    """What came with one call. Anything may be missing (in a local run, all of it is), and is then None or empty.

    * ``session_id``: the session, which is this microVM; not the conversation, which is ``ctx.context_id``;
    * ``request_id``: AgentCore's id of the request, or a fresh one; not the id of JSON-RPC;
    * ``workload_access_token``, ``identity_wat``: tokens of the workload's identity, old and new spelling;
    * ``oauth2_callback_url``: where three-legged flows come back to;
    * ``user_id``: what the caller said of its user: a hint, which nobody verified;
    * ``authorization``: the header as it was passed on, not verified here;
    * ``claims``, ``subject``: of a token that the front or a verifier has verified, else empty;
    * ``custom``: allow-listed headers of the prefix ``…-Custom-``, by the rest of their name;
    * ``headers``: other headers that were passed on;
    * ``trace``: the trace headers that came; ``baggage`` is the last of them, parsed.

    Names are in lower case.
    """

    __slots__ = ("_headers", "claims")

    def __init__(self, headers: Mapping[str, str], claims: Mapping[str, Any] | None = None) -> None:
        self._headers = headers
        self.claims: Mapping[str, Any] = claims or {}

    @property
    def session_id(self) -> str | None:
        return self._headers.get(SESSION_ID) or None

    @property
    def request_id(self) -> str:
        return self._headers.get(REQUEST_ID, "")

    @property
    def workload_access_token(self) -> str | None:
        return self._headers.get(WORKLOAD_TOKEN)

    @property
    def identity_wat(self) -> str | None:
        return self._headers.get(IDENTITY_WAT)

    @property
    def oauth2_callback_url(self) -> str | None:
        return self._headers.get(CALLBACK_URL)

    @property
    def user_id(self) -> str | None:
        return self._headers.get(USER_ID)

    @property
    def authorization(self) -> str | None:
        return self._headers.get(AUTHORIZATION)

    @property
    def subject(self) -> str | None:
        subject = self.claims.get("sub")
        return subject if isinstance(subject, str) else None

    @property
    def custom(self) -> Mapping[str, str]:
        return {name.removeprefix(CUSTOM): value for name, value in self._items() if name.startswith(CUSTOM)}

    @property
    def headers(self) -> Mapping[str, str]:
        return {
            name: value
            for name, value in self._items()
            if name not in _OWN and name not in _TRANSPORT and not name.startswith(CUSTOM)
        }

    @property
    def trace(self) -> Mapping[str, str]:
        return {name: self._headers[name] for name in TRACE_HEADERS if name in self._headers}

    @property
    def baggage(self) -> Mapping[str, str]:
        return parse_baggage(self._headers.get("baggage", ""))

    def _items(self) -> Iterator[tuple[str, str]]:
        return iter(self._headers.items())

    def __repr__(self) -> str:
        return f"AgentCoreContext(session_id={self.session_id!r}, request_id={self.request_id!r})"


def parse_baggage(text: str) -> dict[str, str]:
    """The members of a W3C ``baggage`` header; properties of members, and what is no member, are left out."""
    found: dict[str, str] = {}
    for member in text.split(","):
        name, equals, value = member.partition(";")[0].partition("=")
        if equals and name.strip():
            found[name.strip()] = unquote(value.strip())
    return found
