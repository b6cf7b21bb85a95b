"""The forms of a card that signatures are made over. Pure: they work on the card as JSON, by the facts of its fields.

The form of the specification keeps what is REQUIRED or explicitly set and drops other defaults. Signers are known that
drop every empty value, or nothing at all; whoever verifies may try these forms as well, and then uses nothing but what
the form that was signed contains.

Spec: §5.7, §8.4.1, SIGN-02 to SIGN-09, AMB-81 to AMB-84.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from dragoman.model import AgentCard
from dragoman.model.field import Field
from dragoman.model.fields import FIELDS
from dragoman.model.wire import WireMessage

Json = dict[str, Any]
Form = Literal["specification", "specification, known members", "emptied", "emptied, known members", "as received"]

MAX_DEPTH = 64
_MOST_EXACT = 2**53 - 1
_BY_NAME: dict[type[WireMessage], dict[str, Field]] = {}


class UnreadableCardError(ValueError):
    """A text is no JSON object that can be read in one way only."""


def parse_card(text: bytes) -> Json:
    """A card as JSON, with every member that it has.

    Raises UnreadableCardError for what is no JSON object, for members of the same name (of which readers take different
    ones), for numbers that no double holds, and for nesting beyond 64 levels.
    """
    try:
        value = json.loads(text.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=_pairs, parse_constant=_refuse)
        plain = as_doubles(value)
    except (ValueError, RecursionError) as error:
        raise UnreadableCardError(str(error) if isinstance(error, UnreadableCardError) else "it is no JSON") from None
    if not isinstance(plain, dict):
        raise UnreadableCardError("it is no object")
    return plain


def as_doubles(value: Any, depth: int = 0) -> Any:
    """A JSON value with the numbers that ECMAScript would read. Raises UnreadableCardError for what has none.

    Spec: RFC 8785 §3.2.2.3.
    """
    if depth > MAX_DEPTH:
        raise UnreadableCardError("it is nested too deeply")
    if isinstance(value, dict):
        return {name: as_doubles(member, depth + 1) for name, member in value.items()}
    if isinstance(value, list):
        return [as_doubles(item, depth + 1) for item in value]
    if isinstance(value, float | int) and not isinstance(value, bool):
        return _double(value)
    return value


def _double(value: float) -> float:
    try:
        if isinstance(value, int):
            return value if abs(value) <= _MOST_EXACT else float(value)
        if math.isfinite(value):
            return value
    except OverflowError:
        pass
    raise UnreadableCardError("it holds a number that is out of range")


def _pairs(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnreadableCardError("it holds two members of the same name")
    return found


def _refuse(constant: str) -> Any:
    raise UnreadableCardError(f"it holds {constant}, which is no JSON")


def signed_content(card: Json, *, unknown: bool = True) -> Json:
    """The content of a card that is signed, by the rules of the specification. Nothing is added to it.

    ``unknown``: members that this version of the protocol does not know stay as they are, since the signer of a later
    one knew them; False drops them. Spec: SIGN-03 to SIGN-07, SIGN-09, AMB-82, AMB-83.
    """
    content: Json = _message(AgentCard, without_signatures(card), unknown)
    return content


def without_signatures(card: Json) -> Json:
    """A copy without ``signatures``. Spec: SIGN-09."""
    return {name: member for name, member in card.items() if name != "signatures"}


def without_empties(value: Json) -> Json:
    """A copy without null and empty texts, lists and objects, also where that makes others empty. Spec: AMB-81."""
    return _emptied(value) or {}


def forms(card: Json, *, compatible: bool = True) -> Iterator[tuple[Form, Json]]:
    """The forms of a received card that may have been signed, in the order in which they are tried.

    ``compatible=False`` leaves those that the specification does not have. Spec: AMB-81, AMB-83.
    """
    whole, known = signed_content(card), signed_content(card, unknown=False)
    yield "specification", whole
    yield "specification, known members", known
    if compatible:
        yield "emptied", without_empties(whole)
        yield "emptied, known members", without_empties(known)
        yield "as received", without_signatures(card)


def ambiguities(card: Json) -> list[str]:
    """Where readings of the specification differ about a card, as paths: empty REQUIRED values, explicit defaults in
    plain fields, empty objects, null, members that it does not know. A card without any verifies everywhere.

    Spec: AMB-81.
    """
    content = without_signatures(card)
    return sorted({*_paths_that_differ(content, signed_content(content, unknown=False)),
                   *_paths_that_differ(content, without_empties(content))})  # fmt: skip


def _message(kind: type[WireMessage], value: Any, unknown: bool) -> Any:
    if not isinstance(value, dict):
        return value
    fields = _fields(kind)
    found: Json = {}
    for name, member in value.items():
        field = fields.get(name)
        if field is None:
            if unknown:
                found[name] = member
        elif member is not None:
            kept = _member(field, member, unknown)
            if kept or field.required or field.presence:
                found[name] = kept
    return found


def _member(field: Field, value: Any, unknown: bool) -> Any:
    if field.kind != "message" or field.message is None:
        return value
    if field.shape == "list" and isinstance(value, list):
        return [_message(field.message, item, unknown) for item in value]
    if field.shape == "map" and isinstance(value, Mapping):
        return {name: _message(field.message, item, unknown) for name, item in value.items()}
    return _message(field.message, value, unknown) if field.shape == "single" else value


def _fields(kind: type[WireMessage]) -> dict[str, Field]:
    found = _BY_NAME.get(kind)
    if found is None:
        found = _BY_NAME[kind] = {field.json_name: field for field in FIELDS[kind]}
    return found


def _emptied(value: Any) -> Any:
    """The value without what is empty, None when nothing is left."""
    if isinstance(value, dict):
        kept = {name: inner for name, member in value.items() if (inner := _emptied(member)) is not None}
        return kept or None
    if isinstance(value, list):
        return [inner for item in value if (inner := _emptied(item)) is not None] or None
    return None if value == "" else value


def _paths_that_differ(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """The paths of what ``one`` has and ``other`` has not, or has otherwise."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name, member in one.items():
            yield from _paths_that_differ(member, other.get(name), f"{path}/{name}")
    elif isinstance(one, Sequence) and not isinstance(one, str) and isinstance(other, list) and len(one) == len(other):
        for number, (item, there) in enumerate(zip(one, other, strict=True)):
            yield from _paths_that_differ(item, there, f"{path}/{number}")
    elif one != other:
        yield path or "/"
