"""Cards and keys for the tests of signatures."""

from __future__ import annotations

import asyncio
import copy
import json
from functools import cache
from typing import Any

from dragoman.card import CardSigner, SignaturePolicy, SignatureReport, TrustStore, verify_card
from dragoman.card.canonical import Json
from dragoman.card.signing import encode_content
from dragoman.jose import SigningKey, encode_base64url, new_key

URL = "https://agent.example/.well-known/agent-card.json"

PLAIN: Json = {
    "name": "Tides",
    "description": "High and low water",
    "version": "2.4.0",
    "supportedInterfaces": [
        {"url": "https://agent.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    ],
    "capabilities": {"streaming": False},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "tides", "name": "Tides", "description": "Tells the tides", "tags": ["sea"]}],
}


def card(**more: Any) -> Json:
    """A card as JSON; None takes a member away."""
    found = {**copy.deepcopy(PLAIN), **more}
    return {name: member for name, member in found.items() if member is not None}


def key(algorithm: str = "ES256", kid: str = "k1") -> SigningKey:
    """The same key each time."""
    return _key(algorithm, kid)


@cache
def _key(algorithm: str, kid: str) -> SigningKey:
    return new_key(algorithm, kid=kid)


def signer(algorithm: str = "ES256", kid: str = "k1", **more: Any) -> CardSigner:
    """A signer with that key."""
    return CardSigner(key(algorithm, kid), **more)


def public(algorithm: str = "ES256", kid: str = "k1", **more: Any) -> Json:
    """The JWK of that key."""
    return {**key(algorithm, kid).public.members, **more}


def trusting(*jwks: Json, **more: Any) -> SignaturePolicy:
    """A policy that trusts keys, by default the usual one."""
    return SignaturePolicy(trust=TrustStore({"keys": list(jwks or [public()])}), **more)


def entry(content: Json, header: Json | None = None, by: SigningKey | None = None, **more: Any) -> Json:
    """A signature over exactly this content, with this protected header."""
    by = by or key()
    protected = {"alg": by.algorithm, "kid": by.kid, "typ": "JOSE"} if header is None else header
    text = encode_base64url(json.dumps(protected).encode())
    data = f"{text}.{encode_base64url(encode_content(content))}".encode()
    return {"protected": text, "signature": encode_base64url(by.sign(data)), **more}


def verify(value: Json, policy: SignaturePolicy | None = None, url: str = URL) -> SignatureReport:
    """What is found of a card, as it would come over the wire."""
    return asyncio.run(verify_card(json.dumps(value).encode(), policy or trusting(), url=url))
