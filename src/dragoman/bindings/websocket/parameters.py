"""Service parameters of the WebSocket binding: those of the handshake, and those of one message on top. Pure.

Spec: BIND-05, PARAM-01, PARAM-03, PARAM-07, EXT-02, SEC-09.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from dragoman.bindings.websocket.frames import extensions_of
from dragoman.errors import FieldViolation, InvalidParamsError
from dragoman.http.asgi import Header, Headers
from dragoman.ports.operations import CallContext, Caller

CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
"""Names whose values belong to the handshake, where they are checked."""

_OF_THE_HANDSHAKE = frozenset({"connection", "upgrade", "host", "origin"})


class Parameters(Mapping[str, str]):
    """Parameters of one call. The ``repr`` shows names only: values may be secrets (Spec: SEC-09)."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Parameters({', '.join(self._values)})"


def read_handshake(headers: Iterable[Header]) -> Parameters:
    """The parameters that hold for the whole socket; what belongs to the handshake itself is left out."""
    found = Headers([(name, value) for name, value in headers if not _is_of_the_handshake(name)])
    return Parameters(dict(found))


def _is_of_the_handshake(name: bytes) -> bool:
    text = name.decode("latin-1").lower()
    return text in _OF_THE_HANDSHAKE or text.startswith("sec-websocket-")


def read_context(
    socket: Parameters, message: Mapping[str, str], caller: Caller, reserved: Container[str] = ()
) -> CallContext:
    """The context of a call; ``reserved`` are further names of credentials. Raises InvalidParamsError for a parameter
    that no message may carry."""
    parameters = socket
    if message:
        own = {name.lower(): value for name, value in message.items()}
        _refuse_reserved(own, reserved)
        parameters = Parameters({**socket, **own})
    return CallContext(
        version=parameters.get("a2a-version", "").strip(),
        extensions=extensions_of(parameters),
        caller=caller,
        parameters=parameters,
        last_event_id=_number(parameters.get("last-event-id", "")),
    )


def belongs_to_handshake(name: str) -> bool:
    """Whether a name (in lower case) has its place in the handshake alone."""
    return name in CREDENTIALS or name in _OF_THE_HANDSHAKE or name.startswith("sec-")


def _refuse_reserved(names: Iterable[str], reserved: Container[str]) -> None:
    found = [name for name in names if belongs_to_handshake(name) or name in reserved]
    if found:
        why = "belongs to the handshake of the socket, not to a message"
        raise InvalidParamsError(violations=[FieldViolation(f"parameters.{name}", why) for name in sorted(found)])


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
