"""Usage, version, completion, and the skill."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.resources import files

import pytest

from dragoman import __version__
from dragoman.cli.tree import COMMANDS
from tests.cli.commands.program import Dragoman

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.req("A2ACLI_CLI_001")
def test_help_and_version_go_to_standard_output(dragoman: Dragoman) -> None:
    for arguments in (("--version",), ("-V",), ("-v",), ("send", "--version")):
        assert dragoman.inside(*arguments) == (0, f"dragoman {__version__}\n", "")
    assert dragoman.inside("--version", "-o", "json").json["version"] == __version__

    top = dragoman("help")

    assert (top.status, top.err) == (0, "")
    assert dragoman.inside("--help").out == dragoman.inside("-h").out == top.out
    assert all(f"  {entry.path} " in top.out for entry in COMMANDS)


@pytest.mark.req("A2ACLI_CLI_001")
@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.path)
def test_every_command_explains_itself_in_both_ways(dragoman: Dragoman, entry) -> None:
    by_option = dragoman.inside(*entry.words, "--help")
    by_command = dragoman.inside("help", *entry.words)
    as_data = dragoman.inside(*entry.words, "--help", "-o", "json").json

    assert by_option.status == 0
    assert by_option.out == by_command.out
    assert by_option.out.startswith(f"Usage: dragoman {entry.path} [OPTIONS]")
    assert [command["path"] for command in as_data["commands"]] == [entry.path]


@pytest.mark.req("A2ACLI_CLI_001", "A2ACLI_EXIT_001")
@pytest.mark.parametrize("arguments", [(), ("task",), ("help", "nonsense"), ("task", "nonsense")])
def test_what_is_no_command_is_told_the_way(dragoman: Dragoman, arguments: tuple[str, ...]) -> None:
    done = dragoman.inside(*arguments)

    assert (done.status, done.out) == (2, "")
    assert re.search(r"^Hint: dragoman( task)? (--help|help)$", done.err, re.MULTILINE)


@pytest.mark.req("A2ACLI_CLI_001")
def test_global_options_stand_before_or_after_the_words_of_a_command(dragoman: Dragoman) -> None:
    results = [
        dragoman.inside(*words).json
        for words in (
            ("-o", "json", "--timeout", "7s", "config", "show"),
            ("config", "-o", "json", "show", "--timeout", "7s"),
            ("config", "show", "--output=json", "--timeout=7s"),
        )
    ]

    assert results[0] == results[1] == results[2]
    assert {"name": "timeout", "env": "A2ACLI_TIMEOUT", "value": "7s", "source": "flag", "path": None} in results[0]


@pytest.mark.req("A2ACLI_CLI_002")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_script_is_taken_by_its_shell(dragoman: Dragoman, shell: str) -> None:
    done = dragoman.inside("completion", shell)

    assert done.status == 0
    assert "_DRAGOMAN_COMPLETE" in done.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.out, text=True, check=True, timeout=20)


@pytest.mark.req("A2ACLI_CLI_002")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("dragoman task ", {"get", "cancel", "list", "subscribe", "download", "push-config"}),
        ("dragoman task list --status in", {"input-required"}),
        ("dragoman send --transport ", {"JSONRPC", "HTTP+JSON"}),
        ("dragoman send --med", {"--media-type"}),
    ],
)
def test_commands_options_and_values_are_completed(dragoman: Dragoman, words: str, expected: set[str]) -> None:
    count = len(words.split()) - (not words.endswith(" "))

    done = dragoman(env={"_DRAGOMAN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)})

    assert {line.partition(",")[2] for line in done.out.split()} == expected


@pytest.mark.req("A2ACLI_CLI_002", "A2ACLI_EXIT_001")
def test_an_unknown_shell_is_a_usage_error(dragoman: Dragoman) -> None:
    assert dragoman.inside("completion", "tcsh").status == 2


def test_without_its_extra_the_program_says_what_to_install() -> None:
    program = "import sys; sys.modules['click'] = None; from dragoman.cli import main; main()"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)

    assert (done.returncode, done.stdout) == (1, "")
    assert "dragoman[cli]" in done.stderr


@pytest.mark.req("A2ACLI_SKILL_001", "A2ACLI_SKILL_002")
def test_there_is_one_short_skill_that_leads_to_the_help_and_repeats_no_rules() -> None:
    folder = files("dragoman.cli") / "skill" / "dragoman"
    text = (folder / "SKILL.md").read_text(encoding="utf-8")
    examples = (folder / "references" / "examples.md").read_text(encoding="utf-8")

    assert text.startswith("---\nname: dragoman\ndescription: ")
    assert re.search(r"^compatibility: .*dragoman.*PATH", text, re.MULTILINE)
    assert len(text) < 3_000
    assert "dragoman help" in text
    assert "dragoman <command> --help" in text
    assert "dragoman --version" in text
    assert not re.search(r"\b(MUST|SHOULD|MAY|SHALL|REQUIRED)\b", text + examples)
    assert "| " not in text
