"""Bodies of both generations, and broken ones."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.model import Message, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent
from tests.webhook.deliveries import Inbox, chunk, headers, status

PARTS = [{"text": "x"}]
OLD_PARTS = [{"kind": "text", "text": "x"}]
OLD_TASK = {"id": "task-1", "contextId": "c", "status": {"state": "completed"}}
OLD_EVENT = {"taskId": "task-1", "contextId": "c"}


@pytest.mark.req("PUSH-11", "AMB-68")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"task": {"id": "task-1", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}}, Task),
        ({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": PARTS, "taskId": "task-1"}}, Message),
        (status("COMPLETED"), TaskStatusUpdateEvent),
        (status("COMPLETED", unknown=1), TaskStatusUpdateEvent),
        ({"status_update": {"task_id": "task-1", "context_id": "c", "status": {"state": 3}}}, TaskStatusUpdateEvent),
        (chunk("x"), TaskArtifactUpdateEvent),
    ],
)
async def test_every_event_of_the_current_version_is_read(body: Any, kind: type) -> None:
    inbox = Inbox()

    assert await inbox.post(body) == 204
    assert isinstance(inbox.taken[0].event, kind)
    assert inbox.taken[0].wire == "1.0"


@pytest.mark.req("PUSH-11")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"kind": "task", **OLD_TASK}, Task),
        (OLD_TASK, Task),
        ({"kind": "message", "messageId": "m", "role": "agent", "parts": OLD_PARTS, "taskId": "task-1"}, Message),
        ({"kind": "status-update", **OLD_EVENT, "status": {"state": "working"}, "final": False}, TaskStatusUpdateEvent),
        ({**OLD_EVENT, "status": {"state": "completed"}, "final": True}, TaskStatusUpdateEvent),
        (
            {"kind": "artifact-update", **OLD_EVENT, "artifact": {"artifactId": "a", "parts": OLD_PARTS}},
            TaskArtifactUpdateEvent,
        ),
        ({"task": {"kind": "task", **OLD_TASK}}, Task),
    ],
)
async def test_every_body_of_0_3_is_read_without_being_told_its_version(body: Any, kind: type) -> None:
    inbox = Inbox()
    sent = headers() | {"Content-Type": "application/json"}

    assert await inbox.post(body, sent) == 204
    assert isinstance(inbox.taken[0].event, kind)
    assert inbox.taken[0].wire == "0.3"


async def test_a_task_of_0_3_is_in_the_types_of_today() -> None:
    inbox = Inbox()
    artifact = {"artifactId": "a", "parts": OLD_PARTS}

    await inbox.post({"kind": "task", **OLD_TASK, "artifacts": [artifact]})

    found = inbox.taken[0]
    assert (found.state, found.settled) == (TaskState.COMPLETED, True)
    assert isinstance(found.event, Task)
    assert found.event.artifacts[0].parts[0].text == "x"
    assert found.response.task is found.event


@pytest.mark.req("PUSH-11")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{}",
        b"7",
        b"[" * 100_000,
        {"task": None},
        {"kind": "nonsense"},
        {"task": {"id": 7}},
        {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "NO_STATE"}}},
        {**status(), **chunk("x")},
        {"jsonrpc": "2.0", "method": "x"},
    ],
)
async def test_what_is_no_event_is_a_bad_request(body: Any) -> None:
    inbox = Inbox()

    assert await inbox.post(body) == 400
    assert not inbox.taken


@pytest.mark.req("PUSH-13")
@pytest.mark.parametrize("body", [{"kind": "task", "status": {"state": "working"}}, {"task": {"id": ""}}])
async def test_an_event_of_no_task_is_not_of_one_that_is_expected(body: Any) -> None:
    inbox = Inbox(token=(), tasks=None)
    token = inbox.receiver.expect().config.token

    assert await inbox.post(body, headers(token)) == 401


@pytest.mark.req("AMB-68")
@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/a2a+json", 204),
        ("application/json; charset=utf-8", 204),
        ("Application/JSON", 204),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ],
)
async def test_both_types_of_json_are_taken_and_what_a_web_page_could_send_is_not(
    content_type: str, expected: int
) -> None:
    assert await Inbox().post(status(), headers() | {"Content-Type": content_type}) == expected
