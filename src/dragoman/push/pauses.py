"""How long to wait after a failure, and what an answer of a webhook means. Pure.

Spec: PUSH-05, PUSH-07, PUSH-11, AMB-69, AMB-71.
"""

from __future__ import annotations

from typing import Literal

import msgspec

MOST_RETRY_AFTER = 3_600.0
REFUSALS = frozenset({400, 413, 415, 422})
"""Answers about the notification itself, which a repetition would not change."""
GONE = 410

Kind = Literal["delivered", "failed", "refused", "gone"]


class Outcome(msgspec.Struct, frozen=True):
    """What came of an attempt.

    ``failed`` is tried again; ``refused`` is an answer about this very update; ``gone`` one about the webhook.
    """

    kind: Kind
    reason: str = ""
    retry_after: float = 0.0


def judge(status: int, retry_after: str = "") -> Outcome:
    """What an answer means. Redirects are not followed, and are failures."""
    if 200 <= status < 300:
        return Outcome("delivered")
    reason = f"HTTP {status}"
    if status == GONE:
        return Outcome("gone", reason)
    if status in REFUSALS:
        return Outcome("refused", reason)
    if 300 <= status < 400:
        return Outcome("failed", f"{reason}: redirects are not followed")
    return Outcome("failed", reason, _seconds(retry_after))


def _seconds(text: str) -> float:
    text = text.strip()
    return min(float(text), MOST_RETRY_AFTER) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0


def pause_after(failures: int, first: float, longest: float, chance: float, retry_after: float = 0.0) -> float:
    """Seconds until the next attempt after so many failures in a row; ``chance`` is random, from 0 up to 1."""
    whole: float = min(longest, first * 2.0 ** min(failures - 1, 60))
    return max(whole * (0.5 + chance / 2), retry_after)
