"""AWS keys: a key's id, its secret, and the token of temporary ones. Spec: AC-C-24; section 7.1 of the register."""

from __future__ import annotations

from typing import Protocol

import msgspec


class Keys(Protocol):
    """A consistent triple, as botocore's frozen credentials are."""

    @property
    def access_key(self) -> str | None: ...
    @property
    def secret_key(self) -> str | None: ...
    @property
    def token(self) -> str | None: ...


class AwsCredentials(msgspec.Struct, frozen=True):
    """Credentials given as they are. No secret of them is ever shown."""

    access_key: str
    secret_key: str
    token: str | None = None

    def get_frozen_credentials(self) -> AwsCredentials:
        """Themselves, since they never change."""
        return self

    def __repr__(self) -> str:
        return f"AwsCredentials({self.access_key!r}, <hidden>)"


class KeySource(Protocol):
    """What gives keys: :class:`AwsCredentials`, or the credentials of botocore."""

    def get_frozen_credentials(self) -> Keys:
        """The keys of now; may block while they are refreshed."""
        ...
