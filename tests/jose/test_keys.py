"""Keys, and the text that signatures are written in."""

from __future__ import annotations

import sys

import pytest

import dragoman.jose
from dragoman.errors import MissingExtraError
from dragoman.jose import (
    ALGORITHMS,
    BadKeyError,
    PublicKey,
    SigningKey,
    decode_base64url,
    encode_base64url,
    new_key,
    read_keys,
)
from tests.card.cards import key, public


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xfe", bytes(range(256))])
def test_base64url_comes_back(data: bytes) -> None:
    assert decode_base64url(encode_base64url(data)) == data


@pytest.mark.parametrize("text", ["=", "YQ==", "a+b/", "a b", "a", "YQ\n", "ä"])
def test_what_is_no_base64url_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode_base64url(text)


@pytest.mark.req("AMB-85")
def test_no_algorithm_has_a_shared_secret_or_none() -> None:
    assert not [name for name in ALGORITHMS if name.startswith("HS") or name.lower() == "none"]


@pytest.mark.parametrize("algorithm", ["none", "HS256", "ES256K", "", "RSA-OAEP"])
def test_no_key_is_made_for_another_algorithm(algorithm: str) -> None:
    with pytest.raises(BadKeyError):
        new_key(algorithm)


def test_the_usual_algorithm_is_that_of_the_kind_of_key() -> None:
    made = [SigningKey.read(key(name).pem()).algorithm for name in ("ES384", "ES512", "PS256", "EdDSA")]

    assert made == ["ES384", "ES512", "RS256", "EdDSA"]


@pytest.mark.parametrize(
    "members",
    [
        {"d": "AAAA"}, {"k": "AAAA"}, {"x": "AAAA"}, {"x": 5}, {"kid": 5}, {"exp": "soon"}, {"nbf": True},
        {"exp": 10**400}, {"kty": "RSA"}, {"kty": "later"}, {"kty": None}, {"crv": "secp256k1"}, {"crv": "P-384"},
    ],
)  # fmt: skip
def test_what_is_no_public_key_is_refused_without_being_shown(members: dict[str, object]) -> None:
    with pytest.raises(BadKeyError) as caught:
        PublicKey({**public(), **members})

    assert "AAAA" not in str(caught.value)
    assert read_keys({"keys": [{**public(), **members}, public("RS256", "k2")]})[0].kid == "k2"


def test_names_of_one_algorithm_are_the_same_to_a_key() -> None:
    edwards = PublicKey(public("EdDSA"))

    assert (edwards.unfit("EdDSA", 0), edwards.unfit("Ed25519", 0)) == ("", "")
    assert edwards.unfit("ES256", 0) == "the key is not for ES256"
    assert PublicKey(public("RS256")).unfit("PS256", 0) == "the key is not for PS256"


def test_an_encrypted_key_needs_its_password() -> None:
    from joserfc.jwk import ECKey

    pem = ECKey.import_key(key().pem()).as_pem(private=True, password="open sesame")

    assert SigningKey.read(pem, password="open sesame").algorithm == "ES256"
    with pytest.raises(BadKeyError, match="needs its password"):
        SigningKey.read(pem)
    with pytest.raises(BadKeyError, match="password is wrong") as caught:
        SigningKey.read(pem, password="sesame")
    assert "sesame" not in str(caught.value)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joserfc", None)
    monkeypatch.delitem(sys.modules, "dragoman.jose.library", raising=False)
    monkeypatch.delattr(dragoman.jose, "library", raising=False)

    with pytest.raises(MissingExtraError, match=r"dragoman\[auth\]"):
        new_key()
