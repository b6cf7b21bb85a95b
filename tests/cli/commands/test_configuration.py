"""Settings: their places, their order, and the defaults."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.cli.commands.peer import Answer, Peer, Seen, events, result, status, task
from tests.cli.commands.program import Dragoman

PLAIN = "s3cr3tvalue"


def shown(dragoman: Dragoman, name: str, *arguments: str, **environment: str) -> str:
    """The line of ``config show`` about a setting."""
    done = dragoman.inside("config", "show", *arguments, env=environment)
    assert done.status == 0, done.err
    return next(line for line in done.out.splitlines() if line.startswith(f"{name}: "))


def global_file(dragoman: Dragoman) -> Path:
    """The global file of the program's user."""
    path = dragoman.home / ".config" / "a2a-cli" / ".env"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.req("A2ACLI_CONFIG_002")
def test_an_option_beats_a_variable_beats_a_local_file_beats_the_global_one(dragoman: Dragoman) -> None:
    local, other, everywhere = dragoman.folder / ".env", dragoman.folder / "agent.env", global_file(dragoman)

    built_in = shown(dragoman, "timeout")
    everywhere.write_text("A2ACLI_TIMEOUT=10s\n")
    by_global = shown(dragoman, "timeout")
    local.write_text("# mine\nexport A2ACLI_TIMEOUT='20s'\nOTHER=1\n")
    by_local = shown(dragoman, "timeout")
    other.write_text("A2ACLI_TIMEOUT=30s # here\n")
    by_named = shown(dragoman, "timeout", "--config", "agent.env")
    by_variable = shown(dragoman, "timeout", A2ACLI_TIMEOUT="40s")
    by_option = shown(dragoman, "timeout", "--timeout", "50s", A2ACLI_TIMEOUT="40s")

    assert [built_in, by_global, by_local, by_named, by_variable, by_option] == [
        "timeout: 5m (built-in)",
        f"timeout: 10s (file {everywhere})",
        f"timeout: 20s (file {local})",
        "timeout: 30s (file agent.env)",
        "timeout: 40s (environment A2ACLI_TIMEOUT)",
        "timeout: 50s (flag)",
    ]


@pytest.mark.req("A2ACLI_CONFIG_002")
def test_the_nearest_file_upward_is_read_and_another_place_can_be_named(dragoman: Dragoman) -> None:
    (dragoman.folder / ".env").write_text("A2ACLI_OUTPUT=json\n")
    below = Dragoman(dragoman.folder / "home")
    elsewhere = dragoman.folder / "xdg" / "a2a-cli" / ".env"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_text("A2ACLI_AGENT_CARD=https://a.example\n")

    entries = {
        item["name"]: item
        for item in below("config", "show", env={"XDG_CONFIG_HOME": str(elsewhere.parent.parent)}).json
    }

    assert (entries["output"]["value"], entries["output"]["source"]) == ("json", "file")
    assert entries["agent-card"] == {
        "name": "agent-card",
        "env": "A2ACLI_AGENT_CARD",
        "value": "https://a.example",
        "source": "file",
        "path": str(elsewhere),
    }
    assert entries["bearer"]["value"] is None


@pytest.mark.req("A2ACLI_CONFIG_001", "A2ACLI_CONFIG_002")
def test_files_are_only_read_and_nothing_is_expanded(dragoman: Dragoman) -> None:
    path = dragoman.folder / ".env"
    path.write_text('A2ACLI_AGENT_CARD="https://$HOME.example/$(id)"\nA2ACLI_BEARER=secret-of-file\n')
    before = dragoman.files(), path.read_bytes()

    line = shown(dragoman, "agent-card")
    secret = shown(dragoman, "bearer")

    assert line.startswith("agent-card: https://$HOME.example/$(id) (file ")
    assert secret.startswith("bearer: <redacted> (file ")
    assert (dragoman.files(), path.read_bytes()) == before


@pytest.mark.req("A2ACLI_CONFIG_001")
def test_a_file_that_others_may_write_is_not_trusted(dragoman: Dragoman) -> None:
    path = dragoman.folder / ".env"
    path.write_text("A2ACLI_TIMEOUT=1s\n")
    path.chmod(0o666)

    done = dragoman.inside("send", "x", "-a", "http://127.0.0.1:1")

    assert f"Warning: {path} is not read" in done.err
    assert shown(dragoman, "timeout") == "timeout: 5m (built-in)"


@pytest.mark.req("A2ACLI_CONFIG_001", "A2ACLI_INTERACT_005")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_no_command_leaves_a_file_behind_except_what_it_was_asked_to_save(
    dragoman: Dragoman, peer: Peer, mask: int
) -> None:
    peer.play = lambda seen: result(
        seen, task(artifacts=[{"artifactId": "a", "parts": [{"raw": "AAA=", "filename": "q.bin"}]}])
    )
    before = dragoman.files()

    old = os.umask(mask)
    try:
        for command in (("task", "get", "t-1"), ("task", "cancel", "t-1"), ("card", "get"), ("config", "show")):
            dragoman.inside(*command, "-a", peer.url)
        assert dragoman.files() == before
        dragoman.inside("task", "get", "t-1", "-a", peer.url, "--save", "out")
    finally:
        os.umask(old)

    assert dragoman.files() - before == {"out", "out/q.bin"}
    assert stat.S_IMODE((dragoman.folder / "out" / "q.bin").stat().st_mode) == 0o666 & ~mask


