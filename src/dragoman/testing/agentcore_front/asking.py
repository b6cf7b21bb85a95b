"""The front's own requests to a container: its health, its card.

Spec: AC-F-12, AC-F-13.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dragoman.errors import DragomanError
from dragoman.http.client import LIMITS, HttpClient, HttpxClient, default_tls
from dragoman.testing.agentcore_front.pings import Ping, read_ping

CARD_PATH = "/.well-known/agent-card.json"
PING_TIMEOUT = 5.0


@asynccontextmanager
async def loopback_http() -> AsyncIterator[HttpClient]:
    """A client for this machine, past all proxies."""
    headers = {"accept-encoding": "identity"}
    async with HttpxClient(trust_env=False, verify=default_tls(), limits=LIMITS, headers=headers) as client:
        yield HttpClient(client)


async def ask_ping(http: HttpClient, url: str) -> Ping:
    """Ask a container for its health; no answer is a ping of status 0."""
    began = time.monotonic()
    try:
        answer = await http.fetch("GET", f"{url}/ping", timeout=PING_TIMEOUT)
    except DragomanError:
        return Ping(http=0, took=time.monotonic() - began)
    return read_ping(answer.status, answer.body, time.monotonic() - began)


async def can_answer_card(http: HttpClient, url: str) -> bool:
    """Whether a container answers for its card."""
    try:
        return (await http.fetch("GET", url + CARD_PATH, timeout=PING_TIMEOUT)).status == 200
    except DragomanError:
        return False
