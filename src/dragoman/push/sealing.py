"""A webhook's configuration in the form in which it is stored, and in that in which it is shown.

What is stored is opaque to stores. Token and credentials are encrypted in it when there is a key.

Spec: PCFG-03, PCFG-04, AMB-62, PUSH-10.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from dragoman.errors import StoreError
from dragoman.model import AuthenticationInfo, TaskPushNotificationConfig
from dragoman.ports.push import Webhook


class Secrets(Protocol):
    """Keeps secrets; see :class:`~dragoman.push.ciphering.Cipher`."""

    def encrypt(self, text: bytes, about: bytes) -> bytes:
        """The text, encrypted."""
        ...

    def decrypt(self, data: bytes, about: bytes) -> bytes:
        """The text again. Raises StoreError."""
        ...


class Address(msgspec.Struct, omit_defaults=True):
    """What is stored of a configuration, beside the ids and the version; ``hidden``: the secrets, encrypted."""

    url: str
    token: str = ""
    scheme: str = ""
    credentials: str = ""
    tenant: str = ""
    hidden: bytes = b""

    def __repr__(self) -> str:
        return f"Address({self.url.partition('?')[0]!r})"


_DECODER = msgspec.json.Decoder(Address)
_PAIR = msgspec.json.Decoder(tuple[str, str])


def seal_config(
    config: TaskPushNotificationConfig, webhook_id: str, wire: str, secrets: Secrets | None = None
) -> Webhook:
    """The configuration as it is stored."""
    given = config.authentication
    address = Address(
        url=config.url,
        token=config.token,
        scheme="" if given is None else given.scheme,
        credentials="" if given is None else given.credentials,
        tenant=config.tenant,
    )
    if secrets is not None and (address.token or address.credentials):
        text = msgspec.json.encode((address.token, address.credentials))
        address.hidden = secrets.encrypt(text, webhook_id.encode())
        address.token = address.credentials = ""
    return Webhook(id=webhook_id, payload=msgspec.json.encode(address), wire_version=wire)


def open_address(webhook: Webhook, secrets: Secrets | None = None) -> Address:
    """Where a stored webhook is, and how it is called.

    Raises StoreError when it is damaged, or when its secrets cannot be read.
    """
    address = _decode(webhook)
    if address.hidden:
        if secrets is None:
            raise StoreError("The secrets of a stored webhook are encrypted, and no key is set")
        text = secrets.decrypt(address.hidden, webhook.id.encode())
        address.token, address.credentials = _PAIR.decode(text)
        address.hidden = b""
    return address


def _decode(webhook: Webhook) -> Address:
    try:
        return _DECODER.decode(webhook.payload)
    except msgspec.DecodeError as error:
        raise StoreError("A stored webhook cannot be read") from error


def open_config(
    task_id: str, webhook: Webhook, *, shows_secrets: bool, secrets: Secrets | None = None
) -> TaskPushNotificationConfig:
    """The configuration for showing, with or without token and credentials."""
    address = open_address(webhook, secrets) if shows_secrets else _decode(webhook)
    authentication = None
    if address.scheme:
        credentials = address.credentials if shows_secrets else ""
        authentication = AuthenticationInfo(scheme=address.scheme, credentials=credentials)
    return TaskPushNotificationConfig(
        tenant=address.tenant,
        id=webhook.id,
        task_id=task_id,
        url=address.url,
        token=address.token if shows_secrets else "",
        authentication=authentication,
    )
