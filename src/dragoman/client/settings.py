"""Settings of a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

import msgspec

from dragoman.client.content import SendOptions
from dragoman.client.reconnect import Reconnect
from dragoman.client.running import Poll
from dragoman.extensions import ClientExtension
from dragoman.ports.clock import Clock, SystemClock
from dragoman.ports.operations import Operations

Interceptor = Callable[[Operations], Operations]
"""Wraps the Operations of a client: sees every call, and may change, answer or refuse it."""


class CallOptions(TypedDict, total=False):
    """Keyword arguments that every call takes.

    * ``timeout``: seconds, None for no limit; default that of the client. For a unary call the whole call, for a
      stream the time until it is open, for ``run`` and ``wait`` all they do;
    * ``headers``: sent with this call only, over those of the client;
    * ``extensions``: URIs to ask for, besides those of the client (Spec: EXT-02).
    """

    timeout: float | None
    headers: Mapping[str, str]
    extensions: Sequence[str]


class MessageOptions(SendOptions, CallOptions, total=False):
    """Keyword arguments of a call with a message: those of SendOptions and of CallOptions."""


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a client behaves.

    * ``timeout``: seconds for a unary call, default 60; a ``send`` that waits for the task, ``run`` and ``wait``
      have no limit unless the call names one; a stream is open within ``idle_timeout``, or the ``timeout`` the call
      names;
    * ``headers``, ``extensions``: sent with every call; ``extension_code``: what sees the calls of some of these;
    * ``reconnect``, ``poll``: how cut streams and tasks without streams are followed;
    * ``check_capabilities``: whether calls that the card does not offer are refused here (Spec: CARD-13);
    * ``clock``: where message ids come from.
    """

    timeout: float | None = 60.0
    idle_timeout: float | None = 300.0
    headers: Mapping[str, str] = {}
    extensions: tuple[str, ...] = ()
    extension_code: tuple[ClientExtension, ...] = ()
    reconnect: Reconnect = Reconnect()
    poll: Poll = Poll()
    check_capabilities: bool = True
    clock: Clock = SystemClock()


class ServiceParameters(msgspec.Struct, frozen=True):
    """What goes beside a call: headers with names in lower case, and the extensions asked for, each once."""

    headers: Mapping[str, str]
    extensions: tuple[str, ...]


def merge_parameters(settings: ClientSettings, options: CallOptions, more: Sequence[str] = ()) -> ServiceParameters:
    """Client, call and ``more`` extensions together, those in ``A2A-Extensions`` headers included. Changes no input.

    Spec: PARAM-01, PARAM-07, EXT-02, B159.
    """
    headers: dict[str, str] = {}
    extensions: list[str] = []
    for source, named in (
        (settings.headers, settings.extensions),
        (options.get("headers", {}), options.get("extensions", ())),
    ):
        lower = {name.lower(): value for name, value in source.items()}
        written = f"{lower.pop('a2a-extensions', '')},{lower.pop('x-a2a-extensions', '')}"
        extensions += [*named, *(uri.strip() for uri in written.split(",") if uri.strip())]
        lower.pop("a2a-version", None)
        headers.update(lower)
    return ServiceParameters(headers, tuple(dict.fromkeys([*extensions, *more])))
