"""The orders of a session that have no answer, by their numbers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Optional

from .log import Receipt

Done = Callable[[Optional[Receipt], Optional[BaseException]], None]


class Cell:
    """The place of one number in the window, from submit to its answer."""

    __slots__ = ("payload", "done", "future", "sent", "resent", "submitted", "deadline", "again")

    def __init__(self, payload: Any, done: Done, future: Optional[Any], submitted: float, deadline: float) -> None:
        self.payload: Any = payload  # the bytes of an order, or a change of a region
        self.done: Optional[Done] = done  # None: its caller was told that the outcome is unknown, or left
        self.future = future
        self.sent = False  # it was handed to a connection
        self.resent = False  # … to more than one
        self.submitted, self.deadline = submitted, deadline
        self.again = 0.0  # until when it is sent again, see Awaited; 0: it was not refused so


class Window:
    """Numbers head..next-1. One that is answered is taken out, its place stays until all before it are."""

    def __init__(self, limit: int) -> None:
        self.cells: dict[int, Cell] = {}
        self.head, self.next, self.limit = 1, 1, limit
        self.held = 0  # orders that have no number and take up room, see Awaited
        self.room: deque[asyncio.Future[None]] = deque()
        self.empties: set[int] = set()
        """Numbers that were sent without payload on this connection, for no caller, and are not answered."""

    async def room_within(self, seconds: float) -> bool:
        """Waits until there is room, and reports whether there was in time."""
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.room.append(room)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(room, seconds)
            return True
        return False

    def wake(self) -> None:
        """Wakes as many that wait for room as have it now."""
        n = self.limit - (self.next - self.head) - self.held
        while n > 0 and self.room:
            w = self.room.popleft()
            if not w.done():
                w.set_result(None)
                n -= 1

    def add(self, cell: Cell) -> int:
        seq = self.next
        self.cells[seq] = cell
        self.next = seq + 1
        return seq

    def settle(self, seq: int) -> None:
        """Takes an answered number out."""
        del self.cells[seq]
        if seq == self.head:
            head, cells = seq + 1, self.cells
            while head < self.next and head not in cells:
                head += 1
            self.head = head

    def take_back(self) -> None:
        """Gives up numbers at the end that no caller waits for and no node has seen: they are used again."""
        while self.next > self.head:
            last = self.cells.get(self.next - 1)
            if last is None or last.done is not None or last.sent:
                return
            self.next -= 1
            del self.cells[self.next]

    def waiting(self) -> bool:
        """Whether a caller waits."""
        return self.held > 0 or any(c.done is not None for c in self.cells.values())

    def numbers(self) -> Iterator[int]:
        return iter(range(self.head, self.next))

    def renumber(self, last: int) -> list[tuple[int, Cell]]:
        """Moves what was never sent to numbers above last. Returns what was, whose outcome cannot be known any more."""
        lost: list[tuple[int, Cell]] = []
        keep: list[tuple[int, Cell]] = []
        for seq, cell in sorted(self.cells.items()):
            if cell.done is not None:
                (lost if cell.sent else keep).append((seq, cell))
        self.head = self.next = last + 1
        self.cells = {}
        for _, cell in keep:
            self.add(cell)
        return lost


def resolve(future: asyncio.Future[Receipt], receipt: Optional[Receipt], error: Optional[BaseException]) -> None:
    """Gives a future its outcome, if it was not cancelled."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        assert receipt is not None
        future.set_result(receipt)
