"""What a push configuration must look like, so that it can be called and what it says fits into headers.

Where the address leads is not looked at here. Spec: PCFG-13, PUSH-02, AMB-62, SEC-03.
"""

from __future__ import annotations

import string
from collections.abc import Iterable

from dragoman.errors import FieldViolation
from dragoman.model import TaskPushNotificationConfig

MOST_URL = 2_048
MOST_SECRET = 8_192
MOST_ID = 256
_TOKEN = frozenset(string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~")


def check_webhook(config: TaskPushNotificationConfig, path: str = "") -> Iterable[FieldViolation]:
    """What is wrong with a configuration; ``path`` is what comes before the names of its fields."""
    if not config.url:
        yield FieldViolation(f"{path}url", "must not be empty")
    elif len(config.url) > MOST_URL:
        yield FieldViolation(f"{path}url", f"must have at most {MOST_URL} characters")
    if len(config.id) > MOST_ID or not config.id.isprintable():
        yield FieldViolation(f"{path}id", f"must have at most {MOST_ID} characters, all of them printable")
    if not _fits_header(config.token):
        yield FieldViolation(f"{path}token", _HEADER_TEXT)
    given = config.authentication
    if given is None:
        return
    if not given.scheme:
        yield FieldViolation(f"{path}authentication.scheme", "must not be empty")
    elif len(given.scheme) > MOST_ID or not _TOKEN.issuperset(given.scheme):
        yield FieldViolation(f"{path}authentication.scheme", "must be the name of an HTTP authentication scheme")
    if not _fits_header(given.credentials):
        yield FieldViolation(f"{path}authentication.credentials", _HEADER_TEXT)


_HEADER_TEXT = f"must be visible ASCII characters and blanks within, at most {MOST_SECRET}"


def _fits_header(value: str) -> bool:
    return len(value) <= MOST_SECRET and value.isascii() and value.isprintable() and value == value.strip()
