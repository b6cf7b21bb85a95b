"""Options and commands of the command line, as click objects.

click and not typer: a command here takes some thirty settings that come out of one table, and the parts of a message
in the order of the command line; click's parameters are objects and its parser tells the order of every occurrence,
while typer makes both out of the signature of a function.

Every command takes every global option, before or after its words. Nothing is abbreviated, nothing is prompted for.

Spec: A2ACLI_CLI_001, A2ACLI_DEFAULT_001, P-01, P-04.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from dragoman.cli.asked import HelpAsked, VersionAsked
from dragoman.cli.config import Configuration, describe_source, show_value
from dragoman.cli.failures import UsageError
from dragoman.cli.settings import SETTINGS, Reader, Setting

WIDTH = 100
CONTEXT: dict[str, Any] = {"help_option_names": [], "terminal_width": WIDTH, "max_content_width": WIDTH}


class Run(dict[str, Any]):
    """What was given on the command line, by the key of the setting; the ``obj`` of click's contexts.

    ``path`` are the words of the command, once it is known.
    """

    def __init__(self, configure: Callable[[dict[str, Any]], Configuration]) -> None:
        super().__init__()
        self.path = "dragoman"
        self._configure = configure

    def configuration(self) -> Configuration:
        """The configuration by what was given so far. Raises UsageError."""
        return self._configure(self)


class Value(click.ParamType[Any]):
    """The type of an option: a reader of text."""

    def __init__(self, read: Reader, name: str, words: Sequence[str] = ()) -> None:
        self.name = name
        self._read = read
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a text; what was read already stays."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            return self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The words that a value may be, where they are few."""
        return [CompletionItem(word) for word in self._words if word.lower().startswith(incomplete.lower())]


def given(ctx: click.Context, param: click.Parameter) -> bool:
    """Whether an option stands on the command line."""
    return param.name is not None and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE


class SettingOption(click.Option):
    """A global option. Its value goes to the run, wherever between the words of the command it stood."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        super().__init__(
            [*setting.flags, setting.key],
            help=setting.help,
            metavar=None if setting.is_flag else setting.metavar,
            is_flag=setting.is_flag,
            multiple=setting.repeatable,
            type=None if setting.is_flag else Value(setting.read, setting.metavar, setting.words),
            expose_value=False,
            callback=self._keep,
        )

    def _keep(self, ctx: click.Context, param: click.Parameter, value: Any) -> None:
        run = ctx.find_root().obj
        if not given(ctx, param):
            return
        key = self.setting.key
        run[key] = [*run.get(key, []), *value] if self.setting.repeatable else value

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """The option, its value in effect and where that comes from."""
        flags = ", ".join(self.setting.flags)
        head = flags if self.setting.is_flag else f"{flags} {self.setting.metavar}"
        return head, f"{self.help} [{self._effective(ctx)}]"

    def _effective(self, ctx: click.Context) -> str:
        try:
            chosen = ctx.find_root().obj.configuration().find(self.setting.key)
        except UsageError as error:
            return f"wrong: {error}"
        text = show_value(self.setting, chosen) or self.setting.shown or "none"
        env = f"; {self.setting.env}" if self.setting.env and chosen.source != "environment" else ""
        source = "default" if chosen.source == "built-in" else describe_source(chosen)
        return f"{source}: {text}{env}"


def _ask_for_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        raise HelpAsked(ctx)


def _ask_for_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        raise VersionAsked


def global_options() -> list[click.Parameter]:
    """New objects for the options that every command takes."""
    asking: list[click.Parameter] = [
        click.Option(
            ["-h", "--help"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_ask_for_help,
            help="Show how a command is used.",
        ),
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_ask_for_version,
            help="Show the version.",
        ),
    ]
    return [*(SettingOption(setting) for setting in SETTINGS), *asking]


Action = Callable[..., int | None]


class Leaf(click.Command):
    """A command. Its action is called with the run and its own parameters and returns the exit status (None: 0).

    ``calls_agents`` tells help whether the global options mean something to it.
    """

    def __init__(
        self,
        name: str,
        action: Action,
        help: str,
        params: Sequence[click.Parameter] = (),
        *,
        calls_agents: bool = True,
        examples: Sequence[str] = (),
    ) -> None:
        self.own = list(params)
        self.calls_agents = calls_agents
        self.examples = tuple(examples)
        super().__init__(
            name,
            params=[*self.own, *_without(global_options(), self.own)],
            help=help,
            callback=action,
            context_settings=CONTEXT,
        )

    def invoke(self, ctx: click.Context) -> int:
        """Call the action."""
        assert self.callback is not None
        ctx.find_root().obj.path = ctx.command_path
        return ctx.invoke(self.callback, ctx.find_root().obj, **ctx.params) or 0

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Own options, then the global ones."""
        write_options(formatter, "Options", records(ctx, self.own))
        if self.calls_agents:
            rest = [param for param in self.params if param not in self.own]
            write_options(formatter, "Global options", records(ctx, rest))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  $ {line}\n" for line in self.examples))


def _without(options: list[click.Parameter], own: Sequence[click.Parameter]) -> list[click.Parameter]:
    """Global options but for those that mean something else to a command."""
    taken = {flag for param in own for flag in param.opts if isinstance(param, click.Option)}
    return [option for option in options if taken.isdisjoint(option.opts)]


def records(ctx: click.Context, params: Sequence[click.Parameter]) -> list[tuple[str, str]]:
    """What help says of parameters."""
    found = (param.get_help_record(ctx) for param in params if isinstance(param, click.Option))
    return [record for record in found if record is not None]


def write_options(formatter: click.HelpFormatter, title: str, rows: list[tuple[str, str]]) -> None:
    """A section of help, if there is something in it."""
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows, col_max=34)


def option(
    *flags: str,
    read: Reader | None = None,
    metavar: str = "TEXT",
    words: Sequence[str] = (),
    help: str,
    **more: Any,
) -> click.Option:
    """An option of one command; ``words`` are what a shell completes it with."""
    if more.get("is_flag"):
        return click.Option(list(flags), help=help, **more)
    if read is not None:
        more["type"] = Value(read, metavar, words)
    shown = "default" in more and "[default" not in help
    return click.Option(list(flags), help=help, metavar=metavar, show_default=shown, show_envvar=True, **more)


def argument(name: str, metavar: str, *, required: bool = False) -> click.Argument:
    """A positional argument."""
    return click.Argument([name], required=required, metavar=metavar)


def argument_of(name: str, metavar: str, read: Reader, words: Sequence[str]) -> click.Argument:
    """A positional argument that has to be there, one of few words."""
    return click.Argument([name], required=True, metavar=metavar, type=Value(read, metavar, words))
