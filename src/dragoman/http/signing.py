"""Requests of httpx2 signed as the last thing before they are sent.

httpx2 runs the request hooks of a client behind its own authentication, so that a signature has to be the last hook. It
stays on a client for good, and touches only requests that bear an authenticator.

Spec: AC-C-83, AC-C-88.
"""

from __future__ import annotations

import httpx2

from dragoman.http.authentication import Authenticator, Outgoing

_AUTHENTICATOR = "dragoman.authenticator"


def have_signed(client: httpx2.AsyncClient, request: httpx2.Request, authenticator: Authenticator) -> None:
    """Have a request signed when this client sends it. Send it without anything in between: hooks can be changed."""
    hooks = client.event_hooks
    if _sign_last not in hooks["request"][-1:]:
        others = [hook for hook in hooks["request"] if hook is not _sign_last]
        client.event_hooks = {**hooks, "request": [*others, _sign_last]}
    request.extensions[_AUTHENTICATOR] = authenticator


def as_outgoing(request: httpx2.Request) -> Outgoing:
    """A request as an authenticator sees it."""
    return Outgoing(request.method, str(request.url), dict(request.headers.items()), request.content)


async def _sign_last(request: httpx2.Request) -> None:
    authenticator = request.extensions.get(_AUTHENTICATOR)
    if authenticator is None:
        return
    if "content-length" not in request.headers and "transfer-encoding" in request.headers:
        body = await request.aread()  # what is signed is bytes, and these very bytes are sent
        del request.headers["transfer-encoding"]
        request.headers["content-length"] = str(len(body))
    request.headers.update(await authenticator.sign(as_outgoing(request)))
