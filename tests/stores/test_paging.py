"""Page tokens hold for one listing of one caller."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidParamsError
from dragoman.model import TaskState
from dragoman.protocol.paging import decode_page_token, encode_page_token

KEY = bytes(range(32))
POSITION = (1_700_000_000_123, "0190c0de-7000")
LISTING: dict[str, Any] = {
    "tenant": "tenant",
    "owner": "owner",
    "context_id": "context",
    "state": TaskState.WORKING,
    "since_ms": 5,
}
TOKEN = encode_page_token(KEY, POSITION, **LISTING)


def refuse(token: str, key: bytes = KEY, **listing: Any) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        decode_page_token(key, token, **(LISTING | listing))
    assert [violation.field for violation in refused.value.violations] == ["pageToken"]


texts = st.text(st.characters(), max_size=20)


@pytest.mark.req("LIST-02", "LIST-07")
@given(st.integers(-(2**63), 2**63 - 1), st.text(min_size=1, max_size=50), texts, texts, texts)
def test_a_token_gives_back_its_position(at: int, task_id: str, tenant: str, owner: str, context: str) -> None:
    listing = {"tenant": tenant, "owner": owner, "context_id": context}
    token = encode_page_token(KEY, (at, task_id), **listing)
    assert decode_page_token(KEY, token, **listing) == (at, task_id)
    assert token.replace("-", "").replace("_", "").isalnum()


@pytest.mark.req("LIST-01", "LIST-04", "B107", "AMB-51")
@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "other"},
        {"owner": "other"},
        {"tenant": "owner", "owner": "tenant"},
        {"tenant": "tenanto", "owner": "wner"},
        {"context_id": ""},
        {"state": None},
        {"state": TaskState.COMPLETED},
        {"since_ms": None},
        {"since_ms": 6},
    ],
)
def test_a_token_of_another_caller_or_filter_is_refused(change: dict[str, Any]) -> None:
    refuse(TOKEN, **change)


@pytest.mark.req("B107", "AMB-51")
@pytest.mark.parametrize(
    "token",
    [
        "abc",
        "a",
        "ä",
        "\ud800",
        "====",
        "not base64!",
        base64.urlsafe_b64encode(b"garbage" * 10).decode(),
        base64.urlsafe_b64encode(bytes(64)).decode(),
        TOKEN[:-4],
        TOKEN + "AAAA",
        TOKEN * 500,
    ],
)
def test_garbage_is_refused(token: str) -> None:
    refuse(token)


@pytest.mark.req("B107")
@given(st.integers(0, 8 * (len(TOKEN) * 3 // 4) - 1))
def test_a_token_with_any_bit_changed_is_refused(bit: int) -> None:
    data = bytearray(base64.urlsafe_b64decode(TOKEN + "=" * (-len(TOKEN) % 4)))
    data[bit // 8] ^= 1 << bit % 8
    refuse(base64.urlsafe_b64encode(data).decode())


@pytest.mark.req("B107")
def test_a_token_made_with_another_key_is_refused() -> None:
    refuse(TOKEN, key=bytes(32))
