"""Which addresses are called: looked at when a webhook is set, and again with each delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

import dragoman
from dragoman import App
from dragoman.errors import InvalidParamsError
from dragoman.model import TaskPushNotificationConfig
from tests.push.agents import counting, settings
from tests.push.hooks import Hooks, letters_of

FORBIDDEN = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.0.1.:8080/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://10.1.2.3/",
    "http://172.16.0.1/",
    "http://172.31.255.254/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://localhost/",
    "http://LOCALHOST:80/",
    "http://a.localhost/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[fc00::1]/",
    "http://[fd12:3456::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[2002:7f00:1::]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[ff02::1]/",
    "ftp://hooks.example/",
    "file:///etc/passwd",
    "//hooks.example/",
    "hooks.example",
    "http://",
    "http://user:secret@hooks.example/",
    "http://hooks.example/ x",
    "http://hooks.example/\r\nX: y",
    "http://hooks.example\\@127.0.0.1/",
]


@pytest.fixture
async def asked(store: str):  # type: ignore[no-untyped-def]
    """A client and a task that waits; private addresses are not allowed."""
    async with App(counting(), store=store, push=settings(allow_private=False)) as app, dragoman.connect(app) as client:
        yield client, await client.send("ask 1")


@pytest.mark.req("PUSH-08", "PUSH-09", "AMB-71", "SEC-15")
async def test_every_form_of_a_forbidden_address_is_refused_at_once(asked) -> None:  # type: ignore[no-untyped-def]
    client, task = asked
    for url in FORBIDDEN:
        with pytest.raises(InvalidParamsError) as refused:
            await client.create_push_config(task.id, TaskPushNotificationConfig(url=url))
        assert [violation.field for violation in refused.value.violations] == ["url"], url
        assert "secret" not in str(refused.value)
        with pytest.raises(InvalidParamsError) as refused:
            await client.send("count 1", push=TaskPushNotificationConfig(url=url))
        (violation,) = refused.value.violations
        assert violation.field == "configuration.taskPushNotificationConfig.url", url

    assert (await client.list_push_configs(task.id)).configs == []
    assert (await client.list_tasks()).total_size == 1


@pytest.mark.req("PUSH-08", "AMB-71")
@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:10.0.0.1"], ["::1"]])
async def test_a_name_with_a_private_address_among_its_own_is_refused(addresses: list[str]) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return addresses

    push = settings(allow_private=False, resolver=resolver)
    async with App(counting(), push=push) as app, dragoman.connect(app) as client:
        with pytest.raises(InvalidParamsError, match="private address"):
            await client.send("count 1", push=TaskPushNotificationConfig(url="https://hooks.example/h"))


@pytest.mark.req("PUSH-08", "AMB-71")
async def test_a_name_that_answers_otherwise_the_second_time_is_not_called(store: str, hooks: Hooks) -> None:
    answers: list[list[str]] = [["93.184.216.34"]]
    asked = asyncio.Event()

    async def resolver(host: str, port: int) -> Iterable[str]:
        if answers:
            return answers.pop()
        asked.set()
        return ["127.0.0.1"]

    port = hooks.url.rpartition(":")[2]
    push = settings(allow_private=False, resolver=resolver, attempts=2)
    async with App(counting(), store=store, push=push) as app, dragoman.connect(app) as client:
        url = f"http://hooks.example:{port}/h"
        await client.send("count 1", push=TaskPushNotificationConfig(url=url))
        await asyncio.wait_for(asked.wait(), 5)
        letters = await letters_of(app)

    assert hooks.calls == []
    assert "private address" in letters[0].reason


@pytest.mark.req("PUSH-08")
async def test_hosts_that_are_allowed_are_called_and_no_others(hooks: Hooks) -> None:
    host = hooks.url.removeprefix("http://")
    push = settings(allow_private=False, allowed_hosts=(host,))

    async with App(counting(), push=push) as app, dragoman.connect(app) as client:
        await client.send("count 1", push=TaskPushNotificationConfig(url=f"{hooks.url}/h"))
        await hooks.ended("/h")
        with pytest.raises(InvalidParamsError):
            await client.send("count 1", push=TaskPushNotificationConfig(url="http://127.0.0.1:1/h"))


async def test_a_webhook_whose_name_has_other_letters_is_called_by_the_one_that_servers_know(hooks: Hooks) -> None:
    asked: list[str] = []

    async def resolver(host: str, port: int) -> Iterable[str]:
        asked.append(host)
        return ["10.0.0.1"] if len(asked) > 1 else ["8.8.8.8"]

    push = settings(allow_private=False, resolver=resolver, attempts=2)
    async with App(counting(), push=push) as app, dragoman.connect(app) as client:
        await client.send("count 1", push=TaskPushNotificationConfig(url="https://bücher.example/h"))
        letters = await letters_of(app)

    assert set(asked) == {"xn--bcher-kva.example"}
    assert "private" in letters[0].reason


async def test_a_name_that_cannot_be_found_now_is_taken_and_tried_later(hooks: Hooks) -> None:
    async def resolver(host: str, port: int) -> Iterable[str]:
        raise OSError("no such host")

    push = settings(allow_private=False, resolver=resolver, attempts=2)
    async with App(counting(), push=push) as app, dragoman.connect(app) as client:
        await client.send("count 1", push=TaskPushNotificationConfig(url="https://hooks.example/h"))
        letters = await letters_of(app)

    assert "Cannot find the host" in letters[0].reason
