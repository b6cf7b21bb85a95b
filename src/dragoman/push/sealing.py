"""A webhook's configuration in the form in which it is stored, and in that in which it is shown.

Spec: PCFG-03, PCFG-04, AMB-62, PUSH-10.
"""

from __future__ import annotations

import msgspec

from dragoman.errors import StoreError
from dragoman.model import AuthenticationInfo, TaskPushNotificationConfig
from dragoman.ports.push import Webhook


class Address(msgspec.Struct, omit_defaults=True):
    """What is stored of a configuration, beside the ids and the version."""

    url: str
    token: str = ""
    scheme: str = ""
    credentials: str = ""
    tenant: str = ""

    def __repr__(self) -> str:
        return f"Address({self.url.partition('?')[0]!r})"


_DECODER = msgspec.json.Decoder(Address)


def seal_config(config: TaskPushNotificationConfig, webhook_id: str, wire: str) -> Webhook:
    """The configuration as it is stored."""
    given = config.authentication
    address = Address(
        url=config.url,
        token=config.token,
        scheme="" if given is None else given.scheme,
        credentials="" if given is None else given.credentials,
        tenant=config.tenant,
    )
    return Webhook(id=webhook_id, payload=msgspec.json.encode(address), wire_version=wire)


def open_address(webhook: Webhook) -> Address:
    """Where a stored webhook is, and how it is called. StoreError when it is damaged."""
    try:
        return _DECODER.decode(webhook.payload)
    except msgspec.DecodeError as error:
        raise StoreError("A stored webhook cannot be read") from error


def open_config(task_id: str, webhook: Webhook, *, secrets: bool) -> TaskPushNotificationConfig:
    """The configuration for showing, with or without token and credentials."""
    address = open_address(webhook)
    authentication = None
    if address.scheme:
        credentials = address.credentials if secrets else ""
        authentication = AuthenticationInfo(scheme=address.scheme, credentials=credentials)
    return TaskPushNotificationConfig(
        tenant=address.tenant,
        id=webhook.id,
        task_id=task_id,
        url=address.url,
        token=address.token if secrets else "",
        authentication=authentication,
    )
