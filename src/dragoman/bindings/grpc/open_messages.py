"""Open messages as ``google.protobuf.Struct``, both directions.

Spec: EXT-11, EXT-13.
"""

from __future__ import annotations

from dragoman.bindings.grpc.schema import DecodeError, EncodeError, message_class
from dragoman.bindings.grpc.values import read_struct, write_struct
from dragoman.errors import FieldViolation, InvalidParamsError
from dragoman.model import EncodingError, OpenMessage

METHODS_SERVICE = "dragoman.extensions.v1.Methods"
"""The service that has the methods of extensions."""

_STRUCT = message_class("google.protobuf.Struct")


def encode_open(message: OpenMessage) -> bytes:
    """The object in protobuf. Raises EncodingError."""
    m = _STRUCT()
    try:
        write_struct(message.data(), m)
        data: bytes = m.SerializeToString()
    except (RecursionError, EncodeError):
        raise EncodingError("the message is nested too deeply") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise EncodingError("a value has no form in protobuf") from error
    return data


def decode_open(data: bytes) -> OpenMessage:
    """Read an object. Raises InvalidParamsError."""
    try:
        return OpenMessage.of(read_struct(_STRUCT.FromString(data)))
    except (DecodeError, ValueError, RecursionError):
        raise InvalidParamsError(violations=[FieldViolation("", "is no google.protobuf.Struct")]) from None
