"""Verifying the signatures of a card: finding the keys, and what comes of it all.

Spec: §8.4.3, SIGN-15 to SIGN-20, AMB-81 to AMB-87, B129.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.card.canonical import Json, UnreadableCardError, forms, parse_card
from dragoman.card.entries import (
    BadEntryError,
    Candidate,
    Entry,
    Outcome,
    SignatureCheck,
    check_entry,
    make_candidate,
    read_entry,
)
from dragoman.card.trust import SignaturePolicy
from dragoman.errors import CardSignatureError, ClientError, MissingExtraError
from dragoman.http.client import HttpClient, HttpxClient
from dragoman.http.guard import parse_target, shown
from dragoman.jose import PublicKey

MAX_SIGNATURES = 16
"""Signatures of one card that are looked at."""


class SignatureReport(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the signatures of a card.

    ``checks`` are those of each signature, in order; ``content`` is the card as JSON in the form that was signed, None
    when none was verified. Nothing that is not in there may be used of a verified card.
    """

    checks: Sequence[SignatureCheck] = ()
    content: Json | None = None

    @property
    def outcome(self) -> Outcome | None:
        """That of the card: the best of its signatures, except that a bad one counts more than one that could not be
        checked. None for a card without any."""
        found = {check.outcome for check in self.checks}
        order: tuple[Outcome, ...] = ("verified", "invalid", "unverifiable")
        return next((outcome for outcome in order if outcome in found), None)

    @property
    def verified(self) -> bool:
        """Whether one signature at least was verified."""
        return self.outcome == "verified"

    @property
    def failures(self) -> list[SignatureCheck]:
        """The signatures that were not verified."""
        return [check for check in self.checks if check.outcome != "verified"]


class Origin(msgspec.Struct, frozen=True):
    """Where a card came from: its address (empty for a file), and the client that it was fetched with, if one was
    given."""

    url: str = ""
    http: HttpxClient | None = None


async def verify_card(
    card: bytes, policy: SignaturePolicy | None = None, *, url: str = "", http: HttpxClient | None = None
) -> SignatureReport:
    """Check the signatures of a card, which is the JSON text that was received.

    ``url`` is the address that it came from: the key set of a signature is fetched from that origin, and from those
    that the policy names. ``http`` is the httpx2 client that fetched it, if it was not an ordinary one. Never raises
    for a bad card or signature: the report says it.
    """
    policy = policy or SignaturePolicy()
    try:
        value = parse_card(card)
    except UnreadableCardError as error:
        return SignatureReport(checks=[SignatureCheck(outcome="invalid", reason=f"the card is unreadable: {error}")])
    entries = value.get("signatures")
    if not entries or not isinstance(entries, list):
        return SignatureReport()
    if not value.get("supportedInterfaces"):
        return _judge_older(value, entries, policy)
    async with AsyncExitStack() as stack:
        verifier = _Verifier(policy, Origin(url, http), stack)
        return await verifier.verify(value, entries[:MAX_SIGNATURES])


def check_policy(report: SignatureReport, policy: SignaturePolicy, place: str) -> None:
    """Raise CardSignatureError when the policy does not take a card of which this was found. Spec: AMB-87."""
    if policy.mode == "off" or report.verified:
        return
    if report.outcome is None:
        if policy.mode == "required":
            raise CardSignatureError(f"The card at {place} is not signed, and a signature is required", url=place)
        return
    if policy.mode == "required" or report.outcome == "invalid":
        reasons = "; ".join(dict.fromkeys(map(str, report.checks)))
        raise CardSignatureError(f"No signature of the card at {place} can be relied on: {reasons}", url=place)


def _judge_older(value: Json, entries: list[Any], policy: SignaturePolicy) -> SignatureReport:
    """Signatures of version 0.3 are over a form that only their makers know. Spec: v0.3 §5.3."""
    if policy.older is None:
        reason = "signatures of version 0.3 have no form that could be checked"
        checks = [SignatureCheck(outcome="unverifiable", reason=reason) for _ in entries[:MAX_SIGNATURES]]
        return SignatureReport(checks=checks)
    if policy.older(value):
        return SignatureReport(checks=[SignatureCheck(outcome="verified", kid="-", algorithm="0.3")], content=value)
    return SignatureReport(checks=[SignatureCheck(outcome="invalid", reason="refused by the verifier for version 0.3")])


