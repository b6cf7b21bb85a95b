"""Where an agent on AgentCore is called: from an ARN, an id or a URL to every address of it. Pure.

The ARN is one segment of the path, escaped completely, and stays so down to the socket.

Spec: AC-C-01 to AC-C-07, AC-C-23; section 2 of the register.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import msgspec

from dragoman.agentcore.arn import (
    PARTITIONS,
    SERVICE,
    RuntimeArn,
    check_account,
    check_qualifier,
    check_region,
    check_runtime_id,
    is_arn,
    parse_arn,
    partition_named,
    partition_of,
)
from dragoman.errors import ConfigurationError, OutboundUrlError
from dragoman.http.guard import is_loopback_host, parse_target, shown

CARD = ".well-known/agent-card.json"
RESOURCE_METADATA = ".well-known/oauth-protected-resource"

_PATH = re.compile(r"(?P<prefix>(?:/[^/?#]+)*?)/runtimes/(?P<id>[^/?#]+)/invocations(?:/(?P<rest>[^?#]*))?")
_SUFFIXES = "|".join(re.escape(s) for s in sorted({s for p in PARTITIONS for s in (p.suffix, p.dual_stack_suffix)}))
_HOST = re.compile(rf"{SERVICE}(?:-fips)?\.(?P<region>[a-z0-9-]+)\.(?:{_SUFFIXES})", re.ASCII)
_VPC_HOST = re.compile(
    rf"(?:[a-z0-9-]+\.)?vpce-[a-z0-9-]+\.{SERVICE}\.(?P<region>[a-z0-9-]+)\.vpce\.(?:{_SUFFIXES})", re.ASCII
)


class RuntimeAddress(msgspec.Struct, frozen=True, kw_only=True):
    """One agent runtime and where it is called.

    * ``origin``: scheme, host and port, with a path when an endpoint has one; no slash at the end;
    * ``segment``: the runtime in the path, escaped: its ARN, or its bare id together with ``account``;
    * ``full_segment``: the escaped ARN, or empty when it is not known;
    * ``region``: of the signature; ``qualifier``: of calls and card, empty for the service's default.
    """

    origin: str
    segment: str
    region: str
    full_segment: str = ""
    qualifier: str = ""
    account: str = ""

    @property
    def invocations(self) -> str:
        """Where calls go."""
        account = self.account if self.segment != self.full_segment else ""
        return f"{self.origin}/runtimes/{self.segment}/invocations/{self._query(accountId=account)}"

    @property
    def card(self) -> str:
        """Where the card is. Raises ConfigurationError when the ARN is not known."""
        return f"{self.origin}/runtimes/{self._full()}/invocations/{CARD}{self._query()}"

    @property
    def resource_metadata(self) -> str:
        """Where the metadata of the protected resource is."""
        return f"{self.origin}/runtimes/{self._full()}/invocations/{RESOURCE_METADATA}{self._query()}"

    @property
    def resources(self) -> tuple[str, ...]:
        """The identifiers that this runtime may have as a protected resource."""
        segments = dict.fromkeys(segment for segment in (self.segment, self.full_segment) if segment)
        return tuple(f"{self.origin}/runtimes/{segment}/invocations{self._query()}" for segment in segments)

    @property
    def stop(self) -> str:
        """Where a session is stopped."""
        return f"{self.origin}/runtimes/{self._full()}/stopruntimesession{self._query()}"

    def covers(self, url: str) -> bool:
        """Whether a URL is one of this very runtime. Spec: AC-C-23."""
        try:
            target, own = parse_target(url), parse_target(self.origin)
        except OutboundUrlError:
            return False
        bases = [f"{own.path}/runtimes/{segment}/" for segment in (self.segment, self.full_segment) if segment]
        path = f"{target.path}/"  # a path without its final slash is the same place
        plain = "/../" not in f"{path}/" and "/./" not in path and "//" not in target.path
        return target.origin == own.origin and plain and any(path.startswith(base) for base in bases)

    def is_named_by(self, url: str) -> bool:
        """Whether a card that shows this URL means this runtime, however it escapes the ARN."""
        try:
            named = _of_url(url, self.region, "", allow_http=True)
        except ConfigurationError:
            return False
        own = {unquote(segment) for segment in (self.segment, self.full_segment) if segment}
        same = parse_target(named.origin), parse_target(self.origin)
        return same[0].origin == same[1].origin and same[0].path == same[1].path and unquote(named.segment) in own

    def _full(self) -> str:
        if not self.full_segment:
            raise ConfigurationError("this call needs the full ARN of the runtime: give it in place of the bare id")
        return self.full_segment

    def _query(self, **more: str) -> str:
        named = {"qualifier": self.qualifier, **more}
        query = urlencode({name: value for name, value in named.items() if value})
        return f"?{query}" if query else ""


def find_address(
    target: str,
    *,
    region: str = "",
    account: str = "",
    qualifier: str = "",
    endpoint: str = "",
    fips: bool = False,
    dual_stack: bool = False,
    allow_http: bool = False,
) -> RuntimeAddress:
    """The address of what a user names: an ARN, a bare id with ``region`` and ``account``, or a URL of the runtime.

    ``region`` overrides that of the ARN, ``endpoint`` the host (of a VPC endpoint, or of a stand-in; then ``fips`` and
    ``dual_stack`` mean nothing). ``http://`` is for this machine only, unless ``allow_http``. Raises
    ConfigurationError that says what is wrong.
    """
    if region:
        check_region(region)
    if qualifier:
        check_qualifier(qualifier)
    if "://" in target:
        if endpoint or account:
            raise ConfigurationError("a URL says where the agent is: endpoint and account go with an ARN or an id")
        return _of_url(target, region, qualifier, allow_http)
    arn = parse_arn(target) if is_arn(target) else None
    if arn is None:
        check_runtime_id(target)
        if not account or not region:
            raise ConfigurationError("a bare runtime id needs a region and an account (12 digits); or give the ARN")
        partition = partition_of(region).name
        arn, segment = RuntimeArn(partition, region, check_account(account), target), target
    else:
        segment = arn.escaped
    where = region or arn.region
    return RuntimeAddress(
        origin=_endpoint(endpoint, allow_http) if endpoint else _origin(arn, where, fips, dual_stack),
        segment=segment,
        full_segment=arn.escaped,
        region=where,
        qualifier=qualifier or arn.endpoint,
        account=arn.account,
    )


def recognize(url: str) -> bool:
    """Whether a URL is, by host and path, one of an agent on AgentCore. Spec: AC-C-07."""
    try:
        target = parse_target(url)
    except OutboundUrlError:
        return False
    if target.scheme != "https" or target.port != 443 or not _region_of_host(target.host):
        return False
    return _match_path(target.path) is not None


def _origin(arn: RuntimeArn, region: str, fips: bool, dual_stack: bool) -> str:
    partition = partition_named(arn.partition, region)
    suffix = partition.dual_stack_suffix if dual_stack else partition.suffix
    return f"https://{SERVICE}{'-fips' if fips else ''}.{region}.{suffix}"


def _endpoint(url: str, allow_http: bool) -> str:
    check_scheme(url, allow_http=allow_http)
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ConfigurationError(f"the endpoint {shown(url)} must have neither query nor fragment")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def check_scheme(url: str, *, allow_http: bool) -> str:
    """The address, if credentials may go there at all. Raises ConfigurationError. Spec: AC-C-05."""
    try:
        target = parse_target(url)
    except OutboundUrlError as error:
        raise ConfigurationError(str(error)) from None
    if target.scheme != "https" and not allow_http and not is_loopback_host(target.host):
        raise ConfigurationError(f"{shown(url)} is refused: http:// is for this machine only, unless allow_http=True")
    return url


def _of_url(url: str, region: str, qualifier: str, allow_http: bool) -> RuntimeAddress:
    check_scheme(url, allow_http=allow_http)
    parts, target = urlsplit(url), parse_target(url)
    match = _match_path(parts.path)
    if match is None:
        raise ConfigurationError(f"{shown(url)} is no address of an agent runtime: …/runtimes/{{ARN}}/invocations/")
    query = dict(parse_qsl(parts.query))
    named = unquote(match["id"])
    arn = parse_arn(named) if is_arn(named) else None
    account = query.get("accountId", "")
    where = region or (arn.region if arn else "") or _region_of_host(target.host)
    if arn is None:
        check_runtime_id(named)
        if account and where:
            arn = RuntimeArn(partition_of(where).name, where, check_account(account), named)
    found = qualifier or query.get("qualifier", "")
    return RuntimeAddress(
        origin=f"{parts.scheme}://{parts.netloc}{match['prefix']}",
        segment=arn.escaped if arn and is_arn(named) else named,
        full_segment=arn.escaped if arn else "",
        region=where,
        qualifier=check_qualifier(found) if found else "",
        account=account,
    )


def _match_path(path: str) -> re.Match[str] | None:
    """The parts of a path to a runtime: calls, card or metadata."""
    match = _PATH.fullmatch(path)
    return match if match is not None and (match["rest"] or "") in ("", CARD, RESOURCE_METADATA) else None


def _region_of_host(host: str) -> str:
    match = _HOST.fullmatch(host) or _VPC_HOST.fullmatch(host)
    return match["region"] if match else ""
