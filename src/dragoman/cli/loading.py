"""Finding the agent that ``module:name`` means."""

from __future__ import annotations

import importlib
import os
import sys

from dragoman.agentcore import AgentCoreApp
from dragoman.errors import ConfigurationError
from dragoman.server import Agent, App


def load(target: str) -> Agent | App | AgentCoreApp:
    """What is to be served, at ``module:name`` (``name``: default ``agent``), looked for in the current folder first.

    ``module`` may be the path of a Python file. Raises ConfigurationError that says what was not found; an error
    inside the module is raised as it is.
    """
    module_name, _, name = target.partition(":")
    if module_name.endswith(".py"):
        folder, file = os.path.split(os.path.abspath(module_name))
        module_name = file.removesuffix(".py")
    else:
        folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name and not module_name.startswith(f"{error.name}."):
            raise
        raise ConfigurationError(f"there is no module {module_name!r} in {folder} or among the packages") from error
    return _pick(module, module_name, name or "agent")


def _pick(module: object, module_name: str, name: str) -> Agent | App | AgentCoreApp:
    found = getattr(module, name, None)
    if isinstance(found, Agent | App | AgentCoreApp):
        return found
    agents = [key for key, value in vars(module).items() if isinstance(value, Agent | App | AgentCoreApp)]
    hint = f"; it has {', '.join(agents)}" if agents else ""
    if found is None:
        raise ConfigurationError(f"the module {module_name!r} has no {name!r}{hint}")
    raise ConfigurationError(f"{module_name}:{name} is {type(found).__name__}, not an Agent or an App{hint}")
