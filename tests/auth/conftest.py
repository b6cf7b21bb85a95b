"""A real authorization server for these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.auth.provider import Provider, provider_process


@pytest.fixture(scope="session")
def _provider() -> Iterator[Provider]:
    with provider_process() as provider:
        yield provider


@pytest.fixture
def provider(_provider: Provider) -> Provider:
    """The server, as it is when nobody told it otherwise."""
    _provider.control()
    return _provider
