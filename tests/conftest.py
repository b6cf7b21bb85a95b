"""What all tests share: the reports at the end of a run."""

from __future__ import annotations

import pytest

from tests.faults.rounds import Rounds
from tests.peers.matrix import Matrix
from tests.requirements import plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suite."""
    plugin.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the report on requirements, the one on peers, and that on rounds."""
    config.pluginmanager.register(plugin.Requirements(), "requirements")
    config.pluginmanager.register(Matrix(), "peers")
    config.pluginmanager.register(Rounds(), "rounds")
