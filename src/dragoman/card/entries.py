"""One signature of a card: what it says, and whether it holds. Pure: keys and time are passed in.

Theory. An entry is read first (what its protected header says, of which only ``alg``, ``kid`` and ``jku`` matter here);
then keys are found for it, elsewhere; then it is checked with these keys against the forms that the card may have been
signed in. Nothing that is not protected decides anything, and no key comes out of the entry itself.

Spec: §8.4.2, §8.4.3, SIGN-10 to SIGN-15, SIGN-19, AMB-81, AMB-83, AMB-85; RFC 7515 §4, §5.2, §7.2.1; B129.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from dragoman.card.canonical import Form, Json
from dragoman.jose import ALGORITHMS, PublicKey, decode_base64url, encode_base64url

Outcome = Literal["verified", "unverifiable", "invalid"]
"""``unverifiable``: nothing can be said, since no key is known; ``invalid``: it does not hold, or must not be used."""

MAX_HEADER = 8192
MAX_SIGNATURE = 4096
_MOST_KEYS = 4


class SignatureCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one signature.

    ``kid``, ``algorithm``: as its header says, empty where that could not be read; ``reason``: why it is not verified;
    ``form``: the form of the card that it holds for; ``key_from``: where its key came from, ``trust`` or an address.
    """

    outcome: Outcome
    kid: str = ""
    algorithm: str = ""
    reason: str = ""
    form: Form | None = None
    key_from: str = ""

    def __str__(self) -> str:
        if self.outcome == "verified":
            return f"verified (kid {self.kid}, {self.algorithm})"
        about = f"; kid {self.kid}, {self.algorithm}" if self.kid and self.kid not in self.reason else ""
        return f"{self.outcome} ({self.reason}{about})"


class Entry(msgspec.Struct, frozen=True):
    """A signature that can be checked: its header, and its parts."""

    algorithm: str
    kid: str
    jku: str
    protected: str
    signature: bytes

    def fail(self, reason: str, outcome: Outcome = "invalid") -> SignatureCheck:
        """It is not verified."""
        return SignatureCheck(outcome=outcome, kid=self.kid, algorithm=self.algorithm, reason=reason)


class Candidate(msgspec.Struct, frozen=True):
    """A form in which the card may have been signed: as JSON, and as the text that is signed."""

    form: Form
    content: Json
    payload: str


class BadEntryError(ValueError):
    """A signature that is refused before any key is looked for; ``check`` is what came of it."""

    def __init__(self, reason: str, *, kid: str = "", algorithm: str = "") -> None:
        super().__init__(reason)
        self.check = SignatureCheck(outcome="invalid", reason=reason, kid=kid, algorithm=algorithm)


def make_candidate(form: Form, content: Json, canonical: bytes) -> Candidate:
    """A form with its canonical bytes."""
    return Candidate(form, content, encode_base64url(canonical))


def read_entry(value: Any) -> Entry:
    """Read a signature of a card as JSON. Raises BadEntryError."""
    protected, signature = _parts(value)
    header = _header(protected)
    kid, algorithm = _text(header, "kid"), _text(header, "alg")
    try:
        _check_header(header, value.get("header"), kid, algorithm)
    except BadEntryError as error:
        raise BadEntryError(str(error), kid=kid[:200], algorithm=algorithm[:40]) from None
    return Entry(algorithm, kid, _text(header, "jku"), protected, signature)


def check_entry(entry: Entry, keys: Sequence[PublicKey], candidates: Iterable[Candidate], now: float) -> SignatureCheck:
    """Check a signature with the keys that were found for it, at a time in seconds since the epoch.

    Keys that have expired, are revoked, or are for something else are not used (Spec: SIGN-19).
    """
    unfit = ""
    forms = list(candidates)
    for key in keys[:_MOST_KEYS]:
        why = key.unfit(entry.algorithm, now)
        if why:
            unfit = unfit or why
            continue
        for candidate in forms:
            if key.verify(entry.algorithm, f"{entry.protected}.{candidate.payload}".encode(), entry.signature):
                return SignatureCheck(outcome="verified", kid=entry.kid, algorithm=entry.algorithm, form=candidate.form)
        unfit = "signature does not match"
    if not keys:
        return entry.fail(f"no key for kid {entry.kid}", "unverifiable")
    return entry.fail(unfit)


def _parts(value: Any) -> tuple[str, bytes]:
    if not isinstance(value, dict):
        raise BadEntryError("it is no object")
    protected, signature = value.get("protected"), value.get("signature")
    if not isinstance(protected, str) or not isinstance(signature, str):
        raise BadEntryError("protected or signature is missing")
    if len(protected) > MAX_HEADER or len(signature) > MAX_SIGNATURE:
        raise BadEntryError("it is too long")
    try:
        return protected, decode_base64url(signature)
    except ValueError:
        raise BadEntryError("signature is not base64url") from None


def _header(protected: str) -> Json:
    try:
        header = json.loads(decode_base64url(protected), object_pairs_hook=_pairs)
    except BadEntryError:
        raise
    except (ValueError, RecursionError):
        raise BadEntryError("the protected header is no JSON in base64url") from None
    if not isinstance(header, dict):
        raise BadEntryError("the protected header is no object")
    return header


def _pairs(pairs: list[tuple[str, Any]]) -> Json:
    if len(dict(pairs)) != len(pairs):
        raise BadEntryError("the protected header has two members of the same name")
    return dict(pairs)


def _text(header: Json, name: str) -> str:
    value = header.get(name, "")
    if not isinstance(value, str):
        raise BadEntryError(f"{name} in the protected header is no text")
    return value


def _check_header(header: Json, unprotected: Any, kid: str, algorithm: str) -> None:
    """Refuse what must not be verified. Spec: AMB-85."""
    if not algorithm:
        raise BadEntryError("the protected header has no alg")
    if algorithm not in ALGORITHMS:
        raise BadEntryError(f"the algorithm {algorithm[:40]} is refused")
    if not kid:
        raise BadEntryError("the protected header has no kid")
    if "crit" in header or "b64" in header:
        raise BadEntryError("the protected header demands an extension that is not known")
    if isinstance(unprotected, dict) and set(unprotected) & set(header):
        raise BadEntryError("the unprotected header repeats what is protected")
