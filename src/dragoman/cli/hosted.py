"""``dragoman run module:agent --agentcore``: serve an agent as AgentCore Runtime expects it.

Spec: AC-S-01 to AC-S-05.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import click
from click.core import ParameterSource

from dragoman.agentcore import AgentCoreApp, Profile, app
from dragoman.agentcore.hosting import end_process, run
from dragoman.cli.failures import UsageError
from dragoman.runtime import Limits
from dragoman.server import Agent
from dragoman.server.dialects import VERSIONS

_NOT_HOSTED = {
    "grpc_port": "--grpc-port",
    "websocket": "--websocket",
    "cors": "--cors",
    "tls_cert": "--tls-cert",
    "tls_client_ca": "--tls-client-ca",
    "api_key_env": "--api-key-env",
    "jwt_issuer": "--jwt-issuer",
    "rate_limit": "--rate-limit",
}
"""Options of what does not pass the front of AgentCore."""

_OF_AGENTS = ("store", "public_url", "versions", "grace", "lease")


def run_hosted(
    agent: Agent | AgentCoreApp, options: Mapping[str, Any], announce: Callable[[AgentCoreApp, str], None]
) -> int:
    """Serve until Ctrl-C or SIGTERM. ``announce`` is given the app and its address when it serves.

    Host and port are those on the command line, else those of the profile. Raises UsageError for options that do not
    go with it.
    """
    for name, flag in _NOT_HOSTED.items():
        if was_given(name):
            raise UsageError(f"{flag} does not go with --agentcore: only JSON-RPC passes its front")
    hosted = agent if isinstance(agent, AgentCoreApp) else app(agent, **_settings(options))
    if isinstance(agent, AgentCoreApp):
        _refuse_settings()
    if not was_given("log_level"):
        logging.getLogger("dragoman").setLevel(logging.INFO)
    run(
        hosted,
        host=options["host"] if was_given("host") else None,
        port=options["port"] if was_given("port") else None,
        on_ready=lambda address: announce(hosted, address),
    )
    end_process(0)
    return 0


def was_given(name: str) -> bool:
    """Whether an option is on the command line or in the environment, and not just at its default."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    limits = Limits(
        shutdown_grace=options["grace"], interrupt_wait=Profile().limits.interrupt_wait, lease=options["lease"]
    )
    return {
        "store": options["store"],
        "public_url": options["public_url"],
        "versions": options["versions"] or VERSIONS,
        "limits": limits,
    }


def _refuse_settings() -> None:
    for name in _OF_AGENTS:
        if was_given(name):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} is for an Agent; agentcore.app(…) is told such things itself")
