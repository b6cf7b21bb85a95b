"""The forms of a card that are signed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.card.canonical import (
    Json,
    UnreadableCardError,
    ambiguities,
    forms,
    parse_card,
    signed_content,
    without_empties,
)
from dragoman.card.jcs import NoCanonicalFormError
from dragoman.card.signing import encode_content
from tests.card.cards import card

EXAMPLE: Json = {
    "name": "Example Agent",
    "description": "",
    "capabilities": {"streaming": False, "pushNotifications": False, "extensions": []},
    "skills": [],
}


def canonical(text: str) -> str:
    return encode_content(signed_content(parse_card(text.encode()))).decode()


@pytest.mark.req("SIGN-02", "SIGN-03", "SIGN-06", "SIGN-07", "SIGN-08")
def test_the_worked_example_of_the_specification() -> None:
    assert canonical(json.dumps(EXAMPLE)) == (
        '{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent",'
        '"skills":[]}'
    )


@pytest.mark.req("SIGN-04", "AMB-82")
def test_what_is_not_set_is_left_out_and_nothing_is_added() -> None:
    content = signed_content({"name": "A", "capabilities": {}, "documentationUrl": None, "iconUrl": None})

    assert content == {"name": "A", "capabilities": {}}


@pytest.mark.req("SIGN-05")
@pytest.mark.parametrize("name", ["streaming", "pushNotifications", "extendedAgentCard"])
def test_an_optional_field_that_is_set_is_kept_with_its_default(name: str) -> None:
    assert signed_content({"capabilities": {name: False}}) == {"capabilities": {name: False}}


@pytest.mark.req("SIGN-05")
@pytest.mark.parametrize("name", ["documentationUrl", "iconUrl"])
def test_an_optional_text_that_is_set_is_kept_when_it_is_empty(name: str) -> None:
    assert signed_content({name: ""}) == {name: ""}


@pytest.mark.req("SIGN-06")
def test_required_fields_are_kept_when_they_are_empty() -> None:
    empty: Json = {
        "name": "", "description": "", "version": "", "supportedInterfaces": [], "capabilities": {},
        "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
    }  # fmt: skip

    assert signed_content(empty) == empty
    skill = {"id": "", "name": "", "description": "", "tags": []}
    assert signed_content({"skills": [skill]}) == {"skills": [skill]}


@pytest.mark.req("SIGN-07")
@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"securitySchemes": {}}, {}),
        ({"securityRequirements": []}, {}),
        ({"skills": [{"id": "s", "examples": [], "inputModes": []}]}, {"skills": [{"id": "s"}]}),
        ({"supportedInterfaces": [{"url": "u", "tenant": ""}]}, {"supportedInterfaces": [{"url": "u"}]}),
        (
            {"capabilities": {"extensions": [{"uri": "", "description": "", "required": False}]}},
            {"capabilities": {"extensions": [{}]}},
        ),
    ],
)
def test_other_fields_with_their_default_are_left_out(given: Json, left: Json) -> None:
    assert signed_content(given) == left


@pytest.mark.req("SIGN-03")
def test_messages_that_are_set_and_entries_of_maps_stay_even_if_nothing_is_left_of_them() -> None:
    given = {
        "securitySchemes": {"m": {"mtlsSecurityScheme": {"description": ""}}, "none": {}},
        "securityRequirements": [{"schemes": {"m": {"list": []}}}, {"schemes": {}}],
    }

    assert signed_content(given) == {
        "securitySchemes": {"m": {"mtlsSecurityScheme": {}}, "none": {}},
        "securityRequirements": [{"schemes": {"m": {}}}, {}],
    }


@pytest.mark.req("SIGN-03", "SIGN-07")
def test_content_of_structs_is_data_and_stays_as_it_is() -> None:
    params: Json = {"a": "", "b": None, "c": 0, "d": [], "e": {"f": False}}
    given = {"capabilities": {"extensions": [{"uri": "u", "params": params}]}}

    assert signed_content(given) == given
    assert signed_content({"capabilities": {"extensions": [{"uri": "u", "params": {}}]}}) == {
        "capabilities": {"extensions": [{"uri": "u", "params": {}}]}
    }


@pytest.mark.req("SIGN-09")
def test_signatures_are_not_part_of_it() -> None:
    assert signed_content({"name": "A", "signatures": [{"protected": "p"}]}) == {"name": "A"}


@pytest.mark.req("AMB-83")
def test_unknown_members_stay_or_go_at_every_level() -> None:
    given = {"name": "A", "later": {"x": ""}, "capabilities": {"later": []}, "skills": [{"id": "s", "later": None}]}

    assert signed_content(given) == given
    assert signed_content(given, unknown=False) == {"name": "A", "capabilities": {}, "skills": [{"id": "s"}]}


@pytest.mark.req("SIGN-08", "AMB-84")
@pytest.mark.parametrize(
    ("number", "written"),
    [
        ("1e-7", "1e-7"), ("0.000001", "0.000001"), ("1.0", "1"), ("-0.0", "0"), ("1e21", "1e+21"), ("100", "100"),
        ("1e20", "100000000000000000000"), ("9007199254740993", "9007199254740992"), ("4.50", "4.5"),
        ("12345678901234567890", "12345678901234567000"), ("333333333.33333329", "333333333.3333333"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_ecmascript_does(number: str, written: str) -> None:
    text = '{"capabilities":{"extensions":[{"params":{"n":%s},"uri":"u"}]}}'

    assert canonical(text % number) == text % written


@pytest.mark.req("SIGN-08", "AMB-84")
def test_members_are_sorted_by_utf_16_and_texts_are_plain_utf_8() -> None:
    # By code points the second of these would come last; by UTF-16 its first surrogate sorts before U+FB33.
    names = ["\ufb33", "\U0001f600", "\u20ac", "\r", "1", "\u0080", "ö"]
    text = json.dumps(
        {"securitySchemes": {name: {"mtlsSecurityScheme": {}} for name in names}, "name": "Gezeiten ≈ \u2028\t"}
    )

    done = canonical(text)

    keys = list(json.loads(done)["securitySchemes"])
    assert keys == ["\r", "1", "\u0080", "ö", "\u20ac", "\U0001f600", "\ufb33"]
    assert '"name":"Gezeiten ≈ \u2028\\t"' in done


@pytest.mark.req("AMB-81")
def test_empty_values_can_be_taken_out_to_the_last_and_false_stays() -> None:
    given: Json = {"a": "", "b": [""], "c": {"d": {}}, "e": False, "f": 0, "g": [{"h": []}, 1], "i": None}

    assert without_empties(given) == {"e": False, "f": 0, "g": [1]}


@pytest.mark.req("AMB-81", "AMB-83")
def test_the_form_of_the_specification_comes_first_and_others_only_if_they_are_wanted() -> None:
    names = [name for name, _ in forms(card())]

    assert names[:2] == [name for name, _ in forms(card(), compatible=False)]
    assert names == [
        "specification", "specification, known members", "emptied", "emptied, known members", "as received",
    ]  # fmt: skip


@pytest.mark.req("AMB-81")
def test_places_where_readings_differ_are_named() -> None:
    assert ambiguities(card()) == []
    assert ambiguities(card(description="", later=1, securityRequirements=[{"schemes": {"k": {}}}])) == [
        "/description", "/later", "/securityRequirements",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        b'{"name":"A","name":"B"}', b'{"capabilities":{"x":1,"x":1}}', b"[]", b"{", b"", b'{"a":NaN}', b'{"a":1e999}',
        b'{"a":' + b"[" * 65 + b"]" * 65 + b"}", b'{"a":' + b"[" * 100_000, b"\xff", b'{"a":1' + b"0" * 400 + b"}",
    ],
)  # fmt: skip
@pytest.mark.req("SIGN-15", "B129")
def test_what_readers_may_take_in_two_ways_is_refused(text: bytes) -> None:
    with pytest.raises(UnreadableCardError):
        parse_card(text)


@pytest.mark.parametrize("value", ["\ud800", {"\udc00": 1}])
def test_a_lone_surrogate_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(NoCanonicalFormError):
        encode_content({"name": value})
