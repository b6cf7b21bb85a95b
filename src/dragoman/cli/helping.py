"""``help``, ``--help`` and ``--version``, for people and for programs. Spec: A2ACLI_CLI_001, A2ACLI_DEFAULT_001."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import click

from dragoman.cli.failures import UsageError
from dragoman.cli.options import CONTEXT, Leaf, Run, SettingOption
from dragoman.cli.output import Output, Screen
from dragoman.cli.tree import COMMANDS, Branch, Entry, load, root
from dragoman.client.cards import BINDINGS, VERSIONS

SPECIFICATION = "0.2"


def show_version(*, json: bool) -> None:
    """The version of the program."""
    from dragoman import __version__

    if not json:
        Screen.standard().write(f"dragoman {__version__}\n")
        return
    document = {
        "name": "dragoman",
        "version": __version__,
        "python": platform.python_version(),
        "specification": SPECIFICATION,
        "protocolVersions": list(VERSIONS),
        "transports": list(BINDINGS),
    }
    Output(Screen.standard(), json=True).document(document)


def show_help(context: click.Context, *, json: bool) -> None:
    """How a command is used."""
    if not json:
        Screen.standard().write(context.command.get_help(context).rstrip("\n") + "\n")
        return
    from dragoman import __version__

    words = tuple(context.command_path.split()[1:])
    commands = [describe(context, entry) for entry in COMMANDS if entry.words[: len(words)] == words]
    document = {"name": "dragoman", "version": __version__, "commands": commands}
    Output(Screen.standard(), json=True).document(document)


def describe(context: click.Context, entry: Entry) -> dict[str, Any]:
    """A command as data."""
    leaf = load(entry)
    options = [param for param in leaf.params if isinstance(param, click.Option)]
    arguments = [param for param in leaf.params if isinstance(param, click.Argument)]
    return {
        "path": entry.path,
        "summary": entry.summary,
        "tier": entry.tier or None,
        "arguments": [{"name": param.name, "metavar": param.metavar} for param in arguments],
        "options": [_option(param) for param in options],
    }


def _option(param: click.Option) -> dict[str, Any]:
    setting = param.setting if isinstance(param, SettingOption) else None
    default = setting.default if setting is not None else param.default
    return {
        "names": [*param.opts, *param.secondary_opts],
        "type": "flag" if param.is_flag else param.metavar or "text",
        "repeatable": param.multiple,
        "default": default if isinstance(default, str | int | float) and default != "" else None,
        "env": setting.env if setting is not None else param.envvar if isinstance(param.envvar, str) else None,
        "help": param.help or "",
    }


def _help(run: Run, words: Sequence[str]) -> int:
    context = click.Context(root(), info_name="dragoman", obj=run, **CONTEXT)
    for word in words:
        command = context.command
        found = command.get_command(context, word) if isinstance(command, Branch) else None
        if found is None:
            raise UsageError(f"there is no command {' '.join(words)!r}", hint="dragoman help")
        context = click.Context(found, info_name=word, parent=context, **CONTEXT)
    show_help(context, json=run.configuration()["output"] == "json")
    return 0


HELP = Leaf(
    "help",
    _help,
    "Show all commands, or how one of them is used; -o json for programs.",
    [click.Argument(["words"], nargs=-1, metavar="[COMMAND]...")],
    calls_agents=False,
    examples=("dragoman help task get",),
)
