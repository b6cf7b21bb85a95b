"""Whatever comes in ends in a value or in one error of the protocol that names fields."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import InvalidParamsError, JSONParseError
from dragoman.model import (
    AgentCard,
    ListTasksRequest,
    Message,
    Part,
    SendMessageRequest,
    StreamResponse,
    Task,
    WireMessage,
    decode_json,
    decode_value,
    encode_json,
)
from tests.model.samples import CARD, EVENTS, REQUEST, TASK
from tests.model.strategies import JSON_VALUES, MESSAGE_TYPES, any_message

SEED = 20260312
PATH = re.compile(r'(?:\w+|\[\d+\]|\["(?:[^"\\]|\\.)*"\])(?:\.\w+|\[\d+\]|\["(?:[^"\\]|\\.)*"\])*', re.ASCII)

FILTER = ListTasksRequest(context_id="c", page_size=10, include_artifacts=True)
SEEDS: list[WireMessage] = [TASK, CARD, REQUEST, FILTER, *EVENTS]

TOKENS = [
    b"null", b"{}", b"[]", b'""', b"NaN", b"-Infinity", b"1e400", b"-0", b"1.0", b"9" * 30, b"9" * 5000, b'"\\ud800"',
    b'"\\udc00x"', b"\xff", b"\xed\xa0\x80", b"\x00", b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"[" * 3000,
    b'{"a":' * 2000, b'"data":null,', b'"text":null,', b'"role":"1",', b'"role":7e0,',
    b'"timestamp":"0000-01-01T00:00:00Z",',
]  # fmt: skip
VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 1e308, 2**31, -(2**63), "", "x", "1", "é", "\ud800", [], {}, [None], {"a": None}, [[]],
    "AA==", "_-8", "2026-03-12T09:30:60+23:59", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+14:00", "ROLE_USER",
    99, "99",
]  # fmt: skip


def outcome(kind: type[WireMessage], text: bytes) -> WireMessage | None:
    """The message, or None after checking the error."""
    try:
        return decode_json(kind, text)
    except JSONParseError:
        return None
    except InvalidParamsError as error:
        check(error)
        return None


def check(error: InvalidParamsError) -> None:
    """The error names at least one field, in wire spelling, and can be sent."""
    assert error.code == -32602
    assert 1 <= len(error.violations) <= 20
    for violation in error.violations:
        assert PATH.fullmatch(violation.field) or not violation.field or violation.field.endswith("…")
    msgspec.json.encode(error.details)


def mutated(dice: random.Random, message: WireMessage) -> bytes:
    """The message as text, with something wrong in the text or in what it says."""
    text = encode_json(message)
    if dice.random() < 0.5:
        return mutated_text(dice, text)
    return json.dumps(mutated_value(dice, json.loads(text))).encode()


def mutated_text(dice: random.Random, text: bytes) -> bytes:
    """The text with a few bytes cut, doubled, changed or put in."""
    for _ in range(dice.randint(1, 3)):
        at, end = sorted(dice.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + 12)
        piece = [b"", text[at:end] * 2, dice.choice(TOKENS), bytes([dice.randrange(256)])]
        text = text[:at] + dice.choice(piece) + text[end:]
    return text


def mutated_value(dice: random.Random, value: Any) -> Any:
    """The JSON value with something in it replaced, removed or added."""
    if not isinstance(value, dict | list) or not value or dice.random() < 0.1:
        return dice.choice(VALUES)
    key = dice.choice(list(value)) if isinstance(value, dict) else dice.randrange(len(value))
    if isinstance(value, dict) and dice.random() < 0.2:
        value[dice.choice(["extra", "data", "text", "message_id", "role", "status"])] = dice.choice(VALUES)
    elif dice.random() < 0.1:
        del value[key]
    else:
        value[key] = mutated_value(dice, value[key])
    return value


@pytest.mark.req("ERR-07", "ERR-08", "DATA-13", "B005")
def test_ten_thousand_mutated_messages_are_read_or_refused_with_one_error_that_names_fields() -> None:
    dice = random.Random(SEED)
    read = 0
    for n in range(10_000):
        kind = type(SEEDS[n % len(SEEDS)])
        found = outcome(kind, mutated(dice, SEEDS[n % len(SEEDS)]))
        if found is not None:
            read += 1
            assert decode_json(kind, encode_json(found)) == found

    assert 1_000 < read < 9_000


@pytest.mark.req("ERR-07", "DATA-13")
@settings(max_examples=500, deadline=None)
@given(st.sampled_from(MESSAGE_TYPES), JSON_VALUES | st.dictionaries(st.text(max_size=3), JSON_VALUES))
def test_any_json_value_is_read_or_refused_with_one_error(kind: type[WireMessage], value: Any) -> None:
    try:
        decode_value(kind, value)
    except InvalidParamsError as error:
        check(error)


@pytest.mark.req("ERR-07")
@settings(max_examples=500, deadline=None)
@given(st.sampled_from([Task, StreamResponse, SendMessageRequest, AgentCard]), st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(kind: type[WireMessage], text: bytes) -> None:
    outcome(kind, text)


@settings(max_examples=500, deadline=None)
@given(any_message())
def test_the_fast_and_the_lenient_path_read_the_same(message: WireMessage) -> None:
    text = encode_json(message)

    assert decode_json(type(message), text) == message
    assert decode_value(type(message), json.loads(text)) == message


@pytest.mark.req("ERR-07")
@pytest.mark.parametrize(("depth", "read"), [(50, True), (100_000, False)])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("place", ['"data":%s', '"text":"a","metadata":{"m":%s}', '"text":"a","unknown":%s'])
def test_deep_nesting_is_read_or_refused(depth: int, read: bool, opening: str, closing: str, place: str) -> None:
    part = place % f"{opening * depth}1{closing * depth}"
    text = f'{{"messageId":"m","role":"ROLE_USER","parts":[{{{part}}}]}}'

    found = outcome(Message, text.encode())

    assert (found is not None) == read


@pytest.mark.req("ERR-07")
@pytest.mark.parametrize("depth", [900, 950, 970, 980, 990, 1_000, 3_000])
@pytest.mark.parametrize("unknown", ["", ',"unknown":1'])
def test_nesting_near_the_interpreters_limit_is_read_or_refused(depth: int, unknown: str) -> None:
    outcome(Part, f'{{"data":{"[" * depth}{"]" * depth}{unknown}}}'.encode())
