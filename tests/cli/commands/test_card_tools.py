"""``dragoman card lint``, ``verify``, ``sign``, ``key``, ``new`` and ``diff``, and signatures in ``card get``."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.card.cards import key, public, signer
from tests.cli.commands.peer import Peer
from tests.cli.commands.program import Dragoman


@pytest.fixture
def jwks(dragoman: Dragoman) -> str:
    """A file with the public key that cards are signed with."""
    return write(dragoman, "jwks.json", {"keys": [public()]})


def write(dragoman: Dragoman, name: str, value: Any) -> str:
    path = dragoman.folder / name
    path.write_text(json.dumps(value))
    return str(path)


def signed_file(dragoman: Dragoman, *options: str) -> Path:
    """A card that was made and signed by commands alone."""
    assert dragoman.inside("card", "key", "new", "--kid", "desk-1", "-O", "keys").status == 0
    (dragoman.folder / "card.json").write_text(dragoman.inside("card", "new", "--name", "Desk").out)
    words = ("card", "sign", "card.json", "--key", "keys/signing.pem", "--kid", "desk-1", "-O", "signed.json")
    done = dragoman.inside(*words, *options)
    assert (done.status, done.err) == (0, "")
    return dragoman.folder / "signed.json"


@pytest.mark.req("A2ACLI_CARD_GET_004", "SIGN-16", "SIGN-19")
@pytest.mark.parametrize(
    ("change", "line", "warns"),
    [
        ({}, "verified (kid k1, ES256)", False),
        ({"name": "Tampered"}, "unverifiable (signature does not match)", True),
        ({"signatures": []}, "absent", False),
        ({"signatures": signer(kid="k2").sign_json({})["signatures"]}, "unverifiable (no key for kid k2)", False),
    ],
    ids=["good", "tampered", "none", "unknown key"],
)
def test_the_outcome_for_signatures_is_shown(
    dragoman: Dragoman, peer: Peer, jwks: str, change: dict[str, Any], line: str, warns: bool
) -> None:
    peer.card = {**signer().sign_json(peer.card), **change}

    plain = dragoman.inside("card", "get", peer.url, "--trust", jwks)
    machine = dragoman.inside("card", "get", peer.url, "--trust", jwks, "-o", "json")

    assert plain.field("Signature") == line
    assert (plain.status, machine.status) == (0, 0)
    assert ("Warning: a signature of the card does not hold: signature does not match" in plain.err) is warns
    assert f"Signature: {line}\n" in machine.err
    assert machine.json["name"] == peer.card["name"]


@pytest.mark.req("A2ACLI_CARD_GET_004", "SIGN-19")
def test_an_expired_key_verifies_nothing(dragoman: Dragoman, peer: Peer) -> None:
    peer.card = signer().sign_json(peer.card)
    expired = write(dragoman, "old.json", {"keys": [public(exp=1)]})

    done = dragoman.inside("card", "get", peer.url, "--trust", expired)

    assert done.field("Signature") == "unverifiable (the key has expired)"


@pytest.mark.req("A2ACLI_CARD_GET_004", "AMB-81")
def test_of_a_verified_card_only_what_was_signed_is_shown(dragoman: Dragoman, peer: Peer, jwks: str) -> None:
    peer.card = {**signer().sign_json(peer.card), "securityRequirements": [{"schemes": {"k": {}}}]}

    done = dragoman.inside("card", "get", peer.url, "--trust", jwks)

    assert "Signature: verified" in done.out
    assert "Security requirement" not in done.out


@pytest.mark.req("SIGN-16", "AMB-87")
def test_an_agent_whose_card_was_tampered_with_is_not_called(dragoman: Dragoman, peer: Peer) -> None:
    none = {"protected": "eyJhbGciOiJub25lIiwia2lkIjoiayJ9", "signature": ""}
    peer.card = {**peer.card, "signatures": [none]}

    done = dragoman.inside("send", "-a", peer.url, "hello", "-o", "json")

    assert (done.status, done.error["code"]) == (1, "A2ACLI_ERR_CARD_INVALID")
    assert peer.calls == []


@pytest.mark.req("A2ACLI_CARD_GET_002")
def test_validation_names_every_fault(dragoman: Dragoman, peer: Peer) -> None:
    peer.card |= {"description": "", "defaultInputModes": ["text"], "securityRequirements": [{"schemes": {"k": {}}}]}

    done = dragoman.inside("card", "get", peer.url, "--validate")

    assert done.status == 1
    findings = [line.split(": ")[1] for line in done.err.splitlines() if line.startswith("Finding: ")]
    assert findings == ["/description", "/securityRequirements/0/schemes/k", "/defaultInputModes/0"]


@pytest.mark.req("SIGN-01", "SIGN-18")
def test_a_card_is_made_signed_and_verified_by_commands_alone(dragoman: Dragoman) -> None:
    signed = signed_file(dragoman)

    done = dragoman.inside("card", "verify", str(signed), "--trust", "keys/jwks.json", "--require")
    machine = dragoman.inside("card", "verify", str(signed), "--trust", "keys/jwks.json", "-o", "json")

    assert (done.status, done.err) == (0, "")
    assert done.out == ("Name: Desk\nSignature: verified (kid desk-1, ES256; form: specification)\nOutcome: verified\n")
    assert machine.json["outcome"] == "verified"
    assert machine.json["signatures"][0]["keyFrom"] == "trust"


@pytest.mark.req("SIGN-16", "AMB-85")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": "9"}, "invalid (signature does not match; kid desk-1, ES256)"),
        (
            {"signatures": [{"protected": "eyJhbGciOiJub25lIn0", "signature": ""}]},
            "invalid (the algorithm none is refused)",
        ),
        ({"signatures": []}, "absent"),
    ],
)  # fmt: skip
def test_what_is_not_verified_fails_where_it_is_required(
    dragoman: Dragoman, change: dict[str, Any], words: str
) -> None:
    file = signed_file(dragoman)
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))

    shown = dragoman.inside("card", "verify", str(file), "--trust", "keys/jwks.json")
    required = dragoman.inside("card", "verify", str(file), "--trust", "keys/jwks.json", "--require", "-o", "json")

    assert shown.status == 0
    assert words in shown.out
    assert required.status == 1
    assert "Error: DRAGOMAN_ERR_CHECK_FAILED" in required.err
    assert required.json["outcome"] != "verified"


def test_one_key_can_be_asked_for(dragoman: Dragoman) -> None:
    file = signed_file(dragoman)
    words = ("card", "verify", str(file), "--trust", "keys/jwks.json", "--require", "--kid")

    assert dragoman.inside(*words, "desk-1").status == 0
    assert "no signature with kid other" in dragoman.inside(*words, "other").err


@pytest.mark.req("SIGN-20")
def test_a_further_signature_is_appended_and_otherwise_replaces(dragoman: Dragoman) -> None:
    file = signed_file(dragoman)
    dragoman.inside("card", "key", "new", "--alg", "EdDSA", "--kid", "desk-2", "-O", "new")
    again = ("card", "sign", str(file), "--key", "new/signing.pem", "--kid", "desk-2")

    both, one = dragoman.inside(*again, "--append").json, dragoman.inside(*again).json

    assert (len(both["signatures"]), len(one["signatures"])) == (2, 1)


@pytest.mark.req("AMB-81", "AMB-85")
def test_signing_refuses_what_is_wrong_and_warns_of_what_is_unclear(dragoman: Dragoman) -> None:
    signed_file(dragoman)
    words = ("--key", "keys/signing.pem", "--kid", "k")
    good = json.loads((dragoman.folder / "card.json").read_text())

    bad = write(dragoman, "bad.json", {**good, "description": ""})
    unclear = write(dragoman, "unclear.json", {**good, "capabilities": {}, "iconUrl": "", "later": 1})

    assert dragoman.inside("card", "sign", bad, *words).status == 1
    assert dragoman.inside("card", "sign", "nowhere.json", *words).status == 1
    assert dragoman.inside("card", "sign", "card.json", *words, "--alg", "HS256").status == 2
    assert dragoman.inside("card", "sign", "card.json", *words, "--jku", "http://a.example/k").status == 2
    assert dragoman.inside("card", "sign", "card.json", "--key", "keys/jwks.json", "--kid", "k").status == 2
    done = dragoman.inside("card", "sign", unclear, *words)
    assert done.status == 0
    assert [f"capabilities.{name} is not set" in done.err for name in ("streaming", "pushNotifications")] == [
        True,
        True,
    ]
    assert all(f"{pointer} is empty" in done.err for pointer in ("/iconUrl", "/later"))
    twice = dragoman.folder / "twice.json"
    twice.write_text('{"name":"A","name":"B"}')
    assert dragoman.inside("card", "sign", str(twice), *words, "-o", "json").error["code"] == "A2ACLI_ERR_CARD_INVALID"


def test_a_key_pair_is_for_its_owner_alone_and_overwrites_nothing(dragoman: Dragoman) -> None:
    done = dragoman.inside("card", "key", "new", "-O", "keys", "-o", "json")
    again = dragoman.inside("card", "key", "new", "-O", "keys", "-o", "json")

    private, found = dragoman.folder / "keys/signing.pem", done.json
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert again.error["code"] == "DRAGOMAN_ERR_FILE"
    (jwk,) = json.loads((dragoman.folder / "keys/jwks.json").read_text())["keys"]
    assert (jwk["kid"], jwk["alg"], jwk["use"], "d" in jwk) == (found["kid"], "ES256", "sig", False)
    assert "PRIVATE" not in done.out


def test_a_set_of_keys_is_made_of_private_and_public_ones(dragoman: Dragoman, jwks: str) -> None:
    (dragoman.folder / "key.pem").write_bytes(key("RS256", "k2").pem())

    both = dragoman.inside("card", "key", "jwks", jwks, "key.pem").json["keys"]
    named = dragoman.inside("card", "key", "jwks", "key.pem", "--kid", "desk").json["keys"]

    assert [(each["kty"], "d" in each) for each in both] == [("EC", False), ("RSA", False)]
    assert [each["kid"] for each in named] == ["desk"]
    assert dragoman.inside("card", "key", "jwks", jwks, jwks).status == 2
    assert dragoman.inside("card", "key", "jwks", "card.json").status == 1


def test_a_new_card_passes_every_check(dragoman: Dragoman) -> None:
    made = dragoman.inside("card", "new", "--name", "Desk", "--url", "https://desk.example/", "--skill", "quote:Quotes")
    (dragoman.folder / "card.json").write_text(made.out)

    lint = dragoman.inside("card", "lint", "card.json", "--strict")
    validation = dragoman.inside("card", "get", "card.json", "--validate")

    assert (lint.status, validation.status) == (0, 0), lint.out
    assert made.json["skills"][0]["name"] == "Quotes"
    assert made.json["supportedInterfaces"][0]["url"] == "https://desk.example"


def test_lint_tells_findings_with_their_reasons(dragoman: Dragoman, peer: Peer) -> None:
    peer.card |= {"description": "", "supportedInterfaces": [peer.interface("JSONRPC", protocolVersion="1.0.0")]}

    done = dragoman.inside("card", "lint", peer.url)

    assert done.status == 1
    assert "Error: schema: the agent card lacks description (the specification does not allow it)\n" in done.out
    assert "Warning: patch-version: supportedInterfaces[0].protocolVersion is 1.0.0 (" in done.out
    assert done.out.endswith("Findings: 1 errors, 1 warnings, 2 notes\n")
    assert "Error: DRAGOMAN_ERR_CHECK_FAILED" in done.err


def test_lint_can_be_narrowed_and_made_strict(dragoman: Dragoman, peer: Peer) -> None:
    peer.card["supportedInterfaces"] = [peer.interface("JSONRPC", protocolVersion="1.0.0")]
    words = ("card", "lint", peer.url)

    assert dragoman.inside(*words).status == 0
    assert dragoman.inside(*words, "--strict").status == 1
    assert dragoman.inside(*words, "--strict", "--ignore", "patch-version").status == 0
    only = dragoman.inside(*words, "--rule", "unsigned", "-o", "json").json["findings"]
    assert [each["rule"] for each in only] == ["unsigned"]
    assert dragoman.inside(*words, "--rule", "nonsense").status == 2


def test_lint_speaks_to_machines(dragoman: Dragoman, peer: Peer) -> None:
    del peer.card["skills"][0]["name"]
    words = ("card", "lint", peer.url, "--format")

    sarif = dragoman.inside(*words, "sarif").json
    github = dragoman.inside(*words, "github").out
    document = dragoman.inside(*words, "json").json

    assert sarif["version"] == "2.1.0"
    result = sarif["runs"][0]["results"][0]
    assert (result["ruleId"], result["level"]) == ("schema", "error")
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "/skills/0/name"
    assert github.startswith(f"::error file=http%3A//{peer.url[7:].replace(':', '%3A')}")
    assert document["findings"][0]["pointer"] == "/skills/0/name"


def test_lint_goes_and_looks(dragoman: Dragoman, peer: Peer) -> None:
    gone = {"url": "http://127.0.0.1:9", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
    grpc = {"url": "127.0.0.1:9", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
    open_id = {"openIdConnectUrl": "https://nowhere.invalid/.well-known/openid-configuration"}
    peer.card["supportedInterfaces"] += [gone, grpc]
    peer.card["securitySchemes"] = {"o": {"openIdConnectSecurityScheme": open_id}}

    found = dragoman.inside("card", "lint", peer.url, "--live", "-o", "json").json["findings"]

    unreachable = [each["pointer"] for each in found if each["rule"] == "unreachable"]
    assert unreachable == ["/supportedInterfaces/2/url", "/supportedInterfaces/3/url"]
    assert {"unresolved-endpoint", "no-caching"} <= {each["rule"] for each in found}


def test_diff_exits_1_if_cards_differ(dragoman: Dragoman, peer: Peer) -> None:
    lock = write(dragoman, "lock.json", peer.card)
    same = dragoman.inside("card", "diff", lock, peer.url)
    peer.card["version"] = "2"

    changed = dragoman.inside("card", "diff", lock, peer.url)
    machine = dragoman.inside("card", "diff", lock, peer.url, "-o", "json")

    assert (same.status, same.out) == (0, "Differences: 0\n")
    assert (changed.status, changed.out) == (1, "Changed: /version: 1 -> 2\nDifferences: 1\n")
    assert machine.json["differences"] == [
        {"area": "identity", "change": "changed", "path": "/version", "before": "1", "after": "2"}
    ]


def test_help_shows_the_commands_on_cards_and_keys(dragoman: Dragoman) -> None:
    cards, keys = dragoman.inside("card", "--help").out, dragoman.inside("card", "key", "--help").out

    assert all(word in cards for word in ("get", "lint", "verify", "sign", "key new", "key jwks", "new", "diff"))
    assert "jwks" in keys
    assert dragoman.inside("help", "card", "key", "new").status == 0
    assert dragoman.inside("card", "key").status == 2
