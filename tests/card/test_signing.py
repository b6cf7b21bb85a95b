"""Signing cards."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dragoman import Agent, CardSigner
from dragoman.card import sign_card, sign_encoded
from dragoman.card.canonical import Json, signed_content, without_empties
from dragoman.card.signing import encode_content
from dragoman.errors import ConfigurationError, MissingExtraError
from dragoman.jose import decode_base64url, encode_base64url, new_key
from dragoman.model import AgentCard, decode_value, encode_json
from tests.card.cards import card, key, public, signer, trusting, verify

ALGORITHMS = ["ES256", "ES384", "ES512", "RS256", "PS256", "EdDSA", "Ed25519"]


def as_json(signed: AgentCard) -> Json:
    found: Json = json.loads(encode_json(signed))
    return found


def header_of(entry: Json) -> Json:
    found: Json = json.loads(decode_base64url(entry["protected"]))
    return found


@pytest.mark.req("SIGN-01", "SIGN-14", "SIGN-15")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_signed_by_any_algorithm_is_verified(algorithm: str) -> None:
    signed = signer(algorithm).sign_json(card())

    report = verify(signed, trusting(public(algorithm)))

    assert [(check.outcome, check.kid, check.algorithm) for check in report.checks] == [("verified", "k1", algorithm)]


@pytest.mark.req("SIGN-10", "SIGN-11", "AMB-85")
def test_the_protected_header_has_alg_kid_and_typ() -> None:
    (entry,) = signer().sign_json(card())["signatures"]

    assert header_of(entry) == {"alg": "ES256", "kid": "k1", "typ": "JOSE"}


@pytest.mark.req("SIGN-12")
def test_it_has_jku_if_one_is_given_which_must_be_https() -> None:
    place = "https://agent.example/jwks.json"

    assert header_of(signer(jku=place).sign_json(card())["signatures"][0])["jku"] == place
    with pytest.raises(ConfigurationError, match="jku must be an https address"):
        signer(jku="http://agent.example/jwks.json")


@pytest.mark.req("SIGN-13")
def test_an_entry_holds_two_texts_in_base64url_and_no_payload() -> None:
    (entry,) = signer().sign_json(card())["signatures"]

    assert set(entry) == {"protected", "signature"}
    assert len(decode_base64url(entry["signature"])) == 64  # R and S, not DER
    assert not {"=", "+", "/"} & {*entry["protected"], *entry["signature"]}


@pytest.mark.req("SIGN-02", "SIGN-14")
def test_the_signature_is_over_the_header_and_the_canonical_payload() -> None:
    value = card()
    (entry,) = signer().sign_json(value)["signatures"]

    data = f"{entry['protected']}.{encode_base64url(encode_content(signed_content(value)))}".encode()

    assert key().public.verify("ES256", data, decode_base64url(entry["signature"]))


@pytest.mark.req("SIGN-20")
def test_several_keys_sign_one_card() -> None:
    value = decode_value(AgentCard, card())

    signed = as_json(sign_card(value, [signer(), signer("RS256", "k2")]))

    assert [header_of(entry)["kid"] for entry in signed["signatures"]] == ["k1", "k2"]
    assert not value.signatures
    both = verify(signed, trusting(public(), public("RS256", "k2")))
    assert [check.outcome for check in both.checks] == ["verified", "verified"]
    old = verify(signed, trusting(public("RS256", "k2")))
    assert (old.verified, [check.outcome for check in old.checks]) == (True, ["unverifiable", "verified"])


@pytest.mark.req("AMB-81")
def test_a_second_signature_serves_verifiers_that_drop_what_is_empty() -> None:
    value = card(securityRequirements=[{"schemes": {"k": {}}}])

    entries = signer(emptied=True).sign_json(value)["signatures"]

    assert len(entries) == 2
    data = f"{entries[1]['protected']}.{encode_base64url(encode_content(without_empties(value)))}".encode()
    assert key().public.verify("ES256", data, decode_base64url(entries[1]["signature"]))
    assert len(signer(emptied=True).sign_json(card())["signatures"]) == 1


@pytest.mark.req("SIGN-01")
def test_a_text_with_more_than_the_protocol_knows_gets_a_signature_over_all_of_it() -> None:
    value = signer().sign_json(card())
    known, hybrid = json.dumps(value).encode(), json.dumps({**value, "url": "https://agent.example/rpc"}).encode()

    report = verify(json.loads(sign_encoded(hybrid, [signer()])), trusting(compatible=False))

    assert [check.form for check in report.checks] == ["specification, known members", "specification"]
    assert report.content is not None
    assert report.content["url"] == "https://agent.example/rpc"
    assert sign_encoded(known, [signer()]) == known


@pytest.mark.req("SIGN-02")
def test_a_key_comes_as_text_as_jwk_or_out_of_a_file(tmp_path: Path) -> None:
    pem, file = key().pem(), tmp_path / "key.pem"
    file.write_bytes(pem)

    made = [CardSigner(given, kid="k1") for given in (pem, pem.decode(), file, str(file))]

    assert {each.algorithm for each in made} == {"ES256"}
    assert all(each.public_jwk["x"] == public()["x"] for each in made)
    assert not any("d" in each.public_jwk for each in made)
    assert len(CardSigner(pem).kid) == 43  # its thumbprint


@pytest.mark.parametrize(
    ("given", "more", "words"),
    [
        ("-----BEGIN nothing", {}, "cannot be read"),
        ("{", {}, "no JSON"),
        ({"kty": "oct", "k": "c2VjcmV0"}, {}, "kind is not known"),
        ({"kty": "EC"}, {}, "no key"),
        ("nowhere.pem", {}, "cannot be read"),
        (None, {"algorithm": "RS256"}, "cannot sign by 'RS256'; it can by ES256"),
        (None, {"algorithm": "none"}, "cannot sign by 'none'"),
        (None, {"algorithm": "HS256"}, "cannot sign by 'HS256'"),
    ],
)
@pytest.mark.req("AMB-85", "B129")
def test_a_key_that_cannot_be_used_is_refused_without_being_shown(given: Any, more: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        CardSigner(given if given is not None else key().pem(), **more)

    assert "c2VjcmV0" not in str(caught.value)


def test_the_public_half_cannot_sign() -> None:
    with pytest.raises(ConfigurationError, match="private key is needed"):
        CardSigner(public())


def test_a_short_rsa_key_is_refused() -> None:
    short = rsa.generate_private_key(65537, 1024)
    pem = short.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    with pytest.raises(ConfigurationError, match="1024 bits; at least 2048"):
        CardSigner(pem)


def test_a_signer_shows_no_secret() -> None:
    made = new_key("ES256", kid="k")

    assert repr(CardSigner(made)) == "CardSigner(SigningKey(kid='k', algorithm='ES256', <hidden>))"


def test_what_is_no_signer_is_refused_when_an_agent_is_made() -> None:
    with pytest.raises(ConfigurationError, match="card_signer must be a CardSigner"):
        Agent("A", card_signer=["key.pem"])  # type: ignore[list-item]


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rfc8785", None)
    monkeypatch.delitem(sys.modules, "dragoman.card.jcs", raising=False)

    with pytest.raises(MissingExtraError, match=r"dragoman\[auth\]"):
        signer()
    report = verify({**card(), "signatures": [{"protected": "e30", "signature": ""}]})
    assert report.outcome == "unverifiable"
    assert "dragoman[auth]" in report.checks[0].reason
