"""Routes and answers, on the bare ASGI application (AC-S-08): which there are, and that JSON-RPC has 200 only."""

from __future__ import annotations

import json
import logging
import random
import re
import tracemalloc

import pytest

from dragoman import Agent, agentcore
from dragoman.errors import A2AError, PermissionDeniedError, RateLimitedError, UnauthenticatedError
from tests.agentcore.server.hosts import calling, checked, hosted, ping, post, rpc, send, served

CARD = "/.well-known/agent-card.json"


@pytest.mark.req("AC-S-08", "AC-S-10", "AC-S-11", "AC-S-42")
async def test_a_bare_call_without_any_header_is_answered_with_a_task():
    async with calling(hosted()) as client:
        task = (await post(client, send("Hi")))["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        card = await client.get(CARD)
        assert (card.status_code, card.headers["content-type"]) == (200, "application/json")


def mounted(app, prefix):
    """A mount as frameworks do it: the prefix becomes ``root_path``."""

    async def outer(scope, receive, send):
        await app({**scope, "root_path": prefix, "path": scope["path"]}, receive, send)

    return outer


@pytest.mark.req("AC-S-10")
@pytest.mark.parametrize("path", ["/x", "/x/"])
async def test_an_empty_path_and_a_slash_reach_a_mounted_agent_without_a_redirect(path: str):
    app = hosted()
    async with calling(mounted(app, "/x")) as client:
        checked(await client.post(path, json=send()))
        await app.stop()


@pytest.mark.req("AC-S-03", "AC-S-10")
@pytest.mark.parametrize("path", ["/a2a", "/a2a/", "/", ""])
async def test_the_mount_path_of_the_runtime_is_a_setting(path: str):
    async with calling(hosted(path="/a2a/")) as client:
        checked(await client.post(path, json=send()))
        assert (await client.get("/ping")).status_code == 200
        assert (await client.get("/a2a/ping")).status_code == 200
        assert (await client.get(f"/a2a{CARD}")).status_code == 200


@pytest.mark.req("AC-S-12", "AC-S-60", "AC-S-61")
async def test_a_ping_is_get_or_head_and_exactly_this():
    async with calling(hosted(wall=lambda: 1781229000.7)) as client:
        answer = await client.get("/ping")
        assert answer.content == b'{"status":"Healthy","time_of_last_update":1781229000}'
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert type(answer.json()["time_of_last_update"]) is int
        head = await client.head("/ping")
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(answer.content)))
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            assert (await client.request(method, "/ping")).status_code == 405


@pytest.mark.req("AC-S-13")
@pytest.mark.parametrize("content_type", [None, "text/plain", "application/octet-stream", "", "a/b; c=\xe9"])
async def test_any_content_type_is_taken(content_type: str | None):
    async with calling(hosted()) as client:
        headers = {} if content_type is None else {"content-type": content_type.encode("latin-1")}
        answer = await client.post("/", content=json.dumps(send()).encode(), headers=headers)
        assert "result" in checked(answer)


FIXED = {
    b"": -32700,
    b"{": -32700,
    b'{"jsonrpc":"2.0","id":': -32700,
    b"\xff\xfe": -32700,
    b"[]": -32600,
    b"7": -32600,
    b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}': -32600,
    b'{"jsonrpc":"2.0","method":"GetTask"}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"Nothing"}': -32601,
    b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}': -32602,
    b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}': -32602,
    b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none"}}': -32001,
    b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}': -32602,
    b'{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"none"}}': -32001,
}


@pytest.mark.req("AC-S-14")
@pytest.mark.parametrize("body", FIXED, ids=range(len(FIXED)))
async def test_every_kind_of_error_has_status_200(body: bytes):
    async with calling(hosted()) as client:
        assert checked(await client.post("/", content=body))["error"]["code"] == FIXED[body]


@pytest.mark.req("AC-S-14")
@pytest.mark.parametrize("refusal", [UnauthenticatedError, PermissionDeniedError, RateLimitedError])
async def test_a_check_of_ones_own_refuses_with_a_json_rpc_error(refusal: type[A2AError]):
    def refuse(call):
        raise refusal

    async with calling(hosted(identify=refuse)) as client:
        answer = await client.post("/", json=send())
        assert checked(answer)["error"]["code"] == -32000
        assert "www-authenticate" not in answer.headers


