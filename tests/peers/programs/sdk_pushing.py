"""The peers' agent of the official SDK, which sends push notifications: ``python sdk_pushing.py MODULE``.

MODULE is ``sdk_agent`` or ``sdk_agent_v03``. Runs under the SDK's own interpreter.
"""

from __future__ import annotations

import asyncio
import importlib
import sys

import httpx
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import BasePushNotificationSender, InMemoryPushNotificationConfigStore

agent = importlib.import_module(sys.argv[1])
make_card = agent.make_card


def pushing_card(*given):
    card = make_card(*given)
    card.capabilities.push_notifications = True
    return card


def pushing_handler(executor, store, *more, **_):
    configs = InMemoryPushNotificationConfigStore()
    sender = BasePushNotificationSender(httpx.AsyncClient(), configs)
    return DefaultRequestHandler(executor, store, *more, push_config_store=configs, push_sender=sender)


agent.make_card = pushing_card
agent.DefaultRequestHandler = pushing_handler
asyncio.run(agent.main())
