"""Service parameters in gRPC metadata, both directions.

Spec: §10.2, PARAM-01, PARAM-03, PARAM-06 to PARAM-08, GRPC-05, EXT-02, EXT-09, AMB-22, AMB-25, AMB-98, B039.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.errors import ConfigurationError
from dragoman.http.asgi import Texts
from dragoman.ports.operations import CURRENT_VERSION, CallContext, Caller

Pairs = Iterable[tuple[str, str | bytes]]

VERSION = "a2a-version"
EXTENSIONS = "a2a-extensions"
LAST_EVENT_ID = "last-event-id"

OLD_EXTENSIONS = "x-a2a-extensions"
"""What peers of 0.3 call it."""

_OWN = (VERSION, EXTENSIONS, OLD_EXTENSIONS, LAST_EVENT_ID)

# Headers of HTTP that are the transport's own business, or say what a gRPC message says by itself.
_NOT_METADATA = frozenset(
    (
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "keep-alive",
        "te",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    )
)
_KEY_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")


# The server's side.


class Parameters(Texts):
    """Metadata that is text. Keys are in lower case, as gRPC has them."""

    __slots__ = ("_metadata",)

    def __init__(self, pairs: Pairs) -> None:
        super().__init__()
        self._metadata = pairs

    def _pairs(self) -> Iterable[tuple[str, str]]:
        return ((key, value) for key, value in self._metadata if isinstance(value, str))


def read_context(pairs: Pairs, caller: Caller, timeout: float | None) -> CallContext:
    """The context of a call, from what came with it. Of repeated entries the last counts, of extensions all."""
    version, extensions, last_event_id = "", "", ""
    for key, value in pairs:
        if not isinstance(value, str):
            continue
        if key == VERSION:
            version = value
        elif key in (EXTENSIONS, OLD_EXTENSIONS):
            extensions += f",{value}"
        elif key == LAST_EVENT_ID:
            last_event_id = value
    return CallContext(
        version=_last(version) if version != CURRENT_VERSION else version,
        extensions=split_uris(extensions) if extensions else (),
        caller=caller,
        parameters=Parameters(pairs),
        last_event_id=_number(last_event_id) if last_event_id else None,
        timeout=timeout,
    )


def _last(text: str) -> str:
    """Of several values in one entry, the last."""
    return text.rpartition(",")[2].strip()


def split_uris(text: str) -> tuple[str, ...]:
    """The URIs in a list with commas, in order, each once."""
    return tuple(dict.fromkeys(uri.strip() for uri in text.split(",") if uri.strip()))


def _number(text: str) -> int | None:
    """A plain number of at most 18 digits; anything else is no event number of ours."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def head_of(context: CallContext) -> tuple[tuple[str, str], ...]:
    """The initial metadata of an answer: the version spoken, and the extensions that are active (Spec: EXT-09,
    AMB-25)."""
    if not context.activated:
        return _PLAIN_HEAD
    return (*_PLAIN_HEAD, (EXTENSIONS, ", ".join(context.activated)))


_PLAIN_HEAD = ((VERSION, CURRENT_VERSION),)


# The client's side.


def encode_context(context: CallContext, *, extensions_key: str = EXTENSIONS) -> tuple[tuple[str, str | bytes], ...]:
    """The metadata of a call; ``extensions_key`` is where the extensions go.

    Headers that only HTTP has are left out. Raises ConfigurationError for one that metadata cannot carry.
    """
    found: list[tuple[str, str | bytes]] = [(VERSION, context.version)]
    if context.extensions:
        found.append((extensions_key, _value(extensions_key, ", ".join(context.extensions))))
    if context.last_event_id is not None:
        found.append((LAST_EVENT_ID, str(context.last_event_id)))
    for name, value in context.parameters.items():
        key = name.lower()
        if key not in _OWN and key not in _NOT_METADATA:
            found.append((_key(key), value.encode() if key.endswith("-bin") else _value(key, value)))
    return tuple(found)


def _key(key: str) -> str:
    if not key or not _KEY_LETTERS.issuperset(key) or key.startswith("grpc-"):
        raise ConfigurationError(f"gRPC metadata cannot have the key {key[:40]!r}")
    return key


def _value(key: str, value: str) -> str:
    value = value.strip()
    if not (value.isascii() and value.isprintable()):
        raise ConfigurationError(f"gRPC metadata cannot carry the value of {key}: only printable ASCII")
    return value


def read_activated(head: Any) -> tuple[str, ...]:
    """The extensions that an answer's metadata says are active."""
    values = [value for key, value in head or () if key in (EXTENSIONS, OLD_EXTENSIONS) and isinstance(value, str)]
    return split_uris(",".join(values)) if values else ()


def has_version(head: Any) -> bool:
    """Whether initial metadata names the version spoken: our servers do so as soon as a stream is open."""
    return any(key == VERSION for key, _ in head or ())
