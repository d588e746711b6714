"""Changes of regions, in a session: each is applied once, by the rules that orders have."""

from __future__ import annotations

import asyncio
from typing import Any, Optional

from ._region_frames import HAS_VALUE, REGION_APPLIED, REGION_APPLY, TAKE, RegionApply
from ._session import Session
from ._window import resolve
from .log import Receipt


class Change:
    """A change on its way: the message without its numbers, and what a take removed."""

    __slots__ = ("message", "value")

    def __init__(self, message: RegionApply) -> None:
        self.message = message
        self.value = b""


class RegionSession(Session):
    """Changes of the regions of one partition, over one connection at a time."""

    _what = "change", "read the key before changing it again"
    _refused_types = {0, 0x20, REGION_APPLY.number}
    _in_order = False  # a condition that fails may be answered late

    async def apply(self, message: RegionApply, timeout: float) -> tuple[Receipt, bytes]:
        """Sends a change and waits until every copy in sync holds it. Returns what a take removed."""
        change = Change(message)

        def send(left: float) -> asyncio.Future[Receipt]:
            future: asyncio.Future[Receipt] = self._loop.create_future()
            self._add(change, lambda r, e: resolve(future, r, e), left, future)
            return future

        return await self._with_room(send, timeout), change.value

    def _frame(self, seq: int, payload: Any) -> None:
        if not isinstance(payload, Change):  # it uses the number up
            super()._frame(seq, payload)
            return
        received = min(self._win.head, seq) - 1
        self._out += REGION_APPLY.write(
            payload.message._replace(
                epoch=self._opener.epoch, slot=self._slot, generation=self._generation, client_seq=seq, received=received
            ),
            self.partition,
        )

    def _on_frame(self, number: int, frame: bytes) -> None:
        if number != REGION_APPLIED.number:
            super()._on_frame(number, frame)
            return
        m = REGION_APPLIED.read(frame)
        cell = self._win.cells.get(m.client_seq)
        change: Optional[Any] = cell.payload if cell is not None and cell.sent else None
        if isinstance(change, Change):
            op = change.message.op
            if (op == TAKE) != bool(m.flags & HAS_VALUE):
                raise self._violation(f"answer to operation {op} of a region has flags {m.flags}, allowed: 2 of a take only")
            change.value = m.value
        self._on_ack(frame[:56])
