"""What can be said of a card only by looking: whether what it names is there. Spec: CARD-06, CARD-19, CARD-20."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from urllib.parse import urlsplit

from dragoman.bindings.grpc.addresses import parse_address
from dragoman.card.lint import Finding, endpoints
from dragoman.client.card_cache import FetchedCard
from dragoman.client.cards import GRPC
from dragoman.errors import ClientError, ConnectionLostError, DragomanError
from dragoman.http.client import HttpClient, resolve
from dragoman.model import AgentCard, AgentInterface

_TIMEOUT = 10.0
_MAX_BYTES = 1024 * 1024


async def read_headers(fetched: FetchedCard, http: HttpClient, headers: Mapping[str, str]) -> Mapping[str, str] | None:
    """The headers that a card is served with, None for a file or when it cannot be had again."""
    if not fetched.url:
        return None
    with contextlib.suppress(DragomanError):
        answer = await http.fetch("GET", fetched.url, headers=headers, timeout=_TIMEOUT, max_bytes=_MAX_BYTES)
        return answer.headers
    return None


async def look(card: AgentCard, http: HttpClient) -> list[Finding]:
    """Findings about interfaces that do not answer, and hosts for tokens that do not exist."""
    looks = [
        *(
            _interface(f"supportedInterfaces[{n}].url", entry, http)
            for n, entry in enumerate(card.supported_interfaces)
        ),
        *(_endpoint(path, url) for path, url in endpoints(card)),
    ]
    return [finding for finding in await asyncio.gather(*looks) if finding is not None]


async def _interface(path: str, interface: AgentInterface, http: HttpClient) -> Finding | None:
    try:
        if interface.protocol_binding == GRPC:
            await _reach_grpc(interface.url)
        elif urlsplit(interface.url).scheme in ("http", "https"):
            await (await http.open("GET", interface.url, timeout=_TIMEOUT)).aclose()
    except ConnectionLostError:
        return None  # somebody is there, and does not like the verb
    except (ClientError, OSError) as error:
        return Finding(rule="unreachable", path=path, text=f"{path} does not answer: {error or 'not in time'}")
    return None


async def _reach_grpc(url: str) -> None:
    address = parse_address(url)
    async with asyncio.timeout(_TIMEOUT):
        _, writer = await asyncio.open_connection(address.host, address.port or 443)
    writer.close()


async def _endpoint(path: str, url: str) -> Finding | None:
    parts = urlsplit(url)
    try:
        await resolve(parts.hostname or "", parts.port or 443)
    except (OSError, UnicodeError):
        return Finding(rule="unresolved-endpoint", path=path, text=f"{path} names {parts.hostname}, which is nowhere")
    return None
