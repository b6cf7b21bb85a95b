"""The platform's eye on containers: pings, and the end of sessions.

Spec: AC-F-12, AC-F-13.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.http.client import HttpClient
from dragoman.testing.agentcore_front.asking import ask_ping
from dragoman.testing.agentcore_front.contract import Contract
from dragoman.testing.agentcore_front.pings import Ping, Verdict, check_ping, judge
from dragoman.testing.agentcore_front.sessions import Session, Sessions
from dragoman.testing.agentcore_front.settings import FrontSettings
from dragoman.testing.agentcore_front.upstreams import Instance


class Watcher:
    """Pings each container in turn and ends sessions by what it says."""

    def __init__(
        self,
        sessions: Sessions,
        settings: FrontSettings,
        contract: Contract,
        http: HttpClient,
        now: Callable[[], float],
    ) -> None:
        self._sessions = sessions
        self._settings = settings
        self._contract = contract
        self._http = http
        self._now = now

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._settings.lifecycle.ping_s * self._settings.time_scale)
            await self.look()

    async def look(self) -> None:
        """One round: ping every container once, then end the sessions whose time has come."""
        homes: dict[int, list[Session]] = {}
        for session in self._sessions.active():
            homes.setdefault(id(session.instance), []).append(session)
        await asyncio.gather(*(self._look_at(sessions) for sessions in homes.values()))

    async def _look_at(self, sessions: list[Session]) -> None:
        instance = sessions[0].instance
        assert instance is not None
        ping = await self._ping(instance)
        for session in sessions:
            session.life.take(ping)
            verdict = judge(session.life, self._now(), self._settings.lifecycle, self._settings.time_scale)
            if not instance.is_running:
                await self._sessions.end(session, "crashed")
            elif verdict is not Verdict.KEEP:
                await self._sessions.end(session, verdict.value)

    async def _ping(self, instance: Instance) -> Ping:
        was_busy, instance.calls = bool(instance.calls or instance.in_flight), 0
        ping = await ask_ping(self._http, instance.url)
        was_called = was_busy or bool(instance.calls or instance.in_flight)
        if ping.http == 200:
            self._contract.add(*check_ping(ping, instance.last_ping, self._now(), was_called=was_called))
            instance.last_ping = ping
        return ping
