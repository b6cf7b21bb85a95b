"""Push notifications: what the runtime asks of whoever delivers them, and what that one asks of a store.

Theory. The outbox of a webhook is the log of its task: beside the webhook a store keeps how far it was told, and a
time from which on it is *due*, which is set in the same commit that adds records to the log. So no update is lost
between the event and its delivery, an update costs one number however many webhooks there are, and order needs no care.
Whoever delivers claims what is due; a claim hides the webhook from other claims until it runs out, and has a number, by
which what a late deliverer reports is told from what counts.

Spec: §3.1.7 to §3.1.10, §4.3.3, PCFG-01, PCFG-02, PUSH-04.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from dragoman.model import SendMessageRequest, Task, TaskPushNotificationConfig
from dragoman.ports.operations import CallContext

Kept = Literal["kept", "full", "unknown"]
"""What became of a webhook: ``full`` when its task has as many as it may, ``unknown`` when there is no such task."""


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook of a task as a store keeps it. Stores do not look into ``payload``.

    ``wire_version`` is the version of the protocol that its receiver reads: that of the request that set it.
    """

    id: str
    payload: bytes
    wire_version: str = "1.0"


class DueWebhook(msgspec.Struct, kw_only=True):
    """A claimed webhook.

    * ``position``: the number of the last record that it was told of; ``last``: that of the task's last record;
    * ``snapshot``: it is to be told of the whole task as it was at its position, before what came later;
    * ``state``: number of the state that it was told last, 0 before the first;
    * ``failures``: failed attempts in a row;
    * ``claim``: the number of the claim.
    """

    task_id: str
    webhook: Webhook
    position: int
    last: int
    snapshot: bool
    state: int
    failures: int
    claim: int


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An update that could not be delivered: the records ``first`` to ``last`` of a task's log.

    ``url`` is shown without query, ``reason`` says what the last attempt ended with; ``failed_ms`` is in milliseconds
    since the epoch, ``id`` identifies the letter. Spec: PUSH-07.
    """

    id: str
    task_id: str
    webhook_id: str
    url: str
    first: int
    last: int
    reason: str
    attempts: int
    failed_ms: int
    agent: str = ""


class Settlement(msgspec.Struct, kw_only=True):
    """How far a claimed webhook was told, and what is next.

    ``due_ms``: when it is due again (which also is how a claim is prolonged), or None: when there is more to tell.
    ``letters`` are kept with it. ``gone``: the webhook is removed.
    """

    task_id: str
    webhook_id: str
    claim: int
    position: int
    state: int
    failures: int
    snapshot: bool = False
    due_ms: int | None = None
    gone: bool = False
    letters: Sequence[DeadLetter] = ()


@runtime_checkable
class WebhookStore(Protocol):
    """A store that can keep webhooks beside its tasks. Every method may raise StoreError; all may run together.

    The webhooks of a task are removed with it; dead letters stay.
    """

    def watch_webhooks(self, call: Callable[[], None], agent: str = "") -> None:
        """Call this in the event loop whenever this object has written something of the agent's that is due.

        One listener for an agent at most; it may be called for what is another agent's.
        """
        ...

    async def keep_webhook(
        self, task_id: str, webhook: Webhook, *, most: int, now_ms: int, snapshot_in: Sequence[int] = ()
    ) -> Kept:
        """Add a webhook, or give the one with the same id a new payload, which ends a claim on it.

        A new one is told of what comes after the last record now. When the task is in a state with one of the numbers
        ``snapshot_in``, it is due at once, for the whole task as it is at its position. A task may have ``most``.
        """
        ...

    async def webhook(self, task_id: str, webhook_id: str) -> Webhook | None:
        """The webhook, or None."""
        ...

    async def webhooks(self, task_id: str, after: int, limit: int) -> list[tuple[int, Webhook]]:
        """Up to ``limit`` webhooks of the task with keys above ``after``, in the order in which they were added."""
        ...

    async def remove_webhook(self, task_id: str, webhook_id: str) -> None:
        """Remove it, if it is there. Spec: PCFG-08, PCFG-09."""
        ...

    async def claim_webhooks(self, now_ms: int, until_ms: int, limit: int, agent: str = "") -> list[DueWebhook]:
        """Claim up to ``limit`` webhooks of the agent's tasks that are due, the longest due first, until a time."""
        ...

    async def next_due(self, agent: str = "") -> int | None:
        """When the agent's next webhook is due, which may be in the past; None: none is."""
        ...

    async def settle_webhooks(self, settlements: Sequence[Settlement], now_ms: int) -> Sequence[bool]:
        """Write down how far webhooks were told. False for one whose claim is not in force any more."""
        ...

    async def dead_letters(self, after: str, limit: int, agent: str = "") -> list[DeadLetter]:
        """Up to ``limit`` dead letters of the agent with ids above ``after``, by id, which is by time."""
        ...

    async def remove_dead_letters(self, before_ms: int, limit: int, agent: str = "") -> int:
        """Remove up to ``limit`` of the agent's that failed before; how many."""
        ...


class Encoder(Protocol):
    """The form in which receivers of one version of the protocol are told of a task."""

    content_type: str
    headers: Mapping[str, str]

    def encode(self, task: Task) -> bytes:
        """The body for the task as it is after an update."""
        ...


class Push(Protocol):
    """What the runtime asks of push notifications."""

    async def open(self) -> None:
        """Begin to deliver. The store is open."""
        ...

    async def close(self) -> None:
        """Deliver for a moment, then no more; what is left stays due in the store, which is still open."""
        ...

    async def check(self, config: TaskPushNotificationConfig, field: str = "") -> None:
        """Raise InvalidParamsError when a webhook may not be called; ``field`` is where in the request it stands."""
        ...

    def seal(self, request: SendMessageRequest, call: CallContext, task_id: str) -> Webhook | None:
        """The webhook that comes with a message, as it is to be stored with a new task; None when there is none."""
        ...

    async def accept(self, request: SendMessageRequest, call: CallContext, task_id: str) -> None:
        """Keep the webhook that comes with a message to a stored task, if there is one."""
        ...

    async def create(self, config: TaskPushNotificationConfig, call: CallContext) -> TaskPushNotificationConfig:
        """Keep a webhook of a task that the caller may see. Raises TaskNotFoundError, RateLimitedError."""
        ...

    async def get(self, task_id: str, webhook_id: str) -> TaskPushNotificationConfig | None:
        """The webhook for showing, or None."""
        ...

    async def page(self, task_id: str, after: int, limit: int) -> tuple[list[TaskPushNotificationConfig], int | None]:
        """Webhooks for showing, and the key to go on after; None at the end."""
        ...

    async def delete(self, task_id: str, webhook_id: str) -> None:
        """Remove a webhook, if it is there."""
        ...
