"""Signing cards: JWS over the canonical form.

A served card carries one signature of each signer over the card itself. Where readers of older versions are shown a
card with further members, that text carries a second one over all of it, since some readers drop members that they do
not know before they verify, and others do not.

Spec: §8.4.1, §8.4.2, SIGN-01 to SIGN-14, SIGN-20, AMB-81, AMB-85; v0.3 §8.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.card.canonical import Json, parse_card, signed_content, without_empties, without_signatures
from dragoman.errors import ConfigurationError
from dragoman.http.guard import parse_target
from dragoman.jose import SigningKey, encode_base64url
from dragoman.model import AgentCard, AgentCardSignature, encode_json


class CardSigner:
    """Signs cards with one key.

    * ``key``: the private key: a PEM text, a JWK (a dict or its text), the path of a file with either, or a SigningKey;
    * ``kid``: what verifiers look the key up by; default that of the JWK, else its thumbprint (RFC 7638);
    * ``algorithm``: ``ES256``, ``RS256``, ``PS256``, ``EdDSA`` …; default what the key is usually used with;
    * ``jku``: the https address of a JWK set with the public key, written into the signature;
    * ``emptied``: add a signature over the card without any empty value where that is another text, for verifiers that
      drop them all. It vouches for less: a requirement without scopes is not in that form. Default False;
    * ``password``: of an encrypted PEM text.

    Raises ConfigurationError for a key that cannot be used, and MissingExtraError without the extra ``auth``.
    """

    def __init__(
        self,
        key: str | bytes | Path | Mapping[str, Any] | SigningKey,
        *,
        kid: str = "",
        algorithm: str = "",
        jku: str = "",
        emptied: bool = False,
        password: str | None = None,
    ) -> None:
        self._key = key if isinstance(key, SigningKey) else _read(key, kid, algorithm, password)
        self.jku = _checked_jku(jku)
        self._emptied = emptied
        encode_content({})  # so that a missing extra is found now

    def __repr__(self) -> str:
        return f"CardSigner({self._key!r})"

    @property
    def kid(self) -> str:
        """The identifier of the key."""
        return self._key.kid

    @property
    def algorithm(self) -> str:
        """The algorithm that it signs by."""
        return self._key.algorithm

    @property
    def public_jwk(self) -> dict[str, Any]:
        """The public key, to be published in a JWK set."""
        return self._key.public.members

    def sign(self, card: AgentCard) -> AgentCard:
        """The card with this signer's signatures behind those it has. Spec: SIGN-20."""
        content = signed_content(parse_card(encode_json(card)), unknown=False)
        return replace(card, signatures=[*card.signatures, *map(self.sign_content, self._contents(content))])

    def sign_json(self, card: Json) -> Json:
        """A card as JSON, members included that the protocol does not know, with its signatures behind those it has."""
        made = [_as_json(self.sign_content(content)) for content in self._contents(signed_content(card))]
        return {**card, "signatures": [*card.get("signatures", []), *made]}

    def sign_content(self, content: Json) -> AgentCardSignature:
        """The signature over a JSON object as it is. Spec: SIGN-08, SIGN-10 to SIGN-14."""
        protected = encode_base64url(encode_content(self._header()))
        data = f"{protected}.{encode_base64url(encode_content(content))}".encode()
        return AgentCardSignature(protected=protected, signature=encode_base64url(self._key.sign(data)))

    def _contents(self, content: Json) -> list[Json]:
        """What is signed: the form of the specification, and the one for other verifiers where it differs."""
        emptied = without_empties(content) if self._emptied else content
        return [content] if emptied == content else [content, emptied]

    def _header(self) -> dict[str, str]:
        header = {"alg": self._key.algorithm, "kid": self._key.kid, "typ": "JOSE"}
        return {**header, "jku": self.jku} if self.jku else header


def sign_card(card: AgentCard, signers: Sequence[CardSigner]) -> AgentCard:
    """The card with the signatures of all signers."""
    for signer in signers:
        card = signer.sign(card)
    return card


def sign_encoded(card: bytes, signers: Sequence[CardSigner]) -> bytes:
    """A card as JSON text, with signatures over all that it holds, where that is more than what the protocol knows.

    Those that it has stay. Spec: v0.3 §8.3.
    """
    value = parse_card(card)
    content = without_signatures(value)
    if content == signed_content(value, unknown=False):
        return card
    more = [_as_json(signer.sign_content(content)) for signer in signers]
    return msgspec.json.encode({**value, "signatures": [*value.get("signatures", []), *more]})


def encode_content(content: Json) -> bytes:
    """What is signed, as bytes. Raises MissingExtraError without the extra ``auth``, NoCanonicalFormError."""
    from dragoman.card.jcs import encode_canonical

    return encode_canonical(content)


def checked_signers(given: CardSigner | Sequence[CardSigner] | None) -> tuple[CardSigner, ...]:
    """The signers that a setting names. Raises ConfigurationError for what is none."""
    signers = () if given is None else (given,) if isinstance(given, CardSigner) else tuple(given)
    for signer in signers:
        if not isinstance(signer, CardSigner):
            raise ConfigurationError(f"card_signer must be a CardSigner, or several; not {type(signer).__name__}")
    return signers


def _as_json(signature: AgentCardSignature) -> Json:
    return {"protected": signature.protected, "signature": signature.signature}


def _read(key: str | bytes | Path | Mapping[str, Any], kid: str, algorithm: str, password: str | None) -> SigningKey:
    source: str | bytes | Mapping[str, Any]
    if isinstance(key, Path) or (isinstance(key, str) and not key.lstrip().startswith(("-----BEGIN", "{"))):
        try:
            source = Path(key).expanduser().read_bytes()
        except OSError as error:
            raise ConfigurationError(f"the key file {key} cannot be read: {error.strerror}") from error
    else:
        source = key
    return SigningKey.read(source, kid=kid, algorithm=algorithm, password=password)


def _checked_jku(jku: str) -> str:
    if jku and parse_target(jku).scheme != "https":
        raise ConfigurationError("jku must be an https address: keys from elsewhere are not trusted")
    return jku
