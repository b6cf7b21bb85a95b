"""Messages as bytes of protobuf, both directions.

Spec: GRPC-02, GRPC-03, DATA-02, DATA-12, DATA-13, DATA-16, AMB-43.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from dragoman.bindings.grpc.converters import READERS, WRITERS
from dragoman.bindings.grpc.schema import PACKAGE, DecodeError, EncodeError, message_class
from dragoman.errors import FieldViolation, InvalidParamsError
from dragoman.model import FIELDS, Empty, EncodingError, Operation, WireMessage

M = TypeVar("M", bound=WireMessage)


def _class_of(kind: type[WireMessage]) -> Any:
    return message_class(f"{'google.protobuf' if kind is Empty else PACKAGE}.{kind.__name__}")


_CLASSES: dict[type[msgspec.Struct], Any] = {kind: _class_of(kind) for kind in FIELDS}
_WRITERS: dict[type[msgspec.Struct], Any] = dict(WRITERS.items())

#: REQUIRED messages of each type. Other REQUIRED fields cannot be told from empty ones, and are checked as such.
_REQUIRED = {
    kind: tuple(f for f in fields if f.required and f.message and f.presence) for kind, fields in FIELDS.items()
}


def encode_message(message: msgspec.Struct) -> bytes:
    """The message in protobuf.

    Raises EncodingError when it holds what protobuf cannot carry: text with a lone surrogate, a value of a foreign type
    in ``data`` or ``metadata``, an integer beyond the doubles there, nesting beyond what a reader takes.
    """
    kind = type(message)
    m = _CLASSES[kind]()
    try:
        _WRITERS[kind](message, m)
        data: bytes = m.SerializeToString()
    except UnicodeEncodeError:
        raise EncodingError("a text holds a lone surrogate, which is no Unicode character") from None
    except (RecursionError, EncodeError):
        raise EncodingError("the message is nested too deeply") from None
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise EncodingError("a value has no form in protobuf") from error
    return data


def decode_message(kind: type[M], data: bytes) -> M:
    """Read a message of type ``kind``. REQUIRED fields that are missing get their defaults in the proto.

    Raises InvalidParamsError when the bytes are no such message, or hold a value that the type does not allow.
    """
    return _read(kind, _parse(kind, data))


def decode_request(op: Operation, data: bytes) -> WireMessage:
    """Read the request of an operation. Raises InvalidParamsError also for a REQUIRED message that is not there."""
    kind = op.request
    m = _parse(kind, data)
    missing = [field for field in _REQUIRED[kind] if not m.HasField(field.name)]
    if missing:
        raise InvalidParamsError(violations=[FieldViolation(field.json_name, "is required") for field in missing])
    return _read(kind, m)


def _parse(kind: type[WireMessage], data: bytes) -> Any:
    try:
        return _CLASSES[kind].FromString(data)
    except (DecodeError, RecursionError):
        raise _no_such_message(kind, "is no message of the type") from None


def _read(kind: type[M], m: Any) -> M:
    try:
        message: M = READERS[kind](m)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise _no_such_message(kind, "holds a number or a timestamp that is out of range for") from None
    return message


def _no_such_message(kind: type[WireMessage], what: str) -> InvalidParamsError:
    return InvalidParamsError(violations=[FieldViolation("", f"{what} {PACKAGE}.{kind.__name__}")])
