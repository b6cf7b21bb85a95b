"""What every request of a client of AgentCore goes through last, and every answer first.

Credentials go to the runtime that the client was built for, and nowhere else.

Spec: AC-C-10, AC-C-12, AC-C-22, AC-C-23, AC-C-30, AC-C-32, AC-C-40, AC-C-88, AC-C-94.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from dragoman.agentcore.credentials import Credential
from dragoman.agentcore.errors import AuthenticationRequired
from dragoman.agentcore.failures import body_code, body_text
from dragoman.agentcore.headers import SESSION_ID
from dragoman.agentcore.runtime_address import RuntimeAddress
from dragoman.agentcore.sessions import Sessions
from dragoman.auth import Discovery, discover
from dragoman.errors import ErrorOrigin, OutboundUrlError, PayloadTooLargeError
from dragoman.http.authentication import Outgoing, Reply
from dragoman.http.client import HttpClient
from dragoman.http.guard import shown

MAX_REQUEST_BYTES = 100_000_000
_KEPT_SECONDS = 60.0
ACCEPT = "application/json, text/event-stream"


class RuntimeAuthenticator:
    """An :class:`~dragoman.http.authentication.Authenticator` for one runtime.

    * ``address``: the runtime; ``is_trusted``: whether another address is one that credentials may go to;
    * ``headers``: to set on every request; ``max_bytes``: how large a request may be; ``now``: a clock in seconds.
    """

    def __init__(
        self,
        credential: Credential,
        sessions: Sessions,
        address: RuntimeAddress,
        *,
        is_trusted: Callable[[str], bool],
        headers: Mapping[str, str],
        max_bytes: int = MAX_REQUEST_BYTES,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._credential = credential
        self._sessions = sessions
        self._address = address
        self._is_trusted = is_trusted
        self._headers = headers
        self._max_bytes = max_bytes
        self._now = now
        self._renewing = asyncio.Lock()
        self._discovered: dict[str, tuple[float, Discovery]] = {}

    async def sign(self, request: Outgoing) -> Mapping[str, str]:
        """See :class:`~dragoman.http.authentication.Authenticator`.

        Raises OutboundUrlError for any other address, PayloadTooLargeError for a large body, both before there is a
        connection.
        """
        if not self._address.covers(request.url) and not self._is_trusted(request.url):
            text = f"{shown(request.url)} is not of the agent that this client was built for"
            raise OutboundUrlError(text, url=shown(request.url))
        if len(request.body) > self._max_bytes:
            raise PayloadTooLargeError(f"The request has {len(request.body)} bytes, {self._max_bytes} are allowed")
        added = dict(self._headers)
        if request.method == "POST":
            added["accept"] = ACCEPT
        if SESSION_ID not in request.headers and self._sessions.current:
            added[SESSION_ID] = self._sessions.current
        headers = {name: value for name, value in request.headers.items() if name != "authorization"}
        final = Outgoing(request.method, request.url, {**headers, **added}, request.body)
        return {**added, **await self._credential.authorize(final)}

    async def review(self, request: Outgoing, reply: Reply) -> bool:
        """See :class:`~dragoman.http.authentication.Authenticator`. Raises AuthenticationRequired."""
        sent, got = request.headers.get(SESSION_ID, ""), reply.headers.get(SESSION_ID, "")
        if got != sent:
            self._sessions.adopt(sent, got)
        if reply.status == 401:
            return await self._after_unauthorized(request, reply)
        return reply.status == 403 and not reply.repeated and self._credential.after_forbidden(reply)

    async def _after_unauthorized(self, request: Outgoing, reply: Reply) -> bool:
        async with self._renewing:  # of many calls that are refused together, one asks
            if not reply.repeated and self._credential.is_superseded(request):
                return True
            discovery = await self._discover(request, reply)
            if not reply.repeated and await self._credential.after_unauthorized(request, discovery):
                return True
        origin = ErrorOrigin(
            url=shown(request.url),
            status=401,
            code=body_code(reply.body),
            body=reply.body,
            headers=_shown(reply.headers),
        )
        raise AuthenticationRequired(_explain(discovery, reply), origin=origin, discovery=discovery)

    async def _discover(self, request: Outgoing, reply: Reply) -> Discovery:
        """What the challenge leads to; the same one is followed once in a while only."""
        challenge, now = reply.headers.get("www-authenticate", ""), self._now()
        known = self._discovered.get(challenge)
        if known is not None and now < known[0] + _KEPT_SECONDS:
            return known[1]
        found = await self._follow(request, reply)
        self._discovered = {challenge: (now, found)}
        return found

    async def _follow(self, request: Outgoing, reply: Reply) -> Discovery:
        plain, own = HttpClient(), self._address.covers(request.url)
        try:
            resources = self._address.resources if own else ()
            return await discover(plain, request.url, reply.headers, resources)
        finally:
            await plain.aclose()


def _explain(discovery: Discovery, reply: Reply) -> str:
    said = discovery.error_description or body_text(reply.body) or "Authentication is required"
    error = f" ({discovery.error})" if discovery.error else ""
    where = f"; tokens are issued by {', '.join(map(shown, discovery.issuers))}" if discovery.issuers else ""
    problem = f"; {discovery.problem}" if discovery.problem else ""
    return f"The agent wants a bearer token: {said[:500]}{error}{where}{problem}"


def _shown(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "set-cookie"}
