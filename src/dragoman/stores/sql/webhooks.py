"""Webhooks and dead letters in SQL. Every function runs inside one transaction of its caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict
from sqlalchemy import Connection, bindparam, case, delete, func, select, update

from dragoman.ports.push import DeadLetter, DueWebhook, Kept, Settlement, Webhook
from dragoman.stores.sql.portions import portions
from dragoman.stores.sql.schema import DEAD_LETTERS, TASKS, WEBHOOKS

_TASK = (
    select(TASKS.c.number, TASKS.c.state, TASKS.c.webhooks, TASKS.c.agent)
    .where(TASKS.c.id == bindparam("task"))
    .with_for_update()
)
_THIS = (WEBHOOKS.c.task_id == bindparam("task")) & (WEBHOOKS.c.id == bindparam("webhook"))
_CURRENT = _THIS & (WEBHOOKS.c.claim == bindparam("held"))

_EXISTS = select(WEBHOOKS.c.id).where(_THIS)
_NEXT_KEY = select(func.coalesce(func.max(WEBHOOKS.c.key), 0) + 1).where(WEBHOOKS.c.task_id == bindparam("task"))
_INSERT = WEBHOOKS.insert()
_RENEW = (
    update(WEBHOOKS)
    .where(_THIS)
    .values(
        payload=bindparam("new_payload"),
        wire_version=bindparam("new_wire"),
        failures=0,
        claim=WEBHOOKS.c.claim + 1,  # who delivers now has the old one, and reports in vain
        due_ms=case((WEBHOOKS.c.due_ms.is_not(None), bindparam("now"))),
    )
)
_AGAIN = update(WEBHOOKS).where(_THIS).values(due_ms=bindparam("due"), snapshot=bindparam("whole"))
_COUNT = update(TASKS).where(TASKS.c.id == bindparam("task")).values(webhooks=TASKS.c.webhooks + bindparam("change"))


def new_row(
    task_id: str, webhook: Webhook, *, key: int, position: int, due_ms: int | None, agent: str
) -> dict[str, Any]:
    """The row of a webhook that is added."""
    return {
        "task_id": task_id,
        "id": webhook.id,
        "key": key,
        "wire_version": webhook.wire_version,
        "payload": webhook.payload,
        "position": position,
        "snapshot": 0,
        "state": 0,
        "failures": 0,
        "claim": 0,
        "due_ms": due_ms,
        "agent": agent,
    }


def keep_webhook(
    connection: Connection, task_id: str, webhook: Webhook, most: int, now_ms: int, snapshot_in: Sequence[int]
) -> Kept:
    """Add a webhook to a task, or renew the one with the same id."""
    task = connection.execute(_TASK, {"task": task_id}).first()
    if task is None:
        return "unknown"
    this = {"task": task_id, "webhook": webhook.id}
    if connection.execute(_EXISTS, this).first() is not None:
        connection.execute(
            _RENEW, this | {"new_payload": webhook.payload, "new_wire": webhook.wire_version, "now": now_ms}
        )
    elif task.webhooks >= most:
        return "full"
    else:
        key = connection.execute(_NEXT_KEY, {"task": task_id}).scalar_one()
        row = new_row(task_id, webhook, key=key, position=task.number, due_ms=None, agent=task.agent)
        connection.execute(_INSERT, row)
        connection.execute(_COUNT, {"task": task_id, "change": 1})
    if task.state in snapshot_in:
        connection.execute(_AGAIN, this | {"due": now_ms, "whole": 1})
    return "kept"


_SHOWN = WEBHOOKS.c.id, WEBHOOKS.c.payload, WEBHOOKS.c.wire_version
_ONE = select(*_SHOWN).where(_THIS)
_PAGE = (
    select(WEBHOOKS.c.key, *_SHOWN)
    .where(WEBHOOKS.c.task_id == bindparam("task"), WEBHOOKS.c.key > bindparam("after"))
    .order_by(WEBHOOKS.c.key)
    .limit(bindparam("limit"))
)


def read_webhook(connection: Connection, task_id: str, webhook_id: str) -> Webhook | None:
    """The webhook, or None."""
    row = connection.execute(_ONE, {"task": task_id, "webhook": webhook_id}).first()
    return None if row is None else _webhook(row)


def _webhook(row: Any) -> Webhook:
    return Webhook(id=row.id, payload=row.payload, wire_version=row.wire_version)


def read_webhooks(connection: Connection, task_id: str, after: int, limit: int) -> list[tuple[int, Webhook]]:
    """Webhooks of a task with keys above ``after``."""
    rows = connection.execute(_PAGE, {"task": task_id, "after": after, "limit": limit})
    return [(row.key, _webhook(row)) for row in rows]


_REMOVE = delete(WEBHOOKS).where(_THIS)


def remove_webhook(connection: Connection, task_id: str, webhook_id: str) -> None:
    """Remove a webhook, if it is there."""
    connection.execute(_TASK, {"task": task_id})
    if connection.execute(_REMOVE, {"task": task_id, "webhook": webhook_id}).rowcount:
        connection.execute(_COUNT, {"task": task_id, "change": -1})


# Deliveries.

WAKE = (
    update(WEBHOOKS)
    .where(WEBHOOKS.c.task_id == bindparam("task"), WEBHOOKS.c.due_ms.is_(None))
    .values(due_ms=bindparam("due"))
)
"""The webhooks of a task are due, unless they are already: part of the write that adds to its log."""

_DUE = (
    select(
        WEBHOOKS.c.task_id,
        *_SHOWN,
        WEBHOOKS.c.position,
        TASKS.c.number.label("last"),
        WEBHOOKS.c.snapshot,
        WEBHOOKS.c.state,
        WEBHOOKS.c.failures,
        WEBHOOKS.c.claim,
    )
    .join_from(WEBHOOKS, TASKS, TASKS.c.id == WEBHOOKS.c.task_id)
    .where(WEBHOOKS.c.agent == bindparam("agent"), WEBHOOKS.c.due_ms <= bindparam("now_ms"))
    .order_by(WEBHOOKS.c.due_ms)
    .limit(bindparam("limit"))
    .with_for_update(of=WEBHOOKS, skip_locked=True)
)
_CLAIM = update(WEBHOOKS).where(_THIS).values(claim=WEBHOOKS.c.claim + 1, due_ms=bindparam("until"))


def claim_due(connection: Connection, now_ms: int, until_ms: int, limit: int, agent: str) -> list[DueWebhook]:
    """Claim webhooks of the agent's tasks that are due."""
    rows = connection.execute(_DUE, {"now_ms": now_ms, "limit": limit, "agent": agent}).all()
    if rows:
        claims = [{"task": row.task_id, "webhook": row.id, "until": until_ms} for row in rows]
        connection.execute(_CLAIM, claims)
    return [_due(row) for row in rows]


