"""A connection over which an answer is overdue: a node that is cut off closes none."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Optional

from . import wire
from ._connection import Connection, Lost
from ._grid import Grid
from ._opener import Opener
from .errors import OrderGridError


class Suspicion:
    """Asks the other nodes who the primary is, and leaves the present one for a successor only. A slow one is waited for;
    one that does not even answer a ping is connected to again."""

    def __init__(self, grid: Grid, opener: Opener) -> None:
        self.looking: Optional[asyncio.Task[None]] = None
        self._grid, self._opener = grid, opener
        self._suspected = self._pinged = 0.0
        self._of: Optional[Connection] = None

    def look(self, c: Connection, now: float, owed_since: float) -> None:
        """Called often while an answer is owed."""
        limit = self._grid.config.suspect_after
        if self._of is not c:
            self._of, self._pinged = c, 0.0
        if now - owed_since < limit:
            return
        if now - self._pinged >= limit and c.heard >= self._pinged:
            self._pinged = now
            c.write(wire.PING.write(wire.Request(1)))
        elif c.heard < self._pinged and now - self._pinged >= 5 * limit:
            c.fail(Lost(f"{c.address}: no answer, not even to a ping"))
            return
        if self.looking is None and now - self._suspected >= limit / 4:
            self._suspected = now
            self.looking = asyncio.create_task(self._ask_others(c))

    async def _ask_others(self, c: Connection) -> None:
        number, known = self._opener.partition, self._opener.epoch
        try:
            with contextlib.suppress(OrderGridError):
                await self._grid.refresh(number, c.address)
            p = self._grid.parts[number]
            if p.epoch > known and p.primary and p.primary.id != c.member:
                c.fail(Lost(f"{c.address}: no answer, and {p.primary.address} is the primary since epoch {p.epoch}"))
        finally:
            self.looking = None
