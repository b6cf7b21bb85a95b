"""Context ids that a server can recognize as its own without remembering them.

Where a server takes only contexts that it made itself, an id carries a seal over the caller's scope: an id that was
given to one caller is unknown when another one names it. Spec: CTX-01, CTX-03, CTX-04, AMB-45.
"""

from __future__ import annotations

import hashlib
import hmac

_SEAL_DIGITS = 32


def seal_context(key: bytes, fresh_id: str, *, agent: str = "", tenant: str, owner: str) -> str:
    """A context id made of ``fresh_id`` and its seal. ``key`` is a secret that all servers of the agent share."""
    return f"{fresh_id}-{_seal(key, fresh_id, agent, tenant, owner)}"


def is_sealed_context(key: bytes, context_id: str, *, agent: str = "", tenant: str, owner: str) -> bool:
    """Whether the id was made by :func:`seal_context` with the same key for the same scope."""
    fresh_id, _, seal = context_id.rpartition("-")
    return hmac.compare_digest(seal.encode(), _seal(key, fresh_id, agent, tenant, owner).encode())


def _seal(key: bytes, fresh_id: str, agent: str, tenant: str, owner: str) -> str:
    facts = b"".join(len(text := fact.encode()).to_bytes(4, "big") + text for fact in (fresh_id, agent, tenant, owner))
    return hmac.new(key, facts, hashlib.sha256).hexdigest()[:_SEAL_DIGITS]
