"""A small OpenID Connect provider, to be run as a process: ``python -m tests.identity.provider PORT_FILE``.

It signs with joserfc and knows nothing of dragoman. ``POST /control`` has it change its keys or misbehave.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote_plus

import uvicorn
from joserfc import jwk, jwt

CLIENT, SECRET = "reporter", "its own secret"


class Provider:
    def __init__(self) -> None:
        self.issuer = ""
        self.keys: list[jwk.ECKey] = []
        self.seen: dict[str, int] = {}
        self.mode = ""
        self.opaque: dict[str, dict[str, Any]] = {}
        self.rotate()

    def rotate(self) -> None:
        name = f"key-{len(self.keys) + 1}"
        self.keys.append(jwk.ECKey.generate_key("P-256", {"kid": name, "use": "sig", "alg": "ES256"}, private=True))

    def mint(self, claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
        now = int(time.time())
        known = {"iss": self.issuer, "sub": "ann", "aud": "agents", "iat": now, "exp": now + 300}
        key = self.keys[-1]
        head = {"alg": "ES256", "kid": key.kid, "typ": "at+jwt", **(header or {})}
        return jwt.encode(head, {**known, **claims}, key)

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any, dict[str, str]]:
        self.seen[path] = self.seen.get(path, 0) + 1
        if path == "/control":
            return 200, self.control(json.loads(body)) if method == "POST" else self.seen, {}
        if self.mode == "down":
            return 503, {}, {}
        if path in ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"):
            named = {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/jwks", "token_endpoint": f"{self.issuer}/token"}
            return 200, {**named, "introspection_endpoint": f"{self.issuer}/introspect"}, {}
        if path == "/jwks":
            return self.jwks()
        if path in ("/token", "/introspect"):
            pair = f"{CLIENT}:{quote_plus(SECRET)}".encode()  # RFC 6749 §2.3.1
            if headers.get("authorization") != f"Basic {base64.b64encode(pair).decode()}":
                return 401, {"error": "invalid_client"}, {}
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            if path == "/introspect":
                return 200, self.opaque.get(form["token"], {"active": False}), {}
            token = self.mint({"sub": CLIENT, "client_id": CLIENT, "scope": form.get("scope", "")})
            return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 300}, {}
        return 404, {}, {}

    def jwks(self) -> tuple[int, Any, dict[str, str]]:
        keys = [key.as_dict(private=False) for key in self.keys]
        if self.mode == "loop":
            return 302, {}, {"location": f"{self.issuer}/jwks"}
        if self.mode == "oversized":
            return 200, {"keys": keys, "padding": "x" * 2_000_000}, {}
        return 200, {"keys": keys}, {"cache-control": "max-age=3600"}

    def control(self, order: dict[str, Any]) -> Any:
        if "mint" in order:
            return {"token": self.mint(order["mint"], order.get("header"))}
        if "opaque" in order:
            self.opaque[order["opaque"]] = order["as"]
        if order.get("do") == "rotate":
            self.rotate()
        self.mode = order.get("mode", self.mode)
        return {}


async def serve(provider: Provider, scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    body = b""
    while (message := await receive()).get("more_body"):
        body += message["body"]
    body += message["body"]
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    status, value, more = provider.answer(scope["method"], scope["path"], headers, body)
    named = [(name.encode(), text.encode()) for name, text in {"content-type": "application/json", **more}.items()]
    await send({"type": "http.response.start", "status": status, "headers": named})
    await send({"type": "http.response.body", "body": json.dumps(value).encode()})


def main(port_file: str) -> None:
    provider = Provider()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await serve(provider, scope, receive, send)

    config = uvicorn.Config(app, port=0, lifespan="off", log_level="warning", access_log=False)
    sock = config.bind_socket()
    provider.issuer = f"http://127.0.0.1:{sock.getsockname()[1]}"
    sock.listen(128)
    Path(port_file).write_text(provider.issuer)
    uvicorn.Server(config).run(sockets=[sock])


if __name__ == "__main__":
    main(sys.argv[1])
