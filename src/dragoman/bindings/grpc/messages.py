"""Messages as bytes of protobuf, both directions.

Spec: GRPC-02, GRPC-03, DATA-02, DATA-12, DATA-13, DATA-16, AMB-43.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from dragoman.bindings.grpc.converters import READERS, WRITERS
from dragoman.bindings.grpc.schema import PACKAGE, DecodeError, EncodeError, message_class
from dragoman.errors import FieldViolation, InvalidParamsError
from dragoman.model import FIELDS, Empty, EncodingError, Field, Operation, WireMessage

M = TypeVar("M", bound=WireMessage)

Change = Callable[[Any], None]
"""Something that changes a protobuf message."""


class Messages:
    """The messages of one package.

    * ``package``: its name; ``fields``: facts of all its types; ``writers``, ``readers``: their converters;
    * ``written``: changes a message before it is serialized; ``parsed``: one after it was parsed.
    """

    def __init__(
        self,
        package: str,
        fields: Mapping[type[WireMessage], tuple[Field, ...]],
        writers: Mapping[type[WireMessage], Callable[[Any, Any], None]],
        readers: Mapping[type[WireMessage], Callable[[Any], Any]],
        *,
        written: Change | None = None,
        parsed: Change | None = None,
    ) -> None:
        self._package = package
        self._writers: dict[type[msgspec.Struct], Any] = dict(writers.items())
        self._readers = readers
        self._classes: dict[type[msgspec.Struct], Any] = {kind: self._class_of(kind) for kind in fields}
        # Other REQUIRED fields than messages cannot be told from empty ones, and are checked as such.
        self._required = {
            kind: tuple(f for f in known if f.required and f.message and f.presence) for kind, known in fields.items()
        }
        self._written = written
        self._parsed = parsed

    def encode(self, message: msgspec.Struct) -> bytes:
        """The message in protobuf.

        Raises EncodingError when it holds what protobuf cannot carry: text with a lone surrogate, a value of a foreign
        type in ``data`` or ``metadata``, an integer beyond the doubles there, nesting beyond what a reader takes.
        """
        kind = type(message)
        m = self._classes[kind]()
        try:
            self._writers[kind](message, m)
            if self._written is not None:
                self._written(m)
            data: bytes = m.SerializeToString()
        except UnicodeEncodeError:
            raise EncodingError("a text holds a lone surrogate, which is no Unicode character") from None
        except (RecursionError, EncodeError):
            raise EncodingError("the message is nested too deeply") from None
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise EncodingError("a value has no form in protobuf") from error
        return data

    def decode(self, kind: type[M], data: bytes) -> M:
        """Read a message of type ``kind``. REQUIRED fields that are missing get their defaults in the proto.

        Raises InvalidParamsError when the bytes are no such message, or hold a value that the type does not allow.
        """
        return self._read(kind, self._parse(kind, data))

    def decode_whole(self, kind: type[M], data: bytes) -> M:
        """Like :meth:`decode`, but raises InvalidParamsError also for a REQUIRED message that is not there."""
        m = self._parse(kind, data)
        missing = [field for field in self._required[kind] if not m.HasField(field.name)]
        if missing:
            raise InvalidParamsError(violations=[FieldViolation(field.json_name, "is required") for field in missing])
        return self._read(kind, m)

    def _class_of(self, kind: type[WireMessage]) -> Any:
        return message_class(f"{'google.protobuf' if kind is Empty else self._package}.{kind.__name__}")

    def _parse(self, kind: type[WireMessage], data: bytes) -> Any:
        try:
            m = self._classes[kind].FromString(data)
        except (DecodeError, RecursionError):
            raise self._no_such_message(kind, "is no message of the type") from None
        if self._parsed is not None:
            self._parsed(m)
        return m

    def _read(self, kind: type[M], m: Any) -> M:
        try:
            message: M = self._readers[kind](m)
        except (TypeError, ValueError, OverflowError, RecursionError):
            raise self._no_such_message(kind, "holds a number or a timestamp that is out of range for") from None
        return message

    def _no_such_message(self, kind: type[WireMessage], what: str) -> InvalidParamsError:
        return InvalidParamsError(violations=[FieldViolation("", f"{what} {self._package}.{kind.__name__}")])


_CURRENT = Messages(PACKAGE, FIELDS, WRITERS, READERS)

encode_message = _CURRENT.encode
decode_message = _CURRENT.decode


def decode_request(op: Operation, data: bytes) -> WireMessage:
    """Read the request of an operation. Raises InvalidParamsError also for a REQUIRED message that is not there."""
    return _CURRENT.decode_whole(op.request, data)
