"""Names of agents on AgentCore: ARNs, regions, partitions. Pure.

Everything that becomes a part of a host name or of a path is checked by pattern first.

Spec: AC-C-01, AC-C-02, AC-C-03.
"""

from __future__ import annotations

import re
from urllib.parse import quote

import msgspec

from dragoman.errors import ConfigurationError

SERVICE = "bedrock-agentcore"

_ID = r"[a-zA-Z][a-zA-Z0-9_]{0,47}-[a-zA-Z0-9]{10}"
_ARN = re.compile(
    rf"arn:(?P<partition>aws(?:-[a-z0-9-]+)?):{SERVICE}:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{{12}})"
    rf":runtime/(?P<id>{_ID})(?:/runtime-endpoint/(?P<endpoint>[a-zA-Z][a-zA-Z0-9_]{{0,47}}))?",
    re.ASCII,
)
_RUNTIME_ID = re.compile(_ID, re.ASCII)
_REGION = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]+)+", re.ASCII)
_ACCOUNT = re.compile(r"[0-9]{12}", re.ASCII)
_QUALIFIER = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,47}", re.ASCII)


class Partition(msgspec.Struct, frozen=True):
    """A part of the service with host names of its own."""

    name: str
    suffix: str
    dual_stack_suffix: str
    regions: str


PARTITIONS = (
    Partition("aws-cn", "amazonaws.com.cn", "api.amazonwebservices.com.cn", "cn-"),
    Partition("aws-us-gov", "amazonaws.com", "api.aws", "us-gov-"),
    Partition("aws-eusc", "amazonaws.eu", "api.amazonwebservices.eu", "eusc-"),
    Partition("aws-iso", "c2s.ic.gov", "api.aws.ic.gov", "us-iso-"),
    Partition("aws-iso-b", "sc2s.sgov.gov", "api.aws.scloud", "us-isob-"),
    Partition("aws-iso-e", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk", "eu-isoe-"),
    Partition("aws-iso-f", "csp.hci.ic.gov", "api.aws.hci.ic.gov", "us-isof-"),
    Partition("aws", "amazonaws.com", "api.aws", ""),
)
"""The special ones first, by the beginnings of the names of their regions."""


class RuntimeArn(msgspec.Struct, frozen=True):
    """The ARN of an agent runtime. ``endpoint`` is set for the ARN of one of its endpoints."""

    partition: str
    region: str
    account: str
    runtime_id: str
    endpoint: str = ""

    def __str__(self) -> str:
        """The ARN of the runtime itself."""
        return f"arn:{self.partition}:{SERVICE}:{self.region}:{self.account}:runtime/{self.runtime_id}"

    @property
    def escaped(self) -> str:
        """The ARN as one segment of a path, nothing left unescaped."""
        return quote(str(self), safe="")


def parse_arn(text: str) -> RuntimeArn:
    """Read an ARN. Raises ConfigurationError for anything else. Spec: AC-C-02."""
    match = _ARN.fullmatch(text)
    if match is None:
        raise ConfigurationError(
            f"{_shown(text)} is no ARN of an agent runtime, such as "
            f"arn:aws:{SERVICE}:eu-west-1:111122223333:runtime/my_agent-0a1B2c3D4e"
        )
    check_region(match["region"])
    return RuntimeArn(match["partition"], match["region"], match["account"], match["id"], match["endpoint"] or "")


def is_arn(text: str) -> bool:
    """Whether a text means to be an ARN."""
    return text.startswith("arn:")


def check_region(text: str) -> str:
    """The region, if it is one. Raises ConfigurationError: it becomes a part of a host name. Spec: AC-C-02."""
    if not _REGION.fullmatch(text) or len(text) > 40:
        raise ConfigurationError(f"{_shown(text)} is no region: lower-case letters, digits and hyphens are allowed")
    return text


def check_runtime_id(text: str) -> str:
    """The id of a runtime, if it is one. Raises ConfigurationError."""
    if not _RUNTIME_ID.fullmatch(text):
        raise ConfigurationError(f"{_shown(text)} is no id of an agent runtime, such as my_agent-0a1B2c3D4e")
    return text


def check_account(text: str) -> str:
    """The id of an account, if it is one. Raises ConfigurationError."""
    if not _ACCOUNT.fullmatch(text):
        raise ConfigurationError(f"{_shown(text)} is no account id: 12 digits are")
    return text


def check_qualifier(text: str) -> str:
    """The name of an endpoint, if it is one. Raises ConfigurationError."""
    if not _QUALIFIER.fullmatch(text):
        raise ConfigurationError(f"{_shown(text)} is no name of an endpoint (qualifier)")
    return text


def partition_of(region: str) -> Partition:
    """The partition of a region, by its name."""
    return next(partition for partition in PARTITIONS if region.startswith(partition.regions))


def partition_named(name: str, region: str) -> Partition:
    """A partition by its name, that of the region when the name is not known here."""
    return next((partition for partition in PARTITIONS if partition.name == name), None) or partition_of(region)


def _shown(text: str) -> str:
    return repr(text[:120])
