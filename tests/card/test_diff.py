"""How two cards differ in what they mean."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.card.diff import diff_cards
from dragoman.model import AgentCard, decode_value
from tests.card.cards import card, signer

RPC = {"url": "https://agent.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
REST = {"url": "https://agent.example", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0", "tenant": "t"}
WHOLE = '{"id":"%s","name":"S","description":"s","tags":["a","b"],"securityRequirements":{}}'
SKILL = {"id": "s", "name": "S", "description": "s", "tags": ["a", "b"]}


def read(**more: Any) -> AgentCard:
    return decode_value(AgentCard, card(**more))


def differences(before: AgentCard, after: AgentCard) -> list[tuple[str, str, str]]:
    return [(each.area, each.change, str(each)) for each in diff_cards(before, after)]


def test_cards_that_say_the_same_do_not_differ() -> None:
    signed = decode_value(AgentCard, signer().sign_json(card(capabilities={})))

    assert differences(read(capabilities={"streaming": False}), signed) == []
    assert differences(read(skills=[SKILL]), read(skills=[{**SKILL, "tags": ["b", "a"], "examples": []}])) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"version": "3"}, [("identity", "changed", "/version: 2.4.0 -> 3")]),
        (
            {},
            {"capabilities": {"streaming": True}},
            [("capabilities", "changed", "/capabilities/streaming: false -> true")],
        ),
        (
            {"supportedInterfaces": [RPC]},
            {"supportedInterfaces": [REST, RPC]},
            [
                ("interfaces", "added", "/supportedInterfaces/HTTP+JSON 1.0 https:~1~1agent.example (tenant t)"),
                (
                    "interfaces", "changed",
                    "/preferredInterface: JSONRPC 1.0 https://agent.example/rpc -> "
                    "HTTP+JSON 1.0 https://agent.example (tenant t)",
                ),
            ],
        ),
        (
            {"skills": [SKILL, {**SKILL, "id": "old"}]},
            {"skills": [{**SKILL, "id": "new"}, {**SKILL, "description": "x"}]},
            [
                ("skills", "changed", "/skills/s/description: s -> x"),
                ("skills", "removed", "/skills/old: " + WHOLE % "old"),
                ("skills", "added", "/skills/new: " + WHOLE % "new"),
            ],
        ),
        (
            {"securityRequirements": [{"schemes": {"k": {}}}]},
            {"securityRequirements": [{"schemes": {"k": {"list": ["b", "a"]}, "m": {}}}]},
            [
                ("security", "removed", "/securityRequirements/k"),
                ("security", "added", "/securityRequirements/k [a b] and m"),
            ],
        ),
        (
            {},
            {"capabilities": {"extensions": [{"uri": "https://x.example", "required": True}]}},
            [
                (
                    "capabilities", "added",
                    '/capabilities/extensions/https:~1~1x.example: {"uri":"https://x.example","required":true}',
                ),
            ],
        ),
    ],
)  # fmt: skip
def test_each_difference_is_named_with_its_area(before: Any, after: Any, expected: Any) -> None:
    assert differences(read(**before), read(**after)) == expected
