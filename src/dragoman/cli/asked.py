"""What a command line asks of the program itself, in place of a command."""

from __future__ import annotations

import click


class HelpAsked(Exception):
    """``--help``: ``context`` is that of the command in question."""

    def __init__(self, context: click.Context) -> None:
        super().__init__()
        self.context = context


class VersionAsked(Exception):
    """``--version``."""
