"""What push notifications can be told."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.http.client import resolve
from dragoman.http.guard import Resolver
from dragoman.push.sealing import Secrets
from dragoman.push.signing import PushSigner

_MOST = {"webhooks_per_task": 1_000, "concurrency": 10_000, "attempts": 1_000}


class PushSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How tasks are told to webhooks. Times are in seconds.

    * ``updates``: ``"all"``, the default, or ``"states"``: only changes of state (Spec: AMB-65, PUSH-20);
    * ``timeout`` (10): how long one attempt may take (Spec: PUSH-06);
    * ``attempts`` (12): failures in a row after which what waits for a webhook becomes dead letters; from then on each
      further update is tried once, until one succeeds (Spec: PUSH-05, PUSH-07);
    * ``first_pause`` (1), ``longest_pause`` (300): the time after a failure, which doubles with each further one; a
      random half of it is left out. A ``Retry-After`` of the webhook may make it longer, up to an hour;
    * ``webhooks_per_task`` (20): how many one task may have;
    * ``concurrency`` (100): webhooks that are told at the same time; those that failed have half of it at most;
    * ``allowed_hosts``: hosts that may be called although their addresses are private, as ``name`` or ``name:port``;
      ``allow_private``: call any address, which is for development only (Spec: AMB-71, PUSH-08);
    * ``show_secrets``: have Get and List show tokens and credentials to who may see the task (Spec: AMB-62);
    * ``secret_keys``: keys of 32 bytes that tokens and credentials are encrypted with in the store, the first one for
      new ones; default none (extra ``auth``, Spec: PUSH-10);
    * ``signer``: signs deliveries, see :class:`~dragoman.push.signing.PushSigner`;
    * ``poll`` (1): how often other processes on the same store are looked after for what they left undelivered;
    * ``close_wait`` (2): how long the end of the process waits for deliveries; what is left stays in the store;
    * ``keep_dead_letters`` (30 days): None: for ever;
    * ``resolver``: how names are resolved, default the system's way.

    Raises ConfigurationError for a value out of range.
    """

    updates: Literal["all", "states"] = "all"
    timeout: float = 10.0
    attempts: int = 12
    first_pause: float = 1.0
    longest_pause: float = 300.0
    webhooks_per_task: int = 20
    concurrency: int = 100
    allowed_hosts: tuple[str, ...] = ()
    allow_private: bool = False
    show_secrets: bool = False
    secret_keys: tuple[bytes, ...] = ()
    signer: PushSigner | None = None
    poll: float = 1.0
    close_wait: float = 2.0
    keep_dead_letters: float | None = 30 * 86_400.0
    resolver: Resolver = resolve

    def __post_init__(self) -> None:
        if self.updates not in ("all", "states"):
            raise ConfigurationError('push: updates must be "all" or "states"')
        if isinstance(self.allowed_hosts, str):
            raise ConfigurationError("push: allowed_hosts must be a tuple of hosts, not a string")
        for name, most in _MOST.items():
            if not 1 <= getattr(self, name) <= most:
                raise ConfigurationError(f"push: {name} must be 1 to {most}")
        for name in ("timeout", "first_pause", "longest_pause", "poll"):
            if getattr(self, name) <= 0:
                raise ConfigurationError(f"push: {name} must be more than 0 seconds")
        for name in ("close_wait", "keep_dead_letters"):
            if (getattr(self, name) or 0) < 0:
                raise ConfigurationError(f"push: {name} must be 0 seconds or more")

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "secret_keys")
        return f"PushSettings({', '.join(shown)})"

    def secrets(self) -> Secrets | None:
        """What keeps secrets in the store; None: they are stored as they are. Raises MissingExtraError."""
        if not self.secret_keys:
            return None
        from dragoman.push.ciphering import Cipher

        return Cipher(self.secret_keys)
