"""What names an agent, and the card that comes of it.

Spec: §8.2, CARD-03, AMB-71, AMB-74, B127, B137.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dragoman.auth.credentials import Held
from dragoman.bindings.grpc.settings import GrpcClientSettings
from dragoman.card import SignaturePolicy
from dragoman.client.card_cache import CardCache, FetchedCard
from dragoman.client.cards import BINDINGS, VERSIONS, card_from_value
from dragoman.client.dialects import V03Settings
from dragoman.client.discovery import CardFetcher, as_file, read_card_file
from dragoman.client.repeating import Repeater
from dragoman.errors import OutboundUrlError
from dragoman.http.authentication import Authenticator
from dragoman.http.client import CONNECT_TIMEOUT, MAX_ANSWER_BYTES, HttpClient, HttpxClient
from dragoman.model import AgentCapabilities, AgentCard, AgentInterface, encode_json
from dragoman.ports.binding import Binding
from dragoman.ports.operations import HasLocalAgent, LocalAgent

Target = str | os.PathLike[str] | Mapping[str, Any] | AgentCard | AgentInterface | HasLocalAgent | LocalAgent
"""What names an agent."""


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a connection uses HTTP and gRPC. See :func:`connect`."""

    client: HttpxClient | None = None
    bindings: Sequence[str] = BINDINGS
    versions: Sequence[str] = VERSIONS
    fallback: bool = False
    v03: V03Settings = V03Settings()
    interface: AgentInterface | None = None
    card_headers: Mapping[str, str] = {}
    cache: CardCache | None = None
    connect_timeout: float = CONNECT_TIMEOUT
    allow_private: bool = True
    subscribe_verb: str | None = None
    tenant_in_path: bool = True
    grpc: GrpcClientSettings = GrpcClientSettings()
    custom: Mapping[str, Binding] = {}
    authenticator: Authenticator | None = None
    repeater: Repeater | None = None
    signatures: SignaturePolicy | None = None
    max_answer_bytes: int = MAX_ANSWER_BYTES
    credentials: tuple[Held, ...] = ()
    trusted: Sequence[str] = ()


def as_local(target: Target) -> LocalAgent | None:
    """The local agent that a target is or has, None for one that is elsewhere. TypeError for what names no agent."""
    if isinstance(target, HasLocalAgent):
        return target.local_agent()
    if isinstance(target, str | os.PathLike | Mapping | msgspec.Struct):
        return None
    # By the class, since asking the object itself would run its properties before it is started.
    if not (hasattr(type(target), "start") and hasattr(type(target), "operations")):
        raise TypeError(f"{type(target).__name__} names no agent: give an address, a file, a card or an agent")
    return target


async def read_target(target: Target, http: HttpClient, settings: HttpSettings) -> FetchedCard:
    """The card of a target that is not in this process. Raises what :func:`fetch_card` raises."""
    if isinstance(target, AgentInterface):
        return _ready(_card_of_interface(target))
    if isinstance(target, AgentCard):
        return _ready(target, encode_json(target))
    if isinstance(target, Mapping):
        text = msgspec.json.encode(dict(target)) if target.get("signatures") else b"{}"
        return _ready(card_from_value(dict(target), "the card given"), text)
    assert isinstance(target, str | os.PathLike)
    return await _find_card(target, http, settings)


async def _find_card(target: str | os.PathLike[str], http: HttpClient, settings: HttpSettings) -> FetchedCard:
    file = as_file(target) if isinstance(target, str) else Path(target)
    if file is None:
        fetcher = CardFetcher(http, headers=settings.card_headers, cache=settings.cache)
        return await fetcher.find(str(target))
    if not settings.allow_private:
        raise OutboundUrlError("A file is no target when only public addresses are allowed")
    return await read_card_file(file)


async def fetch_card(
    target: str | os.PathLike[str],
    *,
    headers: Mapping[str, str] | None = None,
    http: HttpxClient | None = None,
    cache: CardCache | None = None,
    connect_timeout: float = CONNECT_TIMEOUT,
    allow_private: bool = True,
) -> FetchedCard:
    """Find and read a card without connecting to the agent. Arguments and errors are those of :func:`connect`."""
    settings = HttpSettings(card_headers=dict(headers or {}), cache=cache, allow_private=allow_private)
    client = HttpClient(http, connect_timeout=connect_timeout, allow_private=allow_private)
    try:
        return await _find_card(target, client, settings)
    finally:
        await client.aclose()


def _ready(card: AgentCard, json: bytes = b"{}") -> FetchedCard:
    return FetchedCard(card=card, url="", json=json)


def _card_of_interface(interface: AgentInterface) -> AgentCard:
    return AgentCard(
        name="",
        description="",
        supported_interfaces=[interface],
        version="",
        capabilities=AgentCapabilities(),
        default_input_modes=[],
        default_output_modes=[],
        skills=[],
    )
