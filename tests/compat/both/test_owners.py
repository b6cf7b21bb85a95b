"""Two users at the doors of 0.3, and the extended card there. Spec: 0.3 register, sections 7.7, 7.9, 7.11."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import (
    ExtendedAgentCardNotConfiguredError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnsupportedOperationError,
)
from dragoman.model import Task, TaskState
from tests.compat.both.conftest import Meet
from tests.conformance.test_extended_card import by_header_or_nobody, having_more
from tests.conformance.test_owners import HOOK, NO_TASK, asking, every_operation, plain
from tests.conformance.wire import as_caller, by_header, served


@pytest.mark.req("AUTH-08", "AUTH-10", "AMB-36", "B123", "V03-06")
async def test_in_0_3_too_a_task_of_somebody_else_does_not_exist(meet: Meet, tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/tasks.db"
    given = {"store": store, "identify": by_header}
    ann = await meet(asking(), client={"headers": as_caller("ann")}, **given)
    bob = await meet(asking(), client={"headers": as_caller("bob")}, **given)
    waiting, done = await ann.send("ask"), await ann.send("at once")
    assert isinstance(waiting, Task)
    assert isinstance(done, Task)
    await ann.create_push_config(waiting, HOOK)

    for task in (waiting, done):
        theirs = plain(await every_operation(bob, task.id), task.id)
        nobodys = plain(await every_operation(bob, NO_TASK), NO_TASK)
        assert theirs == nobodys
        assert {error[0] for error in theirs.values()} == {TaskNotFoundError}

    assert (await ann.get_task(waiting.id)).status.state is TaskState.INPUT_REQUIRED


@pytest.mark.req("XCARD-02", "XCARD-05", "XCARD-06", "XCARD-10", "V03-05")
async def test_the_extended_card_is_made_for_each_caller_of_0_3(meet: Meet) -> None:
    for name in ("ann", "bob"):
        client = await meet(having_more(), identify=by_header, client={"headers": as_caller(name)})
        card = await client.get_extended_card()
        assert [skill.description for skill in card.skills] == [f"Lends to {name}.", "Rare books."]
        assert client.card is card


@pytest.mark.req("XCARD-02", "XCARD-04", "AMB-40")
async def test_who_is_nobody_in_0_3_is_asked_for_credentials_first(meet: Meet) -> None:
    nobody = await meet(having_more(), identify=by_header_or_nobody)
    someone = await meet(having_more(), identify=by_header, client={"headers": as_caller("nobody-special")})

    with pytest.raises(UnauthenticatedError):
        await nobody.get_extended_card()
    with pytest.raises((ExtendedAgentCardNotConfiguredError, UnsupportedOperationError)):
        await someone.get_extended_card()


@pytest.mark.req("XCARD-11", "XCARD-12")
async def test_at_v1_card_it_is_private_and_asked_for_again() -> None:
    async with served(having_more(), identify=by_header) as wire:
        ann = await wire.ask("GET", "/v1/card", None, as_caller("ann"))
        tag = ann.headers["etag"]
        again = await wire.ask("GET", "/v1/card", None, {**as_caller("ann"), "If-None-Match": tag})
        body = b'{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}'
        rpc = await wire.ask("POST", "/", body, {**as_caller("ann"), "Content-Type": "application/json"})

    assert ann.json["supportsAuthenticatedExtendedCard"] is True
    assert [skill["id"] for skill in ann.json["skills"]] == ["lend", "vault"]
    assert again.status == 304
    assert [skill["id"] for skill in rpc.result["skills"]] == ["lend", "vault"]
    assert {told.headers["cache-control"] for told in (ann, again, rpc)} == {"private, no-cache"}
