"""One attempt: the request to a webhook, and the guard that it passes.

Spec: PUSH-01 to PUSH-03, PUSH-06, PUSH-08, PUSH-18, AMB-66 to AMB-68, AMB-71.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping

from dragoman.errors import ClientError, DragomanError, OutboundUrlError
from dragoman.http.client import HttpClient
from dragoman.http.guard import Target, parse_target, shown, vet
from dragoman.push.headers import (
    NOTIFICATION_ID,
    NOTIFICATION_SEQUENCE,
    NOTIFICATION_SIGNATURE,
    NOTIFICATION_TIMESTAMP,
    NOTIFICATION_TOKEN,
)
from dragoman.push.pauses import Outcome, judge
from dragoman.push.sealing import Address
from dragoman.push.settings import PushSettings

logger = logging.getLogger("dragoman.push")

_MOST_ANSWER = 64 * 1024
_RESOLVE_WAIT = 3.0


class Notification:
    """What is said to a webhook: a body, and what goes beside it."""

    __slots__ = ("body", "content_type", "headers", "number", "of_task")

    def __init__(
        self, number: int, body: bytes, content_type: str, headers: Mapping[str, str], *, of_task: bool
    ) -> None:
        self.number = number
        self.body = body
        self.content_type = content_type
        self.headers = headers
        self.of_task = of_task

    def id_for(self, task_id: str, webhook_id: str) -> str:
        """The same in every attempt, in whatever process."""
        kind = "task" if self.of_task else "update"
        text = "\0".join((task_id, webhook_id, kind, str(self.number)))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Caller:
    """Makes the requests. ``settings`` say which addresses are allowed."""

    def __init__(self, settings: PushSettings) -> None:
        self._settings = settings
        self._guarded = HttpClient(allow_private=False, resolver=settings.resolver)
        self._free = HttpClient()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._guarded.aclose()
        await self._free.aclose()

    async def check(self, url: str) -> None:
        """Raise OutboundUrlError when the address may not be called.

        A name that cannot be resolved now passes: it is looked at again with each delivery.
        """
        if self._is_free(parse_target(url)):
            return
        try:
            async with asyncio.timeout(_RESOLVE_WAIT):
                await vet(url, self._settings.resolver)
        except (OSError, TimeoutError):
            logger.info("The host of the webhook %s cannot be found now", shown(url))

    def _is_free(self, target: Target) -> bool:
        if self._settings.allow_private:
            return True
        allowed = self._settings.allowed_hosts
        return bool(allowed) and (target.host in allowed or f"{target.host}:{target.port}" in allowed)

    async def post(self, task_id: str, webhook_id: str, address: Address, said: Notification, now: int) -> Outcome:
        """Make one attempt; ``now`` is in seconds since the epoch. Raises nothing but cancellation."""
        try:
            free = self._is_free(parse_target(address.url))
            answer = await (self._free if free else self._guarded).fetch(
                "POST",
                address.url,
                headers=self._headers(task_id, webhook_id, address, said, now),
                body=said.body,
                timeout=self._settings.timeout,
                max_bytes=_MOST_ANSWER,
            )
        except (ClientError, OutboundUrlError) as error:
            return Outcome("failed", str(error)[:300])
        except DragomanError as error:
            return Outcome("failed", type(error).__name__)
        return judge(answer.status, answer.headers.get("retry-after", ""))

    def _headers(self, task_id: str, webhook_id: str, address: Address, said: Notification, now: int) -> dict[str, str]:
        notification_id = said.id_for(task_id, webhook_id)
        headers = {
            "Content-Type": said.content_type,
            NOTIFICATION_ID: notification_id,
            NOTIFICATION_TIMESTAMP: str(now),
            NOTIFICATION_SEQUENCE: str(said.number),
            **said.headers,
        }
        if address.token:
            headers[NOTIFICATION_TOKEN] = address.token
        signature = self._sign(notification_id, address, said, now)
        if signature:
            headers[NOTIFICATION_SIGNATURE] = signature
        if address.scheme and address.credentials:
            headers["Authorization"] = f"{address.scheme} {address.credentials}"
        elif address.scheme.lower() == "bearer" and signature:
            headers["Authorization"] = f"{address.scheme} {signature}"  # AMB-67
        elif address.scheme:
            logger.warning("The webhook %s has no credentials for the scheme %s", shown(address.url), address.scheme)
        return headers

    def _sign(self, notification_id: str, address: Address, said: Notification, now: int) -> str:
        signer = self._settings.signer
        if signer is None:
            return ""
        return signer.sign(notification_id=notification_id, address=address.url, body=said.body, now=now)
