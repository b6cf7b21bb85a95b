"""Resource names: ``tasks/{task}`` and ``tasks/{task}/pushNotificationConfigs/{config}``.

Readers are liberal: peers put a slash in front, leave out the last segment, or repeat the name of the collection.

Spec: v0.3 §4.3.
"""

from __future__ import annotations

from typing import Final

from dragoman.errors import FieldViolation, InvalidParamsError

TASKS: Final = "tasks"
CONFIGS: Final = "pushNotificationConfigs"

_NO_ID: Final = "None"
"""What the Python SDK writes for a configuration without an id."""


def task_name(task_id: str) -> str:
    """The name of a task. Raises InvalidParamsError for an id that a name cannot hold."""
    return f"{TASKS}/{_segment(task_id, 'id')}"


def config_name(task_id: str, config_id: str) -> str:
    """The name of a webhook of a task. Raises InvalidParamsError for ids that a name cannot hold."""
    return f"{TASKS}/{_segment(task_id, 'taskId')}/{CONFIGS}/{_segment(config_id, 'id')}"


def _segment(value: str, field: str) -> str:
    if "/" in value:
        raise InvalidParamsError(violations=[FieldViolation(field, "has a slash, which protocol 0.3 cannot carry")])
    return value


def read_task_name(name: str, field: str = "name") -> str:
    """The id of the task of this name; ``field`` is where it stood.

    Takes the names of what belongs to the task, too. Raises InvalidParamsError when it is no such name.
    """
    return _read(name, field)[0]


def read_config_name(name: str, field: str = "name") -> tuple[str, str]:
    """Ids of the task and the webhook of this name; the second is ``""`` when the name has none.

    Raises InvalidParamsError when it is no such name.
    """
    return _read(name, field)


def _read(name: str, field: str) -> tuple[str, str]:
    collection, _, rest = name.removeprefix("/").partition("/")
    task_id, _, below = rest.partition("/")
    configs, _, config_id = below.partition("/")
    if collection != TASKS or not task_id or configs not in ("", CONFIGS) or "/" in config_id:
        raise InvalidParamsError(violations=[FieldViolation(field, f'must be a name such as "{TASKS}/{{id}}"')])
    return task_id, "" if config_id == _NO_ID else config_id
