"""Agents of version 0.3 from the command line: the same commands, the same output, by ``--a2a-version 0.3``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands.peer import Peer
from tests.cli.commands.program import Dragoman

OLD = ("--a2a-version", "0.3")


def old_card(peer: Peer) -> dict[str, object]:
    """The scripted agent's card, in the form of 0.3."""
    kept = {name: peer.card[name] for name in ("name", "description", "version", "skills") if name in peer.card}
    modes = {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
    return {"protocolVersion": "0.3.0", "url": f"{peer.url}/rpc", "capabilities": {"streaming": True}, **modes, **kept}


@pytest.mark.req("A2ACLI_VER_001", "V03-05")
@pytest.mark.parametrize("more", [(), ("--stream",), ("--wait-mode", "poll", "--poll-interval", "100ms")])
def test_sending_shows_the_same(dragoman: Dragoman, at: tuple[str, ...], more: tuple[str, ...]) -> None:
    new, old = (dragoman.inside("send", *at, *version, *more, "hello") for version in ((), OLD))

    assert (old.status, new.status) == (0, 0)
    assert [line.partition(":")[0] for line in old.out.splitlines()] == [
        line.partition(":")[0] for line in new.out.splitlines()
    ]
    assert "hello" in old.out


@pytest.mark.req("A2ACLI_VER_001", "V03-05")
def test_json_is_that_of_1_0(dragoman: Dragoman, at: tuple[str, ...]) -> None:
    done = dragoman.inside("send", *at, *OLD, "-o", "json", "hello")

    task = done.json["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert "kind" not in done.out


@pytest.mark.req("A2ACLI_VER_001", "V03-05")
def test_tasks_are_looked_at_and_followed(dragoman: Dragoman, at: tuple[str, ...]) -> None:
    task_id = dragoman.inside("send", *at, *OLD, "-o", "json", "hello").json["task"]["id"]

    got = dragoman.inside("task", "get", task_id, *at, *OLD, "-o", "json")
    followed = dragoman.inside("task", "subscribe", task_id, *at, *OLD, "-o", "json")
    canceled = dragoman.inside("task", "cancel", task_id, *at, *OLD, "-o", "json")
    listed = dragoman.inside("task", "list", *at, *OLD, "-o", "json")

    assert got.json["status"]["state"] == "TASK_STATE_COMPLETED"
    assert followed.status == 0
    assert canceled.error["code"] == "TaskNotCancelableError"
    assert listed.error["code"] == "UnsupportedOperationError"
    assert "0.3" in listed.error["message"]


@pytest.mark.req("A2ACLI_VER_001", "A2ACLI_OUT_004", "V03-05")
def test_a_card_of_0_3_is_shown_and_named_and_needs_the_option_to_be_called(dragoman: Dragoman, peer: Peer) -> None:
    (Path(dragoman.folder) / "card.json").write_text(json.dumps(old_card(peer)))

    shown = dragoman.inside("card", "get", "./card.json")
    chosen = dragoman.inside("card", "get", "./card.json", *OLD)
    refused = dragoman.inside("send", "-a", "./card.json", "-o", "json", "hello")

    assert (shown.status, shown.field("Interface")) == (0, f"JSONRPC 0.3 {peer.url}/rpc")
    assert "--a2a-version 0.3" in shown.err
    assert chosen.field("Selected interface") == f"JSONRPC 0.3 {peer.url}/rpc"
    assert (refused.status, refused.error["code"]) == (1, "VersionNotSupportedError")
    assert "--a2a-version 0.3" in refused.error["hint"]
    assert peer.calls == []


@pytest.mark.req("A2ACLI_VER_001")
def test_an_endpoint_of_0_3_can_be_named(dragoman: Dragoman, peer: Peer) -> None:
    dragoman.inside("task", "get", "t-1", "--endpoint", f"{peer.url}/rpc", "--transport", "JSONRPC", *OLD)

    assert [seen.headers["a2a-version"] for seen in peer.calls] == ["0.3"]


@pytest.mark.req("A2ACLI_VER_001")
def test_a_version_that_nobody_speaks_is_refused(dragoman: Dragoman, here: tuple[str, ...]) -> None:
    done = dragoman.inside("send", *here, "--a2a-version", "2.0", "-o", "json", "hello")

    assert (done.status, done.error["code"]) == (1, "VersionNotSupportedError")
