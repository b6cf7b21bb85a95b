"""Signatures of cards, between the SDKs and us."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.card import CardSigner, SignaturePolicy, SignatureReport, TrustStore, verify_card
from dragoman.jose import SigningKey, new_key
from tests.card.cards import card
from tests.peers.calling import Json
from tests.peers.processes import PROGRAMS, needed
from tools.peers import JS_SDK, SDK, interpreter, node

PEERS = pytest.mark.parametrize("peer", [SDK, JS_SDK])
ALGORITHMS = pytest.mark.parametrize("algorithm", ["ES256", "RS256", "PS256", "EdDSA"])
LOCKED: Json = {
    "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}},
    "securityRequirements": [{"schemes": {"key": {"list": ["tides.read"]}}}],
}
WIDE: Json = {
    **LOCKED,
    "name": "Gezeiten ≈ \u2028 \U0001f30a",
    "documentationUrl": "https://agent.example/docs",
    "provider": {"organization": "Desk", "url": "https://desk.example"},
    "capabilities": {
        "streaming": False,
        "pushNotifications": True,
        "extensions": [
            {"uri": "https://x.example", "params": {"n": 1e-7, "m": 4.5, "k": 1e21, "s": ["a", {"b": True}]}}
        ],
    },
}


def run(peer: str, value: Json, key: Json, header: Json, **more_given: bool) -> Any:
    """What a peer's program says."""
    given = json.dumps({"card": value, "key": key, "header": header, **more_given})
    if peer == SDK:
        command, more = [str(needed(interpreter, peer)), str(PROGRAMS / "sign_card.py")], {}
    else:
        found = needed(node, peer)
        command = [str(found.program), str(Path(__file__).parent / "js" / "sign_card.mjs")]
        more = {"PEER_MODULES": str(found.modules)}
    done = subprocess.run(command, input=given, env={**os.environ, **more}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def header_of(key: SigningKey) -> Json:
    return {"alg": key.algorithm, "kid": key.kid, "typ": "JOSE"}


def private(key: SigningKey) -> Json:
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    kinds = {"EC": ECKey, "OKP": OKPKey, "RSA": RSAKey}
    return {**kinds[key.public.kind.kty].import_key(key.pem()).as_dict(private=True), "kid": key.kid}


def verify(value: Json, key: SigningKey) -> SignatureReport:
    policy = SignaturePolicy(trust=TrustStore(key.public.members))
    return asyncio.run(verify_card(json.dumps(value).encode(), policy))


@pytest.mark.timeout(600)
@pytest.mark.req("SIGN-15", "B129")
@PEERS
@ALGORITHMS
def test_what_a_peer_signs_is_verified_here(peer: str, algorithm: str) -> None:
    key = new_key(algorithm, kid="k1")

    signed = run(peer, card(**WIDE), private(key), header_of(key))

    report = verify(signed, key)
    assert report.verified, report.checks
    assert not verify({**signed, "description": "tampered"}, key).verified


@pytest.mark.timeout(600)
@pytest.mark.req("SIGN-14", "AMB-81", "B129")
@PEERS
@ALGORITHMS
def test_what_is_signed_here_is_verified_by_a_peer(peer: str, algorithm: str) -> None:
    key = new_key(algorithm, kid="k1")

    signed = CardSigner(key).sign_json(card(**WIDE))

    assert run(peer, signed, key.public.members, header_of(key)) is True
    assert run(peer, {**signed, "description": "tampered"}, key.public.members, header_of(key)) is False


@pytest.mark.timeout(600)
@pytest.mark.req("AMB-81", "B129")
@PEERS
def test_a_card_with_empty_values_verifies_by_the_second_signature_only(peer: str) -> None:
    key = new_key(kid="k1")
    bare = card(**LOCKED, description="") | {"securityRequirements": [{"schemes": {"key": {}}}]}

    plain, both = CardSigner(key).sign_json(bare), CardSigner(key, emptied=True).sign_json(bare)

    assert run(peer, plain, key.public.members, header_of(key)) is False
    assert run(peer, both, key.public.members, header_of(key)) is True
    assert verify(both, key).checks[0].form == "specification"


@pytest.mark.timeout(600)
@pytest.mark.req("AMB-81", "B129")
@PEERS
def test_what_a_peer_leaves_out_of_its_signature_is_not_used_here(peer: str) -> None:
    key = new_key(kid="k1")
    bare = card(**LOCKED) | {"securityRequirements": [{"schemes": {"key": {}}}]}

    signed = run(peer, bare, private(key), header_of(key))

    report = verify(signed, key)
    assert report.verified
    assert report.content is not None
    assert "securityRequirements" not in report.content


@pytest.mark.timeout(600)
@pytest.mark.req("B129")
def test_what_the_javascript_sdk_signs_as_its_own_object_leaves_schemes_out_so_that_nobody_can_verify_it() -> None:
    key = new_key(kid="k1")

    plain = run(JS_SDK, card(), private(key), header_of(key), parsed=True)
    locked = run(JS_SDK, card(**LOCKED), private(key), header_of(key), parsed=True)

    assert verify(plain, key).verified
    assert not verify(locked, key).verified
    assert run(JS_SDK, locked, key.public.members, header_of(key)) is False
