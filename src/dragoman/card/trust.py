"""Which keys are trusted for signatures of cards, and what a client makes of them.

Spec: §8.4.3, SIGN-15 to SIGN-19, AMB-81, AMB-86, AMB-87; v0.3 §5.3.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from dragoman.card.canonical import Json
from dragoman.errors import ConfigurationError
from dragoman.http.client import HttpxClient
from dragoman.http.guard import parse_target
from dragoman.jose import ALGORITHMS, BadKeyError, KeySets, PublicKey, read_keys

Mode = Literal["off", "if-present", "required"]
MODES: tuple[Mode, ...] = ("off", "if-present", "required")
MAX_FILE = 1024 * 1024

Source = str | Path | Mapping[str, Any]


class TrustStore:
    """Keys of providers that are known. Spec: SIGN-18.

    ``sources`` are JWK sets or JWKs (dicts), files with one or with the PEM text of a public key or a certificate, and
    https addresses of JWK sets (plain http to this machine only), which are fetched when they are needed. ``revoked``
    are identifiers of keys that must not be used whoever offers them (Spec: SIGN-19).

    Raises ConfigurationError for what cannot be read, or holds a private key, and OutboundUrlError for an address that
    is none.
    """

    def __init__(self, *sources: Source, revoked: Sequence[str] = ()) -> None:
        addresses = [source for source in sources if isinstance(source, str) and "://" in source]
        for address in addresses:
            parse_target(address)
        self.urls = tuple(addresses)
        self.revoked = frozenset(revoked)
        self._keys = [key for source in sources if source not in addresses for key in _keys_of(source)]

    def find(self, kid: str) -> list[PublicKey]:
        """The keys at hand that have an identifier."""
        return [key for key in self._keys if key.kid == kid]


class SignaturePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a client makes of signatures on cards.

    * ``mode``: ``"if-present"`` (default): a card whose signatures do not hold is refused, one without any or with a
      key that is not known is taken; ``"required"``: only a card with a signature that was verified is taken;
      ``"off"``: they are not looked at (Spec: AMB-87);
    * ``trust``: keys that are known;
    * ``own_jku``: whether the key set that a signature names is fetched when it lies at the origin that the card came
      from, default True; ``jku_origins``: further origins, such as ``https://keys.example``, from which it is
      (Spec: AMB-86);
    * ``algorithms``: those that are accepted, default all that are known; ``none`` and shared secrets never are;
    * ``compatible``: whether the forms of other signers are tried besides that of the specification (Spec: AMB-81);
    * ``allow_private``: whether key sets are fetched from private addresses, too, default False;
    * ``http``: an httpx2 client to fetch key sets with, not closed here; by default that of the connection for the
      card's own origin, and one of its own for others;
    * ``older``: judges the card of an agent of version 0.3 as JSON, signatures included; such cards have no canonical
      form, and are unverifiable without it;
    * ``key_sets``: a cache of key sets to share; ``now``: the time in seconds since the epoch.

    Raises ConfigurationError for a mode, an origin or an algorithm that is none.
    """

    mode: Mode = "if-present"
    trust: TrustStore = msgspec.field(default_factory=TrustStore)
    own_jku: bool = True
    jku_origins: Sequence[str] = ()
    algorithms: Sequence[str] = tuple(ALGORITHMS)
    compatible: bool = True
    allow_private: bool = False
    http: HttpxClient | None = None
    older: Callable[[Json], bool] | None = None
    key_sets: KeySets = msgspec.field(default_factory=KeySets)
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigurationError(f"signatures: {self.mode!r} is none of {', '.join(MODES)}")
        unknown = [name for name in self.algorithms if name not in ALGORITHMS]
        if unknown or not self.algorithms:
            allowed = ", ".join(ALGORITHMS)
            raise ConfigurationError(f"signatures: the algorithm {unknown[:1] or 'none'} cannot be; allowed: {allowed}")
        for origin in self.jku_origins:
            if parse_target(origin).scheme != "https":
                raise ConfigurationError(f"signatures: keys are fetched over https only, not from {origin}")

    def allows(self, jku: str, card_url: str) -> bool:
        """Whether keys may be fetched from the place that a signature names. Raises OutboundUrlError for no address."""
        there = parse_target(jku)
        allowed = {parse_target(origin).origin for origin in self.jku_origins}
        if self.own_jku and card_url:
            allowed.add(parse_target(card_url).origin)
        return there.scheme == "https" and there.origin in allowed


def checked_policy(given: SignaturePolicy | Mode | None) -> SignaturePolicy | None:
    """The policy that a setting means, None for the usual one. Raises ConfigurationError."""
    if given is None or isinstance(given, SignaturePolicy):
        return given
    if not isinstance(given, str):
        raise ConfigurationError(f"signatures must be a SignaturePolicy or one of {', '.join(MODES)}")
    return SignaturePolicy(mode=given)


def _keys_of(source: Source) -> list[PublicKey]:
    if isinstance(source, Mapping):
        found, place = read_keys(source), "the keys given"
    else:
        found, place = _keys_in(Path(source)), str(source)
    if not found:
        raise ConfigurationError(f"trust: {place} hold no public key that can be used")
    return found


def _keys_in(file: Path) -> list[PublicKey]:
    try:
        with file.expanduser().open("rb") as opened:
            data = opened.read(MAX_FILE + 1)
    except OSError as error:
        raise ConfigurationError(f"trust: {file} cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE:
        raise ConfigurationError(f"trust: {file} is larger than {MAX_FILE} bytes")
    try:
        return read_keys(data)
    except BadKeyError as error:
        raise ConfigurationError(f"trust: {file}: {error}") from error
