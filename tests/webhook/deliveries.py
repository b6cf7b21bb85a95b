"""Notifications made by hand, as senders of several kinds make them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from dragoman.jose import SigningKey, encode_base64url, new_key
from dragoman.ports.clock import SystemClock
from dragoman.webhook import Answer, Notification, Receiver

URL = "https://hooks.example.net/a2a"
NOW = 1_800_000_000
TOKEN = "t-0123456789"
KEY = new_key("ES256", kid="k1")


class StoppedClock(SystemClock):
    """It is always the same time."""

    def now_ms(self) -> int:
        return NOW * 1000


def status(state: str = "WORKING", task: str = "task-1", **more: Any) -> dict[str, Any]:
    return {"statusUpdate": {"taskId": task, "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}, **more}}


def chunk(text: str, task: str = "task-1", append: bool = True) -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": task, "contextId": "c", "artifact": artifact, "append": append}}


def text(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def headers(token: str = TOKEN, **more: str) -> dict[str, str]:
    """Headers; ``more`` are named by their last word: Id, Timestamp, Sequence, Signature, or Authorization."""
    found = {"Content-Type": "application/a2a+json", "X-A2A-Notification-Token": token}
    for name, value in more.items():
        found["Authorization" if name == "Authorization" else f"X-A2A-Notification-{name}"] = value
    return found


def claims(body: bytes, **changes: Any) -> dict[str, Any]:
    """What a signature says; None takes a claim away."""
    said = {
        "iss": "https://agent.example.com",
        "aud": URL,
        "iat": NOW,
        "exp": NOW + 300,
        "jti": "n-1",
        "request_body_sha256": hashlib.sha256(body).hexdigest(),
    }
    return {name: value for name, value in {**said, **changes}.items() if value is not None}


def jwt(said: dict[str, Any], key: SigningKey = KEY, **head: Any) -> str:
    header = {"alg": key.algorithm, "kid": key.kid, "typ": "JWT", **head}
    data = ".".join(encode_base64url(json.dumps(part).encode()) for part in (header, said))
    return f"{data}.{encode_base64url(key.sign(data.encode()))}"


class Inbox:
    """A receiver whose function keeps what it is called with."""

    def __init__(self, **settings: Any) -> None:
        self.taken: list[Notification] = []
        given = {"token": TOKEN, "tasks": "any", "url": URL, "clock": StoppedClock(), **settings}
        self.receiver = Receiver(self.taken.append, **given)

    async def post(self, body: Any, sent: dict[str, str] | None = None) -> int:
        return (await self.answer(body, sent)).status

    async def answer(self, body: Any, sent: dict[str, str] | None = None) -> Answer:
        return await self.receiver.receive(headers() if sent is None else sent, text(body), "192.0.2.1")
