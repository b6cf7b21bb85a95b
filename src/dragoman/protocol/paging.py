"""Page tokens: where a listing goes on, sealed.

Theory. A token holds the sort key of the last task of a page, so a page is found by key and not by counting, and
an HMAC over that key together with everything that selected the listing: agent, tenant, owner and filters. A token
that is garbage, forged, from another caller or from another filter therefore fails the same check and gives the same
error.

Spec: LIST-02, AMB-50, AMB-51.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from dragoman.errors import FieldViolation, InvalidParamsError
from dragoman.model import TaskState

_MAC_BYTES = 16
_TIME_BYTES = 8
_MAX_TOKEN = 4096


def encode_page_token(
    key: bytes,
    position: tuple[int, str],
    *,
    agent: str = "",
    tenant: str = "",
    owner: str = "",
    context_id: str = "",
    state: TaskState | None = None,
    since_ms: int | None = None,
) -> str:
    """A token for the page after ``position``, the sort key (milliseconds since the epoch, task id).

    ``key`` is a secret of 32 bytes that all servers of the listing share; the other arguments are the caller's scope
    and the filters of the listing. The token is base64url text without padding. Spec: LIST-02, LIST-07.
    """
    payload = position[0].to_bytes(_TIME_BYTES, "big", signed=True) + position[1].encode()
    seal = _seal(key, payload, agent, tenant, owner, context_id, state, since_ms)
    return base64.urlsafe_b64encode(seal + payload).rstrip(b"=").decode("ascii")


def decode_page_token(
    key: bytes,
    token: str,
    *,
    agent: str = "",
    tenant: str = "",
    owner: str = "",
    context_id: str = "",
    state: TaskState | None = None,
    since_ms: int | None = None,
) -> tuple[int, str]:
    """The position that :func:`encode_page_token` put into the token.

    Raises InvalidParamsError with a violation of ``pageToken`` for anything that was not made with the same key, scope
    and filters. Spec: LIST-01, LIST-04, AMB-51.
    """
    data = _decode_text(token)
    seal, payload = data[:_MAC_BYTES], data[_MAC_BYTES:]
    expected = _seal(key, payload, agent, tenant, owner, context_id, state, since_ms)
    if len(payload) < _TIME_BYTES or not hmac.compare_digest(seal, expected):
        raise _invalid()
    return int.from_bytes(payload[:_TIME_BYTES], "big", signed=True), payload[_TIME_BYTES:].decode()


def _decode_text(token: str) -> bytes:
    if len(token) > _MAX_TOKEN:
        raise _invalid()
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):  # ValueError: text that is not ASCII
        raise _invalid() from None


def _seal(
    key: bytes,
    payload: bytes,
    agent: str,
    tenant: str,
    owner: str,
    context_id: str,
    state: TaskState | None,
    since_ms: int | None,
) -> bytes:
    digest = hashlib.sha256()
    since = "" if since_ms is None else str(since_ms)
    for fact in (agent, tenant, owner, context_id, state.value if state else "", since):
        # Lone surrogates are possible in text from JSON; the digest only has to tell texts apart.
        text = fact.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(8, "big") + text)
    return hmac.digest(key, digest.digest() + payload, "sha256")[:_MAC_BYTES]


def _invalid() -> InvalidParamsError:
    violation = FieldViolation("pageToken", "must be the nextPageToken of a page of this same listing, or be left out")
    return InvalidParamsError(violations=[violation])
