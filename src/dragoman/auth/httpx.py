"""The same credentials for an httpx2 client of one's own. Spec: AUTH-04, SEC-05."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman.auth.choosing import Part
from dragoman.auth.credentials import Credentials, hold
from dragoman.auth.presenting import Presenter, Refusal
from dragoman.errors import ConfigurationError, OutboundUrlError
from dragoman.http.guard import parse_target
from dragoman.http.showing import ShowingAuth


def as_httpx_auth(credentials: Credentials, origins: Sequence[str]) -> ShowingAuth:
    """Authentication for ``httpx2.AsyncClient(auth=…)``, such as for files that an agent keeps.

    ``credentials`` are those of :func:`dragoman.connect`, an ApiKey with its header; ``origins`` are the addresses
    whose origins may have them: requests to others go without. A client that follows redirects passes the header of an
    API key on to wherever they lead, so that ``follow_redirects`` is best left off. Raises ConfigurationError.
    """
    try:
        known = [parse_target(url).origin for url in origins]
    except OutboundUrlError as error:
        raise ConfigurationError(f"origins: {error}") from None
    presenter = Presenter([Part(one.credential) for one in hold(credentials)])

    async def renew(sent: Mapping[str, str], url: str, headers: Mapping[str, str]) -> Mapping[str, str] | None:
        return presenter.renewed if await presenter.renew(sent, Refusal(url, headers, (url,))) else None

    return ShowingAuth(presenter.headers, renew, lambda url: parse_target(url).origin in known)
