"""Deliveries: what is sent, in which order, and what becomes of failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import dragoman
from dragoman import App
from dragoman.model import AuthenticationInfo, TaskPushNotificationConfig
from tests.push.agents import counting, settings
from tests.push.hooks import Hooks, letters_of


def hook(url: str, **members: Any) -> TaskPushNotificationConfig:
    return TaskPushNotificationConfig(url=url, **members)


@pytest.mark.req(
    "PUSH-01",
    "PUSH-02",
    "PUSH-03",
    "PUSH-04",
    "PUSH-18",
    "PUSH-20",
    "AMB-65",
    "AMB-66",
    "AMB-68",
    "B113",
    "B117",
    "MEDIA-04",
)
async def test_every_event_is_posted_in_order_with_what_the_configuration_says(store: str, hooks: Hooks) -> None:
    given = hook(f"{hooks.url}/h", token="t0k", authentication=AuthenticationInfo(scheme="bearer", credentials="c r"))

    async with App(counting(), store=store) as app, dragoman.connect(app) as client:
        task = await client.send("count 3", push=given)
        calls = await hooks.ended("/h")

    assert [call.kind for call in calls] == ["task", *["statusUpdate"] * 3, "artifactUpdate", "statusUpdate"]
    assert [call.sequence for call in calls] == [1, 2, 3, 4, 5, 6]
    assert len({call.id for call in calls}) == 6
    assert calls[0].json["task"]["id"] == task.id
    for call in calls:
        assert call.headers["content-type"] == "application/a2a+json"
        assert call.headers["a2a-version"] == "1.0"
        assert call.headers["x-a2a-notification-token"] == "t0k"
        assert call.headers["authorization"] == "bearer c r"
        assert call.headers["x-a2a-notification-timestamp"].isdigit()


@pytest.mark.req("AMB-65", "PUSH-20")
async def test_with_states_only_changes_of_state_are_told(store: str, hooks: Hooks) -> None:
    async with App(counting(updates="states"), store=store) as app, dragoman.connect(app) as client:
        await client.send("count 5", push=hook(f"{hooks.url}/h"))
        calls = await hooks.ended("/h")

    assert [call.state for call in calls] == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]


@pytest.mark.req("PUSH-05", "PUSH-11", "PUSH-12", "AMB-69")
async def test_what_failed_is_sent_again_with_the_same_id_and_nothing_overtakes_it(store: str, hooks: Hooks) -> None:
    hooks.script["/h"] = [500, "drop", 404, 429, 204, "redirect"]

    async with App(counting(), store=store) as app, dragoman.connect(app) as client:
        await client.send("count 2", push=hook(f"{hooks.url}/h"))
        taken = await hooks.ended("/h")

    assert [call.sequence for call in taken] == [1, 2, 3, 4, 5]
    assert [call.sequence for call in hooks.at("/h")] == [1, 1, 1, 1, 1, 2, 2, 3, 4, 5]
    assert len({call.id for call in hooks.at("/h")}) == 5
    assert hooks.at("/elsewhere") == []


@pytest.mark.req("PUSH-06")
async def test_an_attempt_ends_at_its_time_and_is_made_again(store: str, hooks: Hooks) -> None:
    hooks.script["/h"] = ["hang"]

    async with App(counting(timeout=0.3), store=store) as app, dragoman.connect(app) as client:
        await client.send("count 0", push=hook(f"{hooks.url}/h"))
        taken = await hooks.ended("/h")

    assert [call.sequence for call in taken] == [1, 2, 3]
    assert hooks.at("/h")[1].at - hooks.at("/h")[0].at >= 0.3


@pytest.mark.req("B115", "PUSH-04")
async def test_slow_and_dead_webhooks_delay_no_other_and_not_the_agent(store: str, hooks: Hooks) -> None:
    hooks.always.update({"/slow": 0.3, "/dead": "hang"})
    configs = [hook(f"{hooks.url}{path}", id=path[1:]) for path in ("/slow", "/dead", "/quick")]

    async with App(counting(timeout=1), store=store) as app, dragoman.connect(app) as client:
        asked = await client.send("ask 3")
        for config in configs:
            await client.create_push_config(asked.id, config)
        done = await client.send("yes", task=asked)
        quick = await hooks.ended("/quick")
        assert len(hooks.taken("/slow")) < len(quick)
        slow = await hooks.ended("/slow")

    assert done.status.state is dragoman.TaskState.COMPLETED
    assert [call.sequence for call in quick] == sorted(call.sequence for call in quick)
    assert [call.sequence for call in slow] == [call.sequence for call in quick]
    assert {call.sequence for call in hooks.at("/dead")} == {quick[0].sequence}


@pytest.mark.req("PUSH-07")
async def test_a_webhook_that_was_given_up_is_tried_again_with_the_next_update(store: str, hooks: Hooks) -> None:
    hooks.script["/h?key=secret"] = [503, 503, 503]

    async with App(counting(attempts=3), store=store) as app, dragoman.connect(app) as client:
        asked = await client.send("ask 1", push=hook(f"{hooks.url}/h?key=secret"))
        letters = await letters_of(app)
        await client.send("yes", task=asked)
        taken = await hooks.ended("/h?key=secret")

    assert [(letter.first, letter.last, letter.attempts) for letter in letters] == [(1, 2, 3)]
    assert [call.sequence for call in taken] == [3, 4, 5, 6]
    assert "secret" not in repr(letters)


@pytest.mark.req("PUSH-07")
async def test_dead_letters_say_what_was_not_delivered_and_why(store: str, hooks: Hooks) -> None:
    hooks.always["/h"] = 500

    async with App(counting(attempts=2), store=store) as app, dragoman.connect(app) as client:
        task = await client.send("count 2", push=hook(f"{hooks.url}/h", id="mine"))
        letters = await letters_of(app, last=5)
        again = await app.push.dead_letters(after=letters[-1].id)  # type: ignore[union-attr]

    covered = [number for letter in letters for number in range(letter.first, letter.last + 1)]
    assert covered == [1, 2, 3, 4, 5]
    assert {(letter.task_id, letter.webhook_id, letter.reason) for letter in letters} == {(task.id, "mine", "HTTP 500")}
    assert again == []


@pytest.mark.req("PUSH-07")
async def test_a_webhook_that_is_gone_is_removed(store: str, hooks: Hooks) -> None:
    hooks.always["/h"] = 410

    async with App(counting(), store=store) as app, dragoman.connect(app) as client:
        task = await client.send("slowly 3", push=hook(f"{hooks.url}/h", id="mine"))
        letters = await letters_of(app)
        configs = (await client.list_push_configs(task.id)).configs

    assert configs == []
    assert len(hooks.at("/h")) == 1
    assert letters[0].reason == "HTTP 410"


@pytest.mark.req("PUSH-07")
async def test_an_update_that_is_refused_is_a_dead_letter_of_its_own(store: str, hooks: Hooks) -> None:
    hooks.script["/h"] = [204, 422]

    async with App(counting(), store=store) as app, dragoman.connect(app) as client:
        await client.send("count 1", push=hook(f"{hooks.url}/h"))
        await hooks.ended("/h")
        (letter,) = await letters_of(app)

    assert (letter.first, letter.last, letter.reason) == (2, 2, "HTTP 422")
    assert [call.sequence for call in hooks.at("/h")] == [1, 2, 3, 4]


@pytest.mark.req("PCFG-08")
async def test_after_a_deletion_nothing_is_sent(store: str, hooks: Hooks) -> None:
    hooks.always["/h"] = 0.05

    async with App(counting(), store=store) as app, dragoman.connect(app) as client:
        asked = await client.send("ask 50", push=hook(f"{hooks.url}/h", id="mine"))
        await client.create_push_config(asked.id, hook(f"{hooks.url}/other", id="other"))
        await client.send("yes", task=asked)
        await hooks.until(lambda: len(hooks.taken("/h")) > 3)
        await client.delete_push_config(asked.id, "mine")
        before = len(hooks.at("/h"))
        await hooks.ended("/other")
        await asyncio.sleep(0.2)

    assert len(hooks.at("/h")) == before


@pytest.mark.req("AMB-61")
async def test_a_replaced_webhook_gets_what_its_predecessor_had_not_taken(store: str, hooks: Hooks) -> None:
    hooks.always["/old"] = "hang"

    async with App(counting(), store=store) as app, dragoman.connect(app) as client:
        task = await client.send("count 2", push=hook(f"{hooks.url}/old", id="mine"))
        await hooks.until(lambda: hooks.at("/old"))
        await client.create_push_config(task.id, hook(f"{hooks.url}/new", id="mine"))
        calls = await hooks.ended("/new")

    assert [call.sequence for call in calls] == [1, 2, 3, 4, 5]


@pytest.mark.req("PUSH-04", "PUSH-19")
async def test_what_one_app_left_the_next_one_on_the_store_delivers(tmp_path: Any, hooks: Hooks) -> None:
    store = f"sqlite:///{tmp_path}/tasks.db"
    hooks.script["/h"] = [204, 500, 500, 500, 500, 500, 500, 500]
    agent = counting(first_pause=0.3, longest_pause=0.3, close_wait=0.1)

    async with App(agent, store=store) as app, dragoman.connect(app) as client:
        await client.send("count 2", push=hook(f"{hooks.url}/h"))
        await hooks.until(lambda: len(hooks.at("/h")) >= 2)
    hooks.script["/h"] = []
    async with App(counting(), store=store):
        taken = await hooks.ended("/h")

    assert [call.sequence for call in taken] == [1, 2, 3, 4, 5]


@pytest.mark.req("PUSH-04")
async def test_two_apps_on_one_store_deliver_each_update_once(tmp_path: Any, hooks: Hooks) -> None:
    store = f"sqlite:///{tmp_path}/tasks.db"

    async with App(counting(), store=store) as one, App(counting(), store=store), dragoman.connect(one) as client:
        sends = [client.send("count 3", push=hook(f"{hooks.url}/{n}")) for n in range(5)]
        await asyncio.gather(*sends)
        for number in range(5):
            calls = await hooks.ended(f"/{number}")
            assert [call.sequence for call in calls] == [1, 2, 3, 4, 5, 6]


async def test_many_webhooks_of_a_dead_host_leave_couriers_for_others(hooks: Hooks) -> None:
    hooks.always["/dead"] = "hang"
    agent = counting(timeout=0.5, concurrency=4, first_pause=0.01, longest_pause=0.01)

    async with App(agent) as app, dragoman.connect(app) as client:
        for _ in range(8):
            await client.send("count 0", push=hook(f"{hooks.url}/dead"))
        await hooks.until(lambda: len(hooks.at("/dead")) > 8)
        await client.send("count 3", push=hook(f"{hooks.url}/alive"))
        begun = asyncio.get_running_loop().time()
        await hooks.ended("/alive")

    assert asyncio.get_running_loop().time() - begun < 5


def test_settings_out_of_range_are_refused() -> None:
    for wrong in ({"timeout": 0}, {"attempts": 0}, {"updates": "some"}, {"allowed_hosts": "x"}, {"concurrency": 0}):
        with pytest.raises(dragoman.errors.ConfigurationError):
            settings(**wrong)
