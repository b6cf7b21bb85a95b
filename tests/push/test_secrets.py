"""Secrets of webhooks: not in the store, not in logs, not in errors."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import App
from dragoman.errors import ConfigurationError
from dragoman.model import AuthenticationInfo, TaskPushNotificationConfig
from tests.push.agents import counting, settings
from tests.push.hooks import Hooks, letters_of

TOKEN, CREDENTIALS = "tok-sesame-1", "cred-sesame-2"


def hook(url: str) -> TaskPushNotificationConfig:
    authentication = AuthenticationInfo(scheme="Bearer", credentials=CREDENTIALS)
    return TaskPushNotificationConfig(url=url, id="mine", token=TOKEN, authentication=authentication)


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.req("PUSH-10", "PUSH-17", "SEC-14")
async def test_with_a_key_the_store_holds_no_secret_and_deliveries_do(tmp_path: Path, hooks: Hooks) -> None:
    store, old, new = f"sqlite:///{tmp_path}/tasks.db", os.urandom(32), os.urandom(32)

    async with App(counting(secret_keys=(old,)), store=store) as app, dragoman.connect(app) as client:
        task = await client.send("ask 1", push=hook(f"{hooks.url}/h"))
        await hooks.until(lambda: hooks.taken("/h"))
        content = everything_in(tmp_path)
    async with App(counting(secret_keys=(new, old)), store=store) as app, dragoman.connect(app) as client:
        await client.send("yes", task=task)
        calls = await hooks.ended("/h")

    assert b"sesame" not in content
    for call in calls:
        assert call.headers["x-a2a-notification-token"] == TOKEN
        assert call.headers["authorization"] == f"Bearer {CREDENTIALS}"


@pytest.mark.req("PUSH-10")
async def test_without_the_right_key_nothing_is_sent_and_configurations_can_still_be_listed(
    tmp_path: Path, hooks: Hooks, caplog: pytest.LogCaptureFixture
) -> None:
    store = f"sqlite:///{tmp_path}/tasks.db"
    async with App(counting(secret_keys=(os.urandom(32),)), store=store) as app, dragoman.connect(app) as client:
        task = await client.send("ask 1")
        await client.create_push_config(task.id, hook("https://hooks.example/h"))
    before = len(hooks.calls)

    async with App(counting(secret_keys=(os.urandom(32),)), store=store) as app, dragoman.connect(app) as client:
        await client.send("yes", task=task)
        (config,) = (await client.list_push_configs(task.id)).configs

    assert config.url == "https://hooks.example/h"
    assert len(hooks.calls) == before
    assert "sesame" not in caplog.text


@pytest.mark.req("AMB-62")
async def test_a_setting_shows_secrets_to_who_may_see_the_task() -> None:
    async with App(counting(show_secrets=True)) as app, dragoman.connect(app) as client:
        task = await client.send("ask 1", push=hook("https://hooks.example/h"))
        got = await client.get_push_config(task.id, "mine")
        (listed,) = (await client.list_push_configs(task.id)).configs

    assert got == listed
    assert (got.token, got.authentication) == (TOKEN, AuthenticationInfo(scheme="Bearer", credentials=CREDENTIALS))


@pytest.mark.req("PUSH-10", "SEC-14")
@pytest.mark.parametrize("step", [500, "drop", "hang", 410, "redirect"])
async def test_failures_are_told_without_secrets(step: Any, hooks: Hooks, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hooks.always["/h?key=sesame"] = step

    async with App(counting(attempts=2, timeout=0.2)) as app, dragoman.connect(app) as client:
        await client.send("count 1", push=hook(f"{hooks.url}/h?key=sesame"))
        letters = await letters_of(app)

    ours = [record.getMessage() for record in caplog.records if record.name.startswith("dragoman")]
    assert "sesame" not in repr(letters) + "".join(ours)


def test_a_key_of_the_wrong_length_is_refused_and_none_is_shown() -> None:
    with pytest.raises(ConfigurationError, match="32 bytes"):
        App(counting(secret_keys=(b"short",)))
    assert "xxxx" not in repr(settings(secret_keys=(b"x" * 32,)))
