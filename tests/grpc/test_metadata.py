"""Service parameters as the client writes them."""

from __future__ import annotations

import pytest

from dragoman.bindings.grpc.metadata import encode_context, read_activated
from dragoman.errors import ConfigurationError
from dragoman.ports.operations import CallContext


@pytest.mark.req("PARAM-01", "PARAM-06", "PARAM-07", "GRPC-05", "EXT-02", "VER-04", "B039")
def test_keys_are_in_lower_case_and_extensions_in_one_entry() -> None:
    context = CallContext(
        extensions=("https://a.example", "https://b.example"),
        parameters={"X-Trace": "1", "Authorization": "Bearer x", "Content-Type": "text/plain", "a2a-version": "9"},
        last_event_id=7,
    )

    assert encode_context(context) == (
        ("a2a-version", "1.0"),
        ("a2a-extensions", "https://a.example, https://b.example"),
        ("last-event-id", "7"),
        ("x-trace", "1"),
        ("authorization", "Bearer x"),
    )


@pytest.mark.req("GRPC-05")
@pytest.mark.parametrize(
    ("key", "value"), [("x-ü", "a"), ("x y", "a"), ("grpc-timeout", "1"), ("x", "ü"), ("x", "a\nb")]
)
def test_what_metadata_cannot_carry_is_a_configuration_error(key: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match="gRPC metadata"):
        encode_context(CallContext(parameters={key: value}))


@pytest.mark.req("EXT-09", "AMB-25")
def test_active_extensions_are_read_from_one_entry_or_several() -> None:
    assert read_activated((("a2a-extensions", "a, b"), ("a2a-extensions", "c,a"))) == ("a", "b", "c")
    assert read_activated(None) == ()
