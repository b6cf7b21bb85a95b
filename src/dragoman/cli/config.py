"""Where the value of a setting comes from: option, environment, local file, global file, built-in; in this order.

Files are read, never written, and never put into the environment of this process, so that no child inherits a secret.

Spec: A2ACLI_CONFIG_001, A2ACLI_CONFIG_002, P-11, P-25; section 8 of the register of the command line.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dragoman.cli.failures import UsageError
from dragoman.cli.settings import BY_ENV, BY_KEY, SETTINGS, Setting
from dragoman.cli.values import show_duration

LOCAL_NAME = ".env"
OWN_NAMES = ("A2ACLI_", "DRAGOMAN_")


class SettingsFile(msgspec.Struct, frozen=True):
    """A file of settings: ``level`` is ``local`` or ``global``."""

    path: Path
    level: str
    entries: Mapping[str, str]


class Chosen(msgspec.Struct, frozen=True):
    """The value in effect. ``source`` is ``flag``, ``environment``, ``local``, ``global`` or ``built-in``."""

    value: Any
    source: str
    path: str = ""


class Configuration:
    """The settings of one run. Values are read when they are asked for; a bad one raises UsageError that names it."""

    def __init__(
        self,
        given: Mapping[str, Any],
        environment: Mapping[str, str],
        files: Sequence[SettingsFile] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self.files = tuple(files)
        self.notes = tuple(notes)
        self._given = given
        self._environment = environment
        self._found: dict[str, Chosen] = {}

    def __getitem__(self, key: str) -> Any:
        return self.find(key).value

    def find(self, key: str) -> Chosen:
        """The value of a setting and where it comes from."""
        if key not in self._found:
            self._found[key] = self._find(BY_KEY[key])
        return self._found[key]

    def check(self) -> None:
        """Read every setting. Raises UsageError for the first that makes no sense."""
        for setting in SETTINGS:
            self.find(setting.key)

    def _find(self, setting: Setting) -> Chosen:
        if setting.key in self._given:
            return Chosen(self._given[setting.key], "flag")
        if self._environment.get(setting.env):
            value = _read(setting, self._environment[setting.env], "the environment")
            return Chosen(value, "environment", setting.env)
        for file in self.files if setting.in_files else ():
            if file.entries.get(setting.env):
                value = _read(setting, file.entries[setting.env], str(file.path))
                return Chosen(value, file.level, str(file.path))
        return Chosen(setting.built_in, "built-in")


def _read(setting: Setting, text: str, place: str) -> Any:
    try:
        return setting.read_all(text)
    except ValueError as error:
        raise UsageError(f"{setting.env} of {place} {error}") from None


def load(given: Mapping[str, Any], environment: Mapping[str, str], folder: Path) -> Configuration:
    """The configuration of a run in ``folder``, with the files that apply.

    Raises UsageError for a ``--config`` that is not there. A local file that others may write is left out with a note.
    """
    notes: list[str] = []
    named = given.get("config") or environment.get("A2ACLI_CONFIG")
    local = Path(named).expanduser() if named else _find_upward(folder)
    if named and local is not None and not _is_file(local):
        raise UsageError(f"there is no file {named} to read settings from")
    found = []
    for path, level in ((local, "local"), (global_path(environment), "global")):
        if path is not None and (level == "local" or _is_file(path)):
            entries = _entries(path, level, notes)
            found.append(SettingsFile(path, level, entries))
    return Configuration(given, environment, found, notes)


def global_path(environment: Mapping[str, str]) -> Path:
    """The global file."""
    return config_folder(environment) / LOCAL_NAME


def config_folder(environment: Mapping[str, str]) -> Path:
    """The folder of the specification for settings of all programs that speak it."""
    if sys.platform == "win32" and environment.get("APPDATA"):
        return Path(environment["APPDATA"]) / "a2a-cli"
    root = environment.get("XDG_CONFIG_HOME")
    return (Path(root) if root else Path.home() / ".config") / "a2a-cli"


def _find_upward(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        if _is_file(place / LOCAL_NAME):
            return place / LOCAL_NAME
    return None


def _is_file(path: Path) -> bool:
    """Whether there is a file; one behind a folder that this user may not look into is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _entries(path: Path, level: str, notes: list[str]) -> Mapping[str, str]:
    if os.name == "posix" and level == "local" and path.stat().st_mode & stat.S_IWOTH:
        notes.append(f"{path} is not read: others may write it (chmod o-w {path})")
        return {}
    try:
        return read_dotenv(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the settings in {path} cannot be read: {_why(error)}") from None


def _why(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "it is not UTF-8"


def read_dotenv(text: str) -> dict[str, str]:
    """Keys of ours and their values. No variable is expanded and no command is run."""
    found = {}
    for line in text.splitlines():
        key, equals, value = line.strip().removeprefix("export ").partition("=")
        key = key.strip()
        if equals and key.startswith(OWN_NAMES):
            found[key] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    for quote in "\"'":
        if value.startswith(quote) and (end := value.find(quote, 1)) > 0:
            return value[1:end]
    return value.partition(" #")[0].rstrip()


def unknown_keys(configuration: Configuration) -> list[str]:
    """Keys in files that look like settings and are none."""
    return [
        f"{file.path}: {key} is no setting"
        for file in configuration.files
        for key in file.entries
        if key.startswith("A2ACLI_") and (key not in BY_ENV or not BY_ENV[key].in_files)
    ]


def foreign_warnings(configuration: Configuration) -> list[str]:
    """What is to be said when a local file, which may be somebody else's, decides where our credential goes."""
    secrets = [BY_KEY[key] for key in ("bearer", "api_key", "basic")]
    elsewhere = [s for s in secrets if configuration[s.key] and configuration.find(s.key).source != "local"]
    warnings = []
    for key in ("agent_card", "endpoint", "insecure"):
        chosen = configuration.find(key)
        if chosen.source == "local" and chosen.value and elsewhere:
            names = ", ".join(f"{s.name} ({describe_source(configuration.find(s.key))})" for s in elsewhere)
            warnings.append(f"{BY_KEY[key].name} comes from {chosen.path}, while the credential does not: {names}")
    if configuration["task_id"] and (chosen := configuration.find("task_id")).source in ("local", "global"):
        warnings.append(f"task-id comes from {chosen.path}: every message goes to that task")
    return warnings


def describe_source(chosen: Chosen) -> str:
    """A source in words: ``flag``, ``environment NAME``, ``file PATH``, ``built-in``."""
    if chosen.source == "environment":
        return f"environment {chosen.path}"
    return f"file {chosen.path}" if chosen.source in ("local", "global") else chosen.source


def show_value(setting: Setting, chosen: Chosen) -> str:
    """A value as a person would write it; secrets are hidden."""
    value = chosen.value
    if value is None and chosen.source != "built-in":
        return "0"
    if value is None or value in ([], False):
        return ""
    if setting.secret:
        return "<redacted>"
    return _written(setting, value)


def _written(setting: Setting, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return show_duration(value) if setting.metavar == "DURATION" else str(value)
