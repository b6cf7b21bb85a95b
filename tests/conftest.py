"""What all tests share: the report on requirements."""

from __future__ import annotations

import pytest

from tests.requirements import plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suite."""
    plugin.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the report on requirements."""
    config.pluginmanager.register(plugin.Requirements(), "requirements")
