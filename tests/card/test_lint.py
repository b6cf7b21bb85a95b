"""Findings about cards: every rule fires where it should, and nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.card.canonical import Json
from dragoman.card.lint import RULES, Finding, Subject, lint
from dragoman.client.cards import card_from_value
from tests.card.cards import card, entry, signer, trusting, verify

SECURE: Json = {
    "securitySchemes": {"t": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
    "securityRequirements": [{"schemes": {"t": {"list": ["call"]}}}],
}
SKILL = {"id": "s", "name": "S", "description": "s", "tags": ["t"], "examples": ["e"]}
FLOW = {"tokenUrl": "http://login.example/t", "scopes": {"s": "S"}}


def good(**more: Any) -> Json:
    return card(**{**SECURE, "skills": [SKILL], **more})


def interface(**more: Any) -> Json:
    return {"url": "https://agent.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", **more}


def look(value: Json, **more: Any) -> list[Finding]:
    report = verify(value, trusting())
    read = card_from_value(json.loads(json.dumps(value)), "here")
    return lint(Subject(json=value, card=read, report=report, **more))


def rules(value: Json, **more: Any) -> set[str]:
    return {finding.rule for finding in look(value, **more)} - {"unsigned"}


def test_a_good_card_that_is_signed_and_served_well_has_no_findings() -> None:
    headers = {"cache-control": "max-age=300", "etag": '"x"'}

    assert (
        look(signer().sign_json(good()), headers=headers, url="https://agent.example/.well-known/agent-card.json") == []
    )


@pytest.mark.req("CARD-06", "CARD-08", "CARD-14", "CARD-16", "AMB-77")
@pytest.mark.parametrize(
    ("rule", "more"),
    [
        ("schema", {"description": ""}),
        ("media-type", {"defaultInputModes": ["text"]}),
        ("duplicate-skill", {"skills": [SKILL, SKILL]}),
        ("undeclared-scheme", {"securityRequirements": [{"schemes": {"u": {"list": ["x"]}}}]}),
        ("credentials-in-url", {"supportedInterfaces": [interface(url="https://u:p@agent.example")]}),
        ("plain-http", {"supportedInterfaces": [interface(url="http://agent.example")]}),
        ("plain-http", {"securitySchemes": {"t": {"oauth2SecurityScheme": {"flows": {"clientCredentials": FLOW}}}}}),
        ("private-address", {"supportedInterfaces": [interface(url="https://10.1.2.3")]}),
        ("private-address", {"supportedInterfaces": [interface(url="http://localhost:8000")]}),
        ("private-address", {"supportedInterfaces": [interface(url="http://pricing:8000")]}),
        ("private-address", {"supportedInterfaces": [interface(url="pricing.internal:50", protocolBinding="GRPC")]}),
        ("grpc-address", {"supportedInterfaces": [interface(url="https://agent.example:443", protocolBinding="GRPC")]}),
        ("patch-version", {"supportedInterfaces": [interface(protocolVersion="1.0.0")]}),
        ("duplicate-interface", {"supportedInterfaces": [interface(), interface()]}),
        ("interface-order", {"supportedInterfaces": [interface(protocolVersion="0.3"), interface()]}),
        ("no-examples", {"skills": [{**SKILL, "examples": []}]}),
        ("no-security", {"securityRequirements": []}),
        ("required-extension", {"capabilities": {"extensions": [{"uri": "https://x.example", "required": True}]}}),
    ],
)  # fmt: skip
def test_a_rule_finds_what_it_is_for(rule: str, more: Json) -> None:
    assert rules(good(**more)) == {rule}


def test_cards_of_old_shapes_and_places_are_found() -> None:
    old = {"name": "A", "description": "d", "version": "1", "url": "https://agent.example/", "protocolVersion": "0.3.0"}

    found = rules(old, url="https://agent.example/.well-known/agent.json")

    assert {"old-shape", "old-path"} <= found
    assert "schema" not in found


def test_an_agent_on_this_machine_may_name_this_machine() -> None:
    local = good(supportedInterfaces=[interface(url="http://127.0.0.1:8000")])

    assert rules(local, url="http://127.0.0.1:8000/.well-known/agent-card.json") == set()


@pytest.mark.req("CARD-19", "CARD-20")
def test_missing_headers_for_caching_are_found_where_headers_are_known() -> None:
    assert rules(good(), headers={}) == {"no-caching"}
    assert rules(good(), headers=None) == set()


@pytest.mark.req("SIGN-16", "AMB-81")
def test_signatures_that_do_not_hold_cannot_be_checked_or_are_read_in_two_ways_are_found() -> None:
    signed = signer().sign_json(good())

    assert rules({**signed, "version": "7"}) == {"signature"}
    assert rules(signer(kid="other").sign_json(good())) == {"unverifiable"}
    ambiguous = good(securityRequirements=[{"schemes": {"t": {}}}])
    assert rules({**ambiguous, "signatures": [entry(ambiguous)]}) == {"ambiguous"}


def test_what_the_strict_reader_refused_is_named_once() -> None:
    found = look(good(), violations=(("skills[0].name", "is required"),))

    assert [(each.rule, each.path) for each in found if each.severity == "error"] == [("schema", "skills[0].name")]


def test_unknown_members_are_no_finding() -> None:
    assert rules(good(later={"x": 1}, skills=[{**SKILL, "later": 1}])) == set()


def test_findings_come_with_the_severest_first_and_with_reasons() -> None:
    found = look(good(description="", securityRequirements=[], skills=[{**SKILL, "examples": []}]))

    assert [each.severity for each in found] == ["error", "warning", "note", "note"]
    assert all(why for _, why in RULES.values())
