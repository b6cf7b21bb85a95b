"""What makes a notification genuine, and which tasks it may be about."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dragoman.errors import ConfigurationError
from dragoman.model import AuthenticationInfo
from dragoman.webhook import Receiver
from tests.webhook.deliveries import TOKEN, URL, Inbox, headers, status


@pytest.mark.req("PUSH-11", "PUSH-14", "AMB-66", "AMB-69")
async def test_a_notification_with_the_token_is_taken_with_success() -> None:
    inbox = Inbox()

    assert await inbox.post(status("COMPLETED")) == 204
    assert [n.task_id for n in inbox.taken] == ["task-1"]


@pytest.mark.req("PUSH-14", "AMB-66")
@pytest.mark.parametrize("token", ["", "t", TOKEN + "x", TOKEN.upper(), "é" * 9])
async def test_a_wrong_token_is_unauthorized_and_nobody_is_told_why(
    token: str, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = Inbox()

    with caplog.at_level(logging.DEBUG):
        answer = await inbox.answer(status(), headers(token))

    assert answer.status == 401
    assert answer.body == b"not accepted\n"
    assert dict(answer.headers)["WWW-Authenticate"].startswith("Bearer")
    assert not inbox.taken
    assert TOKEN not in caplog.text


@pytest.mark.req("PUSH-17")
async def test_two_tokens_are_good_while_one_takes_the_place_of_the_other() -> None:
    inbox = Inbox(token=["old", "new"])

    assert [await inbox.post(status("WORKING", t), headers(t)) for t in ("old", "new", "other")] == [204, 204, 401]


@pytest.mark.req("PUSH-14", "AMB-69", "DATA-31")
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("Bearer s3cret", 204),
        ("bearer s3cret", 204),
        ("BEARER  s3cret ", 204),
        ("Bearer S3CRET", 401),
        ("Bearer", 401),
        ("s3cret", 401),
        ("Basic s3cret", 401),
        ("", 401),
    ],
)
async def test_credentials_are_compared_with_their_scheme(sent: str, expected: int) -> None:
    inbox = Inbox(token=(), authentication=AuthenticationInfo(scheme="Bearer", credentials="s3cret"))

    assert await inbox.post(status(), headers("", Authorization=sent)) == expected


@pytest.mark.req("PUSH-14")
@pytest.mark.parametrize("scheme", ["Basic", "Digest-of-our-own"])
async def test_every_scheme_is_known_and_a_token_is_needed_besides(scheme: str) -> None:
    inbox = Inbox(authentication=AuthenticationInfo(scheme=scheme, credentials="dTpw"))
    both, one = headers(Authorization=f"{scheme} dTpw"), headers("", Authorization=f"{scheme} dTpw")

    assert [await inbox.post(status(), sent) for sent in (both, one, headers())] == [204, 401, 401]


@pytest.mark.req("PUSH-13")
@pytest.mark.parametrize("tasks", [{"task-1"}, ["task-1"], lambda task: task == "task-1"])
async def test_a_task_that_is_not_expected_is_refused(tasks: Any) -> None:
    inbox = Inbox(tasks=tasks)

    assert await inbox.post(status(task="task-1")) == 204
    assert await inbox.post(status(task="task-2")) == 401
    assert [n.task_id for n in inbox.taken] == ["task-1"]


@pytest.mark.req("PUSH-13")
async def test_without_a_word_about_tasks_none_is_taken_but_those_that_are_expected() -> None:
    inbox = Inbox(tasks=None)
    expected = inbox.receiver.expect("task-1")

    assert await inbox.post(status()) == 401
    assert await inbox.post(status(), headers(expected.config.token)) == 204
    assert await inbox.post(status(task="task-2"), headers(expected.config.token)) == 401


@pytest.mark.req("PUSH-13", "PUSH-17")
async def test_a_token_of_its_own_is_for_the_first_task_that_it_comes_with_and_no_other() -> None:
    inbox = Inbox(token=(), tasks=None)
    one, other = inbox.receiver.expect(), inbox.receiver.expect()

    assert one.config.token != other.config.token
    assert len(one.config.token) >= 32
    assert one.config.url == URL
    assert await inbox.post(status(task="a"), headers(one.config.token)) == 204
    assert await inbox.post(status(task="b"), headers(one.config.token)) == 401
    assert await inbox.post(status(task="b"), headers(other.config.token)) == 204
    assert (one.task_id, other.task_id) == ("a", "b")


@pytest.mark.req("PUSH-13")
async def test_the_agents_answer_says_which_task_it_is_whatever_came_before() -> None:
    inbox = Inbox(token=(), tasks=None)
    with inbox.receiver.expect() as expected:
        await inbox.post(status(task="made up"), headers(expected.config.token))
        expected.bind("task-1")

        assert await inbox.post(status("FAILED", "made up"), headers(expected.config.token)) == 401
        assert await inbox.post(status(), headers(expected.config.token)) == 204

    assert await inbox.post(status("COMPLETED"), headers(expected.config.token)) == 401


@pytest.mark.req("PUSH-14")
@pytest.mark.parametrize(
    "settings",
    [
        {"tasks": "any"},
        {"tasks": ["t"]},
        {"token": "", "tasks": "any"},
        {"token": ["a", ""], "tasks": "any"},
        {"authentication": AuthenticationInfo(scheme="Bearer"), "tasks": "any"},
        {"token": "t", "tasks": "task-1"},
        {"token": "t", "url": "ftp://h"},
        {"token": "t", "url": "https://u:p@h/"},
    ],
)
def test_what_would_take_anything_or_means_nothing_is_refused_at_once(settings: Any) -> None:
    with pytest.raises(ConfigurationError):
        Receiver(**settings)


def test_without_an_address_no_agent_can_be_told_to_come() -> None:
    with pytest.raises(ConfigurationError):
        Receiver(token="t").expect()


async def test_notifications_without_proof_are_taken_by_who_asks_for_it() -> None:
    inbox = Inbox(token=(), anonymous=True)

    assert await inbox.post(status(), headers("")) == 204


@pytest.mark.req("PUSH-16")
@pytest.mark.parametrize(
    ("url", "warned"), [("http://hooks.example.net/h?key=s", True), ("http://127.0.0.1:9000/", False), (URL, False)]
)
def test_an_address_without_encryption_is_warned_of(url: str, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    Receiver(token="t", url=url)

    assert ("not https" in caplog.text) is warned
    assert "key=s" not in caplog.text


@pytest.mark.req("PUSH-17", "SEC-09")
def test_secrets_are_not_shown() -> None:
    inbox = Inbox(tasks=None)
    expected = inbox.receiver.expect()

    assert expected.config.token not in repr(expected)
    assert TOKEN not in repr(vars(inbox.receiver._checks))
