"""Query parameters as the fields of a request.

Parameters are matched to fields by either spelling of the name and read by what the field is. Parameters that
are no fields are ignored: gateways add their own.

Spec: HTTP-03 to HTTP-08, AMB-99, DATA-06, DATA-16.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from dragoman.errors import FieldViolation, InvalidParamsError
from dragoman.model import FIELDS, Field

_BOOLEANS = {"true": True, "false": False}
_IN_BODIES_ONLY = ("message", "struct", "value")

#: More parameters than any request has fields; a bound on the work.
_MOST = 100


def field_of(kind: type, name: str) -> Field:
    """The facts of the field with this proto name. KeyError when there is none."""
    return _fields(kind)[name]


def read_query(kind: type, query: str) -> dict[str, Any]:
    """The request's members (wire names) that a query holds, as JSON values for the lenient reader.

    Raises InvalidParamsError that names the field.
    """
    found: dict[str, Any] = {}
    for field, text in _parameters(kind, query):
        if field.shape == "list":
            found.setdefault(field.json_name, []).extend(_value(field, part) for part in text.split(","))
            continue
        value = _value(field, text)
        if found.setdefault(field.json_name, value) != value:
            raise _invalid(field, "is given twice with different values")
    return found


def _parameters(kind: type, query: str) -> list[tuple[Field, str]]:
    fields = _fields(kind)
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST)
    except ValueError:
        raise InvalidParamsError("The query has too many parameters") from None
    return [(fields[name], text) for name, text in pairs if name in fields]


def _value(field: Field, text: str) -> Any:
    if field.kind == "bool":
        if text not in _BOOLEANS:
            raise _invalid(field, "must be true or false")
        return _BOOLEANS[text]
    if field.kind == "timestamp":
        return text.replace(" ", "+")  # the plus sign of an offset that was not encoded
    if field.kind in _IN_BODIES_ONLY or field.shape == "map":
        raise _invalid(field, "cannot be given in the query")
    return text


def _invalid(field: Field, why: str) -> InvalidParamsError:
    return InvalidParamsError(violations=[FieldViolation(field.json_name, why)])


@cache
def _fields(kind: type) -> dict[str, Field]:
    """Fields by both spellings."""
    facts = FIELDS[kind]
    return {field.name: field for field in facts} | {field.json_name: field for field in facts}
