"""A session: orders to one partition, each applied once whatever is lost between.

The rules are those of docs/protocol.md, "Exactly once": numbers without a gap, what is unanswered is sent again under its
number, refusals that decide and those that do not. Everything runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable
from typing import Any, Optional

from . import wire
from ._awaited import Awaited
from ._connection import Connection, Lost, goaway, refusal
from ._grid import Backoff, Grid, within
from ._opener import Hint, Opener, hint_of
from ._suspicion import Suspicion
from ._window import Cell, Done, Window, resolve
from .config import MAX_WINDOW
from .errors import (
    DECIDES, Closed, NotSent, OrderGridError, ProtocolError, Rejected, Unavailable, UnknownOutcome, WindowFull, permanent,
)  # fmt: skip
from .log import Receipt
from .wire import ACK, REJECT

_submit = struct.Struct("<IBBHQIIQ").pack
_ack = struct.Struct("<8xQQQIBBxxQI").unpack_from
_TICK, _MAX_FILL, _FLUSH = 0.02, 1 << 16, 64 << 10


class Session:
    """Orders to the primary of one partition, over one connection at a time. Made by Client.session."""

    _what = "order", "ask get_by_cl_ord_id before submitting it again"
    _refused_types = {0, 0x20}  # of frames that a Reject may be for
    _in_order = True  # acks come in the order of the numbers

    def __init__(self, grid: Grid, partition: int) -> None:
        self.partition = partition
        self._grid, self._config = grid, grid.config
        self._loop = asyncio.get_running_loop()
        self._opener = Opener(grid, partition)
        self._win = Window(grid.config.max_in_flight)
        self._awaited = Awaited(partition, self._win, grid.config.retry_max, self._put)
        self._slot = self._generation = 0
        self._opened = self._evicting = self.closed = False
        self._expected = 0  # what a node last reported as missing
        self._last_ack = self._last_seq = 0
        self.connection: Optional[Connection] = None
        self._recovery: Optional[asyncio.Task[None]] = None
        self._openers = 0  # that wait for the connection
        self._trouble: Optional[BaseException] = None
        self._last_ok = self._loop.time()
        self._suspicion = Suspicion(grid, self._opener)
        self._out, self._flushing = bytearray(), False
        self._ticker: Optional[asyncio.TimerHandle] = None
        self.accepted = self.refused = self.unknown = self.not_sent = self.resent = self.duplicates = self.connects = 0

    # what callers do

    async def submit(self, fix: bytes, *, timeout: Optional[float] = None) -> Receipt:
        """Sends one FIX message and waits until every copy in sync holds it. With the window full it waits for room.
        An order that is refused with VersionAwaited is sent again for up to a second.

        Raises an OrderError, whose fate says what is known of the order.
        """
        return await self._with_room(lambda left: self.submit_nowait(fix, timeout=left), timeout)

    async def _with_room(self, send: Callable[[float], asyncio.Future[Receipt]], timeout: Optional[float]) -> Receipt:
        deadline = self._loop.time() + (self._config.request_timeout if timeout is None else timeout)
        while True:
            try:
                return await send(deadline - self._loop.time())
            except WindowFull:
                if not await self._win.room_within(max(deadline - self._loop.time(), 0.001)):
                    raise NotSent(f"p{self.partition}: no room in the window in time, last failure: {self._trouble}") from None

    def submit_nowait(self, fix: bytes, *, timeout: Optional[float] = None) -> asyncio.Future[Receipt]:
        """Sends one FIX message; the future has the outcome. WindowFull: nothing was sent.

        Orders of one turn of the event loop leave together. A future that is cancelled takes the order back if it was not
        sent, otherwise it may be applied.
        """
        future: asyncio.Future[Receipt] = self._loop.create_future()
        self.enqueue(fix, lambda r, e: resolve(future, r, e), timeout=timeout, future=future)
        return future

    def enqueue(self, fix: bytes, done: Done, *, timeout: Optional[float] = None, future: Optional[Any] = None) -> None:
        """submit_nowait with a function that gets receipt or exception, on the event loop's thread; the cheapest way."""
        if not 1 <= len(fix) <= wire.MAX_PAYLOAD and not self.closed:
            code = 10 if fix else 1
            raise Rejected(self.partition, code, limit=wire.MAX_PAYLOAD, text=f"not sent: {len(fix)} bytes, allowed: 1..65472")
        self._add(fix, done, timeout, future)

    def _add(self, payload: Any, done: Done, timeout: Optional[float], future: Optional[Any]) -> None:
        win = self._win
        if self.closed:
            raise NotSent(f"p{self.partition}: the session is closed")
        if win.next - win.head + win.held >= win.limit:
            self._connect()
            raise WindowFull(f"p{self.partition}: {win.limit} orders are unanswered, allowed: {win.limit}; wait for answers")
        now = self._loop.time()
        cell = Cell(payload, done, future, now, now + (self._config.request_timeout if timeout is None else timeout))
        alone = win.head == win.next
        if self._ticker is None:
            self._ticker = self._loop.call_later(_TICK, self._tick)
        if self._awaited.takes(cell):
            return
        seq = win.add(cell)
        if self.connection is None or self._evicting:
            self._connect()
            return
        self._encode(seq, cell)
        if alone or len(self._out) >= _FLUSH:
            self._flush()
        elif not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    async def drain(self) -> None:
        """Waits until no order is unanswered."""
        while self._win.waiting():
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        """Ends the session. Orders without an answer end as unknown, or not sent."""
        if self.closed:
            return
        self.closed = True
        for task in (self._recovery, self._suspicion.looking):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, OrderGridError):
                    await task
        self._give_up_all(Closed("the client was closed"))
        if self.connection is not None:
            self.connection.fail(Closed("the client was closed"))
        if self._ticker is not None:
            self._ticker.cancel()

    # what goes out

    def _encode(self, seq: int, cell: Cell) -> None:
        if cell.done is None or cell.future is not None and cell.future.cancelled():
            cell.done, cell.payload = None, b""  # without payload it uses the number up, and cannot be accepted
        if cell.sent:
            cell.resent = True
            self.resent += 1
        cell.sent = True
        self._frame(seq, cell.payload)

    def _put(self, cell: Cell) -> bool:
        """Sends an order under a new number, if there is a connection and room."""
        win = self._win
        if self.connection is None or self._evicting or win.next - win.head >= win.limit:
            return False
        cell.sent = cell.resent = False
        cell.submitted = self._loop.time()
        self._encode(win.add(cell), cell)
        self._flush()
        return True

    def _frame(self, seq: int, payload: Any) -> None:
        self._out += _submit(32 + len(payload), 0x20, 0, self.partition, self._opener.epoch, self._slot, self._generation, seq)
        self._out += payload

    def _flush(self) -> None:
        self._flushing = False
        if self._out and self.connection is not None:
            self.connection.write(bytes(self._out))
        self._out.clear()

    # what comes in

    def _on_frame(self, number: int, frame: bytes) -> None:
        if number == 0x21:
            self._on_ack(frame)
        elif number == REJECT.number:
            self._on_reject(frame)
        elif number in (wire.NOT_PRIMARY.number, wire.GOAWAY.number):
            error = refusal(self._address(), frame) or goaway(self._address(), frame)
            raise error
        elif number not in (wire.PONG.number, 0x06):
            raise self._violation(f"frame type 0x{number:02x} on a session, allowed: Ack, Reject, NotPrimary, Goaway")

    def _on_ack(self, frame: bytes) -> None:
        if len(frame) != 56:
            ACK.read(frame)
        client_seq, seq, epoch, slot, copies, flags, hash_, lineage = _ack(frame)
        win = self._win
        cell = win.cells.get(client_seq)
        if slot != self._slot:
            raise self._violation(f"ack is for session slot {slot}, allowed: {self._slot}")
        if cell is None or not cell.sent:
            if client_seq in win.empties:
                win.empties.discard(client_seq)  # the stored reply
                return
            raise self._violation(f"ack is for order {client_seq}, allowed: one without an answer ({win.head}..{win.next - 1})")
        if not cell.resent:  # acks come in the order of the numbers, and the log's numbers rise with them
            if client_seq != win.head and self._in_order:
                raise self._violation(f"ack is for order {client_seq}, allowed: {win.head}, the oldest without an answer")
            if seq <= self._last_seq:
                raise self._violation(f"ack of order {client_seq} has seq {seq}, allowed: more than {self._last_seq}")
        elif not seq:
            raise self._violation(f"ack of order {client_seq} has seq 0, allowed: 1 or more")
        if client_seq > self._last_ack:
            self._last_ack = client_seq
        if seq > self._last_seq:
            self._last_seq = seq
        if epoch > self._opener.epoch:
            self._opener.epoch = epoch
        self._good()
        win.settle(client_seq)
        if win.room:
            win.wake()
        self.accepted += 1
        if flags & 1:
            self.duplicates += 1
        if cell.done is not None:
            cell.done(Receipt(self.partition, seq, epoch, copies, bool(flags & 1), hash_, lineage), None)

    def _on_reject(self, frame: bytes) -> None:
        error = refusal(self._address(), frame)
        if not isinstance(error, Rejected):
            raise error or self._violation("a reject that is none")
        m, win = REJECT.read(frame), self._win
        seq, cell = m.request_id, win.cells.get(m.request_id)
        if m.for_type not in self._refused_types:
            raise self._violation(f"reject is for type 0x{m.for_type:02x}, allowed: {sorted(self._refused_types)}")
        if cell is None or not cell.sent:
            if seq in win.empties:
                win.empties.discard(seq)
                return
            raise self._violation(f"reject is for order {seq}, allowed: one without an answer ({win.head}..{win.next - 1})")
        if m.code == 12:  # SessionMoved: of an earlier copy it decides nothing
            cell.sent = cell.resent
            raise error
        if m.code in (7, 8):  # SequenceGap, Draining: this copy was not applied, and no other can be
            cell.sent = cell.resent = False
            if m.code == 7:
                self._expected = m.detail
            raise error
        if m.code == 5:
            self._on_unknown_session(seq, cell)
            return
        self._good()
        win.settle(seq)
        if m.code == 32 and cell.done is not None and self._awaited.keeps(cell, error):
            return
        self._win.wake()
        if cell.done is None:
            return
        if m.code in DECIDES or not cell.resent and m.code != 6:
            self.refused += 1
            cell.done(None, error)
        else:
            cell.done(None, self._undecided(seq, cell, error))

    def _on_unknown_session(self, seq: int, cell: Cell) -> None:
        """The grid forgot the session. An order that it saw for the first time goes out under a new number."""
        if cell.resent and cell.done is not None:
            self._give_up(seq, "the grid forgot the session")
        cell.sent = cell.resent = False
        self._evicting = True
        if not any(c.sent for c in self._win.cells.values()):
            raise Lost("the grid forgot the session: it is opened anew")

    def _good(self) -> None:
        if self.connection is not None:
            self._last_ok = self.connection.heard
        if self._trouble is not None:
            self._trouble, self._opener.back = None, Backoff()

    def _address(self) -> str:
        return self.connection.address if self.connection else ""

    def _violation(self, what: str) -> ProtocolError:
        return ProtocolError(self._address(), f"p{self.partition}: {what}")

    # time

    def _tick(self) -> None:
        """Ends orders whose time is over, and looks at a connection over which an answer is overdue."""
        self._ticker = None
        now, win = self._loop.time(), self._win
        for seq, cell in list(win.cells.items()):
            if cell.future is not None and cell.future.cancelled() and cell.done is not None:
                cell.done, cell.payload = None, b""
                win.take_back()
            elif cell.done is not None and cell.deadline <= now:
                self._give_up(seq, Unavailable(f"its time is over; last failure: {self._trouble}"))
        self.refused += self._awaited.sweep(now, f"its time is over; last failure: {self._trouble}")
        if win.cells or win.held:
            head, c = win.cells.get(win.head), self.connection
            if c is not None and head is not None:
                self._suspicion.look(c, now, max(head.submitted, self._last_ok))
            self._ticker = self._loop.call_later(_TICK, self._tick)

    def _give_up(self, seq: int, why: Any) -> None:
        """Ends waiting. The number stays in the window until the grid has answered it, without its payload."""
        cell = self._win.cells[seq]
        done, cell.done, cell.payload = cell.done, None, b""
        error = self._undecided(seq, cell, why)
        self._win.take_back()
        if done is not None:
            done(None, error)
        self._win.wake()

    def _undecided(self, seq: int, cell: Cell, why: Any) -> BaseException:
        waited = self._loop.time() - cell.submitted
        if cell.sent:
            self.unknown += 1
            return UnknownOutcome(self.partition, seq, waited, why, *self._what)
        self.not_sent += 1
        return NotSent(f"p{self.partition}: not sent after {waited * 1e3:.1f} ms ({why}); it can be submitted again")

    def _give_up_all(self, why: BaseException) -> None:
        for seq in list(self._win.cells):
            if seq in self._win.cells and self._win.cells[seq].done is not None:
                self._give_up(seq, why)
        self.refused += self._awaited.end(why)

    # connecting

    async def open(self, timeout: float) -> None:
        """Waits for the connection."""
        self._openers += 1
        self._connect()
        try:
            if self._recovery is not None:
                await within(timeout, asyncio.shield(self._recovery), f"p{self.partition}: no session in time")
        finally:
            self._openers -= 1
        if self.connection is None:
            raise self._trouble or Unavailable(f"p{self.partition}: no session")

    def _connect(self, hint: Optional[Hint] = None, failed: str = "", always: bool = True) -> None:
        if self._recovery is None and not self.closed and self.connection is None and (always or self._win.waiting()):
            self._recovery = self._loop.create_task(self._recover(hint, failed))

    def _on_lost(self, error: BaseException) -> None:
        if self.closed:
            return
        c, self.connection, self._trouble = self.connection, None, error
        self._out.clear()
        self._connect(hint_of(error), c.address if c else "", always=False)

    async def _recover(self, hint: Optional[Hint], failed: str) -> None:
        """Connects to the primary, opens the session there, and sends what is unanswered again."""
        began, first = self._loop.time(), True
        try:
            while True:
                hint = await self._opener.next_turn(hint)
                address = ""
                try:
                    address = await self._opener.primary(hint[0] if hint else "", failed, first)
                    limit = self._config.attempt_timeout(self._loop.time() - began)
                    c, m = await self._opener.open_at(address, limit)
                    if self._install(c, m):
                        return
                    hint, failed, first = None, "", False
                except OrderGridError as e:
                    self._trouble = e
                    if isinstance(e, Rejected) and e.code == 12:
                        self._opener.attempt = max(self._opener.attempt, e.detail)
                    hint, failed, first = hint_of(e), address or failed, False
                    if hint and hint[0] == address:
                        hint = None
                    if permanent(e):
                        self._give_up_all(e)
                        return
                    if not self._openers and not self._win.waiting():
                        return
        finally:
            self._recovery = None

    def _install(self, c: Connection, m: wire.SessionOpened) -> bool:
        """Makes c the connection and sends every order without an answer again, oldest first. False: once more."""
        win = self._win
        same = m.slot == self._slot and m.generation == self._generation and m.last_client_seq >= self._last_ack
        first = win.head
        if self._opened and same:  # a new primary knows what was applied, not what was refused: no gap over its window
            first = min(first, m.last_client_seq + m.window, self._expected or first)
            if win.head - first > _MAX_FILL:
                c.fail(Closed("not used"))
                self._opener.renew()
                self._opened = False
                return False
        else:
            for seq, cell in win.renumber(m.last_client_seq):
                if cell.done is not None:
                    cell.done(None, self._undecided(seq, cell, "the grid forgot the session"))
            self._last_ack, self._last_seq, first = m.last_client_seq, 0, win.head
        self._slot, self._generation, self._opener.epoch = m.slot, m.generation, m.epoch
        self._opened, self._evicting, self._expected = True, False, 0
        win.limit = min(self._config.max_in_flight, m.window, MAX_WINDOW)
        win.empties = set(range(first, win.head))
        self.connects += 1
        self.connection, self._last_ok = c, self._loop.time()
        self._out.clear()
        for seq in range(first, win.head):
            self._frame(seq, b"")
        for seq in win.numbers():
            kept = win.cells.get(seq)
            if kept is not None:
                self._encode(seq, kept)
            else:
                win.empties.add(seq)
                self._frame(seq, b"")
        c.on_lost = self._on_lost
        self._flush()
        c.handle(self._on_frame)
        if c.error is not None:
            self.connection = None
        self._win.wake()
        return self.connection is not None
