"""``WWW-Authenticate`` in all its forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.auth import Challenge, bearer_challenge, parse_challenges

TABLE: list[tuple[list[str], list[Challenge]]] = [
    (["Bearer"], [Challenge("bearer")]),
    (['Bearer realm="x"'], [Challenge("bearer", {"realm": "x"})]),
    (["bEaReR REALM=x"], [Challenge("bearer", {"realm": "x"})]),
    (['Bearer a="1", b=2 ,c="3"'], [Challenge("bearer", {"a": "1", "b": "2", "c": "3"})]),
    (['Bearer a="one, two", b="=,\\"\\\\"'], [Challenge("bearer", {"a": "one, two", "b": '=,"\\'})]),
    (['Bearer a = "1" , b = 2'], [Challenge("bearer", {"a": "1", "b": "2"})]),
    (
        ['Basic realm="a, Bearer b=c", Bearer scope="x y"'],
        [Challenge("basic", {"realm": "a, Bearer b=c"}), Challenge("bearer", {"scope": "x y"})],
    ),
    (["Negotiate", "Bearer a=b"], [Challenge("negotiate"), Challenge("bearer", {"a": "b"})]),
    (["Negotiate, Basic realm=x"], [Challenge("negotiate"), Challenge("basic", {"realm": "x"})]),
    (["Negotiate YWJj/+==, Bearer"], [Challenge("negotiate", {}, "YWJj/+=="), Challenge("bearer")]),
    (
        ['Digest a=1, qop="auth,auth-int", Bearer'],
        [Challenge("digest", {"a": "1", "qop": "auth,auth-int"}), Challenge("bearer")],
    ),
    (["Basic,Bearer,DPoP algs=x"], [Challenge("basic"), Challenge("bearer"), Challenge("dpop", {"algs": "x"})]),
    ([", ,Bearer a=b,, ,c=d,"], [Challenge("bearer", {"a": "b", "c": "d"})]),
    (["Bearer a=1, a=2"], [Challenge("bearer", {"a": "1"})]),
    (['Bearer a="never closed'], [Challenge("bearer", {"a": "never closed"})]),
    (["=nonsense, Bearer a=b"], [Challenge("bearer", {"a": "b"})]),
    (["", "   "], []),
]


@pytest.mark.req("AC-C-90")
@pytest.mark.parametrize(("lines", "expected"), TABLE)
def test_challenges_are_read_in_full_generality(lines: list[str], expected: list[Challenge]) -> None:
    assert parse_challenges(lines) == expected


@pytest.mark.req("AC-C-90")
def test_lines_that_were_joined_are_read_as_if_they_were_not() -> None:
    lines = ['Basic realm="x"', 'Bearer resource_metadata="https://a.example/m?q=1", error=invalid_token']

    assert parse_challenges([", ".join(lines)]) == parse_challenges(lines)


@pytest.mark.req("AC-C-90")
def test_bearer_is_chosen_the_one_that_says_most() -> None:
    found = bearer_challenge(['Basic realm=x, Bearer, Bearer resource_metadata="https://a.example", DPoP'])

    assert found == Challenge("bearer", {"resource_metadata": "https://a.example"})
    assert bearer_challenge(["Basic realm=x"]) is None


@pytest.mark.req("AC-C-90")
@given(st.text(alphabet=' \t,="\\aB;:/+é\x00', max_size=60))
def test_nothing_breaks_the_reader(text: str) -> None:
    parse_challenges([text, f"Bearer {text}", f'Bearer a="{text}'])
