"""Which credential goes where: from the security of a card to headers and query of every request. Pure.

``securityRequirements`` is a list of alternatives, each of which names schemes that must all be met. The first one
that the credentials at hand meet is used; one that uses a credential goes before one that needs none.

Spec: A2ACLI_AUTH_001, P-19; section 12.2 of the register of the command line.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec

from dragoman.auth.schemes import takes_tokens
from dragoman.cli.failures import CredentialsMissingError, UsageError
from dragoman.cli.resume import quoted
from dragoman.model import AgentCard, SecurityScheme

DEFAULT_KEY_HEADER = "X-API-Key"


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What the user gave. Empty text: not given. ``key_header`` and ``scheme`` say how to use it.

    ``certificate``: whether there is one for TLS; ``stored``: the schemes that there is a stored login for.
    """

    bearer: str = ""
    api_key: str = ""
    basic: str = ""
    key_header: str = ""
    scheme: str = ""
    certificate: bool = False
    stored: frozenset[str] = frozenset()

    @property
    def any(self) -> bool:
        """Whether the user gave a credential at all."""
        return bool(self.bearer or self.api_key or self.basic)

    @property
    def secrets(self) -> list[str]:
        """What must not be shown."""
        return [text for text in (self.bearer, self.api_key, self.basic, self.basic.partition(":")[2]) if text]


class Attachment(msgspec.Struct, kw_only=True):
    """What goes with every request. ``declared``: as a scheme of the card says; ``warnings`` are for the user.

    ``stored``: the scheme whose stored login is used, or empty.
    """

    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    cookies: dict[str, str] = {}
    warnings: list[str] = []
    declared: bool = False
    stored: str = ""

    @property
    def any(self) -> bool:
        """Whether a credential is sent."""
        return bool(self.headers or self.query or self.cookies or self.stored)


def attach_plainly(given: Credentials) -> Attachment:
    """Without a card: to the usual headers."""
    found = Attachment()
    _authorize(found, given)
    if given.api_key:
        found.headers[given.key_header or DEFAULT_KEY_HEADER] = given.api_key
    return found


def attach(card: AgentCard, given: Credentials, reference: str = "") -> Attachment:
    """By the card; ``reference`` is how it was named, for hints.

    Raises CredentialsMissingError when no alternative can be met, UsageError when nothing says where an API key goes.
    """
    if given.scheme and given.scheme not in card.security_schemes:
        known = ", ".join(card.security_schemes) or "none"
        raise UsageError(f"the card has no security scheme {given.scheme!r}; it has: {known}")
    if not card.security_schemes and not any(r.schemes for r in card.security_requirements):
        return _attach_unasked(given)
    alternatives = [list(requirement.schemes) for requirement in card.security_requirements]
    if not alternatives:
        alternatives = [*([name] for name in card.security_schemes), []]
    if given.scheme:
        alternatives = [names for names in alternatives if given.scheme in names] or [[given.scheme]]
    met = [names for names in alternatives if all(_meets(card, name, given) for name in names)]
    if not met:
        raise _missing(card, alternatives, given, reference)
    return _attach_to(card, next(filter(None, met), met[0]), given)


def _meets(card: AgentCard, name: str, given: Credentials) -> bool:
    scheme = card.security_schemes.get(name)
    if scheme is None:
        return False
    if scheme.api_key_security_scheme is not None:
        return bool(given.api_key) and scheme.api_key_security_scheme.location in ("header", "query", "cookie")
    if scheme.http_auth_security_scheme is not None:
        word = scheme.http_auth_security_scheme.scheme.lower()
        if word == "basic":
            return bool(given.basic)
        return word == "bearer" and (bool(given.bearer) or name in given.stored)
    if scheme.mtls_security_scheme is not None:
        return given.certificate
    return bool(given.bearer) or name in given.stored


