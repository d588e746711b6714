"""The client for asyncio."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Optional, Union

from . import wire
from ._frames import GET_REPLY
from ._grid import Grid, Partition
from ._readers import Batch, Follower, LogReader
from ._region_session import RegionSession
from ._session import Session
from .config import Config
from .errors import Freed, FrameError, InvalidArgument, NotFound, OtherOrder, ProtocolError, Rejected
from .log import EXECUTE, ORDER, LogEntry, Order, OrderID, Position, Receipt, find_cl_ord_id, find_value, parse_order_id, partition_of, read_entry
from .regions import AsyncRegion, RegionInfo, list_regions

__all__ = ["AsyncClient", "Batch", "Follower", "LogReader", "ReadMode", "Session"]


class ReadMode(enum.IntEnum):
    """How fresh a read has to be."""

    CONFIRMED = 1
    """Linearizable without relying on clocks: the primary answers after its copies confirmed that it still is."""
    LEASED = 2
    """Answered at once while the primary's lease is alive."""
    BACKUP = 3
    """Answered by a backup, and may be stale; Order.commit_seq says how far that backup was."""


class AsyncClient:
    """Submits to a grid and reads from it. For one event loop; ordergrid.Client is for threads.

    async with await AsyncClient.connect(["127.0.0.1:7400"]) as client:
        receipt = await client.submit(fix)
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._sessions: dict[int, Session] = {}
        self._regions: dict[int, RegionSession] = {}
        self._own: set[Session] = set()

    @classmethod
    async def connect(cls, endpoints: Sequence[str], **options: Any) -> AsyncClient:
        """Learns the table of the whole grid from any endpoint. options are the fields of Config."""
        grid = Grid(Config(endpoints, **options))
        try:
            await grid.start()
        except BaseException:
            await grid.close()
            raise
        return cls(grid)

    async def close(self) -> None:
        """Ends all sessions and connections. Orders without an answer end as unknown, or not sent."""
        for s in self.sessions():
            await s.close()
        await self._grid.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:  # fmt: skip
        await self.close()

    # the table

    def partitions(self) -> list[Partition]:
        """What is known of each partition, by number."""
        return list(self._grid.parts)

    async def refresh(self) -> None:
        """Asks the grid where its partitions are now."""
        await self._grid.refresh_all()

    def route(self, fix: bytes) -> int:
        """The partition that a FIX message belongs to, by its ClOrdID; by its Symbol where the grid matches."""
        if self._grid.by_symbol:
            symbol = find_value(fix, b"\x0155=")
            if symbol is None:
                raise Rejected(
                    0, 1, tag=55, text="not sent: the message has no Symbol, allowed: one, which the partition follows from"
                )
            return partition_of(symbol, len(self._grid.parts))
        key = find_cl_ord_id(fix)
        if key is None:
            raise Rejected(
                0, 1, tag=11, text="not sent: the message has no ClOrdID, allowed: one, which the partition follows from"
            )
        return partition_of(key, len(self._grid.parts))

    def _check(self, partition: int) -> int:
        if not 0 <= partition < len(self._grid.parts):
            raise InvalidArgument("partition", partition, f"0..{len(self._grid.parts) - 1}")
        return partition

    # orders

    async def submit(self, fix: bytes, *, timeout: Optional[float] = None) -> Receipt:
        """Sends one FIX message (35=D, F or G) and waits until every copy in sync holds it, once.

        Raises an OrderError, whose fate says what is known of the order.
        """
        return await self._shared(self.route(fix)).submit(fix, timeout=timeout)

    def submit_nowait(self, fix: bytes, *, timeout: Optional[float] = None) -> asyncio.Future[Receipt]:
        """submit without waiting: many orders are under way at a time. WindowFull: wait for answers first."""
        return self._shared(self.route(fix)).submit_nowait(fix, timeout=timeout)

    async def session(self, partition: int) -> Session:
        """A session of one's own: orders of one partition, in order, over a connection that no other caller uses."""
        s = Session(self._grid, self._check(partition))
        try:
            await s.open(self._grid.config.dial_timeout)
        except BaseException:
            await s.close()
            raise
        self._own = {x for x in self._own if not x.closed} | {s}
        return s

    def _shared(self, partition: int) -> Session:
        s = self._sessions.get(partition)
        if s is None:
            s = self._sessions[partition] = Session(self._grid, partition)
        return s

    def sessions(self) -> list[Session]:
        """All sessions, for their counters."""
        return [*self._sessions.values(), *self._regions.values(), *self._own]

    # regions

    def region(self, name: str) -> AsyncRegion:
        """A region: a named map of keys to values."""
        return AsyncRegion(self._grid, self._region_session, name)

    async def regions(self, *, timeout: Optional[float] = None) -> list[RegionInfo]:
        """The regions of the grid with their entries and bytes, as the primaries have them now."""
        return await list_regions(self._grid, timeout)

    def _region_session(self, partition: int) -> RegionSession:
        s = self._regions.get(partition)
        if s is None:
            s = self._regions[partition] = RegionSession(self._grid, partition)
        return s

    # reads

    async def get(
        self, order: Union[str, OrderID, Receipt], *, mode: ReadMode = ReadMode.CONFIRMED, timeout: Optional[float] = None
    ) -> Order:  # fmt: skip
        """The order with this id: p1/17, p1/17@3-1c9f0e2a77b3d401, or a receipt. With epoch or hash no other one is returned.

        Raises NotFound, Freed, OtherOrder, Unavailable.
        """
        want = parse_order_id(order) if isinstance(order, str) else order.id if isinstance(order, Receipt) else order
        message = wire.Get(0, want.seq, 1, ReadMode(mode), b"")
        got = await self._get(self._check(want.partition), message, f"order {want.seq}", timeout)
        if got is None:
            raise NotFound(f"order {want}: no order is committed there")
        same = got.id.hash == want.hash if want.hash else want.epoch in (0, got.entry.epoch)
        if not same:
            raise OtherOrder(str(want), str(got.id))
        return got

    async def get_by_cl_ord_id(
        self, cl_ord_id: str, *, mode: ReadMode = ReadMode.CONFIRMED, timeout: Optional[float] = None
    ) -> Order:  # fmt: skip
        """The order with this ClOrdID: of the partition it belongs to, and if that has none, of all others."""
        key = cl_ord_id.encode("utf-8", "surrogateescape")
        if not 1 <= len(key) <= 255:
            raise InvalidArgument("cl_ord_id", cl_ord_id, "1..255 bytes")
        n = len(self._grid.parts)
        first, freed = partition_of(key, n), None
        message = wire.Get(0, 0, 2, ReadMode(mode), key)
        for i in range(n):
            try:
                order = await self._get((first + i) % n, message, f"ClOrdID {cl_ord_id}", timeout)
            except Freed as e:
                freed = freed or e
                continue
            if order is not None:
                return order
        raise freed or NotFound(f"ClOrdID {cl_ord_id!r:.90}: not committed in any of {n} partitions")

    async def _get(self, p: int, message: wire.Get, what: str, timeout: Optional[float]) -> Optional[Order]:
        def request(req_id: int) -> bytes:
            return wire.GET.write(message._replace(req_id=req_id), p)

        def read(address: str, frame: bytes) -> Optional[Order]:
            try:
                m = GET_REPLY.read(frame)
                if m.status == 2:
                    raise Freed(p, what, m.freed)
                if m.status == 1:
                    return None
                return Order(p, _asked(message, read_entry(m.entry), m), m.commit_seq, address)
            except FrameError as e:
                raise ProtocolError(address, str(e)) from None

        return await self._grid.retry(p, message.mode == ReadMode.BACKUP, request, read, timeout)

    def read_log(self, partition: int, *, replica: str = "", from_seq: int = 1) -> LogReader:
        """The committed log of a replica, by its address; empty: the primary. An asynchronous iterator of LogEntry."""
        return LogReader(self._grid, self._check(partition), replica, from_seq)

    def follow(
        self, partition: int, *, after: Position = Position(), at_end: bool = False, replica: str = "", name: str = "",
        account: str = "", window: int = 1 << 20,
    ) -> Follower:  # fmt: skip
        """The committed log of a partition as it grows, behind `after`. An asynchronous iterator of Batch.

        at_end: behind what is committed now. replica: the one address to follow; empty: any in sync, backups first. name: of
        a sink of type External, for advance. account: orders of this account only. window: bytes that may come ahead.
        """
        return Follower(self._grid, self._check(partition), after, at_end, replica, name, account, window)

    async def advance(self, partition: int, name: str, held: Position, *, timeout: Optional[float] = None) -> int:
        """Says that a sink of type External durably holds everything up to a position. Returns what the log says then."""

        def request(req_id: int) -> bytes:
            return wire.ADVANCE.write(wire.Advance(req_id, held.seq, held.hash, name), partition)

        def read(address: str, frame: bytes) -> int:
            try:
                return wire.ADVANCED.read(frame).seq
            except FrameError as e:
                raise ProtocolError(address, str(e)) from None

        if not held.seq:
            raise InvalidArgument("held.seq", 0, "1 or more")
        return await self._grid.retry(self._check(partition), False, request, read, timeout)


def _asked(message: wire.Get, e: LogEntry, m: wire.GetReply) -> LogEntry:
    """The entry, if it is an order, the one that was asked for, and committed."""
    if e.kind not in (ORDER, EXECUTE):
        raise FrameError("GetReply", "entry.kind", e.kind, "2, an order")
    if message.by == 1 and e.seq != message.seq:
        raise FrameError("GetReply", "entry.seq", e.seq, str(message.seq))
    if message.by == 2 and e.cl_ord_id.encode("latin-1") != message.key:
        raise FrameError("GetReply", "entry.clOrdID", len(e.cl_ord_id), "the ClOrdID that was asked for")
    if e.seq > m.commit_seq:
        raise FrameError("GetReply", "entry.seq", e.seq, f"at most commitSeq {m.commit_seq}")
    return e
