"""``dragoman task push-config``, ``send --push-url`` and ``webhook listen``."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from examples.process import DRAGOMAN, AgentProcess
from tests.cli.commands.program import Dragoman, finish, read_until

AGENT = """
from dragoman import Agent
from dragoman.push import PushSettings

agent = Agent("Told", description="Tells webhooks.", push=PushSettings(allow_private=True, first_pause=0.05))


@agent.task
async def work(ctx):
    if ctx.text == "ask":
        await ctx.ask("go on?")
    await ctx.update("half")
    return "done"
"""
SECRETS = {"HOOK_TOKEN": "t0k-of-the-hook", "HOOK_CREDENTIALS": "cr3dentials"}
PROVEN = ("--token-env", "HOOK_TOKEN", "--auth-scheme", "Bearer", "--auth-credentials-env", "HOOK_CREDENTIALS")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("told")
    (folder / "told.py").write_text(AGENT)
    with AgentProcess([DRAGOMAN, "run", "told:agent", "--grpc-port", "0"], cwd=folder) as process:
        yield process.url


@pytest.fixture(params=["JSONRPC", "HTTP+JSON", "GRPC"])
def told(request: pytest.FixtureRequest, url: str) -> tuple[str, ...]:
    """Options that lead to an agent that tells webhooks, over each binding."""
    return "-a", url, "--transport", request.param


@pytest.fixture
def task(dragoman: Dragoman, url: str) -> str:
    """A task that waits."""
    return str(dragoman("send", "ask", "-a", url, "-o", "json").json["task"]["id"])


class Listening:
    """``dragoman webhook listen`` as a process."""

    def __init__(self, dragoman: Dragoman, *options: str) -> None:
        self.process: subprocess.Popen[bytes] = dragoman.start(
            "webhook", "listen", "--port", "0", *options, env=SECRETS
        )
        self.said = read_until(self.process, b"\n")
        found = re.search(rb"Webhook: (\S+)", self.said)
        assert found, self.said
        self.url = found[1].decode()

    def post(self, body: Any, token: str = SECRETS["HOOK_TOKEN"], **headers: str) -> int:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/a2a+json", "X-A2A-Notification-Token": token, **headers}
        return httpx2.post(self.url, content=data, headers=sent).status_code


def update(state: str, task: str = "t-1") -> dict[str, Any]:
    status = {"state": f"TASK_STATE_{state}"}
    return {"statusUpdate": {"taskId": task, "contextId": "c", "status": status}}


@pytest.mark.req("A2ACLI_PUSH_001", "AMB-62")
def test_a_configuration_is_created_shown_listed_and_deleted(
    dragoman: Dragoman, told: tuple[str, ...], task: str
) -> None:
    hook = "https://hooks.example/a2a"

    made = dragoman("task", "push-config", "create", task, "--url", hook, "--id", "pc-1", *PROVEN, *told, env=SECRETS)
    got = dragoman.inside("task", "push-config", "get", task, "pc-1", *told, "-o", "json")
    listed = dragoman.inside("task", "push-config", "list", task, *told, "-o", "json")
    gone = [dragoman.inside("task", "push-config", "delete", task, "pc-1", *told, "-o", "json") for _ in range(2)]
    after = dragoman.inside("task", "push-config", "list", task, *told, "-o", "json", "--stream")
    missing = dragoman.inside("task", "push-config", "get", task, "pc-1", *told)

    assert made.status == 0
    assert made.out == (f"Config: pc-1\nTask: {task}\nURL: {hook}\nToken: <redacted>\nAuthentication: Bearer\n")
    assert (got.json["id"], got.json["url"]) == ("pc-1", hook)
    assert [config["id"] for config in listed.json["configs"]] == ["pc-1"]
    assert [(done.status, done.json) for done in gone] == [(0, {}), (0, {})]
    assert (after.status, after.out) == (0, "")
    assert missing.status == 1
    assert "TaskNotFoundError" in missing.err


@pytest.mark.req("A2ACLI_PUSH_001")
def test_pages_are_shown_one_by_one_or_all_together(dragoman: Dragoman, url: str, task: str) -> None:
    at = (task, "-a", url)
    for number in range(3):
        dragoman.inside("task", "push-config", "create", *at, "--url", "https://h.example/", "--id", f"c{number}")

    first = dragoman.inside("task", "push-config", "list", *at, "--page-size", "2")
    token = first.field("Next page")
    rest = dragoman.inside("task", "push-config", "list", *at, "--page-size", "2", "--page-token", token, "-o", "json")
    every = dragoman.inside("task", "push-config", "list", *at, "--page-size", "2", "--all", "-o", "json", "--stream")

    assert first.out.count("Config: ") == 2
    assert [config["id"] for config in rest.json["configs"]] == ["c2"]
    assert [config["id"] for config in every.lines] == ["c0", "c1", "c2"]


@pytest.mark.req("A2ACLI_AUTH_004", "PUSH-17")
@pytest.mark.parametrize("more", [("--debug",), ("-o", "json"), ("--verbose",)])
def test_secrets_are_not_said(dragoman: Dragoman, url: str, task: str, more: tuple[str, ...]) -> None:
    words = ("task", "push-config", "create", task, "-a", url, *PROVEN, *more)

    done = dragoman.inside(*words, "--url", "https://hooks.example/a2a", env=SECRETS)
    refused = dragoman.inside(*words, "--url", "https://u:p4ss@hooks.example/a2a", env=SECRETS)

    assert (done.status, refused.status) == (0, 2)
    for secret in (*SECRETS.values(), "p4ss"):
        assert secret not in done.err + refused.err + refused.out


@pytest.mark.req("A2ACLI_PUSH_001")
@pytest.mark.parametrize(
    "wrong",
    [
        ("create", "t"),
        ("create",),
        ("get", "t"),
        ("delete", "t"),
        ("create", "t", "--url", "ftp://h/"),
        ("create", "t", "--url", "https://h/", "--auth-credentials", "x"),
        ("create", "t", "--url", "https://h/", "--token", "x", "--token-env", "HOOK_TOKEN"),
        ("create", "t", "--url", "https://h/", "--token-env", "NO_SUCH_VARIABLE"),
        ("list", "t", "--all", "--page-token", "x"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(dragoman: Dragoman, url: str, wrong: tuple[str, ...]) -> None:
    assert dragoman.inside("task", "push-config", *wrong, "-a", url, env=SECRETS).status == 2


@pytest.mark.req("A2ACLI_VER_003", "PCFG-10")
@pytest.mark.parametrize(
    "words", [("create", "t", "--url", "https://h/"), ("get", "t", "c"), ("list", "t"), ("delete", "t", "c")]
)
def test_an_agent_without_push_is_not_asked(dragoman: Dragoman, echo_url: str, words: tuple[str, ...]) -> None:
    done = dragoman.inside("task", "push-config", *words, "-a", echo_url, "-o", "json")

    assert done.status == 1
    assert done.error["code"] == "PushNotificationNotSupportedError"


@pytest.mark.req("PUSH-16")
def test_a_webhook_without_encryption_is_warned_of(dragoman: Dragoman, url: str, task: str) -> None:
    words = ("-a", url, "--id", "c")

    plain = dragoman.inside("task", "push-config", "create", task, "--url", "http://h.example/?k=secret", *words)
    safe = dragoman.inside("task", "push-config", "create", task, "--url", "https://h.example/", *words)

    assert "Warning: the webhook http://h.example/ is not https" in plain.err
    assert "secret" not in plain.err
    assert "Warning" not in safe.err


@pytest.mark.req("A2ACLI_PUSH_002", "PUSH-11", "PUSH-13", "PUSH-14", "PUSH-12")
def test_the_listener_prints_what_is_genuine_once_and_ends_when_its_tasks_are_over(dragoman: Dragoman) -> None:
    listening = Listening(dragoman, *PROVEN, "--task-id", "t-1", "--task-id", "t-2", "--path", "/h", "-o", "json")
    bearer = {"Authorization": f"Bearer {SECRETS['HOOK_CREDENTIALS']}"}

    answers = [
        listening.post(update("WORKING"), "wrong", **bearer),
        listening.post(update("WORKING")),
        listening.post(update("WORKING", "t-3"), **bearer),
        listening.post(b"{", **bearer),
        listening.post(b" " * 11_000_000, **bearer),
        *(listening.post(update("WORKING"), **bearer) for _ in range(2)),
        listening.post({"id": "t-2", "contextId": "c", "status": {"state": "completed"}}, **bearer),
        listening.post(update("COMPLETED"), **bearer),
    ]
    done = finish(listening.process, listening.said)

    assert answers == [401, 401, 401, 400, 413, 204, 204, 204, 204]
    assert done.status == 0
    assert [next(iter(line)) for line in done.lines] == ["statusUpdate", "task", "statusUpdate"]
    assert done.lines[0] == update("WORKING")
    assert "answered with 401" in done.err
    for secret in SECRETS.values():
        assert secret not in done.err


@pytest.mark.req("A2ACLI_PUSH_002")
@pytest.mark.parametrize(("options", "status"), [(("--count", "1"), 0), (("--timeout", "300ms"), 5)])
def test_the_listener_ends_after_so_many_or_so_long(dragoman: Dragoman, options: tuple[str, ...], status: int) -> None:
    listening = Listening(dragoman, *options)

    if status == 0:
        assert listening.post(update("WORKING"), token="") == 204
    done = finish(listening.process, listening.said)

    assert done.status == status
    assert ("State: WORKING" in done.out) is (status == 0)
    assert "need no proof" in done.err


@pytest.mark.req("A2ACLI_PUSH_002")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_listener_in_order(dragoman: Dragoman, number: signal.Signals) -> None:
    listening = Listening(dragoman, "--token-env", "HOOK_TOKEN")

    listening.process.send_signal(number)
    done = finish(listening.process, listening.said)

    assert (done.status, done.out) == (0, "")
    assert "Error" not in done.err


@pytest.mark.req("A2ACLI_PUSH_002", "PUSH-11", "PUSH-14", "PUSH-16", "SEND-17")
def test_an_agent_tells_the_listener_from_a_message_to_the_end(dragoman: Dragoman, told: tuple[str, ...]) -> None:
    listening = Listening(dragoman, "--token-env", "HOOK_TOKEN", "--count", "4", "-o", "json")

    hook = ("--push-url", listening.url, "--push-token-env", "HOOK_TOKEN")
    sent = dragoman("send", "go", *hook, *told, "-o", "json", env=SECRETS)
    done = finish(listening.process, listening.said)

    assert sent.status == 0
    assert "is not https" in sent.err
    assert [next(iter(line)) for line in done.lines] == ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]
    assert done.lines[0]["task"]["id"] == sent.json["task"]["id"]
    assert done.lines[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("A2ACLI_PUSH_001", "A2ACLI_PUSH_002", "AMB-60")
def test_a_webhook_for_a_task_that_waits_is_told_of_it(dragoman: Dragoman, url: str, task: str) -> None:
    listening = Listening(dragoman, "--token-env", "HOOK_TOKEN", "--task-id", task, "-o", "json")

    words = ("--url", listening.url, "--token-env", "HOOK_TOKEN")
    made = dragoman("task", "push-config", "create", task, *words, "-a", url, env=SECRETS)
    answered = dragoman("send", "yes", "--task-id", task, "-a", url)
    done = finish(listening.process, listening.said)

    assert (made.status, answered.status, done.status) == (0, 0, 0)
    assert done.lines[0]["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert done.lines[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("A2ACLI_PUSH_002")
@pytest.mark.parametrize(
    "wrong",
    [
        ("--tls-cert", "c.pem"),
        ("--path", "x"),
        ("--count", "0"),
        ("--count", "x"),
        ("--token-env", "NO_SUCH_VARIABLE"),
        ("--auth-scheme", "Bearer"),
        ("--auth-credentials-env", "HOOK_TOKEN"),
        ("--jwks", "no-such-file"),
        ("--port", "70000"),
    ],
)
def test_a_listener_that_makes_no_sense_is_a_usage_error(dragoman: Dragoman, wrong: tuple[str, ...]) -> None:
    assert dragoman.inside("webhook", "listen", *wrong, env=SECRETS).status == 2


@pytest.mark.req("A2ACLI_PUSH_002")
def test_the_listener_speaks_https_and_verifies_signatures(dragoman: Dragoman, tmp_path: Path) -> None:
    from dragoman.jose import new_key
    from tests.webhook.deliveries import claims, jwt

    key = new_key("ES256", kid="k1")
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [key.public.members]}))
    _certificate(tmp_path)
    tls = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    listening = Listening(dragoman, "--jwks", str(tmp_path / "jwks.json"), *tls, "--count", "1", "-o", "json")
    body = json.dumps(update("WORKING")).encode()
    said = claims(body, aud=listening.url, iat=int(time.time()), exp=None)
    with httpx2.Client(verify=False) as http:
        answers = [
            http.post(
                listening.url,
                content=body,
                headers={"Content-Type": "application/json", "X-A2A-Notification-Signature": signature},
            ).status_code
            for signature in ("a.b.c", jwt(said, key))
        ]
    done = finish(listening.process, listening.said)

    assert listening.url.startswith("https://")
    assert answers == [401, 204]
    assert done.lines == [update("WORKING")]


def _certificate(folder: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = [
        "-keyout",
        str(folder / "key.pem"),
        "-out",
        str(folder / "cert.pem"),
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run([*command, *files], check=True, capture_output=True)
