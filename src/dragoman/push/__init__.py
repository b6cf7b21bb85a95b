"""Push notifications, the sending half: webhooks of tasks, and deliveries that can be relied on."""

from dragoman.push.headers import NOTIFICATION_ID, NOTIFICATION_SIGNATURE, NOTIFICATION_TIMESTAMP, NOTIFICATION_TOKEN
from dragoman.push.service import PushService
from dragoman.push.settings import PushSettings
from dragoman.push.signing import BODY_HASH, JWKS_PATH, PushSigner

__all__ = [
    "BODY_HASH",
    "JWKS_PATH",
    "NOTIFICATION_ID",
    "NOTIFICATION_SIGNATURE",
    "NOTIFICATION_TIMESTAMP",
    "NOTIFICATION_TOKEN",
    "PushService",
    "PushSettings",
    "PushSigner",
]
