"""The service: what the runtime asks of push notifications, put together.

Spec: §3.1.7 to §3.1.10, PCFG-01 to PCFG-13, AMB-60 to AMB-63, AMB-71.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.errors import (
    ConfigurationError,
    FieldViolation,
    InvalidParamsError,
    OutboundUrlError,
    RateLimitedError,
    TaskNotFoundError,
)
from dragoman.model import SendMessageRequest, TaskPushNotificationConfig
from dragoman.ports.clock import Clock, SystemClock
from dragoman.ports.observing import WorkObserver
from dragoman.ports.operations import CURRENT_VERSION, CallContext
from dragoman.ports.push import DeadLetter, Encoder, Webhook, WebhookStore
from dragoman.ports.store import TaskStore
from dragoman.protocol.lifecycle import SETTLED
from dragoman.push.calling import Caller
from dragoman.push.courier import Post
from dragoman.push.deliveries import Deliveries
from dragoman.push.sealing import open_config, seal_config
from dragoman.push.settings import PushSettings

_SETTLED = tuple(sorted(state.number for state in SETTLED))


class PushService:
    """Webhooks of the tasks of ``agent`` in a store; implements :class:`~dragoman.ports.push.Push`.

    ``encoders`` are the forms of versions other than the current one, ``observer`` is told while something is to be
    delivered. Raises ConfigurationError for a store that keeps no webhooks.
    """

    def __init__(
        self,
        store: TaskStore,
        settings: PushSettings | None = None,
        *,
        clock: Clock | None = None,
        encoders: Mapping[str, Encoder] | None = None,
        observer: WorkObserver | None = None,
        agent: str = "",
    ) -> None:
        if not isinstance(store, WebhookStore):
            raise ConfigurationError(
                f"push: the store {type(store).__name__} keeps no webhooks; see dragoman.ports.push.WebhookStore"
            )
        self.settings = settings = settings or PushSettings()
        self._store: WebhookStore = store
        self._agent = agent
        self._clock = clock = clock or SystemClock()
        self._secrets = secrets = settings.secrets()
        self._caller = Caller(settings)
        post = Post(store, store, self._caller, clock, settings, encoders or {}, secrets, agent)
        self._deliveries = Deliveries(post, observer)

    # Life.

    async def open(self) -> None:
        """Begin to deliver, also what a lost process left. The store is open."""
        self._store.watch_webhooks(self._deliveries.notice, self._agent)
        self._deliveries.start()

    async def close(self) -> None:
        """Give what is due its time, then leave the rest to the next process."""
        await self._deliveries.stop(self.settings.close_wait)
        await self._caller.aclose()

    # With messages.

    async def check(self, config: TaskPushNotificationConfig, field: str = "") -> None:
        """Raise InvalidParamsError when the webhook may not be called. Spec: AMB-71, PUSH-08, PUSH-09."""
        try:
            await self._caller.check(config.url)
        except OutboundUrlError as error:
            violation = FieldViolation(f"{field}url", f"may not be called: {str(error).rpartition(': ')[2]}")
            raise InvalidParamsError("The webhook is refused", violations=[violation]) from error

    def seal(self, request: SendMessageRequest, call: CallContext, task_id: str) -> Webhook | None:
        """The webhook that comes with a message, as it is stored with a new task. Spec: B117."""
        config = _config_of(request)
        return None if config is None else self._seal(config, call, task_id)

    def _seal(self, config: TaskPushNotificationConfig, call: CallContext, task_id: str) -> Webhook:
        return seal_config(config, self._id(config, call, task_id), call.wire, self._secrets)

    def _id(self, config: TaskPushNotificationConfig, call: CallContext, task_id: str) -> str:
        """Callers of older versions find a webhook without an id under that of its task."""
        return config.id or (self._clock.new_id() if call.wire == CURRENT_VERSION else task_id)

    async def accept(self, request: SendMessageRequest, call: CallContext, task_id: str) -> None:
        """Keep the webhook that comes with a message to a stored task, if there is one."""
        webhook = self.seal(request, call, task_id)
        if webhook is not None:
            await self._keep(task_id, webhook, ())

    # The four operations.

    async def create(self, config: TaskPushNotificationConfig, call: CallContext) -> TaskPushNotificationConfig:
        """Add a webhook, or replace that with the same id; a task that waits or is over is told as it is, at once."""
        webhook = self._seal(config, call, config.task_id)
        await self._keep(config.task_id, webhook, _SETTLED)
        return self._open(config.task_id, webhook, shows_secrets=True)

    def _open(self, task_id: str, webhook: Webhook, *, shows_secrets: bool) -> TaskPushNotificationConfig:
        return open_config(task_id, webhook, shows_secrets=shows_secrets, secrets=self._secrets)

    async def _keep(self, task_id: str, webhook: Webhook, snapshot_in: tuple[int, ...]) -> None:
        most = self.settings.webhooks_per_task
        now_ms = self._clock.now_ms()
        kept = await self._store.keep_webhook(task_id, webhook, most=most, now_ms=now_ms, snapshot_in=snapshot_in)
        if kept == "unknown":
            raise TaskNotFoundError("Task not found", metadata={"taskId": task_id[:256]})
        if kept == "full":
            text = f"A task may have {most} push notification configurations; delete one, or replace it by its id"
            raise RateLimitedError(text, metadata={"taskId": task_id[:256], "limit": str(most)})
        self._deliveries.dismiss(task_id, webhook.id)

    async def get(self, task_id: str, webhook_id: str) -> TaskPushNotificationConfig | None:
        """The webhook for showing, or None."""
        webhook = await self._store.webhook(task_id, webhook_id)
        return None if webhook is None else self._open(task_id, webhook, shows_secrets=self.settings.show_secrets)

    async def page(self, task_id: str, after: int, limit: int) -> tuple[list[TaskPushNotificationConfig], int | None]:
        """Webhooks for showing, and the key to go on after; None at the end."""
        found = await self._store.webhooks(task_id, after, limit + 1)
        shown = found[:limit]
        showing = self.settings.show_secrets
        configs = [self._open(task_id, webhook, shows_secrets=showing) for _, webhook in shown]
        return configs, shown[-1][0] if len(found) > limit else None

    async def delete(self, task_id: str, webhook_id: str) -> None:
        """Remove a webhook, if it is there."""
        await self._store.remove_webhook(task_id, webhook_id)
        self._deliveries.dismiss(task_id, webhook_id)

    # Dead letters.

    async def dead_letters(self, *, after: str = "", limit: int = 100) -> list[DeadLetter]:
        """What could not be delivered, oldest first; go on after the ``id`` of the last one. Spec: PUSH-07."""
        return await self._store.dead_letters(after, limit, self._agent)


def _config_of(request: SendMessageRequest) -> TaskPushNotificationConfig | None:
    configuration = request.configuration
    return None if configuration is None else configuration.task_push_notification_config
