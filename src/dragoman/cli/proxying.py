"""``dragoman server --proxy``: an agent of somewhere else, served again with the user's settings and credentials.

Spec: A2ACLI_DEMO_SERVER_001, A2ACLI_AUTH_001; section 20.2 of the register of the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.cli.options import Run
from dragoman.cli.program import run_client
from dragoman.cli.reaching import arrange
from dragoman.cli.session import Session
from dragoman.client import Target
from dragoman.proxy import ProxyApp, UpstreamOptions
from dragoman.server.app import Interceptor
from dragoman.server.dialects import VERSIONS

Arranged = tuple[Target, UpstreamOptions]
"""The agent, and how it is called."""


def arrange_proxy(run: Run, reference: str | None) -> tuple[int, Arranged | None]:
    """Find the agent before anything is served; an exit status and None when that failed, which was told then."""
    found: list[Arranged] = []

    async def body(session: Session) -> int:
        found.append(await arrange(session, reference))
        return 0

    status = run_client(run, body)
    return status, found[0] if found and not status else None


def make_proxy(
    arranged: Arranged,
    given: Mapping[str, Any],
    name: str | None,
    description: str | None,
    public_url: str,
    grace: float,
    interceptor: Interceptor,
) -> ProxyApp:
    """The application that serves it again. Raises ConfigurationError for headers that cannot be forwarded."""
    target, options = arranged
    return ProxyApp(
        target,
        forward_headers=given["forward_header"],
        forward_origins=given["forward_origin"],
        name=name,
        description=description,
        public_url=public_url,
        shutdown_grace=grace,
        interceptors=[interceptor],
        serve_versions=given["versions"] or VERSIONS,
        **options,
    )
