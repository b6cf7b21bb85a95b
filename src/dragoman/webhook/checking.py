"""Is a notification genuine, and one that is waited for? A pure machine, but for the keys, which are passed in.

Theory. In two steps, since the head of a request is there before its body: what the head alone can prove is looked at
first, so that nothing of a stranger is read. The second step reads the body, and finds the task. A notification has to
bring every kind of proof that was asked for; a token that was made for one task stands for the receiver's own token.

Spec: PUSH-13, PUSH-14, PUSH-17, PUSH-18, AMB-66, AMB-68, AMB-69.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.jose import PublicKey
from dragoman.model import AuthenticationInfo, TaskArtifactUpdateEvent, TaskPushNotificationConfig
from dragoman.push.headers import (
    NOTIFICATION_ID,
    NOTIFICATION_SEQUENCE,
    NOTIFICATION_SIGNATURE,
    NOTIFICATION_TIMESTAMP,
    NOTIFICATION_TOKEN,
)
from dragoman.webhook.expected import Expected, new_token
from dragoman.webhook.memory import Webhook
from dragoman.webhook.notification import Event, Notification, task_of
from dragoman.webhook.proofs import Secrets, authorization, digest, written
from dragoman.webhook.reading import is_json, read_event
from dragoman.webhook.refusals import broken, not_genuine, too_large, wrong_type
from dragoman.webhook.settings import ReceiverSettings
from dragoman.webhook.signatures import SenderKeys, Signed, check_age, check_claims, check_key, read_jwt

Tasks = Callable[[str], bool]


class Head(msgspec.Struct, frozen=True):
    """What the head of a genuine request has shown; ``signed`` still is to be verified."""

    headers: Mapping[str, str]
    token: str
    expected: Expected | None
    signed: Signed | None


class Checked(msgspec.Struct, frozen=True):
    """A genuine notification, the webhook that it came by, and who waits for it."""

    notification: Notification
    webhook: Webhook
    expected: Expected | None


class Checks:
    """What a receiver asks of notifications; the arguments are those of :class:`~dragoman.webhook.Receiver`."""

    def __init__(
        self,
        *,
        url: str,
        tokens: Sequence[str],
        authentication: Sequence[AuthenticationInfo],
        keys: SenderKeys | None,
        tasks: Tasks | None,
        settings: ReceiverSettings,
    ) -> None:
        self.keys = keys
        self._url = url
        self._tokens = Secrets(tokens)
        self._authorizations = Secrets(written(info) for info in authentication)
        self._shown = authentication[0] if authentication else None
        self._tasks = tasks
        self._settings = settings
        self._expected: dict[str, Expected] = {}
        self._audience = url
        if keys is not None:
            self._audience = url if keys.audience is None else keys.audience
            if not self._audience and keys.audience is None:
                raise ConfigurationError("webhook: signatures are for an address; say which by url=")

    def expect(self, task_id: str) -> Expected:
        """Expect the notifications of one more task, or of one whose id is not known yet."""
        if not self._url:
            raise ConfigurationError("webhook: agents have to be told an address; say which by url=")
        token = new_token()
        key = digest(token)
        config = TaskPushNotificationConfig(url=self._url, token=token, authentication=self._shown)
        expected = Expected(config, task_id, lambda: self._forget(key))
        self._expected[key] = expected
        return expected

    def _forget(self, key: str) -> None:
        self._expected.pop(key, None)

    # The head.

    def check_head(self, headers: Mapping[str, str]) -> Head:
        """Look at the headers, whose names are in lower case. Raises Refusal."""
        content_type = headers.get("content-type", "")
        if not is_json(content_type):
            raise wrong_type(content_type)
        token = headers.get(NOTIFICATION_TOKEN.lower(), "")
        expected = self._expected.get(digest(token))
        if expected is None:
            self._check_stranger(token)
        if self._authorizations and not self._authorizations.hold(authorization(headers.get("authorization", ""))):
            raise not_genuine("its credentials are missing or wrong")
        return Head(headers, token, expected, None if self.keys is None else read_jwt(self._signature(headers)))

    def _check_stranger(self, token: str) -> None:
        """Nobody expects a notification with this token, so that the receiver's own proofs have to do."""
        if self._tokens and not self._tokens.hold(token):
            raise not_genuine("its token is missing or wrong")
        if self._tasks is None:
            raise not_genuine("it is about no task that is expected")

    def _signature(self, headers: Mapping[str, str]) -> str:
        """The JWT; a sender without credentials may send it in their place. Spec: AMB-67."""
        own = headers.get(NOTIFICATION_SIGNATURE.lower(), "")
        if own or self._authorizations:
            return own
        scheme, _, rest = headers.get("authorization", "").partition(" ")
        return rest.strip() if scheme.lower() == "bearer" else ""

    # The body.

    def check_body(self, head: Head, body: bytes, keys: Sequence[PublicKey], now: float) -> Checked:
        """Look at the body; ``keys`` are those of the signature, ``now`` is in seconds since the epoch.

        Raises Refusal.
        """
        if len(body) > self._settings.max_body_bytes:
            raise too_large(self._settings.max_body_bytes)
        id, sent = self._check_time(head, body, keys, now)
        event, wire = read_event(body)
        task_id = task_of(event)
        self._check_task(head.expected, task_id)
        notification = Notification(
            event=event,
            task_id=task_id,
            id=id or _id_of(event, body),
            wire=wire,
            sequence=_number(head.headers.get(NOTIFICATION_SEQUENCE.lower(), "")),
            sent_ms=None if sent is None else round(sent * 1000),
            signed=head.signed is not None,
        )
        return Checked(notification, (self._proven(head), task_id), head.expected)

    def _proven(self, head: Head) -> str:
        """What tells webhooks apart: the token, unless anybody may write there what they like."""
        return digest(head.token) if head.expected is not None or self._tokens else ""

    def _check_time(self, head: Head, body: bytes, keys: Sequence[PublicKey], now: float) -> tuple[str, float | None]:
        """The id of the notification, empty when it has none, and when it was sent, as far as that is said."""
        sent = _number(head.headers.get(NOTIFICATION_TIMESTAMP.lower(), ""))
        check_age(sent, now, self._settings)
        if head.signed is None or self.keys is None:
            return head.headers.get(NOTIFICATION_ID.lower(), "")[:256], sent
        check_key(head.signed, keys, self.keys.algorithms, now)
        id = check_claims(head.signed, body, self._audience, self.keys.issuer, now, self._settings)
        return id, float(head.signed.claims["iat"])

    def _check_task(self, expected: Expected | None, task_id: str) -> None:
        """Spec: PUSH-13."""
        if expected is not None:
            if not task_id or not expected.takes(task_id):
                raise not_genuine("its token is that of another task")
        elif self._tasks is None or not self._tasks(task_id):
            raise not_genuine("it is about no task that is expected")


def _id_of(event: Event, body: bytes) -> str:
    """An id for a notification that has none. A chunk that is appended may well be equal to another: it has none."""
    if isinstance(event, TaskArtifactUpdateEvent) and event.append:
        return ""
    return hashlib.sha256(body).hexdigest()


def _number(text: str) -> int | None:
    """A number in a header, None for anything else."""
    if not (text.isascii() and text.isdigit()):
        return None
    if len(text) > 15:
        raise broken("a number in its headers is too large")
    return int(text)
