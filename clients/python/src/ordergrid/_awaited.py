"""Orders that wait until the partition is known to take orders of their version of FIX.

The primary asks the copies upon the first one. That one goes alone, and is sent again while it is refused; the others go when
it is taken, so that they keep their order, and a copy that does not learn the version costs one order a pause. They have no
number, and take up room in the window.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Optional

from ._grid import Backoff
from ._window import Cell, Done, Window
from .errors import NotSent, Rejected
from .log import Receipt

_TICK = 0.02


class Awaited:
    """The orders, oldest first. put sends one, if it can."""

    def __init__(self, partition: int, win: Window, retry_max: float, put: Callable[[Cell], bool]) -> None:
        self._partition, self._win, self._retry_max, self._put = partition, win, retry_max, put
        self._loop = asyncio.get_running_loop()
        self._orders: list[Cell] = []
        self._probe: Optional[Cell] = None  # the one that goes alone and has no answer
        self._done: Optional[Done] = None  # its own
        self._taken = False  # the version is known
        self._back = Backoff()
        self._timer: Optional[asyncio.TimerHandle] = None
        self._refusal: Optional[Rejected] = None  # the last one
        self.patience = 1.0
        """Seconds for which an order is sent again."""

    def takes(self, cell: Cell) -> bool:
        """Keeps a new order behind those that wait; False: it goes now."""
        if self._taken and not self._orders:
            return False
        if not isinstance(cell.payload, (bytes, bytearray)) or not cell.payload.startswith(b"8=FIXT"):
            return False
        if self._probe is None and not self._orders:
            self._alone(cell)
            return False
        self._orders.append(cell)
        self._win.held += 1
        return True

    def keeps(self, cell: Cell, refusal: Rejected) -> bool:
        """Keeps an order that was refused because of its version; False: it is refused for good."""
        now = self._loop.time()
        if not cell.again:
            cell.again = now + self.patience
        self._refusal, self._taken = refusal, False
        if cell.again <= now:
            self._forget()
            return False
        i = len(self._orders)
        if cell is self._probe:
            cell.done, self._probe, i = self._done, None, 0
        while i > 0 and self._orders[i - 1].submitted > cell.submitted:
            i -= 1  # under way when a new primary has to ask again: older than what came in since
        self._orders.insert(i, cell)
        self._win.held += 1
        if self._probe is None:
            self._schedule(self._back.pause(self._retry_max))
        return True

    def _schedule(self, pause: float) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(pause, self._send)

    def _send(self) -> None:
        """Sends the first of the orders, and all when one was taken."""
        self._timer = None
        while self._orders and self._probe is None:
            cell = self._orders[0]
            if not self._put(cell):
                self._schedule(_TICK)
                return
            del self._orders[0]
            self._win.held -= 1
            if not self._taken:
                self._alone(cell)
        self._forget()

    def _alone(self, cell: Cell) -> None:
        self._probe, self._done = cell, cell.done
        done = cell.done

        def answered(receipt: Optional[Receipt], error: Optional[BaseException]) -> None:
            self._probe = None
            code = error.code if isinstance(error, Rejected) else 0
            self._taken = error is None or code in (2, 23, 24)  # which come after the look at the version
            self._schedule(self._back.pause(self._retry_max) if code == 32 else 0)
            self._forget()
            if done is not None:
                done(receipt, error)

        cell.done = answered

    def _forget(self) -> None:
        if not self._orders and self._probe is None:
            self._refusal, self._back = None, Backoff()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def sweep(self, now: float, why: object) -> int:
        """Ends the orders whose time is over; returns how many are refused."""
        if self._probe is not None and self._probe.done is None:  # its caller left
            self._probe = None
            self._schedule(0)
        if self._refusal is not None:
            for c in self._orders:
                c.again = c.again or now + self.patience
        return self._leave(lambda c: c.deadline <= now or 0 < c.again <= now, why)

    def end(self, why: object) -> int:
        """Ends all of them; returns how many are refused."""
        return self._leave(lambda _: True, why)

    def _leave(self, over: Callable[[Cell], bool], why: object) -> int:
        """Ends orders: refused, if the version was, else not sent."""
        if not self._orders:
            return 0
        left = [c for c in self._orders if c.future is None or not c.future.cancelled()]
        gone, r = [c for c in left if over(c)], self._refusal
        self._orders = [c for c in left if not over(c)]
        self._win.held = len(self._orders)
        self._forget()
        for c in gone:
            error: BaseException = NotSent(f"p{self._partition}: not sent ({why}); it can be submitted again")
            if r is not None:
                error = Rejected(r.partition, r.code, r.tag, r.detail, r.limit, r.text, r.address)
            if c.done is not None:
                c.done(None, error)
        self._win.wake()
        return len(gone) if r is not None else 0
