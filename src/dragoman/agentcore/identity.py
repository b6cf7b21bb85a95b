"""Whose tasks a call may see, and what is known of its user.

Theory. Sessions of one agent may share a durable store while each has a microVM of its own, so tasks are scoped: a task
belongs to the caller that a *resolver* names, and is not there for others. By default that is the session. What a
forwarded token claims is believed only when the author says that the front has verified it, or verifies it himself.

Spec: AC-S-46, AC-S-47.
"""

from __future__ import annotations

import base64
import binascii
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from dragoman.agentcore.headers import AgentCoreContext
from dragoman.errors import UnauthenticatedError
from dragoman.http.asgi import Headers, Scope
from dragoman.ports.operations import ANONYMOUS, Caller

Resolver = Callable[[AgentCoreContext], Caller | Awaitable[Caller]]
Verifier = Callable[[str], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]


def by_session(call: AgentCoreContext) -> Caller:
    """Tasks belong to the session; calls without one (a local run) share theirs."""
    return Caller(id=f"session:{call.session_id}") if call.session_id else ANONYMOUS


def by_user(call: AgentCoreContext) -> Caller:
    """Tasks belong to the user that a verified token names, over all sessions. Raises UnauthenticatedError."""
    if not call.subject:
        raise UnauthenticatedError("A verified token with a subject is needed")
    return Caller(id=f"user:{call.claims.get('iss', '')}:{call.subject}")


class Identify:
    """Authenticates a request, see :class:`~dragoman.bindings.settings.EndpointSettings`.

    * ``resolve``: from what came with a call to its caller;
    * ``verify``: from a bearer token to its claims; whatever it raises refuses the call;
    * ``trusts_front``: the claims of a forwarded token are taken as they are, since the front has verified them.
    """

    def __init__(self, resolve: Resolver, verify: Verifier | None, *, trusts_front: bool) -> None:
        self._resolve = resolve
        self._verify = read_claims if verify is None and trusts_front else verify

    async def __call__(self, scope: Scope) -> Caller:
        """The caller of a request. Raises UnauthenticatedError."""
        headers = Headers(scope["headers"])
        call = AgentCoreContext(headers)
        call.claims = await self._claims(call)
        found = self._resolve(call)
        caller = await found if inspect.isawaitable(found) else found
        return msgspec.structs.replace(caller, claims={**call.claims, **caller.claims}) if call.claims else caller

    async def _claims(self, call: AgentCoreContext) -> Mapping[str, Any]:
        scheme, _, token = (call.authorization or "").partition(" ")
        if self._verify is None or scheme.lower() != "bearer":
            return {}
        try:
            found = self._verify(token.strip())
            return await found if inspect.isawaitable(found) else found
        except UnauthenticatedError:
            raise
        except Exception as error:
            raise UnauthenticatedError("The token was refused") from error


def read_claims(token: str) -> Mapping[str, Any]:
    """The claims of a JWT, not verified: for tokens that the front has verified. Raises UnauthenticatedError."""
    parts = token.split(".")
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims = msgspec.json.decode(payload)
    except (IndexError, binascii.Error, ValueError, msgspec.DecodeError):
        raise UnauthenticatedError("The token cannot be read") from None
    if not isinstance(claims, dict):
        raise UnauthenticatedError("The token cannot be read")
    return claims
