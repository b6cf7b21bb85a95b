"""Read ProtoJSON.

Theory. The fast path is msgspec with one decoder for each type. It is strict: it takes what `encode_json` writes
and what well-behaved peers write. What it refuses, for whatever reason, goes to the lenient path, which takes every
spelling of ProtoJSON, or finds the one error that the peer is told. So the fast path decides nothing but speed, with
one exception: it does not see a key that occurs twice in one object (the last one wins).

Spec: §5.5, §5.7, DATA-05, DATA-06, AMB-46.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar, cast

import msgspec

from dragoman.errors import FieldViolation, InvalidParamsError, JSONParseError
from dragoman.model.lenient import read_message
from dragoman.model.open_message import OpenMessage
from dragoman.model.scalars import MOST_FINDINGS, Fault, RepeatedKeys, read_struct
from dragoman.model.timestamp import Timestamp
from dragoman.model.wire import WireMessage

M = TypeVar("M", bound=WireMessage)

JSONText = bytes | bytearray | memoryview | msgspec.Raw

_PATH_LENGTH = 200
_DECODERS: dict[type[WireMessage], msgspec.json.Decoder[Any]] = {}


def decode_json(kind: type[M], data: JSONText, *, lenient_required: bool = False) -> M:
    """Read a message of type ``kind`` from JSON text in UTF-8.

    With ``lenient_required``, for answers of peers, a REQUIRED member that is missing gets its default in the
    proto instead of being an error, and a timestamp without a zone is in UTC.

    Raises JSONParseError when the text is not JSON (or nested beyond the interpreter's limit), InvalidParamsError
    when it is not such a message; its violations name the fields (``message.parts[0].text``; the empty path is the
    whole value). Arrays that must not be empty, ids and the like are not checked here.

    Spec: DATA-05, DATA-06, DATA-13, AMB-43, AMB-46.
    """
    if kind is OpenMessage:
        return decode_value(kind, _parse(data))
    try:
        return decoder_for(kind).decode(data)
    except (msgspec.DecodeError, RecursionError):
        return decode_value(kind, _parse(data), lenient_required=lenient_required)


def decode_value(kind: type[M], value: Any, *, lenient_required: bool = False) -> M:
    """Read a message of type ``kind`` from a JSON value that is already parsed; else like `decode_json`.

    Raises InvalidParamsError. The message may share ``data`` and ``metadata`` with ``value``.
    """
    try:
        if kind is OpenMessage:
            return cast(M, OpenMessage.of(read_struct(value)))
        return read_message(kind, value, lenient_required)
    except Fault as fault:
        found = fault.findings[:MOST_FINDINGS]
    except RecursionError:
        found = [("", "is nested too deeply")]
    raise InvalidParamsError(violations=[FieldViolation(_shortened(path), text) for path, text in found])


def _shortened(path: str) -> str:
    return path if len(path) <= _PATH_LENGTH else f"{path[:_PATH_LENGTH]}…"


def decoder_for(kind: type[M]) -> msgspec.json.Decoder[M]:
    """The strict decoder of a type, made once; for those who do their own fallback. It raises msgspec's errors."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind, dec_hook=_decode_foreign)
    return decoder


def _decode_foreign(kind: type, value: Any) -> Any:
    """Timestamp is the one type of a field that msgspec does not know."""
    return Timestamp.parse(value)


def _parse(data: JSONText) -> Any:
    """Parse JSON text; an object with a key that occurs twice becomes RepeatedKeys."""
    try:
        return _PARSER.decode(str(data, "utf-8"))
    except (ValueError, RecursionError):  # bad UTF-8 and numbers of thousands of digits are ValueErrors, too
        raise JSONParseError from None


def _pair_up(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else RepeatedKeys(pairs)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


_PARSER = json.JSONDecoder(object_pairs_hook=_pair_up, parse_constant=_refuse_constant)
