"""An authorization server as a process of its own: OAuth 2.1 grants, OpenID Connect, keys, rotation.

It allows whatever a known client asks, at once: nobody has to be there. ``POST /control`` changes how it behaves, and
``GET /log`` tells what it was asked. Run ``python -m tests.auth.provider`` and read its address from the first line.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from dragoman.jose import SigningKey, encode_base64url, new_key
from tests.http.peer import Peer, Received, as_json, plain

CLIENT, SECRET, PUBLIC = "desk-bot", "not-a-real-secret-0002", "desk-cli"
AUDIENCE = "https://agent.example"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


class Server:
    """Answers on one peer."""

    def __init__(self, peer: Peer) -> None:
        self.url = peer.url
        self.control: dict[str, Any] = {}
        self.log: list[dict[str, Any]] = []
        self.keys = {"key-1": new_key("ES256", kid="key-1")}
        self.codes: dict[str, dict[str, str]] = {}
        self.devices: dict[str, dict[str, Any]] = {}
        self.refreshes: dict[str, str] = {}
        for method, path, handler in (
            ("GET", "/.well-known/openid-configuration", self.metadata),
            ("GET", "/.well-known/oauth-authorization-server", self.metadata),
            ("GET", "/jwks.json", self.jwks),
            ("GET", "/authorize", self.authorize),
            ("POST", "/device", self.device),
            ("POST", "/token", self.token),
            ("POST", "/control", self.change),
            ("GET", "/log", self.tell),
        ):
            peer.on(method, path, handler)

    async def metadata(self, request: Received, writer: asyncio.StreamWriter) -> None:
        value = {
            "issuer": self.control.get("issuer", self.url),
            "token_endpoint": f"{self.url}/token",
            "authorization_endpoint": f"{self.url}/authorize",
            "device_authorization_endpoint": f"{self.url}/device",
            "jwks_uri": f"{self.url}/jwks.json",
            "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token", DEVICE],
        }
        await as_json(value)(request, writer)

    async def jwks(self, request: Received, writer: asyncio.StreamWriter) -> None:
        await as_json({"keys": [key.public.members for key in self.keys.values()]})(request, writer)

    async def authorize(self, request: Received, writer: asyncio.StreamWriter) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}
        self.log.append({"authorize": asked})
        back = {"state": self.control.get("state", asked["state"]), "iss": self.control.get("iss", self.url)}
        if self.control.get("deny"):
            back["error"] = "access_denied"
        else:
            back["code"] = secrets.token_urlsafe(16)
            self.codes[back["code"]] = asked
        await plain(302, b"", location=f"{asked['redirect_uri']}?{urlencode(back)}")(request, writer)

    async def device(self, request: Received, writer: asyncio.StreamWriter) -> None:
        form = _form(request)
        code = secrets.token_urlsafe(16)
        self.devices[code] = {"scope": form.get("scope", ""), "answers": list(self.control.get("device", []))}
        self.log.append({"device": form})
        value = {
            "device_code": code,
            "user_code": "KQZT-8842",
            "verification_uri": f"{self.url}/activate",
            "expires_in": self.control.get("device_life", 60),
            "interval": self.control.get("interval", 1),
        }
        await as_json(value)(request, writer)

    async def token(self, request: Received, writer: asyncio.StreamWriter) -> None:
        form, who = _form(request), _client(request)
        self.log.append({"token": form["grant_type"], "client": who[0], "at": time.time(), "form": form})
        if who not in ((CLIENT, SECRET), (PUBLIC, "")):
            await as_json({"error": "invalid_client"}, 401)(request, writer)
            return
        status, value = self._grant(form, who[0])
        await as_json(value, status, cache_control="no-store")(request, writer)

    def _grant(self, form: dict[str, str], client: str) -> tuple[int, dict[str, Any]]:
        kind = form["grant_type"]
        if kind == "client_credentials" and client == CLIENT:
            return 200, self._tokens(client, form.get("scope", ""), refresh=False)
        if kind == "refresh_token":
            scope = self.refreshes.pop(form["refresh_token"], None)
            return (400, {"error": "invalid_grant"}) if scope is None else (200, self._tokens(client, scope))
        if kind == DEVICE:
            held = self.devices[form["device_code"]]
            if held["answers"]:
                return 400, {"error": held["answers"].pop(0)}
            return 200, self._tokens(client, held["scope"])
        if kind == "authorization_code":
            asked = self.codes.pop(form["code"], None)
            digest = encode_base64url(hashlib.sha256(form["code_verifier"].encode()).digest())
            if asked is None or asked["code_challenge"] != digest or asked["redirect_uri"] != form["redirect_uri"]:
                return 400, {"error": "invalid_grant"}
            return 200, self._tokens(client, asked.get("scope", ""), nonce=asked.get("nonce", ""))
        return 400, {"error": "unsupported_grant_type"}

    def _tokens(self, client: str, scope: str, *, refresh: bool = True, nonce: str = "") -> dict[str, Any]:
        now, life = int(time.time()), self.control.get("life", 3600)
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "scope": scope, "iat": now, "exp": now + life}
        found = {
            "access_token": self.sign({**claims, "jti": secrets.token_hex(4)}, "at+jwt"),
            "token_type": "Bearer",
            "expires_in": life,
            "scope": scope,
        }
        if refresh and self.control.get("refresh", True):
            found["refresh_token"] = secrets.token_urlsafe(16)
            self.refreshes[found["refresh_token"]] = scope
        if "openid" in scope.split():
            identity = {**claims, "aud": client, "nonce": nonce, **self.control.get("id_token", {})}
            found["id_token"] = self.sign(identity, "JWT")
            if self.control.get("forge"):
                found["id_token"] = found["id_token"][:-8] + "AAAAAAAA"
        return found

    def sign(self, claims: dict[str, Any], kind: str) -> str:
        kid, key = list(self.keys.items())[-1]
        return _jwt({"alg": "ES256", "kid": kid, "typ": kind}, claims, key)

    async def change(self, request: Received, writer: asyncio.StreamWriter) -> None:
        asked = request.json
        if asked.pop("new_key", False):
            kid = f"key-{len(self.keys) + 1}"
            self.keys = {kid: new_key("ES256", kid=kid)}
        self.control = asked
        if asked.get("forget"):
            self.refreshes.clear()
        self.log.clear()
        await as_json({})(request, writer)

    async def tell(self, request: Received, writer: asyncio.StreamWriter) -> None:
        await as_json(self.log)(request, writer)


def _form(request: Received) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(request.body.decode()).items()}


def _client(request: Received) -> tuple[str, str]:
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if kind == "Basic":
        name, _, secret = base64.b64decode(given).decode().partition(":")
        return unquote(name), unquote(secret)
    form = _form(request)
    return form.get("client_id", ""), form.get("client_secret", "")


def _jwt(header: dict[str, Any], claims: dict[str, Any], key: SigningKey) -> str:
    signed = ".".join(encode_base64url(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{encode_base64url(key.sign(signed.encode()))}"


async def _serve() -> None:
    from tests.http.peer import peer

    async with peer() as made:
        Server(made)
        print(made.url, flush=True)
        await asyncio.Event().wait()


class Provider:
    """The process, from outside."""

    def __init__(self, url: str) -> None:
        self.url = url

    def control(self, **settings: Any) -> None:
        """Behave like this from now on, and forget what was asked."""
        request = urllib.request.Request(f"{self.url}/control", json.dumps(settings).encode(), method="POST")
        urllib.request.urlopen(request, timeout=10).read()

    def log(self) -> list[dict[str, Any]]:
        """What it was asked."""
        with urllib.request.urlopen(f"{self.url}/log", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def grants(self) -> list[str]:
        """The grants that it was asked for."""
        return [entry["token"] for entry in self.log() if "token" in entry]


@contextmanager
def provider_process() -> Iterator[Provider]:
    """The server, as a process."""
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.auth.provider"], cwd=root, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield Provider(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    asyncio.run(_serve())
