"""From the settings of an agent and its app to push notifications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.card import CardSigner
from dragoman.errors import ConfigurationError
from dragoman.push import JWKS_PATH, PushSettings


def push_settings(given: bool | PushSettings | None) -> PushSettings | None:
    """The settings, or None when no webhooks are told. Raises ConfigurationError for anything else."""
    if given is None or given is False:
        return None
    if given is True:
        return PushSettings()
    if isinstance(given, PushSettings):
        return given
    raise ConfigurationError("push must be True, False or a PushSettings")


def choose_push(agent: Any, given: bool | PushSettings | None) -> PushSettings | None:
    """What an app was told; where it was told nothing, what its agent says."""
    if given is not None:
        return push_settings(given)
    found: PushSettings | None = getattr(agent, "push", None)
    return found


def published_keys(pushing: PushSettings | None, signers: Sequence[CardSigner] = ()) -> dict[str, bytes]:
    """The document with the keys that deliveries and the card are verified with, by its path; none without any."""
    keys = [*pushing.signer.public_keys] if pushing is not None and pushing.signer is not None else []
    keys += [signer.public_jwk for signer in signers]
    return {JWKS_PATH: msgspec.json.encode({"keys": keys})} if keys else {}
