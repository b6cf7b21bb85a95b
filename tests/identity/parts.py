"""What the tests of identity share: doors to an agent, tokens by joserfc, a provider in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from joserfc import jwk, jwt

from dragoman import Agent
from dragoman.auth import JwtBearer

ROOT = Path(__file__).parent.parent.parent

ISSUER, AUDIENCE = "https://id.example", "agents"
KEY = jwk.ECKey.generate_key("P-256", {"kid": "k1", "use": "sig"}, private=True)
FORGER = jwk.ECKey.generate_key("P-256", {"kid": "k1", "use": "sig"}, private=True)

DOORS = (
    "in process",
    "JSONRPC",
    "HTTP+JSON",
    "GRPC",
    "WebSocket",
    "0.3 JSONRPC",
    "0.3 HTTP+JSON",
    "0.3 GRPC",
)
"""Every way in."""


def whoami(**settings: Any) -> Agent:
    """An agent that says who calls it."""
    agent = Agent("Whoami", description="Says who calls.", **settings)

    @agent.task
    async def who(ctx):  # type: ignore[no-untyped-def]
        return f"{ctx.caller.id}|{' '.join(sorted(ctx.caller.scopes))}"

    return agent


def tokens(**settings: Any) -> JwtBearer:
    """A scheme that takes the tokens of :func:`token`."""
    return JwtBearer(ISSUER, AUDIENCE, keys={"keys": [KEY.as_dict(private=False)]}, **settings)


def token(*, key: Any = KEY, header: dict[str, Any] | None = None, **claims: Any) -> str:
    """A token that is good, but for what is said. A claim that is None is left out."""
    now = int(time.time())
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 60, **claims}
    head = {"alg": "ES256", "kid": "k1", "typ": "at+jwt", **(header or {})}
    return jwt.encode(head, {name: value for name, value in said.items() if value is not None}, key)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


class ProviderProcess:
    """The provider, from outside."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer

    def order(self, **what: Any) -> Any:
        return httpx2.post(f"{self.issuer}/control", content=json.dumps(what).encode(), timeout=10).json()

    def mint(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        return str(self.order(mint=claims, header=header)["token"])

    def seen(self, path: str) -> int:
        return int(httpx2.get(f"{self.issuer}/control", timeout=10).json().get(path, 0))


@contextmanager
def provider_process(folder: Path) -> Iterator[ProviderProcess]:
    """A provider, started and ended."""
    place = folder / "issuer"
    process = subprocess.Popen([sys.executable, "-m", "tests.identity.provider", str(place)], cwd=ROOT)
    try:
        end = time.monotonic() + 20
        while not (place.exists() and place.read_text()):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        yield ProviderProcess(place.read_text())
    finally:
        process.terminate()
        process.wait(10)
