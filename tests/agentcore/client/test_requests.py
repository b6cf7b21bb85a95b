"""What every request looks like, and its limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from dragoman import agentcore
from dragoman.agentcore import custom_headers
from dragoman.agentcore.custom_headers import check_headers
from dragoman.agentcore.retrying import Retry
from dragoman.errors import (
    ConfigurationError,
    PayloadTooLargeError,
    RequestTimeoutError,
    VersionNotSupportedError,
)
from tests.agentcore.client.front import ARN, CALLS, CARD, KEYS, call, choose, done, runtime_card
from tests.client.words import artifact, status, task
from tests.http.peer import Answer, Peer, Received, as_json, error, peer, result, silence, stream


@pytest.fixture
async def front() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.mark.req("AC-C-06")
async def test_the_path_reaches_the_socket_as_it_was_built(front: Peer) -> None:
    front.on("POST", CALLS, done())

    async with call(front, qualifier="prod") as client:
        await client.send("hi")

    assert front.targets() == [
        "POST /runtimes/arn%3Aaws%3Abedrock-agentcore%3Aeu-west-1%3A111122223333%3Aruntime%2Fledger_bot-Qw3rTy7UiO"
        "/invocations/?qualifier=prod"
    ]


@pytest.mark.req("AC-C-04")
async def test_the_qualifier_is_on_card_calls_and_resumed_streams(front: Peer) -> None:
    front.on("GET", CARD, as_json(runtime_card(front)))
    front.on("POST", CALLS, stream(artifact("x"), end="cut"), stream({"task": task("COMPLETED")}))

    async with call(front, card=True, qualifier="prod") as client:
        [event async for event in client.stream("hi")]

    assert [target.partition("?")[2] for target in front.targets()] == ["qualifier=prod"] * 3


@pytest.mark.req("AC-C-08")
async def test_json_rpc_is_spoken_whatever_comes_first_on_the_card(front: Peer) -> None:
    front.on("GET", CARD, as_json(runtime_card(front, "GRPC", "HTTP+JSON", "JSONRPC")))
    front.on("POST", CALLS, done())

    async with call(front, card=True) as client:
        await client.send("hi")

    assert client.interface.protocol_binding == "JSONRPC"
    assert front.targets()[-1] == f"POST {CALLS}"


@pytest.mark.req("AC-C-30")
async def test_every_call_names_version_extensions_and_what_it_takes(front: Peer) -> None:
    front.on("POST", CALLS, done(), stream({"task": task("COMPLETED")}), result(task("COMPLETED")))

    async with call(front, extensions=["https://x.example/e"]) as client:
        await client.send("hi")
        [event async for event in client.stream("hi")]
        await client.get_task("t1")

    for sent in front.received:
        assert sent.headers["a2a-version"] == "1.0"
        assert sent.headers["a2a-extensions"] == "https://x.example/e"
        assert sent.headers["content-type"] == "application/json"
        assert sent.headers["accept"] == "application/json, text/event-stream"


@pytest.mark.req("AC-C-31")
async def test_a_refused_version_tells_of_the_allow_list(front: Peer) -> None:
    front.on("POST", CALLS, error(-32009, "Version not supported: 0.3"))

    async with call(front) as client:
        with pytest.raises(VersionNotSupportedError, match="request-header configuration"):
            await client.send("hi")

    assert front.received[0].headers["a2a-version"] == "1.0"


def strict_server(request: Received) -> Answer:
    """Speaks 0.3 when the header was dropped on the way."""
    if request.json["method"] == "SendMessage":
        return error(-32009, "Version not supported: 0.3")
    return result({"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}})


@pytest.mark.req("AC-C-31")
async def test_the_client_may_switch_to_the_older_version_once_and_for_all(front: Peer) -> None:
    both = runtime_card(front)
    both["supportedInterfaces"].append({**both["supportedInterfaces"][0], "protocolVersion": "0.3"})
    front.on("GET", CARD, as_json(both)).on("POST", CALLS, choose(strict_server))

    async with call(front, card=True, fallback=True) as client:
        await client.send("hi")
        await client.send("hi")

    methods = [request.json["method"] for request in front.received[1:]]
    assert methods == ["SendMessage", "message/send", "message/send"]
    assert client.interface.url == front.url + CALLS


@pytest.mark.req("AC-C-31")
async def test_without_leave_the_client_does_not_switch(front: Peer) -> None:
    both = runtime_card(front)
    both["supportedInterfaces"].append({**both["supportedInterfaces"][0], "protocolVersion": "0.3"})
    front.on("GET", CARD, as_json(both)).on("POST", CALLS, error(-32009, "Version not supported"))

    async with call(front, card=True) as client:
        with pytest.raises(VersionNotSupportedError, match="request-header configuration"):
            await client.send("hi")

    assert len(front.received) == 2


@pytest.mark.req("AC-C-32")
async def test_a_body_beyond_the_limit_never_leaves(front: Peer) -> None:
    front.on("POST", CALLS, done())
    async with call(front) as client:
        await client.send("", message_id="m")
    size = len(front.received[0].body)

    async with call(front, max_request_bytes=size + 10) as client:
        before = front.connections
        with pytest.raises(PayloadTooLargeError):
            await client.send("x" * 11, message_id="m")
        assert front.connections == before
        await client.send("x" * 10, message_id="m")

    assert len(front.received[1].body) == size + 10


@pytest.mark.req("AC-C-32")
async def test_the_limit_is_that_of_the_service(front: Peer) -> None:
    async with call(front) as client:
        with pytest.raises(PayloadTooLargeError, match="100000000"):
            await client.send("x" * 100_000_000)

    assert front.connections == 0


@pytest.mark.req("AC-C-33")
def test_custom_headers_get_the_prefix() -> None:
    made = custom_headers({"Tenant": "a", "X-Amzn-Bedrock-AgentCore-Runtime-Custom-Other": "b"})

    assert made == {
        "X-Amzn-Bedrock-AgentCore-Runtime-Custom-Tenant": "a",
        "X-Amzn-Bedrock-AgentCore-Runtime-Custom-Other": "b",
    }


@pytest.mark.req("AC-C-33")
@pytest.mark.parametrize("name", ["A2A-Version", "X-My-Header", "traceparent", "Authorization", "b"])
def test_good_names_pass(name: str) -> None:
    check_headers({name: "x" * 4096})


@pytest.mark.req("AC-C-33")
@pytest.mark.parametrize(
    "name",
    [
        "X-Amz-Date",
        "x-amzn-anything",
        "X-Forwarded-For",
        "Sec-WebSocket-Key",
        "Access-Control-Allow-Origin",
        "Content-Type",
        "Content-Language",
        "Cookie",
        "Connection",
        "Transfer-Encoding",
        "Host",
        "1-x",
        "-x",
        "x y",
        "x:y",
        "",
        "X-Amzn-Bedrock-AgentCore-Runtime-Custom-",
        "X-Amzn-Bedrock-AgentCore-Runtime-Custom-1",
    ],
)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="would not reach the agent"):
        check_headers({name: "x"})


@pytest.mark.req("AC-C-33")
@pytest.mark.parametrize("values", [{f"h{n}": "x" for n in range(21)}, {"a": "x" * 4097}, {"a": "x\r\ny"}, {"a": "ü"}])
def test_too_many_too_long_and_broken_values_are_refused(values: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        custom_headers(values)


@pytest.mark.req("AC-C-26")
async def test_trace_headers_go_along_unless_they_are_too_long(front: Peer, caplog: pytest.LogCaptureFixture) -> None:
    front.on("POST", CALLS, done())
    given = {"traceparent": "00-1-2-03", "tracestate": "t" * 513, "baggage": "b" * 8192, "X-Amzn-Trace-Id": "r" * 129}

    async with call(front, headers=given) as client:
        await client.send("hi")

    sent = front.received[0].headers
    assert (sent["traceparent"], sent["baggage"]) == (given["traceparent"], given["baggage"])
    assert "tracestate" not in sent
    assert "x-amzn-trace-id" not in sent
    assert {record.getMessage().split()[2] for record in caplog.records} == {"tracestate", "x-amzn-trace-id"}


@pytest.mark.req("AC-C-34")
def test_the_default_limits_are_those_of_the_service() -> None:
    made = agentcore.connect(ARN, credentials=KEYS)

    assert (made._settings.timeout, made._settings.idle_timeout) == (900.0, 120.0)
    assert (made._http.connect_timeout, made._calling.card_timeout, made._calling.unary_limit) == (10.0, 130.0, 900.0)


@pytest.mark.req("AC-C-34")
@pytest.mark.parametrize("deadline", ["the client's", "the call's"])
async def test_a_send_that_waits_has_a_limit_too(front: Peer, deadline: str) -> None:
    front.on("POST", CALLS, silence)
    options = {"timeout": 0.05} if deadline == "the client's" else {}

    async with call(front, **options) as client:
        started = time.monotonic()
        with pytest.raises(RequestTimeoutError):
            await (client.send("hi") if options else client.send("hi", timeout=0.05))

    assert time.monotonic() - started < 5


@pytest.mark.req("AC-C-34")
async def test_a_stream_has_no_limit_but_that_of_silence(front: Peer) -> None:
    front.on("POST", CALLS, stream(status("WORKING"), end="stay"), stream({"task": task("COMPLETED")}))

    async with call(front, idle_timeout=0.05, timeout=0.01) as client:
        kinds = [type(event).__name__ async for event in client.stream("hi")]

    assert kinds == ["TaskStatusUpdateEvent", "Task"]


@pytest.mark.req("AC-C-34", "AC-C-63")
async def test_a_slow_card_has_a_limit_of_its_own(front: Peer) -> None:
    front.on("GET", CARD, silence)

    with pytest.raises(RequestTimeoutError):
        async with call(front, card=True, card_timeout=0.05, timing=None, retry=Retry(failed_tries=0)):
            raise AssertionError("connected")


@pytest.mark.req("AC-C-34")
async def test_a_run_has_a_deadline_over_everything(front: Peer) -> None:
    front.on("POST", CALLS, stream(status("WORKING"), end="stay"))

    async with call(front) as client:
        with pytest.raises(RequestTimeoutError):
            await asyncio.wait_for(client.run("hi", timeout=0.05), 5)


@pytest.mark.req("AC-C-61")
async def test_an_arn_alone_is_enough_to_call(front: Peer) -> None:
    front.on("POST", CALLS, done())

    async with call(front) as client:
        await client.send("hi")

    assert front.targets() == [f"POST {CALLS}"]
    assert (client.interface.protocol_binding, client.interface.protocol_version) == ("JSONRPC", "1.0")


@pytest.mark.req("AC-C-61")
async def test_the_version_spoken_without_a_card_can_be_stated(front: Peer) -> None:
    front.on("POST", CALLS, choose(strict_server))

    async with call(front, version="0.3") as client:
        await client.send("hi")

    assert front.received[0].json["method"] == "message/send"
    assert front.received[0].headers["a2a-version"] == "0.3"


@pytest.mark.req("AC-C-46")
async def test_the_vendors_sample_of_an_answer_is_read_as_a_task_with_its_artifacts(front: Peer) -> None:
    sample = {"artifacts": [{"artifactId": "a", "name": "answer", "parts": [{"kind": "text", "text": "18:42"}]}]}
    front.on("POST", CALLS, result(sample))

    async with call(front, version="0.3") as client:
        answer = await client.send("Next high water?")

    assert answer.artifacts[0].parts[0].text == "18:42"  # type: ignore[union-attr]
    assert len(front.received) == 1
