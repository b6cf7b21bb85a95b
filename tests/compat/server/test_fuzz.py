"""Whatever JSON comes to a method or path of 0.3, an answer of 0.3 goes out: never a 500, never another body."""

from __future__ import annotations

import json
import random
from typing import Any

from dragoman.compat.v03.server_rpc import METHODS
from tests.bindings.parts import ask
from tests.bindings.test_fuzz_requests import mutated
from tests.compat.server.recording import RecordedPush, endpoint_over
from tests.compat.server.speaking import told, told_in_proto

ROUNDS = 1500

SCALARS: list[Any] = [None, True, 0, -1, 1.5, 2**70, "", "x", "user", "ROLE_USER", "aGk=", "tasks/t", [], {}, "\ud7ff"]
NAMES = [
    *(
        "message",
        "request",
        "msg",
        "kind",
        "messageId",
        "message_id",
        "role",
        "parts",
        "content",
        "contextId",
        "taskId",
    ),
    *("text", "file", "data", "bytes", "uri", "fileWithBytes", "fileWithUri", "mimeType", "name", "metadata", "raw"),
    *("configuration", "blocking", "historyLength", "acceptedOutputModes", "pushNotificationConfig", "config", "url"),
    *("pushNotification", "authentication", "schemes", "credentials", "token", "id", "configId", "parent", "status"),
    *("state", "referenceTaskIds", "extensions", "tenant", "pushNotificationConfigId", "task", "final", "$"),
]
KINDS = ["message", "task", "text", "file", "data", "status-update", "artifact-update", "video", 5, None]
PATHS = [
    *(("POST", path) for path in ("/message:send", "/message:stream", "/tasks/t:cancel", "/tasks/t:subscribe")),
    *(("POST", path) for path in ("/tasks/t/pushNotificationConfigs", "/tasks/t/pushNotificationConfigs?configId=c")),
    *(
        ("GET", path)
        for path in ("/tasks/t", "/tasks/t:subscribe", "/card", "/tasks", "/tasks/t/pushNotificationConfigs")
    ),
    *(("DELETE", path) for path in ("/tasks/t/pushNotificationConfigs/c", "/tasks/t")),
]
CODES = {-32700, -32600, -32601, -32602, -32001, -32002, -32003, -32004, -32005, -32006, -32007}


def any_value(random_: random.Random, depth: int = 0) -> Any:
    """Some JSON that has to do with 0.3."""
    roll = random_.random()
    if depth > 4 or roll < 0.25:
        return random_.choice(SCALARS)
    if roll < 0.4:
        return [any_value(random_, depth + 1) for _ in range(random_.randrange(4))]
    value = {random_.choice(NAMES): any_value(random_, depth + 1) for _ in range(random_.randrange(5))}
    if random_.random() < 0.4:
        value["kind"] = random_.choice(KINDS)
    return value


def spoiled(random_: random.Random, value: Any) -> Any:
    """Good JSON with one place that is something else."""
    if isinstance(value, dict) and value and random_.random() < 0.85:
        name = random_.choice(list(value))
        return {**value, name: spoiled(random_, value[name])}
    if isinstance(value, list) and value and random_.random() < 0.85:
        at = random_.randrange(len(value))
        return [*value[:at], spoiled(random_, value[at]), *value[at + 1 :]]
    return any_value(random_, 2)


def params(random_: random.Random) -> Any:
    good = random_.choice(
        [told(), told_in_proto(), {"id": "t", "historyLength": 1}, told(parts=[{"kind": "data", "data": {}}])]
    )
    return any_value(random_) if random_.random() < 0.5 else spoiled(random_, good)


def check_error(error: Any) -> None:
    assert error["code"] in CODES, error
    assert error["message"]
    assert "data" not in error or isinstance(error["data"], dict)


async def test_random_params_of_every_method_are_answered_by_the_protocol() -> None:
    random_, app = random.Random(30), endpoint_over(RecordedPush())
    methods = sorted(METHODS)
    for n in range(ROUNDS):
        method = methods[n % len(methods)]
        sent = {"jsonrpc": "2.0", "id": n, "method": method, "params": params(random_)}
        text = json.dumps(sent).encode()
        body = mutated(random_, text.decode()) if n % 4 == 0 else text
        answer = await ask(app, "POST", "/", body, headers=random_.choice([{}, {"A2A-Version": "0.3"}]))
        assert answer.status == 200, body
        if answer.header("content-type") == "text/event-stream":
            events = [json.loads(line[6:]) for line in answer.body.decode().split("\n") if line.startswith("data: ")]
            assert events, body
        else:
            events = [answer.json]
        for event in events:
            assert event["jsonrpc"] == "2.0"
            assert ("result" in event) != ("error" in event)
            if "error" in event:
                check_error(event["error"])


async def test_random_bodies_of_every_path_are_answered_by_the_protocol() -> None:
    random_, app = random.Random(31), endpoint_over(RecordedPush())
    for n in range(ROUNDS):
        method, path = PATHS[n % len(PATHS)]
        text = json.dumps(params(random_))
        body = mutated(random_, text) if n % 4 == 0 else text.encode()
        answer = await ask(app, method, f"/v1{path}", body)
        assert answer.status in (200, 204, 400, 404, 405, 409, 415, 422, 501), (path, body)
        if answer.status >= 400:
            check_error(answer.json)
            assert answer.json["type"]
        elif answer.status == 200 and answer.header("content-type") == "application/json":
            assert isinstance(answer.json, dict)
