"""An authorization server and a resource on one scripted peer."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.http.peer import Peer, Received, as_json, plain

RFC8414 = "/.well-known/oauth-authorization-server/pool"
OIDC = "/pool/.well-known/openid-configuration"


def issuer(peer: Peer) -> str:
    return f"{peer.url}/pool"


def serve_metadata(peer: Peer, *paths: str, **more: Any) -> Peer:
    """Have a peer show the metadata of its authorization server at these paths; at others there is HTTP 400."""
    value = {"issuer": issuer(peer), "token_endpoint": f"{peer.url}/token", **more}
    for path in (RFC8414, OIDC):
        peer.on("GET", path, as_json(value) if path in paths else plain(400, b"{}"))
    return peer


def serve_tokens(peer: Peer, **more: Any) -> Peer:
    """Have a peer give tokens ``token-1``, ``token-2`` and so on."""
    count = iter(range(1, 1000))

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        value = {"access_token": f"token-{next(count)}", "token_type": "Bearer", "expires_in": 3600, **more}
        await as_json(value)(request, writer)

    return peer.on("POST", "/token", answer)
