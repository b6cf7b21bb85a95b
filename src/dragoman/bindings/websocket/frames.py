"""The messages of the WebSocket binding: text in JSON, and back. Pure, for both sides.

Every message is an object with a ``type``. Requests, results and events are spliced in as they were encoded, and are
left as bytes when a message is read. Members that are not known are ignored.

Spec: BIND-04 to BIND-07; ``docs/websocket.md`` is the text to this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw

from dragoman.bindings.status import encode_status
from dragoman.errors import A2AError, FieldViolation, InvalidRequestError, JSONParseError
from dragoman.ports.operations import Event

SUBPROTOCOL = "a2a-dragoman.v1"
MOST_SAFE = 2**53 - 1
"""The largest whole number that every JSON reader keeps."""

CallId = Annotated[int, Meta(ge=0, le=MOST_SAFE)]
Credit = Annotated[int, Meta(ge=0, le=MOST_SAFE)]

_NOTHING = Raw(b"{}")
_NO_PARAMETERS: Mapping[str, str] = {}


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """Is anybody there? Answered with a Pong of the same ``data``. Both sides."""

    data: str = ""


class Pong(msgspec.Struct, frozen=True, tag="pong"):
    """The answer to a Ping. Both sides."""

    data: str = ""


# What a client sends.


class CallFrame(msgspec.Struct, frozen=True, tag="call"):
    """A call begins. ``credit``: bytes of events that the client takes at first, for streaming operations."""

    id: CallId
    operation: str
    request: Raw = _NOTHING
    parameters: Mapping[str, str] = _NO_PARAMETERS
    credit: Credit = 0


class CreditFrame(msgspec.Struct, frozen=True, tag="credit"):
    """The client takes so many more bytes of events on this stream."""

    id: CallId
    credit: Credit


class CancelFrame(msgspec.Struct, frozen=True, tag="cancel"):
    """The client does not want the answer any more."""

    id: CallId


# What a server sends.


class ResultFrame(msgspec.Struct, frozen=True, tag="result"):
    """The answer to a unary call, and its end."""

    id: int
    result: Raw
    parameters: Mapping[str, Any] = _NO_PARAMETERS


class OpenFrame(msgspec.Struct, frozen=True, tag="open"):
    """A stream is open: from here on an error is one of the stream."""

    id: int
    parameters: Mapping[str, Any] = _NO_PARAMETERS


class NumberedEvent(msgspec.Struct, frozen=True):
    """A StreamResponse and its number in the task's log, None for one that has none."""

    event: Raw
    number: int | None = None


class EventsFrame(msgspec.Struct, frozen=True, tag="events"):
    """The next events of a stream, in order."""

    id: int
    events: Sequence[NumberedEvent]


class EndFrame(msgspec.Struct, frozen=True, tag="end"):
    """A stream or a cancelled call is over."""

    id: int


class ErrorFrame(msgspec.Struct, frozen=True, tag="error"):
    """A call failed, and is over; without ``id``: a message could not be understood."""

    error: Any
    id: int | None = None


class DrainFrame(msgspec.Struct, frozen=True, tag="drain"):
    """The server closes this socket soon: new calls go over a new one."""


ClientFrame = CallFrame | CreditFrame | CancelFrame | Ping | Pong
ServerFrame = ResultFrame | OpenFrame | EventsFrame | EndFrame | ErrorFrame | DrainFrame | Ping | Pong

_CLIENT_FRAMES: msgspec.json.Decoder[ClientFrame] = msgspec.json.Decoder(ClientFrame)
_SERVER_FRAMES: msgspec.json.Decoder[ServerFrame] = msgspec.json.Decoder(ServerFrame)
_ENCODER = msgspec.json.Encoder()


class _Loose(msgspec.Struct, frozen=True):
    type: Any = UNSET
    id: Any = UNSET


_LOOSE = msgspec.json.Decoder(_Loose)


