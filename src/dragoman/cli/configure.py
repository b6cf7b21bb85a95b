"""``dragoman config show``. It changes nothing. Spec: A2ACLI_CONFIG_001, A2ACLI_CONFIG_002, P-25."""

from __future__ import annotations

from typing import Any

from dragoman.cli.clean import one_line
from dragoman.cli.config import Configuration, describe_source, show_value
from dragoman.cli.options import Leaf, Run
from dragoman.cli.output import Output, Screen
from dragoman.cli.settings import SETTINGS, Setting


def _show(run: Run) -> int:
    configuration = run.configuration()
    screen = Screen.standard()
    if configuration["output"] == "json":
        output = Output(screen, json=True, compact=configuration["compact"])
        output.document([_document(configuration, setting) for setting in SETTINGS])
    else:
        screen.write("".join(_line(configuration, setting) for setting in SETTINGS))
    return 0


def _line(configuration: Configuration, setting: Setting) -> str:
    chosen = configuration.find(setting.key)
    value = one_line(show_value(setting, chosen))
    source = one_line(describe_source(chosen))
    if not value and setting.shown:
        source += f": {setting.shown}"
    return f"{setting.name}: {value} ({source})\n" if value else f"{setting.name}: ({source})\n"


def _document(configuration: Configuration, setting: Setting) -> dict[str, Any]:
    chosen = configuration.find(setting.key)
    in_file = chosen.source in ("local", "global")
    return {
        "name": setting.name,
        "env": setting.env,
        "value": show_value(setting, chosen) or None,
        "source": "file" if in_file else chosen.source,
        "path": chosen.path if in_file else None,
    }


SHOW = Leaf(
    "show",
    _show,
    "Show every setting with its value and where that comes from: an option, the environment, a file, or built in. "
    "Change settings by editing the files or setting the variables.",
    examples=("A2ACLI_TIMEOUT=2m dragoman config show",),
)