@pytest.mark.req("A2ACLI_CONFIG_002")
def test_a_local_file_that_sends_our_credential_somewhere_is_named(dragoman: Dragoman, peer: Peer) -> None:
    (dragoman.folder / ".env").write_text(f"A2ACLI_AGENT_CARD={peer.url}\nA2ACLI_TASK_ID=t-1\n")
    peer.play = lambda seen: events(seen, {"task": task()})

    done = dragoman.inside("send", "x", env={"A2ACLI_BEARER": PLAIN})

    assert "Warning: agent-card comes from " in done.err
    assert "bearer (environment A2ACLI_BEARER)" in done.err
    assert "every message goes to that task" in done.err


@pytest.mark.req("A2ACLI_CONFIG_002", "A2ACLI_EXIT_001")
@pytest.mark.parametrize(
    ("variable", "value"),
    [("A2ACLI_ASYNC", "maybe"), ("A2ACLI_TIMEOUT", "soon"), ("A2ACLI_OUTPUT", "xml"), ("A2ACLI_METADATA", "[]")],
)
def test_a_variable_that_makes_no_sense_is_named(dragoman: Dragoman, variable: str, value: str) -> None:
    done = dragoman.inside("send", "x", "-a", "http://127.0.0.1:1", env={variable: value})

    assert done.status == 2
    assert variable in done.err


@pytest.mark.req("A2ACLI_OUT_003")
def test_streaming_is_never_a_setting(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: events(seen, {"task": task(state="WORKING")}, status("COMPLETED"))

    done = dragoman.inside("send", "-a", peer.url, "-o", "json", "x", env={"A2ACLI_STREAM": "1"})

    assert done.json["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("A2ACLI_DEFAULT_001", "A2ACLI_CLI_001")
def test_help_shows_the_six_defaults_as_they_are_in_effect(dragoman: Dragoman) -> None:
    plain = " ".join(dragoman.inside("send", "--help").out.split())
    changed = " ".join(
        dragoman.inside("send", "--help", env={"A2ACLI_TIMEOUT": "2m", "A2ACLI_INSECURE": "yes"}).out.split()
    )

    for words in (
        "[default: order of the card; A2ACLI_TRANSPORT]",
        "(the default of send). [default: off; A2ACLI_WAIT]",
        "[default: text; A2ACLI_OUTPUT]",
        "exchanged. [default: off; A2ACLI_VERBOSE]",
        "[default: highest common, at least 1.0; A2ACLI_A2A_VERSION]",
        "Warns. [default: off; A2ACLI_INSECURE]",
        "[default: 5m; A2ACLI_TIMEOUT]",
    ):
        assert words in plain
    assert "[environment A2ACLI_TIMEOUT: 2m]" in changed
    assert "[environment A2ACLI_INSECURE: on]" in changed


@pytest.mark.req("A2ACLI_DEFAULT_001")
def test_each_default_is_shipped_and_can_be_overridden(dragoman: Dragoman, peer: Peer) -> None:
    def play(seen: Seen) -> Answer:
        if seen.operation == "SendMessage":
            return result(seen, {"task": task(state="WORKING")})
        return events(seen, {"task": task(state="WORKING")}, status("COMPLETED"))

    peer.play = play
    run = ("send", "-a", peer.url, "x")
    plain = dragoman.inside(*run)
    transport = dragoman.inside(*run, "--transport", "rest")
    completion = dragoman.inside(*run, "--async")
    presentation = dragoman.inside(*run, "--output", "json")
    detail = dragoman.inside(*run, "--verbose")
    version = dragoman.inside(*run, "--a2a-version", "0.3")
    security = dragoman.inside(*run, "--insecure")

    assert (plain.field("State"), completion.field("State")) == ("COMPLETED", "WORKING")
    assert [seen.path for seen in peer.calls[:2]] == ["/rpc", "/rest/message:stream"]
    assert transport.status == presentation.status == 0
    assert presentation.json["task"]
    assert ("Selected interface" in plain.err, "Selected interface" in detail.err) == (False, True)
    assert (peer.calls[0].headers["a2a-version"], version.status) == ("1.0", 1)
    assert ("certificates" in plain.err, "certificates" in security.err) == (False, True)


@pytest.mark.req("A2ACLI_SEND_002", "A2ACLI_DEFAULT_001")
def test_an_option_beats_a_setting_that_says_not_to_wait(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: (
        result(seen, {"task": task(state="WORKING")})
        if seen.operation == "SendMessage"
        else events(seen, {"task": task()})
    )

    by_setting = dragoman.inside("send", "-a", peer.url, "x", env={"A2ACLI_ASYNC": "yes"})
    by_option = dragoman.inside("send", "-a", peer.url, "x", "--wait", env={"A2ACLI_ASYNC": "yes"})
    alias = dragoman.inside("send", "-a", peer.url, "x", env={"A2ACLI_NO_WAIT": "yes"})

    assert [done.field("State") for done in (by_setting, by_option, alias)] == ["WORKING", "COMPLETED", "COMPLETED"]


@pytest.mark.req("A2ACLI_DEFAULT_001", "A2ACLI_AUTH_003")
def test_certificates_that_cannot_be_used_are_named(dragoman: Dragoman) -> None:
    done = dragoman.inside("card", "get", "https://127.0.0.1:1", "--ca-cert", "missing.pem")

    assert done.status == 2
    assert "missing.pem" in done.err


def test_a_folder_for_settings_that_cannot_be_looked_into_is_one_without_settings(dragoman: Dragoman) -> None:
    """Such as the home of somebody else; a name that is too long fails alike, for root too."""
    done = dragoman.inside("config", "show", env={"XDG_CONFIG_HOME": "/" + "x" * 300})

    assert done.status == 0, done.err
