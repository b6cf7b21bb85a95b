"""One run of the command line, from its words to the exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from dragoman.cli.asked import HelpAsked, VersionAsked
from dragoman.cli.classify import Failure, classify
from dragoman.cli.config import load
from dragoman.cli.failures import CommandError, UsageError
from dragoman.cli.helping import show_help, show_version
from dragoman.cli.options import Run
from dragoman.cli.output import ClosedOutputError, Screen
from dragoman.cli.redact import Redactor
from dragoman.cli.reporting import report, trace
from dragoman.cli.settings import SETTINGS
from dragoman.cli.tree import root
from dragoman.errors import DragomanError

INTERRUPTED = 130


def run_program(arguments: Sequence[str]) -> int:
    """Run a command line; returns the exit status."""
    # What gRPC's core would write to standard error is told by us, or is nothing that a user could act on.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    run = Run(lambda given: load(given, os.environ, Path.cwd()))
    try:
        return _run(run, list(arguments))
    except ClosedOutputError:
        # Nobody reads any more. What Python would still flush goes nowhere, instead of failing at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(run: Run, arguments: list[str]) -> int:
    try:
        return int(root().main(arguments, prog_name="dragoman", standalone_mode=False, obj=run) or 0)
    except HelpAsked as asked:
        show_help(asked.context, json=_wants_json(run, arguments))
    except VersionAsked:
        show_version(json=_wants_json(run, arguments))
    except click.UsageError as error:
        return _refuse(run, arguments, error)
    except click.Abort:
        return INTERRUPTED
    except ClosedOutputError:
        raise
    except CommandError as error:
        failure = classify(error)
        if isinstance(error, UsageError) and not error.hint:
            failure = replace(failure, hint=f"{run.path} --help")
        return _fail(run, arguments, failure)
    except DragomanError as error:
        # What can go wrong while serving is a fault of set-up.
        return _fail(run, arguments, replace(classify(error), exit_status=2), f"dragoman: {error}\n")
    except Exception as error:
        if "--debug" in arguments:
            Screen.standard().tell(trace(error, _redactor(run)))
        return _fail(run, arguments, classify(error))
    return 0


def _refuse(run: Run, arguments: list[str], error: click.UsageError) -> int:
    """What click says of arguments, with the short usage and the way to more."""
    context = error.ctx
    usage = context.command.get_usage(context) + "\n" if context is not None else ""
    path = context.command_path if context is not None else "dragoman"
    failure = classify(UsageError(error.format_message(), hint=f"{path} --help"))
    if not _wants_json(run, arguments):
        Screen.standard().tell(usage)
    return _fail(run, arguments, failure)


def _fail(run: Run, arguments: list[str], failure: Failure, plain: str = "") -> int:
    """Report a failure from outside of a command; ``plain`` is the text of one that has its own form."""
    json, screen = _wants_json(run, arguments), Screen.standard()
    if plain and not json:
        screen.tell(plain)
    else:
        report(failure, screen, _redactor(run), json=json, more=[])
    return failure.exit_status


def _wants_json(run: Run, arguments: Sequence[str]) -> bool:
    """Whether JSON is wanted, also when the arguments as a whole cannot be read."""
    for index, word in enumerate(arguments):
        if word in ("-o", "--output"):
            return list(arguments[index + 1 : index + 2]) == ["json"]
        if word in ("-ojson", "--output=json"):
            return True
    try:
        return bool(run.configuration()["output"] == "json")
    except UsageError:
        return False


def _redactor(run: Run) -> Redactor:
    """Knows the secrets that were given on the command line or in the environment."""
    known = [os.environ.get(setting.env, "") for setting in SETTINGS if setting.secret]
    for setting in SETTINGS:
        value = run.get(setting.key) if setting.secret else None
        known += [value] if isinstance(value, str) else [pair[1] for pair in value or ()]
    return Redactor(known)
