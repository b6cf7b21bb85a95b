"""Which interface is used, and what is signalled to it."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands.peer import REST, RPC, Answer, Peer, Seen, events, refusal, result, task
from tests.cli.commands.program import Dragoman


def used(peer: Peer) -> list[str]:
    """The bindings of the calls, by their paths."""
    return [RPC if seen.path.startswith("/rpc") else REST for seen in peer.calls]


@pytest.mark.req("A2ACLI_TX_001", "A2ACLI_TX_002", "A2ACLI_TX_004")
def test_the_card_decides_unless_the_user_does(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, task())
    custom = peer.interface("https://bindings.example/pigeon")
    run = ("task", "get", "t-1", "-a", peer.url)
    peer.card["supportedInterfaces"] = [custom, peer.interface(RPC), peer.interface(REST)]
    dragoman.inside(*run)
    dragoman.inside(*run, "--transport", "rest")
    dragoman.inside(*run, "--transport", "GRPC", "--transport", "HTTP+JSON", "--transport", "jsonrpc")
    dragoman.inside(*run, env={"A2ACLI_TRANSPORT": "http_json,jsonrpc"})
    peer.card["supportedInterfaces"].reverse()
    dragoman.inside(*run)
    fallback = dragoman.inside(*run, "--transport", "urn://custom")

    assert used(peer) == [RPC, REST, REST, REST, REST, REST]
    assert "does not offer urn://custom" in fallback.err


@pytest.mark.req("A2ACLI_TX_002", "A2ACLI_VER_001")
def test_of_one_binding_the_highest_version_that_is_spoken_is_used(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, task())
    old = peer.interface(REST, protocolVersion="0.3")
    next_one = {**peer.interface(RPC), "protocolVersion": "2.0", "url": f"{peer.url}/rpc/next"}
    peer.card["supportedInterfaces"] = [old, next_one, peer.interface(RPC)]

    dragoman.inside("task", "get", "t-1", "-a", peer.url)

    assert [seen.path for seen in peer.calls] == ["/rpc"]


@pytest.mark.req("A2ACLI_VER_001", "A2ACLI_OUT_004")
def test_nothing_in_common_is_said_before_anything_is_sent(dragoman: Dragoman, peer: Peer) -> None:
    run = ("task", "get", "t-1", "-a", peer.url, "-o", "json")
    peer.card["supportedInterfaces"] = [peer.interface("https://bindings.example/pigeon")]
    no_binding = dragoman.inside(*run)
    peer.card["supportedInterfaces"] = [peer.interface(RPC, protocolVersion="0.3")]
    no_version = dragoman.inside(*run)
    assert peer.calls == []
    dragoman.inside(*run, "--a2a-version", "0.3")

    assert no_binding.error["code"] == "DRAGOMAN_ERR_NO_TRANSPORT"
    assert (no_version.error["code"], no_version.error["a2aCode"]) == ("VersionNotSupportedError", None)
    assert "--a2a-version 0.3" in no_version.error["hint"]
    assert [seen.headers["a2a-version"] for seen in peer.calls] == ["0.3"]


@pytest.mark.req("A2ACLI_VER_001", "A2ACLI_TX_003", "A2ACLI_VER_002")
@pytest.mark.parametrize("binding", [RPC, REST])
@pytest.mark.parametrize("tenant", ["", "acme"])
def test_version_tenant_and_extensions_go_with_every_operation(
    dragoman: Dragoman, peer: Peer, binding: str, tenant: str
) -> None:
    more = {"tenant": tenant} if tenant else {}
    peer.card["supportedInterfaces"] = [peer.interface(binding, **more)]
    peer.card["capabilities"]["extensions"] = [{"uri": "https://x.example/ext", "required": True}]

    def play(seen: Seen) -> Answer:
        if seen.operation in ("SendStreamingMessage", "SubscribeToTask"):
            return events(seen, {"task": task()})
        if seen.operation == "ListTasks":
            return result(seen, {"tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0})
        working = {"task": task(state="WORKING")}
        return result(seen, working if seen.operation == "SendMessage" else task(state="CANCELED"))

    peer.play = play
    where = ("-a", peer.url, "--extension", "https://x.example/ext")
    for command in (
        ("send", "x"),
        ("send", "--async", "x"),
        ("send", "--wait-mode", "poll", "--poll-interval", "100ms", "x"),
        ("task", "get", "t-1"),
        ("task", "cancel", "t-1"),
        ("task", "list"),
        ("task", "subscribe", "t-1"),
    ):
        assert dragoman.inside(*command, *where).status == 0

    assert len(set(peer.operations)) == 6
    assert {seen.headers.get("a2a-version") for seen in peer.calls} == {"1.0"}
    assert {seen.params.get("tenant", "") for seen in peer.calls} == {tenant}
    assert all("https://x.example/ext" in seen.headers["a2a-extensions"] for seen in peer.calls)


@pytest.mark.req("A2ACLI_VER_002", "A2ACLI_OUT_004")
def test_a_required_extension_that_is_not_known_stops_the_call(dragoman: Dragoman, peer: Peer) -> None:
    peer.card["capabilities"]["extensions"] = [{"uri": "https://x.example/ext", "required": True}]

    done = dragoman.inside("send", "-a", peer.url, "-o", "json", "x")

    assert (done.status, done.error["code"]) == (1, "ExtensionSupportRequiredError")
    assert "--extension https://x.example/ext" in done.error["message"]
    assert peer.calls == []


@pytest.mark.req("A2ACLI_VER_001")
def test_a_version_that_the_agent_refuses_is_not_lowered(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: refusal(seen, -32009, "VERSION_NOT_SUPPORTED", "Only 0.3 here")

    done = dragoman.inside("send", "-a", peer.url, "-o", "json", "x")

    assert (done.status, done.error["code"]) == (1, "VersionNotSupportedError")
    assert len(peer.calls) == 1


@pytest.mark.req("A2ACLI_TX_002", "A2ACLI_CARD_GET_001")
def test_an_endpoint_needs_no_card_and_exactly_one_binding(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, task())
    run = ("task", "get", "t-1", "-e", f"{peer.url}/rest", "-o", "json")

    good = dragoman.inside(*run, "--transport", "rest", "--tenant", "acme")
    none = dragoman.inside(*run)
    both = dragoman.inside(*run, "--transport", "rest", "-a", peer.url)

    assert (good.status, none.status, both.status) == (0, 2, 2)
    assert [seen.params["tenant"] for seen in peer.seen] == ["acme"]


@pytest.mark.req("A2ACLI_CARD_GET_001", "A2ACLI_TX_001")
def test_a_file_decides_like_a_card_that_was_fetched(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, task())
    peer.card["supportedInterfaces"] = [peer.interface(REST)]
    path = dragoman.folder / "card.json"
    path.write_text(json.dumps(peer.card))

    for reference in ("card.json", "./card.json", str(path), f"file://{path}"):
        assert dragoman.inside("task", "get", "t-1", "-a", reference).status == 0

    assert used(peer) == [REST] * 4
    assert len(peer.seen) == 4


@pytest.mark.req("A2ACLI_TX_005", "A2ACLI_TX_002")
def test_grpc_is_spoken_for_single_answers_streams_and_errors(dragoman: Dragoman, echo_url: str) -> None:
    at = ("-a", echo_url, "--transport", "grpc", "--bearer", "secret-of-the-test")

    sent = dragoman("send", *at, "hello", "--verbose")
    got = dragoman("task", "get", sent.field("Task"), *at)
    streamed = dragoman("send", *at, "!stream 5", "--stream", "-o", "json")
    unknown = dragoman("task", "get", "nobody", *at, "-o", "json")

    assert "Selected interface: GRPC 1.0 127.0.0.1:" in sent.out + sent.err
    assert got.field("State") == "COMPLETED"
    assert len(streamed.out.splitlines()) > 2
    assert (unknown.status, unknown.error["code"]) == (1, "TaskNotFoundError")