def _due(row: Any) -> DueWebhook:
    return DueWebhook(
        task_id=row.task_id,
        webhook=_webhook(row),
        position=row.position,
        last=row.last,
        snapshot=bool(row.snapshot),
        state=row.state,
        failures=row.failures,
        claim=row.claim + 1,
    )


_NEXT_DUE = select(func.min(WEBHOOKS.c.due_ms)).where(
    WEBHOOKS.c.agent == bindparam("agent"), WEBHOOKS.c.due_ms.is_not(None)
)


def read_next_due(connection: Connection, agent: str) -> int | None:
    """The earliest time at which a webhook of the agent's tasks is due."""
    return connection.execute(_NEXT_DUE, {"agent": agent}).scalar()


_LAST = select(TASKS.c.number).where(TASKS.c.id == bindparam("task")).scalar_subquery()
_TOLD = (
    update(WEBHOOKS)
    .where(_CURRENT)
    .values(
        position=bindparam("told"),
        state=bindparam("new_state"),
        failures=bindparam("new_failures"),
        snapshot=bindparam("whole"),
    )
)
_TOLD_FOR_NOW = _TOLD.values(due_ms=bindparam("due"))
_TOLD_ALL = _TOLD.values(due_ms=case((bindparam("told") < _LAST, bindparam("now"))))
_GONE = delete(WEBHOOKS).where(_CURRENT)
_BURY = DEAD_LETTERS.insert()


def settle(connection: Connection, settlements: Sequence[Settlement], now_ms: int) -> list[bool]:
    """Write down how far webhooks were told. What is told to the last record is due when another one comes."""
    return [_settle_one(connection, settlement, now_ms) for settlement in settlements]


def _settle_one(connection: Connection, given: Settlement, now_ms: int) -> bool:
    held = {"task": given.task_id, "webhook": given.webhook_id, "held": given.claim}
    if not (_take_away(connection, held) if given.gone else _write_down(connection, held, given, now_ms)):
        return False
    if given.letters:
        connection.execute(_BURY, [asdict(letter) for letter in given.letters])
    return True


def _take_away(connection: Connection, held: dict[str, Any]) -> bool:
    connection.execute(_TASK, {"task": held["task"]})
    found = bool(connection.execute(_GONE, held).rowcount)
    if found:
        connection.execute(_COUNT, {"task": held["task"], "change": -1})
    return found


def _write_down(connection: Connection, held: dict[str, Any], given: Settlement, now_ms: int) -> bool:
    values = held | {
        "told": given.position,
        "new_state": given.state,
        "new_failures": given.failures,
        "whole": int(given.snapshot),
    }
    if given.due_ms is not None:
        return bool(connection.execute(_TOLD_FOR_NOW, values | {"due": given.due_ms}).rowcount)
    connection.execute(_TASK, {"task": given.task_id})  # no record may come between the look and the write
    return bool(connection.execute(_TOLD_ALL, values | {"now": now_ms}).rowcount)


# Dead letters.

_LETTERS = (
    select(DEAD_LETTERS)
    .where(DEAD_LETTERS.c.agent == bindparam("agent"), DEAD_LETTERS.c.id > bindparam("after"))
    .order_by(DEAD_LETTERS.c.id)
    .limit(bindparam("limit"))
)
_OLD_LETTERS = (
    select(DEAD_LETTERS.c.id)
    .where(DEAD_LETTERS.c.failed_ms < bindparam("before_ms"), DEAD_LETTERS.c.agent == bindparam("agent"))
    .limit(bindparam("limit"))
)
_FORGET = delete(DEAD_LETTERS).where(DEAD_LETTERS.c.id.in_(bindparam("ids", expanding=True)))


def read_dead_letters(connection: Connection, after: str, limit: int, agent: str) -> list[DeadLetter]:
    """Dead letters of the agent in order of their ids."""
    rows = connection.execute(_LETTERS, {"after": after, "limit": limit, "agent": agent}).mappings()
    return [DeadLetter(**row) for row in rows]


def remove_dead_letters(connection: Connection, before_ms: int, limit: int, agent: str) -> int:
    """Remove old ones of the agent."""
    values = {"before_ms": before_ms, "limit": limit, "agent": agent}
    ids = list(connection.execute(_OLD_LETTERS, values).scalars())
    for some in portions(ids):
        connection.execute(_FORGET, {"ids": some})
    return len(ids)
