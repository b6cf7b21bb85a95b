"""The front of a runtime that takes signed requests: the one door of this package to botocore.

Spec: AC-F-07, agentcore 7.4.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from dragoman.errors import MissingExtraError
from dragoman.testing.agentcore_front.headers import SESSION_ID
from dragoman.testing.agentcore_front.incoming import Incoming
from dragoman.testing.agentcore_front.refusals import Fault, Refusal

SERVICE = "bedrock-agentcore"
ALGORITHM = "AWS4-HMAC-SHA256"
WINDOW = timedelta(minutes=5)
_DATE = "%Y%m%dT%H%M%SZ"


class AwsKey(msgspec.Struct, frozen=True):
    """A key of a caller. Its ``repr`` shows the id only."""

    key_id: str
    secret: str
    token: str | None = None

    def __repr__(self) -> str:
        return f"AwsKey({self.key_id})"


REHEARSAL_KEY = AwsKey("AKIDREHEARSAL0000001", "not-a-real-secret-key-for-rehearsals-0001")
"""The key that a front knows when it is told no other. It opens nothing else."""


class _Claim(msgspec.Struct, frozen=True):
    """What an ``Authorization`` header says."""

    key_id: str
    scope: str
    signed: tuple[str, ...]
    signature: str


class SigV4:
    """Takes requests that are signed with one of ``keys`` for the region. Raises MissingExtraError without botocore."""

    name = "SigV4"

    def __init__(self, *keys: AwsKey) -> None:
        _library()
        self._keys: Mapping[str, AwsKey] = {key.key_id: key for key in keys or (REHEARSAL_KEY,)}

    def check(self, request: Incoming) -> str:
        """The key id of the caller. Raises Refusal: ACCESS_DENIED for whatever is wrong, with no challenge."""
        claim = _read(request.headers.get("authorization", ""))
        key = self._keys.get(claim.key_id)
        if key is None:
            raise _denied("The security token included in the request is invalid")
        date = _check_date(request)
        if claim.scope != f"{date[:8]}/{request.region}/{SERVICE}/aws4_request":
            raise _denied("Credential should be scoped to a valid region, service and date")
        _check_signed(request, claim.signed)
        if key.token is not None and not _same(key.token, request.headers.get("x-amz-security-token", "")):
            raise _denied("The security token included in the request is invalid")
        if not _same(_sign(request, claim, key, date), claim.signature):
            raise _denied("Request signature could not be verified")
        return claim.key_id


def _read(authorization: str) -> _Claim:
    if not authorization:
        raise _denied("Missing Authentication Token")
    kind, _, rest = authorization.partition(" ")
    if kind != ALGORITHM:
        raise _denied(
            "Authorization method mismatch: this runtime takes requests that are signed with SigV4, not bearer tokens"
        )
    fields = dict(pair.strip().partition("=")[::2] for pair in rest.split(","))
    if not {"Credential", "SignedHeaders", "Signature"} <= fields.keys():
        raise _denied("The Authorization header is incomplete")
    key_id, _, scope = fields["Credential"].partition("/")
    return _Claim(key_id, scope, tuple(fields["SignedHeaders"].split(";")), fields["Signature"])


def _check_date(request: Incoming) -> str:
    text = request.headers.get("x-amz-date", "")
    try:
        date = datetime.strptime(text, _DATE).replace(tzinfo=UTC)
    except ValueError:
        raise _denied("A valid X-Amz-Date is missing") from None
    now = datetime.fromtimestamp(request.now, UTC)
    if date < now - WINDOW:
        raise _denied(f"Signature expired: {text} is earlier than {now - WINDOW:{_DATE}} ({now:{_DATE}} - 5 min.)")
    if date > now + WINDOW:
        raise _denied(
            f"Signature not yet current: {text} is later than {now + WINDOW:{_DATE}} ({now:{_DATE}} + 5 min.)"
        )
    return text


def _check_signed(request: Incoming, signed: tuple[str, ...]) -> None:
    wanted = {"host", "x-amz-date"} | {name for name in request.headers if name.startswith("x-amz-")}
    if SESSION_ID in request.headers:
        wanted.add(SESSION_ID)
    missing = sorted(wanted - set(signed))
    if missing:
        raise _denied(f"{missing[0]} must be signed")
    told = request.headers.get("x-amz-content-sha256")
    if told is not None and told != hashlib.sha256(request.body).hexdigest():  # botocore would take it at its word
        raise _denied("The provided x-amz-content-sha256 does not match what was computed")
    absent = sorted(set(signed) - set(request.headers))
    if absent:
        raise _denied(f"{absent[0]} is signed, but was not sent")


def _sign(request: Incoming, claim: _Claim, key: AwsKey, date: str) -> str:
    """The signature that the request should have, over exactly the headers that it says are signed."""
    auth, awsrequest, credentials = _library()
    signed = set(claim.signed)
    made = awsrequest.AWSRequest(method=request.method, url=request.url, data=request.body)
    for name, value in request.raw_headers:
        text = name.decode("latin-1").lower()
        if text in signed:
            made.headers.add_header(text, value.decode("latin-1"))
    made.context["timestamp"] = date
    signer = auth.SigV4Auth(credentials.Credentials(key.key_id, key.secret), SERVICE, request.region)
    return str(signer.signature(signer.string_to_sign(made, signer.canonical_request(made)), made))


def _library() -> tuple[Any, Any, Any]:
    try:
        from botocore import auth, awsrequest, credentials
    except ImportError as error:
        raise MissingExtraError("A front that verifies signatures", "agentcore") from error
    return auth, awsrequest, credentials


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _denied(message: str) -> Refusal:
    return Refusal(Fault.ACCESS_DENIED, message)
