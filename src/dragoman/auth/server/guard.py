"""The one place where callers are identified, for every binding: what the card declares is what is enforced.

Theory. Every scheme is looked for in what came with a call, and each credential that is there is verified. Then the
alternatives are gone through in order: the first whose schemes are all good, with the scopes it demands, lets the call
in. When the schemes of one are good but scopes lack, that is 403; otherwise it is 401 with a challenge for each scheme.
A bad credential refuses a call that could have come without any: who shows one means to be somebody.

Spec: AUTH-05 to AUTH-07, AUTH-10, ERR-02 to ERR-04, AMB-34, SEC-07, SEC-09; RFC 6750 §3, RFC 9110 §11, RFC 9728 §5.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.auth.server.presented import Presented, RefusedError
from dragoman.auth.server.scheme import fingerprint
from dragoman.auth.server.security import Requirement, Security
from dragoman.auth.server.throttle import Failures
from dragoman.errors import PermissionDeniedError, RateLimitedError, UnauthenticatedError, UnavailableError
from dragoman.http.asgi import Scope, server_url
from dragoman.ports.operations import Caller

RESOURCE_PATH = "/.well-known/oauth-protected-resource"

_audit = logging.getLogger("dragoman.audit")


class _Verified(msgspec.Struct, frozen=True):
    """What came of the credentials of a call, by scheme; ``outages`` are those of which nothing could be told."""

    callers: dict[str, Caller]
    refusals: dict[str, RefusedError]
    outages: list[UnavailableError]

    def failures(self, found: Mapping[str, str]) -> list[str]:
        """The schemes whose credential was no good; one that is good by another scheme is none of them."""
        good = {found[name] for name in self.callers}
        return [name for name in self.refusals if found[name] not in good]


class Guard:
    """A :class:`Security` at work in one app.

    ``name`` is that of the agent, ``public_url`` the app's address where it is known; ``now`` is a clock in seconds
    that only goes forward. Calls may run together without limit.
    """

    def __init__(
        self, security: Security, *, name: str, public_url: str | None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.security = security
        self._name = name
        self._realm = security.realm or name
        self._public_url = public_url.rstrip("/") if public_url else ""
        self._failures = Failures(security.throttle) if security.throttle is not None else None
        self._now = now

    async def identify(self, scope: Scope) -> Caller:
        """Who makes a call; ``scope`` is like that of ASGI.

        Raises UnauthenticatedError or PermissionDeniedError, with a challenge in their metadata, RateLimitedError after
        too many failures, and UnavailableError when credentials cannot be verified now.
        """
        presented = Presented(scope, self.security.proxies)
        address = presented.address
        try:
            found = self._find(presented)
        except RefusedError as refused:
            self._note(presented, address, "", refused)
            raise self._unauthenticated(self.security.require, scope, refused) from None
        if not found:
            return self._admit_nobody(address, scope)
        mark = fingerprint("\0".join(found.values()))
        self._check_throttle(presented, address, mark)
        verified = await self._verify(found)
        failures = verified.failures(found)
        for name in failures:
            self._note(presented, address, name, verified.refusals[name])
        try:
            caller = self._decide(verified, scope)
        except UnauthenticatedError:
            if verified.outages:
                raise verified.outages[0] from None
            raise
        except PermissionDeniedError:
            _audit.warning("authorization failed: a scope is lacking address=%s at=%s", address or "-", presented.where)
            raise
        if self._failures is not None and not failures:
            self._failures.succeeded(mark)
        return replace(caller, address=address)

    def _find(self, presented: Presented) -> dict[str, str]:
        found = ((name, scheme.find(presented)) for name, scheme in self.security.schemes.items())
        return {name: credential for name, credential in found if credential}

    def _admit_nobody(self, address: str, scope: Scope) -> Caller:
        if self.security.lets_anonymous_in:
            return Caller(address=address)
        raise self._unauthenticated(self.security.require, scope)

    def _check_throttle(self, presented: Presented, address: str, mark: bytes) -> None:
        wait = self._failures.wait(address, mark, self._now()) if self._failures is not None else 0.0
        if wait:
            _audit.warning("authentication refused: too many failures address=%s at=%s", address, presented.where)
            raise RateLimitedError("Too many failed attempts to authenticate", retry_after=wait)

    async def _verify(self, found: Mapping[str, str]) -> _Verified:
        verified = _Verified({}, {}, [])
        for name, credential in found.items():
            try:
                verified.callers[name] = await self.security.schemes[name].verify(credential)
            except RefusedError as refused:
                verified.refusals[name] = refused
            except UnavailableError as error:
                verified.outages.append(error)
        return verified

    def _note(self, presented: Presented, address: str, scheme: str, refused: RefusedError) -> None:
        """Log a failure, without anything of the credential. Spec: SEC-07, SEC-09."""
        if self._failures is not None:
            self._failures.failed(address, self._now())
        _audit.warning(
            "authentication failed: scheme=%s why=%s address=%s at=%s",
            scheme or "-",
            refused.reason,
            address or "-",
            presented.where,
            extra={"audit": {"event": "authentication", "scheme": scheme, "why": refused.reason, "address": address}},
        )

    def _decide(self, verified: _Verified, scope: Scope) -> Caller:
        callers = verified.callers
        granted = {name: caller.scopes for name, caller in callers.items()}
        lacking: tuple[Requirement, frozenset[str]] | None = None
        for requirement in self.security.require:
            scopes = requirement.lacks(granted) if requirement.schemes else None
            if scopes is not None and not scopes:
                return _combine([callers[name] for name in requirement.schemes], granted)
            if scopes and lacking is None:
                lacking = requirement, scopes
        if lacking is not None:
            raise self._insufficient(lacking[0], scope)
        if not verified.refusals and not verified.outages and self.security.lets_anonymous_in:
            return _combine(list(callers.values()), granted)
        raise self._unauthenticated(self.security.require, scope, next(iter(verified.refusals.values()), None))

    # For what is known only when the operation is.

    def check(self, caller: Caller, required: Iterable[Requirement]) -> None:
        """Refuse a caller that meets none of some requirements. Raises like :meth:`identify`."""
        required = tuple(required)
        if not required or any(requirement.is_met_by(caller.granted) for requirement in required):
            return
        for requirement in required:
            if caller.granted and requirement.lacks(caller.granted):
                raise self._insufficient(requirement)
        raise self._unauthenticated(required)

    def check_known(self, caller: Caller) -> None:
        """Refuse a caller without credentials. Raises UnauthenticatedError. Spec: AMB-40."""
        if caller.is_anonymous:
            every = [Requirement({name: frozenset()}) for name in self.security.schemes]
            raise self._unauthenticated(every)

    # How it is told.

    def _unauthenticated(
        self, required: Iterable[Requirement], scope: Scope | None = None, refused: RefusedError | None = None
    ) -> UnauthenticatedError:
        text = "Authentication is required" if refused is None else f"The credentials were refused: {refused.told}"
        return UnauthenticatedError(text, metadata={"challenge": self._challenge(required, scope, refused)})

    def _insufficient(self, requirement: Requirement, scope: Scope | None = None) -> PermissionDeniedError:
        scopes = " ".join(sorted(frozenset().union(*requirement.schemes.values())))
        refused = RefusedError("scope", "The credentials lack a scope", error="insufficient_scope")
        challenge = self._challenge([requirement], scope, refused)
        return PermissionDeniedError(f"The credentials need the scope {scopes}", metadata={"challenge": challenge})

    def _challenge(self, required: Iterable[Requirement], scope: Scope | None, refused: RefusedError | None) -> str:
        """One challenge for each scheme, in order; those that look the same are one."""
        wanted: dict[str, frozenset[str]] = {}
        for requirement in required:
            for name, scopes in requirement.schemes.items():
                wanted[name] = wanted.get(name, frozenset()) | scopes
        base = self._public_url or ("" if scope is None else _base(scope))
        challenges = (self._one(name, scopes, base, refused) for name, scopes in wanted.items())
        return ", ".join(dict.fromkeys(challenges))

    def _one(self, name: str, scopes: frozenset[str], base: str, refused: RefusedError | None) -> str:
        scheme = self.security.schemes[name]
        parameters = {"realm": self._realm, **scheme.challenge_parameters}
        if scheme.challenge == "Bearer":
            if refused is not None and refused.error:
                parameters |= {"error": refused.error, "error_description": refused.told}
            if scopes:
                parameters["scope"] = " ".join(sorted(scopes))
            if base and self.has_resource:
                parameters["resource_metadata"] = f"{base}{RESOURCE_PATH}"
        return f"{scheme.challenge} " + ", ".join(f"{key}={_quoted(value)}" for key, value in parameters.items())

    # RFC 9728.

    @property
    def has_resource(self) -> bool:
        """Whether there is metadata to show: an authorization server whose tokens are taken."""
        return bool(self.security.issuers)

    def resource(self, base_url: str) -> bytes:
        """The metadata of this protected resource at an address, as JSON. Spec: RFC 9728 §2."""
        found: dict[str, Any] = {
            "resource": base_url,
            "authorization_servers": list(self.security.issuers),
            "bearer_methods_supported": ["header"],
            "resource_name": self._name,
        }
        if self.security.scopes:
            found["scopes_supported"] = list(self.security.scopes)
        return msgspec.json.encode(found)


def _combine(chosen: list[Caller], granted: Mapping[str, frozenset[str]]) -> Caller:
    """The first of those chosen, with the scopes of all, and what every scheme granted."""
    if not chosen:
        return Caller()
    scopes = frozenset().union(*(caller.scopes for caller in chosen))
    ends = [caller.expires_at for caller in chosen if caller.expires_at is not None]
    return replace(chosen[0], scopes=scopes, granted=granted, expires_at=min(ends, default=None))


def _base(scope: Scope) -> str:
    """The address that a call came to by its socket; empty where there is none that HTTP can reach."""
    if scope["type"] not in ("http", "websocket"):
        return ""
    scheme, mark, place = server_url(scope).partition("://")
    return f"{scheme.replace('ws', 'http')}{mark}{place}"


def _quoted(text: str) -> str:
    """A quoted string of RFC 9110, of printable ASCII."""
    plain = "".join(c if " " <= c <= "~" else "?" for c in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