def random_bodies(count: int) -> list[bytes]:
    """Broken JSON, wrong envelopes, wrong params, and bodies that are nearly right, in both generations."""
    rng = random.Random(20261130)
    methods = [
        "SendMessage",
        "message/send",
        "GetTask",
        "tasks/get",
        "CancelTask",
        "tasks/cancel",
        "ListTasks",
        "",
        "x",
    ]
    leaves = [None, 0, -1, 1.5, "", "a", True, [], {}, "\ud83d\ude00", 10**30]

    def value(depth: int = 0):
        kind = rng.random()
        if depth > 3 or kind < 0.6:
            return rng.choice(leaves)
        if kind < 0.8:
            return [value(depth + 1) for _ in range(rng.randrange(3))]
        names = ["id", "message", "parts", "text", "kind", "role", "messageId", "taskId", "name", "configuration"]
        return {rng.choice(names): value(depth + 1) for _ in range(rng.randrange(4))}

    def body() -> bytes:
        kind = rng.random()
        if kind < 0.2:
            return rng.randbytes(rng.randrange(60))
        whole = {"jsonrpc": rng.choice(["2.0", "2.0", "2.0", "1"]), "id": value(3), "method": rng.choice(methods)}
        whole["params"] = value()
        if kind < 0.3:
            return json.dumps(send())[: rng.randrange(150)].encode()
        if kind < 0.4:
            whole = send(parts=value(), role=value(3))
        return json.dumps(whole).encode()

    return [body() for _ in range(count)]


@pytest.mark.req("AC-S-14", "E2E-22")
async def test_ten_thousand_random_bodies_are_all_answered_with_200_and_json_rpc():
    async with calling(hosted(own_thread=False, limits=agentcore.Profile().limits)) as client:
        for body in random_bodies(10_000):
            found = checked(await client.post("/", content=body))
            if "error" in found:
                assert not -32055 <= found["error"]["code"] <= -32051


@pytest.mark.req("AC-S-15")
@pytest.mark.parametrize("id", ["a", 7, None])
async def test_errors_carry_the_id_of_the_request(id: object):
    async with calling(hosted()) as client:
        assert (await post(client, rpc("Nothing", id=id)))["id"] == id


class FrontError(A2AError):
    """An error of the front, which no agent may give."""

    code = -32054
    default_message = "Resource conflict"


@pytest.mark.req("AC-S-16")
@pytest.mark.parametrize("streaming", [False, True])
async def test_codes_of_the_front_are_no_ones_else(streaming: bool, caplog: pytest.LogCaptureFixture):
    agent = Agent("conflicting", description="x")

    @agent.reply
    async def reply(ctx):
        raise FrontError

    async with calling(hosted(agent)) as client:
        method = "SendStreamingMessage" if streaming else "SendMessage"
        error = checked(await client.post("/", json=send(method=method)))["error"]
        assert error["code"] == -32603
        assert "conflict" not in error["message"]
        assert any("-32054" in record.getMessage() for record in caplog.records)


@pytest.mark.req("AC-S-17")
async def test_the_text_of_an_exception_stays_in_the_log_and_a_number_finds_it(caplog: pytest.LogCaptureFixture):
    agent = Agent("failing", description="x")

    @agent.reply
    async def reply(ctx):
        raise ValueError("MARKER-4711")

    async with calling(hosted(agent)) as client:
        answer = await client.post("/", json=send(), headers={agentcore.headers.REQUEST_ID: "request-77"})
        assert "MARKER" not in answer.text
        error = checked(answer)["error"]
        assert error["data"][0]["requestId"] == "request-77"
        logged = [record for record in caplog.records if "request-77" in record.getMessage()]
        assert "MARKER-4711" in caplog.text
        assert logged[0].exc_info is not None


