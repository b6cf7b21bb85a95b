"""Reading and comparing A2A-Version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import VersionNotSupportedError
from dragoman.protocol.versions import check_version, parse_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.0", (1, 0)),
        (" 1.0 ", (1, 0)),
        ("1.0.7", (1, 0)),
        ("1", (1, 0)),
        ("0.3", (0, 3)),
        ("01.0", (1, 0)),
        ("", None),
        ("1.", None),
        (".1", None),
        ("1.0.0.0", None),
        ("v1.0", None),
        ("1,0", None),
        ("-1.0", None),
        ("١.٠", None),
        ("1.0000000", None),
    ],
)
@pytest.mark.req("VER-01", "AMB-19")
def test_a_version_is_two_numbers(text: str, version: tuple[int, int] | None) -> None:
    assert parse_version(text) == version


@pytest.mark.req("VER-07", "AMB-19")
@pytest.mark.parametrize("version", ["1.0", "1.0.3", "1", " 1.0"])
def test_what_means_1_0_is_taken(version: str) -> None:
    check_version(version)


@pytest.mark.req("VER-07", "VER-08", "AMB-17")
@pytest.mark.parametrize("version", ["0.3", "1.1", "2.0", "latest", "1.0, 0.3"])
def test_another_version_is_refused_with_what_is_supported(version: str) -> None:
    with pytest.raises(VersionNotSupportedError, match=r"1\.0") as caught:
        check_version(version)
    assert caught.value.metadata == {"supportedVersions": "1.0"}


@pytest.mark.req("VER-08", "AMB-17")
def test_a_missing_version_means_0_3_unless_it_is_to_be_inferred() -> None:
    with pytest.raises(VersionNotSupportedError, match=r"A2A-Version header is missing"):
        check_version("")
    check_version("", infer=True)
    with pytest.raises(VersionNotSupportedError):
        check_version("0.3", infer=True)


@given(st.text(max_size=200))
def test_any_text_is_a_version_or_refused_without_being_repeated_at_length(text: str) -> None:
    refusal = ""
    try:
        check_version(text)
    except VersionNotSupportedError as error:
        refusal = error.message

    assert len(refusal) < 200
    assert refusal.isprintable()