def _attach_to(card: AgentCard, names: Sequence[str], given: Credentials) -> Attachment:
    found = Attachment(declared=bool(names))
    for name in names:
        scheme = card.security_schemes[name]
        key = scheme.api_key_security_scheme
        if scheme.mtls_security_scheme is not None:
            continue
        if key is None and not given.bearer and name in given.stored:
            found.stored = name
        elif key is None:
            http = scheme.http_auth_security_scheme
            _authorize(found, given, basic=http is not None and http.scheme.lower() == "basic")
        else:
            place = {"header": found.headers, "query": found.query, "cookie": found.cookies}[key.location]
            place[key.name] = given.api_key
    _warn_of_unused(found, given)
    return found


def _authorize(found: Attachment, given: Credentials, *, basic: bool | None = None) -> None:
    if given.bearer and not basic:
        found.headers["Authorization"] = f"Bearer {given.bearer}"
    elif given.basic and basic is not False:
        found.headers["Authorization"] = f"Basic {base64.b64encode(given.basic.encode()).decode()}"


def _warn_of_unused(found: Attachment, given: Credentials) -> None:
    used = [*found.headers.values(), *found.query.values(), *found.cookies.values()]
    for flag, secret in (("--bearer", given.bearer), ("--api-key", given.api_key)):
        if secret and not any(secret in value for value in used):
            found.warnings.append(f"{flag} is not sent: the card's scheme in use does not take it")


def _attach_unasked(given: Credentials) -> Attachment:
    """The card says nothing of security; a gateway in front of the agent may still want something."""
    found = Attachment()
    if given.api_key and not given.key_header:
        raise UsageError("the card does not say where an API key goes: name the header with --api-key-header")
    _authorize(found, given)
    if given.api_key:
        found.headers[given.key_header] = given.api_key
    if found.any:
        found.warnings.append("the card asks for no credential; it is sent all the same")
    return found


def _missing(
    card: AgentCard, alternatives: Sequence[Sequence[str]], given: Credentials, reference: str
) -> CredentialsMissingError:
    names = list(dict.fromkeys(name for alternative in alternatives for name in alternative))
    schemes = ", ".join(f"{name} ({describe_scheme(card.security_schemes.get(name))})" for name in names)
    wanted = [_remedy(card.security_schemes.get(name), reference) for name in names]
    what = "other credentials than those given" if given.any else "credentials"
    return CredentialsMissingError(f"the agent wants {what}: {schemes}", hint=next(filter(None, wanted), ""))


def _remedy(scheme: SecurityScheme | None, reference: str) -> str:
    if scheme is None:
        return ""
    if scheme.mtls_security_scheme is not None:
        return "export DRAGOMAN_CLIENT_CERT=... DRAGOMAN_CLIENT_KEY=..."
    if takes_tokens(scheme) and reference:
        return quoted(["dragoman", "auth", "login", "-a", reference, "--client-id", "ID"])
    if scheme.api_key_security_scheme is not None:
        return "export A2ACLI_API_KEY=..."
    http = scheme.http_auth_security_scheme
    return (
        "export DRAGOMAN_BASIC=..."
        if http is not None and http.scheme.lower() == "basic"
        else "export A2ACLI_BEARER=..."
    )


def describe_scheme(scheme: SecurityScheme | None) -> str:
    """A scheme in a few words."""
    if scheme is None:
        return "not declared"
    if scheme.api_key_security_scheme is not None:
        key = scheme.api_key_security_scheme
        return f"apiKey: {key.location} {key.name}"
    if scheme.http_auth_security_scheme is not None:
        return f"http: {scheme.http_auth_security_scheme.scheme}"
    if scheme.oauth2_security_scheme is not None:
        flows = scheme.oauth2_security_scheme.flows
        present = [name for name in flows.__struct_fields__ if getattr(flows, name) is not None]
        return f"oauth2: {', '.join(map(_camel, present))}"
    if scheme.open_id_connect_security_scheme is not None:
        return f"openIdConnect: {scheme.open_id_connect_security_scheme.open_id_connect_url}"
    return "mutualTLS" if scheme.mtls_security_scheme is not None else "unknown"


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