@pytest.mark.req("AC-S-17")
async def test_a_failed_task_is_found_in_the_log_by_its_id(caplog: pytest.LogCaptureFixture):
    agent = Agent("failing", description="x")

    @agent.task
    async def work(ctx):
        raise ValueError("MARKER-4711")

    async with calling(hosted(agent)) as client:
        answer = await client.post("/", json=send())
        task = checked(answer)["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_FAILED"
        assert "MARKER" not in answer.text
        assert any(task["id"] in record.getMessage() for record in caplog.records)
        assert "MARKER-4711" in caplog.text


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.mark.req("AC-S-19")
async def test_successful_pings_leave_no_line_in_uvicorns_access_log(monkeypatch: pytest.MonkeyPatch):
    access, kept = logging.getLogger("uvicorn.access"), Lines()
    monkeypatch.setattr(access, "handlers", [kept])
    monkeypatch.setattr(access, "level", logging.INFO)
    monkeypatch.setattr(access, "_cache", {})  # what was answered for another level
    async with calling(hosted()):
        for path, status in (("/ping", 200), ("/ping", 503), ("/x/ping?a=1", 200), ("/", 200)):
            access.info('%s - "%s %s HTTP/%s" %d', "1.2.3.4:5", "GET", path, "1.1", status)
    found = [re.search(r"GET (\S+) .* (\d+)$", line) for line in kept.lines]
    assert [match.groups() for match in found if match] == [("/ping", "503"), ("/", "200")]


@pytest.mark.req("AC-S-19")
async def test_fifty_pings_leave_no_line_in_our_log(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    async with calling(hosted()) as client:
        caplog.clear()
        for _ in range(50):
            await ping(client)
        assert [record for record in caplog.records if record.name.startswith("dragoman")] == []


@pytest.mark.req("AC-S-19", "AC-S-70")
async def test_a_failing_ping_leaves_one_line(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    app = hosted()
    async with calling(app) as client:
        await ping(client)
        await app.stop()
        caplog.clear()
        assert (await client.get("/ping")).status_code == 503
        lines = [record.getMessage() for record in caplog.records if record.name == "dragoman.agentcore"]
        assert lines == ["A ping was answered with 503: not ready"]


@pytest.mark.req("AC-S-37")
async def test_the_old_path_of_the_card_is_off_by_default():
    async with calling(hosted()) as client:
        assert (await client.get("/.well-known/agent.json")).status_code == 404
    async with calling(hosted(old_card_path=True)) as client:
        assert (await client.get("/.well-known/agent.json")).status_code == 200


@pytest.mark.req("AC-S-14")
async def test_other_bindings_of_the_same_process_still_answer_locally():
    async with calling(hosted()) as client:
        answer = await client.get("/tasks/none", headers={"a2a-version": "1.0"})
        assert (answer.status_code, (await client.get("/health")).status_code) == (404, 200)
        assert (await client.get("/")).status_code == 405


@pytest.mark.req("AC-S-18")
@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_beyond_the_limit_is_refused_with_200_on_a_connection_that_goes_on(declared: bool):
    async def pieces():
        for _ in range(2_000):
            yield b"x" * 10_000

    async with served(hosted(max_body_bytes=1_000_000)) as client:
        headers = {"content-length": "20000000"} if declared else {}
        assert checked(await client.post("/", content=pieces(), headers=headers))["error"]["code"] == -32600
        assert "result" in checked(await client.post("/", json=send()))


@pytest.mark.req("AC-S-18")
async def test_a_body_of_one_byte_too_many_takes_less_than_three_times_the_limit_of_memory():
    limit, size = 100_000_000, 100_000
    left = [bytes([number % 251]) * size for number in range(251)]
    sent: list[dict] = []
    pieces = iter(range(limit // size + 1))

    async def receive():
        number = next(pieces)
        last = number == limit // size
        return {"type": "http.request", "body": b"x" if last else bytearray(left[number % 251]), "more_body": not last}

    async def answer(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "raw_path": b"/", "headers": [], "query_string": b""}
    async with hosted() as app:
        tracemalloc.start()
        await app(scope, receive, answer)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert sent[0]["status"] == 200
    assert json.loads(sent[1]["body"])["error"]["code"] == -32600
    assert limit < peak < 2 * limit


@pytest.mark.req("AC-S-18")
async def test_a_body_of_100_mb_is_taken():
    agent = Agent("counting", description="x")

    @agent.reply
    async def count(ctx):
        return str(len(ctx.text))

    body = json.dumps(send("")).encode()
    text = b"x" * (100_000_000 - len(body))
    async with served(hosted(agent)) as client:
        answer = checked(await client.post("/", content=body.replace(b'"text": ""', b'"text": "%b"' % text)))
        assert answer["result"]["message"]["parts"][0]["text"] == str(len(text))
