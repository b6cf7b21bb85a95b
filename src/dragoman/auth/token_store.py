"""Tokens of logins on disk: for this user alone, whole at every moment, and changed by one process at a time.

Theory. The store is one JSON file in a folder of its own. It is replaced, never written in place, and only by whoever
holds the lock beside it; readers need no lock, since what they open is whole. A file that others can read is not used:
what is in it may have been taken.

Spec: A2ACLI_AUTH_007, SEC-05, SEC-06; section 12.6 of the register of the command line.
"""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from dragoman.auth.token_endpoint import TokenSet
from dragoman.errors import ClientError

MAX_BYTES = 4 * 1024 * 1024
PATIENCE = 30.0
"""Seconds that a process waits for the others."""
_LOOK_AGAIN = 0.05


class TokenStoreError(ClientError):
    """The store cannot be used; ``hint`` says what can be done."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class StoredLogin(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One login: for one agent, scheme of its card, and client. Times are in seconds since the epoch.

    ``agent`` is the origin of the card, ``origins`` are those that the token may go to; ``secret_from`` says where the
    client's secret comes from (``env:NAME``, ``file:PATH``), which is never stored. Tokens are never shown.
    """

    agent: str
    scheme: str
    client_id: str
    flow: str = ""
    access_token: str
    refresh_token: str = ""
    token_type: str = "Bearer"
    expires_at: float | None = None
    scopes: tuple[str, ...] = ()
    token_url: str = ""
    refresh_url: str = ""
    issuer: str = ""
    audience: str = ""
    secret_from: str = ""
    origins: tuple[str, ...] = ()
    logged_in_at: float = 0.0

    def __repr__(self) -> str:
        return f"StoredLogin({self.agent!r}, {self.scheme!r}, {self.client_id!r}, <hidden>)"

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from others."""
        return self.agent, self.scheme, self.client_id

    @property
    def tokens(self) -> TokenSet:
        """The tokens."""
        return TokenSet(
            access_token=self.access_token,
            refresh_token=self.refresh_token,
            expires_at=self.expires_at,
            scopes=self.scopes,
        )

    def having(self, tokens: TokenSet) -> StoredLogin:
        """The same login with other tokens."""
        return replace(
            self,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            expires_at=tokens.expires_at,
            scopes=tokens.scopes or self.scopes,
        )


class _File(msgspec.Struct, frozen=True):
    version: int = 1
    logins: tuple[StoredLogin, ...] = ()


class TokenStore:
    """The logins in one file. Methods that change it hold its lock; they block, and are quick.

    Raises TokenStoreError when the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def logins(self, agent: str = "") -> list[StoredLogin]:
        """Those for an agent, or all."""
        return [one for one in self._read().logins if agent in ("", one.agent)]

    def put(self, login: StoredLogin) -> None:
        """Keep a login, in place of the one with its key."""
        with self._locked_file():
            self._put(login)

    def remove(self, agent: str = "") -> int:
        """Forget those for an agent, or all; how many there were."""
        with self._locked_file():
            found = self._read().logins
            kept = tuple(one for one in found if agent not in ("", one.agent))
            if len(kept) < len(found):
                self._write(_File(logins=kept))
            return len(found) - len(kept)

    def keeper(self, login: StoredLogin, learn: Callable[[TokenSet], None] = lambda tokens: None) -> StoredKeeper:
        """A keeper for the tokens of one login. ``learn`` is told of everything that is read or saved."""
        return StoredKeeper(self, login, learn)

    def find(self, key: tuple[str, str, str]) -> StoredLogin | None:
        """The login with a key."""
        return next((one for one in self._read().logins if one.key == key), None)

    def _put(self, login: StoredLogin) -> None:
        others = tuple(one for one in self._read().logins if one.key != login.key)
        self._write(_File(logins=(*others, login)))

    def _read(self) -> _File:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            return _File()
        except OSError as error:
            raise TokenStoreError(f"the tokens in {self.path} cannot be read: {error.strerror}") from error
        with open(descriptor, "rb") as file:
            self._check(os.fstat(file.fileno()))
            data = file.read(MAX_BYTES + 1)
        try:
            found = msgspec.json.decode(data, type=_File)
        except (msgspec.DecodeError, RecursionError):
            found = None
        if found is None or found.version != 1 or len(data) > MAX_BYTES:
            hint = f"rm {self.path}, and log in again"
            raise TokenStoreError(f"{self.path} holds no tokens that can be read", hint=hint)
        return found

    def _check(self, found: os.stat_result) -> None:
        if os.name != "posix":
            return
        if found.st_uid != os.geteuid():
            raise TokenStoreError(f"{self.path} is of another user")
        if stat.S_IMODE(found.st_mode) & 0o077:
            hint = f"chmod 600 {self.path}, and log in again if somebody may have read it"
            raise TokenStoreError(f"{self.path} is not used: others can read it", hint=hint)

    def _write(self, content: _File) -> None:
        data = msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
        try:
            descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".credentials-")  # 0600
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, self.path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise TokenStoreError(f"the tokens cannot be written to {self.path}: {error.strerror}") from error

    @contextmanager
    def _locked_file(self) -> Iterator[None]:
        end = time.monotonic() + PATIENCE
        with self._lock_file() as descriptor:
            while not _try_lock(descriptor):
                if time.monotonic() > end:
                    raise self._busy()
                time.sleep(_LOOK_AGAIN)
            yield

    @contextmanager
    def _lock_file(self) -> Iterator[int]:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise TokenStoreError(f"{self.path.parent} cannot be written to: {error.strerror}") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _busy(self) -> TokenStoreError:
        return TokenStoreError(f"{self.path} is held by another process")


class StoredKeeper:
    """A :class:`~dragoman.auth.sessions.Keeper` for one login of a store."""

    def __init__(self, store: TokenStore, login: StoredLogin, learn: Callable[[TokenSet], None]) -> None:
        self._store = store
        self._login = login
        self._learn = learn

    async def load(self) -> TokenSet | None:
        """See :class:`~dragoman.auth.sessions.Keeper`. None when it was logged out meanwhile."""
        found = await asyncio.to_thread(self._store.find, self._login.key)
        if found is None:
            return None
        self._login = found
        self._learn(found.tokens)
        return found.tokens

    async def save(self, tokens: TokenSet) -> None:
        """See :class:`~dragoman.auth.sessions.Keeper`. Needs the lock."""
        self._learn(tokens)
        self._login = self._login.having(tokens)
        await asyncio.to_thread(self._store._put, self._login)

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """See :class:`~dragoman.auth.sessions.Keeper`: no process of this user changes the store meanwhile."""
        end = time.monotonic() + PATIENCE
        with self._store._lock_file() as descriptor:
            while not _try_lock(descriptor):
                if time.monotonic() > end:
                    raise self._store._busy()
                await asyncio.sleep(_LOOK_AGAIN)
            yield


def _try_lock(descriptor: int) -> bool:
    """Lock a file; it is unlocked when it is closed, however the process ends."""
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
