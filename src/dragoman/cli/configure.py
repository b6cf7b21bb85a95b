"""``dragoman config show``. It changes nothing. Spec: A2ACLI_CONFIG_001, A2ACLI_CONFIG_002, P-25."""

from __future__ import annotations

import os
from typing import Any

from dragoman.auth.token_store import TokenStoreError
from dragoman.cli.clean import one_line
from dragoman.cli.config import Configuration, describe_source, show_value
from dragoman.cli.failures import UsageError
from dragoman.cli.options import Leaf, Run
from dragoman.cli.output import Output, Screen
from dragoman.cli.settings import SETTINGS, Setting
from dragoman.cli.stored import PLACE, open_store


def _show(run: Run) -> int:
    configuration = run.configuration()
    screen = Screen.standard()
    if configuration["output"] == "json":
        output = Output(screen, json=True, compact=configuration["compact"])
        output.document([*(_document(configuration, setting) for setting in SETTINGS), _store_document()])
    else:
        screen.write("".join(_line(configuration, setting) for setting in SETTINGS) + _store_line())
    return 0


def _store_line() -> str:
    return one_line(f"token-store: {_store_words()} ({_store_source()})") + "\n"


def _store_document() -> dict[str, Any]:
    source = "environment" if os.environ.get(PLACE) else "built-in"
    return {"name": "token-store", "env": PLACE, "value": _store_words(), "source": source, "path": None}


def _store_source() -> str:
    return f"environment {PLACE}" if os.environ.get(PLACE) else "built-in"


def _store_words() -> str:
    """Where logins are kept, and how many there are; never what is in them."""
    try:
        store = open_store(os.environ)
        if store is None:
            return "none"
        count = len(store.logins())
        return f"{store.path} ({count} login{'s' * (count != 1)})"
    except (UsageError, TokenStoreError) as error:
        return f"cannot be used: {error}"


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
