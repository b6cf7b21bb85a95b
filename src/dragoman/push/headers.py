"""Names of the headers of a notification.

Spec: PUSH-18, AMB-66, AMB-68.
"""

from __future__ import annotations

NOTIFICATION_TOKEN = "X-A2A-Notification-Token"
"""The token of the webhook, as its owner set it."""

NOTIFICATION_ID = "X-A2A-Notification-Id"
"""Names the update for one webhook: the same in every attempt to deliver it."""

NOTIFICATION_TIMESTAMP = "X-A2A-Notification-Timestamp"
"""When this attempt was made, in seconds since the epoch."""

NOTIFICATION_SEQUENCE = "X-A2A-Notification-Sequence"
"""The number of the update in the task's log; grows within one task."""

NOTIFICATION_SIGNATURE = "X-A2A-Notification-Signature"
"""A JWT about the notification, when deliveries are signed."""
