"""``dragoman card get``."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands.peer import Answer, Peer
from tests.cli.commands.program import Dragoman


@pytest.mark.req("A2ACLI_CARD_GET_001", "A2ACLI_OUT_005")
def test_a_card_is_shown_field_by_field(dragoman: Dragoman, peer: Peer) -> None:
    peer.card |= {
        "provider": {"organization": "Desk Ltd", "url": "https://desk.example"},
        "securitySchemes": {"corp": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"corp": {"list": ["quote.read"]}}}],
    }

    done = dragoman("card", "get", peer.url)

    assert done.out == (
        "Name: Scripted\n"
        "Description: Plays what a test wants\n"
        "Version: 1\n"
        "Provider: Desk Ltd https://desk.example\n"
        f"Interface: JSONRPC 1.0 {peer.url}/rpc\n"
        f"Interface: HTTP+JSON 1.0 {peer.url}/rest\n"
        "Streaming: yes\n"
        "Push notifications: no\n"
        "Extended card: no\n"
        "Security scheme: corp (http: Bearer)\n"
        "Security requirement: corp [quote.read]\n"
        "Skill: s (S)\n"
        "Signature: absent\n"
        f"Selected interface: JSONRPC 1.0 {peer.url}/rpc\n"
    )
    assert done.err == ""


@pytest.mark.req("A2ACLI_CARD_GET_001", "A2ACLI_OUT_002")
def test_every_kind_of_reference_leads_to_the_same_card(dragoman: Dragoman, peer: Peer) -> None:
    path = dragoman.folder / "card.json"
    path.write_text(json.dumps(peer.card))
    origin = peer.url
    host = origin.removeprefix("http://")

    for reference in (host, origin, f"{origin}/", f"{origin}/.well-known/agent-card.json", str(path), f"file://{path}"):
        assert dragoman.inside("card", "get", "-a", reference, "-o", "json").json == peer.card
    assert dragoman.inside("card", "get", origin, "-a", host).status == 2
    assert dragoman.inside("card", "get", "-a", "@alias").status == 2


@pytest.mark.req("A2ACLI_CARD_GET_001")
def test_it_may_be_printed_as_it_was_served(dragoman: Dragoman, peer: Peer) -> None:
    served = json.dumps({**peer.card, "x-own": 1}).encode()
    peer.card_answer = Answer(body=served)

    assert dragoman("card", "get", peer.url, "--raw").out == served.decode() + "\n"


@pytest.mark.req("A2ACLI_CARD_GET_002", "A2ACLI_EXIT_001")
def test_validation_names_each_fault_and_still_shows_the_card(dragoman: Dragoman, peer: Peer) -> None:
    good = dragoman.inside("card", "get", peer.url, "--validate")
    del peer.card["skills"][0]["name"]
    peer.card["version"] = 7

    wrong_type = dragoman.inside("card", "get", peer.url, "--validate", "-o", "json")
    peer.card["version"] = "1"
    missing = dragoman.inside("card", "get", peer.url, "--validate")

    assert (good.status, good.err) == (0, "")
    assert (wrong_type.status, wrong_type.error["code"]) == (1, "A2ACLI_ERR_CARD_INVALID")
    assert missing.status == 1
    assert "Finding: /skills/0/name: " in missing.err
    assert missing.out.startswith("Name: Scripted\n")


@pytest.mark.req("A2ACLI_CARD_GET_001", "A2ACLI_TX_001")
def test_verbose_says_why_other_interfaces_are_not_used(dragoman: Dragoman, peer: Peer) -> None:
    peer.card["supportedInterfaces"].append(peer.interface("GRPC"))

    done = dragoman.inside("card", "get", peer.url, "--verbose")

    assert "Not used: GRPC 1.0 " in done.out
    assert "Skill details:\n  s: S\n" in done.out
