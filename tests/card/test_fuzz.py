"""Nothing that a stranger sends breaks the verifier, and our own cards are in the form that is signed."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.card import verify_card
from dragoman.card.canonical import parse_card, signed_content, without_signatures
from dragoman.card.signing import encode_content
from dragoman.model import AgentCard, encode_json
from tests.card.cards import card, signer, trusting, verify
from tests.model.strategies import messages

json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
names = st.sampled_from([*card(), "signatures", "securitySchemes", "later"])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_report(data: bytes) -> None:
    assert not asyncio.run(verify_card(data, trusting())).verified


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(names, json_values, max_size=4))
def test_no_change_of_a_signed_card_passes_with_what_was_not_signed(changes: dict[str, object]) -> None:
    signed = {**signer().sign_json(card()), **changes}

    report = verify(signed)

    if report.verified:
        assert report.content == signed_content(card())


@pytest.mark.req("SIGN-03", "SIGN-07")
@settings(max_examples=200, deadline=None)
@given(messages(AgentCard))
def test_our_json_is_in_the_form_that_is_signed(value: AgentCard) -> None:
    written = parse_card(encode_json(value))

    content = signed_content(written)

    assert content == without_signatures(written)
    assert signed_content(json.loads(encode_content(content))) == content
