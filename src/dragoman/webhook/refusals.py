"""How a webhook answers: what it took, and what it refuses.

A sender learns no more than it has to: that a notification is not genuine, not why. Everything that may be right when
it is sent again gets an answer that has it sent again.

Spec: PUSH-11, PUSH-14, SEC-09.
"""

from __future__ import annotations

import math

import msgspec

Header = tuple[str, str]


class Answer(msgspec.Struct, frozen=True):
    """An HTTP answer."""

    status: int
    headers: tuple[Header, ...] = ()
    body: bytes = b""


TAKEN = Answer(204)
_PLAIN = ("Content-Type", "text/plain; charset=utf-8")


class Refusal(Exception):
    """A notification is not taken. ``answer`` is for the sender, the message for the log."""

    def __init__(self, answer: Answer, why: str) -> None:
        super().__init__(why)
        self.answer = answer


def _answer(status: int, text: str, *headers: Header) -> Answer:
    return Answer(status, (_PLAIN, *headers), text.encode() + b"\n")


def not_genuine(why: str) -> Refusal:
    """401: the proof is missing or wrong, or the task is not one that is expected."""
    return Refusal(_answer(401, "not accepted", ("WWW-Authenticate", 'Bearer realm="webhook"')), why)


def broken(why: str) -> Refusal:
    """400: it cannot be understood."""
    return Refusal(_answer(400, "no notification"), why)


def wrong_type(given: str) -> Refusal:
    """415: its Content-Type is none of JSON."""
    return Refusal(_answer(415, "application/a2a+json or application/json"), f"the Content-Type is {given[:80]!r}")


def too_large(limit: int) -> Refusal:
    """413."""
    return Refusal(_answer(413, f"more than {limit} bytes"), f"larger than {limit} bytes")


def too_slow() -> Refusal:
    """408: the body does not come."""
    return Refusal(_answer(408, "too slow", ("Connection", "close")), "the body did not come in time")


def too_many(seconds: float) -> Refusal:
    """429: this sender has to slow down."""
    after = str(max(1, math.ceil(seconds)))
    return Refusal(_answer(429, "slow down", ("Retry-After", after)), "too many in a short time")


def not_now(why: str, seconds: int = 1) -> Refusal:
    """503: it may be taken when it is sent again."""
    return Refusal(_answer(503, "not taken", ("Retry-After", str(seconds))), why)


def wrong_method() -> Refusal:
    """405: a webhook is for POST."""
    return Refusal(_answer(405, "POST", ("Allow", "POST")), "not a POST")


def wrong_path() -> Refusal:
    """404: the webhook is somewhere else."""
    return Refusal(_answer(404, "not here"), "another path")