class BadFrameError(Exception):
    """A message that cannot be understood: the ``error`` to answer, and the ``id`` of its call where it can be
    read."""

    def __init__(self, error: A2AError, call_id: int | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.call_id = call_id


# Reading.


def decode_client_frame(text: str | bytes) -> ClientFrame:
    """A message of a client. Raises BadFrameError."""
    try:
        return _CLIENT_FRAMES.decode(text)
    except RecursionError:
        raise BadFrameError(InvalidRequestError("The message is nested too deeply")) from None
    except msgspec.ValidationError as error:
        raise _explain(text, str(error)) from None
    except msgspec.DecodeError:
        raise BadFrameError(JSONParseError()) from None


def decode_server_frame(data: bytes) -> ServerFrame | None:
    """A message of a server; None for one of a type that is not known here. Raises BadFrameError."""
    try:
        return _SERVER_FRAMES.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        found = _read_loosely(data)
        if found is not None and isinstance(found.type, str) and found.type not in _SERVER_TYPES:
            return None
        raise _explain(data, str(error)) from None


_SERVER_TYPES = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (ResultFrame, OpenFrame, EventsFrame, EndFrame, ErrorFrame, DrainFrame, Ping, Pong)
)


def _explain(text: str | bytes, why: str) -> BadFrameError:
    found = _read_loosely(text)
    error = InvalidRequestError(violations=[FieldViolation("message", why)])
    call_id = found.id if found is not None else None
    if isinstance(call_id, int) and not isinstance(call_id, bool) and 0 <= call_id <= MOST_SAFE:
        return BadFrameError(error, call_id)
    return BadFrameError(error)


def _read_loosely(text: str | bytes) -> _Loose | None:
    try:
        return _LOOSE.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


# Writing.


def encode_call(
    call_id: int, operation: str, request: bytes, parameters: Mapping[str, str], credit: int | None
) -> bytes:
    """A call. ``request`` is JSON; ``credit`` None leaves it out."""
    more = b',"credit":%d' % credit if credit is not None else b""
    return b'{"type":"call","id":%d,"operation":"%b"%b%b,"request":%b}' % (
        call_id,
        operation.encode(),
        more,
        _parameters(parameters),
        request,
    )


def encode_frame(frame: ClientFrame | ServerFrame) -> bytes:
    """A message that holds nothing encoded before."""
    return _ENCODER.encode(frame)


def encode_result(call_id: int, result: bytes, parameters: Mapping[str, str]) -> bytes:
    """The answer to a unary call."""
    return b'{"type":"result","id":%d%b,"result":%b}' % (call_id, _parameters(parameters), result)


def encode_open(call_id: int, parameters: Mapping[str, str]) -> bytes:
    """A stream is open."""
    return b'{"type":"open","id":%d%b}' % (call_id, _parameters(parameters))


def encode_event(event: Event) -> bytes:
    """One item of an ``events`` message."""
    if event.number is None:
        return b'{"event":%b}' % event.json
    return b'{"number":%d,"event":%b}' % (event.number, event.json)


def encode_events(call_id: int, events: Sequence[bytes]) -> bytes:
    """Events, each encoded by :func:`encode_event`."""
    return b'{"type":"events","id":%d,"events":[%b]}' % (call_id, b",".join(events))


def encode_end(call_id: int) -> bytes:
    """A stream or a cancelled call is over."""
    return b'{"type":"end","id":%d}' % call_id


def encode_error(call_id: int | None, error: A2AError) -> bytes:
    """A call failed: the status object of HTTP+JSON. Spec: BIND-06, ERR-19."""
    head = b'{"type":"error"' if call_id is None else b'{"type":"error","id":%d' % call_id
    return b"%b,%b" % (head, encode_status(error)[1:])


def _parameters(parameters: Mapping[str, str]) -> bytes:
    return b',"parameters":%b' % _ENCODER.encode(dict(parameters)) if parameters else b""


def extensions_of(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """The URIs in ``a2a-extensions``, in order, each once. Spec: EXT-02, PARAM-07."""
    text = parameters.get("a2a-extensions", "")
    if not isinstance(text, str) or not text:
        return ()
    return tuple(dict.fromkeys(uri for part in text.split(",") if (uri := part.strip())))
