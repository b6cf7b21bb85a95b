"""Resource names, and the content of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.compat.v03.file_bytes import read_content, write_content
from dragoman.compat.v03.names import config_name, read_config_name, read_task_name, task_name
from dragoman.errors import InvalidParamsError

IDS = st.text(min_size=1).filter(lambda text: "/" not in text and text != "None")


@pytest.mark.req("V03-03")
@given(IDS, IDS)
def test_a_name_that_we_write_is_read_as_the_same_ids(task: str, config: str) -> None:
    assert read_task_name(task_name(task)) == task
    assert read_config_name(config_name(task, config)) == (task, config)


@pytest.mark.req("V03-P18")
@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("/tasks/t", ("t", "")),
        ("tasks/t/pushNotificationConfigs", ("t", "")),
        ("tasks/t/pushNotificationConfigs/", ("t", "")),
        ("tasks/t/pushNotificationConfigs/None", ("t", "")),
        ("/tasks/t/pushNotificationConfigs/c", ("t", "c")),
    ],
)
def test_the_habits_of_peers_are_understood(name: str, ids: tuple[str, str]) -> None:
    assert read_config_name(name) == ids
    assert read_task_name(name) == ids[0]


@pytest.mark.parametrize(
    "name", ["", "t", "tasks", "tasks/", "task/t", "tasks/t/x", "tasks/t/pushNotificationConfigs/c/d"]
)
def test_what_is_no_name_is_an_error_that_says_where_it_stood(name: str) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        read_config_name(name, "parent")

    assert [violation.field for violation in refused.value.violations] == ["parent"]


def test_an_id_with_a_slash_has_no_name() -> None:
    with pytest.raises(InvalidParamsError):
        task_name("a/b")
    with pytest.raises(InvalidParamsError):
        config_name("t", "a/b")


@pytest.mark.req("V03-P09")
@given(st.binary())
def test_content_is_written_as_base64_text_and_read_back(content: bytes) -> None:
    assert read_content(write_content(content)) == content


@pytest.mark.req("V03-P09")
@pytest.mark.parametrize(
    ("data", "content"),
    [
        (b"hello", b"hello"),
        (b"aGVsbG8=", b"hello"),
        (b"aGVsbG8", b"aGVsbG8"),
        (b"aGVsbG9=", b"aGVsbG9="),  # decodes, but is not what encoding gives
        (b"aGVs bG8=", b"aGVs bG8="),
        (b"\x89PNG", b"\x89PNG"),
        (b"", b""),
        (b"a_-b", b"a_-b"),
    ],
)
def test_only_what_is_base64_text_beyond_doubt_is_decoded(data: bytes, content: bytes) -> None:
    assert read_content(data) == content
