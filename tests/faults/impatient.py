"""An app that does not wait long for the lock of its database, which ``DRAGOMAN_TEST_DATABASE`` names."""

from __future__ import annotations

import os

from dragoman import App, Limits
from dragoman.stores.sql import SqlStore
from tests.faults.agents import once

app = App(
    once,
    store=SqlStore(f"sqlite:///{os.environ['DRAGOMAN_TEST_DATABASE']}", busy_timeout=0.2),
    limits=Limits(lease=0.6, shutdown_grace=0.1),
)
