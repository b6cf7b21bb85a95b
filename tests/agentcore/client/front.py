"""A scripted front for the client's tests: the peer of the HTTP tests at the addresses of one runtime.

Credentials are invented.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from dragoman import agentcore
from dragoman.agentcore import AwsCredentials, RuntimeConnection, Timing
from dragoman.agentcore.arn import parse_arn
from tests.client.words import QUICK, QUICK_POLL, card, task
from tests.http.peer import Answer, Peer, Received, as_json, plain, result

ARN = "arn:aws:bedrock-agentcore:eu-west-1:111122223333:runtime/ledger_bot-Qw3rTy7UiO"
ESCAPED = "arn%3Aaws%3Abedrock-agentcore%3Aeu-west-1%3A111122223333%3Aruntime%2Fledger_bot-Qw3rTy7UiO"
KEYS = AwsCredentials("AKIDLEDGERTEST000001", "not-a-real-secret-key-0000000000000000001")
CALLS = f"/runtimes/{ESCAPED}/invocations/"
CARD = f"{CALLS}.well-known/agent-card.json"
METADATA = f"{CALLS}.well-known/oauth-protected-resource"
STOP = f"/runtimes/{ESCAPED}/stopruntimesession"
SESSION = "x-amzn-bedrock-agentcore-runtime-session-id"
ONE, OTHER = "session-one-0123456789012345678901234", "session-two-0123456789012345678901234"
BUSY = "Session operation in progress, please retry"

assert parse_arn(ARN).escaped == ESCAPED


class FakeTime:
    """Time that passes when somebody waits for it; ``waits`` are the waits so far."""

    def __init__(self, wall: float = 1_767_323_045.0) -> None:
        self.now = 0.0
        self.wall = wall
        self.waits: list[float] = []

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    @property
    def timing(self) -> Timing:
        return Timing(
            wall=lambda: self.wall + self.now,
            monotonic=lambda: self.now,
            sleep=self._sleep,
            chance=lambda: 0.0,
        )


def call(peer: Peer, **options: Any) -> RuntimeConnection:
    """A client of the scripted front, without a card unless ``card=True``, quick to come back."""
    if "bearer" not in options:
        options.setdefault("credentials", KEYS)
    if "timing" not in options:
        options["timing"] = FakeTime().timing
    settings = {"endpoint": peer.url, "card": False, "reconnect": QUICK, "poll": QUICK_POLL, **options}
    return agentcore.connect(settings.pop("target", ARN), **settings)


def done(**more: Any) -> Answer:
    """A finished task as the answer to SendMessage."""
    return result({"task": task("COMPLETED", **more)})


def runtime_card(peer: Peer, *bindings: str, **more: Any) -> dict[str, Any]:
    """A card that names the runtime's own address."""
    return card(peer.url + CALLS, *bindings, **more)


def refusal(status: int, code: int | None, message: str, *, id: Any = ..., **headers: str) -> Answer:
    """An error of the front: a real HTTP status and a JSON-RPC body, with the request's id unless one is given."""

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        body: dict[str, Any] = {"jsonrpc": "2.0", "error": {"code": code, "message": message}}
        if id is ...:
            body["id"] = json.loads(request.body)["id"] if request.body else None
        elif id is not None:
            body["id"] = id
        await as_json(body, status, **headers)(request, writer)

    return answer


def forbidden(message: str, **headers: str) -> Answer:
    """A 403 of the front: no JSON-RPC."""
    return as_json({"message": message}, 403, x_amzn_errortype="AccessDeniedException", **headers)


def busy() -> Answer:
    return refusal(409, -32054, BUSY)


def sessions(peer: Peer) -> list[str]:
    """The session ids of all requests."""
    return [request.headers.get(SESSION, "") for request in peer.received]


def choose(pick: Callable[[Received], Answer]) -> Answer:
    """An answer that depends on the request."""

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await pick(request)(request, writer)

    return answer


def empty(status: int) -> Answer:
    return plain(status, b"")