class _Verifier:
    """Verifies one card."""

    def __init__(self, policy: SignaturePolicy, origin: Origin, stack: AsyncExitStack) -> None:
        self._policy = policy
        self._origin = origin
        self._stack = stack
        self._clients: dict[bool, HttpClient] = {}

    async def verify(self, value: Json, entries: list[Any]) -> SignatureReport:
        try:
            candidates = _candidates(value, compatible=self._policy.compatible)
            checks = [await self._check(entry, candidates) for entry in entries]
        except MissingExtraError as error:
            checks = [SignatureCheck(outcome="unverifiable", reason=str(error)) for _ in entries]
            return SignatureReport(checks=checks)
        signed = {check.form for check in checks}
        return SignatureReport(checks=checks, content=next((c.content for c in candidates if c.form in signed), None))

    async def _check(self, value: Any, candidates: list[Candidate]) -> SignatureCheck:
        try:
            entry = read_entry(value)
        except BadEntryError as error:
            return error.check
        if entry.algorithm not in self._policy.algorithms:
            return entry.fail(f"the algorithm {entry.algorithm} is not accepted here")
        if entry.kid in self._policy.trust.revoked:
            return entry.fail("the key is revoked")
        if not candidates:
            return entry.fail("the card has no canonical form")
        checks, problems = [], []
        async for source, keys, problem in self._sources(entry):
            check = check_entry(entry, keys, candidates, self._policy.now())
            if check.outcome == "verified":
                return replace(check, key_from=source)
            checks += [check] if keys else []
            problems += [problem] if problem else []
        known = "; ".join([f"no key for kid {entry.kid}", *problems])
        return checks[0] if checks else entry.fail(known, "unverifiable")

    async def _sources(self, entry: Entry) -> AsyncIterator[tuple[str, list[PublicKey], str]]:
        """Where keys for a signature may be, in order: those that are known, then the set that it names.

        A key that is known is not the only one that may be called so: identifiers are chosen by whoever makes a key.
        """
        yield "trust", self._policy.trust.find(entry.kid), ""
        for url in self._policy.trust.urls:
            yield "trust", *await self._fetch(url, entry.kid, named=True)
        if not entry.jku:
            return
        try:
            allowed = self._policy.allows(entry.jku, self._origin.url)
        except ClientError as error:
            yield "", [], str(error)
            return
        if allowed:
            yield shown(entry.jku), *await self._fetch(entry.jku, entry.kid)
        else:
            yield "", [], f"keys are not taken from {shown(entry.jku)}"

    async def _fetch(self, url: str, kid: str, *, named: bool = False) -> tuple[list[PublicKey], str]:
        """Keys from an address; ``named``: by the user, who may well mean a private one."""
        try:
            http = self._client(url, guarded=not (named or self._policy.allow_private))
            return await self._policy.key_sets.find(url, kid, http, local=named), ""
        except ClientError as error:
            return [], str(error)

    def _client(self, url: str, *, guarded: bool) -> HttpClient:
        """The client for an address. That of the connection may hold credentials: it goes to the card's origin only."""
        given = self._policy.http
        if given is None and self._origin.http is not None and _same_origin(url, self._origin.url):
            given = self._origin.http
        if given is not None:
            return HttpClient(given, allow_private=not guarded)
        found = self._clients.get(guarded)
        if found is None:
            found = self._clients[guarded] = HttpClient(allow_private=not guarded)
            self._stack.push_async_callback(found.aclose)
        return found


def _same_origin(one: str, other: str) -> bool:
    return bool(other) and parse_target(one).origin == parse_target(other).origin


def _candidates(value: Json, *, compatible: bool) -> list[Candidate]:
    """The forms of a card, each text once. Raises MissingExtraError."""
    from dragoman.card.jcs import NoCanonicalFormError, encode_canonical

    found: dict[bytes, Candidate] = {}
    for form, content in forms(value, compatible=compatible):
        try:
            canonical = encode_canonical(content)
        except NoCanonicalFormError:
            continue
        found.setdefault(canonical, make_candidate(form, content, canonical))
    return list(found.values())
