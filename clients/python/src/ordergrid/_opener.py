"""Finding the primary of a partition, and opening a session's id there."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Optional

from . import wire
from ._connection import Connection, Lost, dial, refusal
from ._grid import Backoff, Grid
from .errors import NotPrimary, OrderGridError, ProtocolError, Rejected
from .wire import OPEN_SESSION, SESSION_OPENED

Hint = tuple[str, int]
"""The primary's address as a node says it, and its epoch."""


class Opener:
    """The id of a session, and where it was opened."""

    def __init__(self, grid: Grid, partition: int) -> None:
        self.partition = partition
        self.id = secrets.randbits(128) | 1
        self.epoch = 0
        """Highest that a node has answered the session with."""
        self.attempt = 0
        """Rises with every connection on which the id is opened."""
        self.followed = 0
        """Highest epoch that was followed without a pause."""
        self.back = Backoff()
        self._tried_at = 0.0
        self._grid, self._config = grid, grid.config
        self._loop = asyncio.get_running_loop()

    def renew(self) -> None:
        """Takes a new id: the grid forgot nothing, but the numbers of the old one cannot go on."""
        self.id = secrets.randbits(128) | 1

    async def next_turn(self, hint: Optional[Hint]) -> Optional[Hint]:
        """Waits until the next attempt is due. A later epoch is followed at once, each once."""
        now = self._loop.time()
        if now - self._tried_at > 4 * self._config.retry_max:
            self.back = Backoff()  # the troubles of long ago do not slow the first attempt since
        self._tried_at = now
        pause = self.back.pause(self._config.retry_max)
        known = max(self.epoch, self.followed)
        if hint and hint[1] > known:
            self.followed = hint[1]
            return hint
        if hint and 0 < hint[1] < known:
            hint = None  # of a node that is behind
        end = now + pause
        while True:
            p, changed = self._grid.parts[self.partition], self._grid.changed
            if p.epoch > known and p.primary:
                self.followed = p.epoch
                return p.primary.address, p.epoch
            left = end - self._loop.time()
            if left <= 0:
                return hint
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(changed.wait(), left)

    async def primary(self, hint: str, failed: str, first: bool) -> str:
        if hint:
            return hint
        error: Optional[OrderGridError] = None
        if failed or not first or not self._grid.replica(self.partition, False, 1):
            try:
                await self._grid.refresh(self.partition, failed)
            except OrderGridError as e:
                error = e
        address = self._grid.replica(self.partition, False, 1)
        if address and not isinstance(error, ProtocolError):
            return address
        raise error or Lost(f"p{self.partition} has no primary at epoch {self._grid.parts[self.partition].epoch}")

    async def open_at(self, address: str, limit: float) -> tuple[Connection, wire.SessionOpened]:
        """Opens the session at a node, unless the grid names another primary meanwhile."""
        self.attempt += 1
        epoch = max(self.epoch, self._grid.parts[self.partition].epoch)
        message = wire.OpenSession(1, self.id >> 64, self.id & (1 << 64) - 1, epoch, self.attempt)
        request = OPEN_SESSION.write(message, self.partition)
        opening = asyncio.create_task(self._open(address, request))
        looking = asyncio.create_task(self._look_elsewhere(address))
        try:
            await asyncio.wait((opening, looking), timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if opening.done():
                return opening.result()
            raise Lost(f"{address}: no session there in time" if not looking.done() else f"{address}: another primary is known")
        finally:
            for task in (opening, looking):
                if not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, OrderGridError):
                        await task

    async def _look_elsewhere(self, address: str) -> None:
        back = Backoff()
        back.attempts = 1
        while True:
            await asyncio.sleep(0.01 + back.pause(self._config.retry_max))
            with contextlib.suppress(OrderGridError):
                await self._grid.refresh(self.partition, address)
                p = self._grid.parts[self.partition]
                if p.epoch > max(self.epoch, self.followed) and p.primary and p.primary.address != address:
                    return

    async def _open(self, address: str, request: bytes) -> tuple[Connection, wire.SessionOpened]:
        c = await dial(self._config, address, request)
        try:
            frame = await c.next_frame()
            error = refusal(address, frame)
            if error is not None:
                raise error
            m = c.read(SESSION_OPENED, frame)
            if m.req_id != 1 or not m.window:
                raise ProtocolError(
                    address, f"SessionOpened has reqID {m.req_id} and window {m.window}, allowed: 1, and 1 or more"
                )
            return c, m
        except BaseException as e:
            c.fail(e)
            raise


def hint_of(error: BaseException) -> Optional[Hint]:
    if isinstance(error, NotPrimary) and error.hint:
        return error.hint, error.epoch
    if isinstance(error, Rejected) and error.code == 12:
        return error.address, 0
    return None
