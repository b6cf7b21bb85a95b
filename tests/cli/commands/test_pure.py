"""The parts of the program that need no agent."""

from __future__ import annotations

import pytest

from dragoman.cli import clean, values
from dragoman.cli.config import read_dotenv
from dragoman.cli.redact import Redactor
from dragoman.cli.resume import Words, next_steps, quoted
from dragoman.model import Task, TaskState, TaskStatus


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2", 2), ("0", 0), ("1.5", 1.5), ("500ms", 0.5), ("1m30s", 90), ("2h", 7200), ("1h1ms", 3600.001)],
)
def test_a_duration_has_units_or_is_in_seconds(text: str, seconds: float) -> None:
    assert values.read_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "-1", "1d", "s", "1 s", "inf", "nan", "1e3", "१"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        values.read_duration(text)


@pytest.mark.parametrize("seconds", [0.25, 1, 1.5, 90, 3600, 3661])
def test_a_duration_is_written_as_it_is_read(seconds: float) -> None:
    assert values.read_duration(values.show_duration(seconds)) == seconds


@pytest.mark.parametrize(
    "text", ["completed", "INPUT_REQUIRED", "input-required", "TASK_STATE_FAILED", "Task_State_failed"]
)
def test_a_state_is_written_in_many_ways(text: str) -> None:
    assert isinstance(values.read_state(text), TaskState)


@pytest.mark.parametrize(
    ("text", "pair"), [("a:b", ("a", "b")), ("a=b", ("a", "b")), ("a: b=c", ("a", "b=c")), ("a=b:c", ("a", "b:c"))]
)
def test_a_service_parameter_is_split_at_the_first_mark(text: str, pair: tuple[str, str]) -> None:
    assert values.read_service_parameter(text) == pair


@pytest.mark.parametrize("text", ["a", ":b", "a b:c", "a:b\nc", "A2A-Version:1.0", "a:é"])
def test_what_is_no_service_parameter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        values.read_service_parameter(text)


def test_a_list_has_commas_or_is_json() -> None:
    assert values.read_list("a, b,,c") == ["a", "b", "c"]
    assert values.read_list('["a,b", "c"]') == ["a,b", "c"]


def test_settings_are_read_from_quotes_and_nothing_is_run() -> None:
    text = "\n# no\nexport A2ACLI_A = \"x # y\"\nA2ACLI_B='$HOME'\nA2ACLI_C=c # comment\nPATH=/bin\nA2ACLI_D\n"

    assert read_dotenv(text) == {"A2ACLI_A": "x # y", "A2ACLI_B": "$HOME", "A2ACLI_C": "c"}


def test_every_spelling_of_a_secret_is_hidden() -> None:
    secret = 'p"w/ä x'
    redactor = Redactor([secret], ["X-Own"])

    for text in (secret, 'p\\"w/ä x', 'p\\"w/\\u00e4 x', "p%22w%2F%C3%A4%20x", "p%22w%2F%C3%A4+x", "cCJ3L8OkIHg="):
        assert redactor.line(f"a {text} b") == "a <redacted> b"
    assert redactor.header("x-own", "v") == redactor.header("Authorization", "v") == "<redacted>"
    assert redactor.line('{"token": "t\\"t", "x": 1}') == '{"token": "<redacted>", "x": 1}'
    assert redactor.line("https://me:pw@host/x") == "https://<redacted>@host/x"


def test_a_block_ends_with_the_first_empty_line_and_not_before() -> None:
    assert clean.block("a\n\nState: b\r\nc\n") == "  a\n  \n  State: b\n  c\n"
    assert clean.block("") == "  \n"


def test_ids_are_quoted_and_never_taken_for_options() -> None:
    words = Words(("-a", "https://x.example"))

    assert words.get("a b") == "dragoman task get 'a b' -a https://x.example"
    assert words.get("--help") == "dragoman task get --task-id=--help -a https://x.example"
    assert words.reply("-x") == 'dragoman send -a https://x.example --task-id=-x "<reply>"'
    assert quoted(["a", "$(id)"]) == "a '$(id)'"


def test_what_can_be_done_depends_on_the_state() -> None:
    def labels(state: TaskState) -> list[str]:
        task = Task(id="t", context_id="c", status=TaskStatus(state=state))
        return [label for label, _ in next_steps(task, Words())]

    assert labels(TaskState.WORKING) == ["Resume"]
    assert labels(TaskState.INPUT_REQUIRED) == ["Resume"]
    assert labels(TaskState.AUTH_REQUIRED) == ["Resume", "Follow"]
    assert labels(TaskState.FAILED) == ["Continue"]
