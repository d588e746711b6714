"""Reading logs: ReadLog of one replica, and Follow, the log as it grows."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple, Optional

from . import wire
from ._connection import Connection, Lost, dial, goaway, printable, refusal
from ._grid import PASSING, Backoff, Grid, within
from .errors import (
    Diverged, FrameError, InvalidArgument, LogFault, OrderGridError, ProtocolError, Rejected, Replaced, SnapshotRequired,
    permanent,
)  # fmt: skip
from .log import LogEntry, Position, read_entries

_SILENCE = 1.0
_READER = re.compile(r"[a-z0-9-]{1,32}\Z")


class LogReader:
    """The committed log of one replica, up to its committed prefix: an asynchronous iterator of LogEntry.

    Numbers are dense and each entry's prev_hash is the hash of the one before, or LogFault is raised. Rejected with code 13:
    entry from_seq is freed, `detail` is the last one that is.
    """

    def __init__(self, grid: Grid, partition: int, replica: str, from_seq: int) -> None:
        if from_seq < 1:
            raise InvalidArgument("from_seq", from_seq, "1 or more")
        self._grid, self.partition, self._replica = grid, partition, replica
        self.next_seq = from_seq
        """First entry that was not read."""
        self.address = ""
        self.epoch = self.commit_seq = self.last_seq = self.last_hash = 0
        """Where the replica's log stood at the last answer; last_seq is stored, committed or not."""
        self._hash: Optional[int] = 0 if from_seq == 1 else None

    def __aiter__(self) -> AsyncIterator[LogEntry]:
        return self._entries()

    async def _entries(self) -> AsyncIterator[LogEntry]:
        while True:
            m = await self._chunk()
            self.epoch, self.commit_seq, self.last_seq, self.last_hash = m.epoch, m.commit_seq, m.last_seq, m.last_hash
            n = 0
            for e in self._parse(m.entries):
                n += 1
                yield e
            if n == 0:
                if self.next_seq <= m.commit_seq:
                    raise self._fault(self.next_seq, f"it was not sent although the committed prefix is {m.commit_seq}")
                return

    def _parse(self, data: bytes) -> list[LogEntry]:
        out = []
        try:
            for e in read_entries(data):
                if e.seq != self.next_seq:
                    raise self._fault(self.next_seq, f"seq is {e.seq}, allowed: {self.next_seq}, numbers are dense")
                if e.seq > self.commit_seq:
                    raise self._fault(e.seq, f"it is beyond the committed prefix {self.commit_seq}")
                if self._hash is not None and e.prev_hash != self._hash:
                    raise self._fault(
                        e.seq, f"prevHash is {e.prev_hash:016x}, allowed: that of the entry before, {self._hash:016x}"
                    )
                self._hash, self.next_seq = e.hash, e.seq + 1
                out.append(e)
        except FrameError as e2:
            raise self._fault(self.next_seq, str(e2)) from None
        return out

    def _fault(self, seq: int, what: str) -> LogFault:
        return LogFault(self.partition, self.address, seq, what)

    async def _chunk(self) -> wire.LogChunk:
        def request(req_id: int) -> bytes:
            return wire.READ_LOG.write(wire.ReadLog(req_id, self.next_seq, 0), self.partition)

        def read(address: str, frame: bytes) -> wire.LogChunk:
            self.address = address
            try:
                return wire.LOG_CHUNK.read(frame)
            except FrameError as e:
                raise ProtocolError(address, str(e)) from None

        if self._replica:
            return read(self._replica, await self._grid.call(self._replica, request, self._grid.config.request_timeout))
        return await self._grid.retry(self.partition, False, request, read, None)


class Batch(NamedTuple):
    """A part of a partition's log."""

    partition: int
    from_seq: int
    """First entry that was examined: the one behind the batch before."""
    through: Position
    """The last one: where to go on."""
    commit_seq: int
    """Committed prefix of the replica that sent it."""
    address: str
    entries: list[LogEntry]
    """Those that the filter let through."""


class Follower:
    """The committed log of a partition as it grows: an asynchronous iterator of Batch, each entry once, in order, over as
    many connections and replicas as that takes. It ends with SnapshotRequired, Diverged, Replaced, Rejected or LogFault."""

    def __init__(
        self, grid: Grid, partition: int, after: Position, at_end: bool, replica: str, name: str, account: str, window: int
    ) -> None:  # fmt: skip
        if at_end and after != Position():
            raise InvalidArgument("after", after, "none with at_end")
        if len(account.encode()) > 64:
            raise InvalidArgument("account", account, "at most 64 bytes")
        if name and not _READER.match(name):
            raise InvalidArgument("name", name, "1 to 32 lowercase letters, digits and hyphens")
        if not 1 <= window < 1 << 30:
            raise InvalidArgument("window", window, "1..1073741823 bytes")
        self._grid, self.partition = grid, partition
        self.after = after
        """The last entry that was examined: what a new follower begins after."""
        self._at_end, self._replica, self._name, self._account, self._window = at_end, replica, name, account, window
        self._connection: Optional[Connection] = None
        self._queue: deque[tuple[int, bytes]] = deque()
        self._news = asyncio.Event()
        self._granted, self._taken, self._pending, self._req_id, self._epoch = window, 0, 0, 0, 0
        self._back = Backoff()

    def __aiter__(self) -> Follower:
        return self

    async def __anext__(self) -> Batch:
        """Waits for the next batch, which may be without entries."""
        while True:
            try:
                if self._connection is None:
                    await asyncio.sleep(self._back.pause(self._grid.config.retry_max))
                    await self._connect()
                batch = await self._next()
                self._back = Backoff()
                return batch
            except OrderGridError as e:
                self.close()
                final = (SnapshotRequired, Diverged, Replaced, LogFault)
                if isinstance(e, final) or permanent(e) or isinstance(e, Rejected) and e.code not in PASSING:
                    raise
                try:
                    await self._grid.refresh(self.partition)
                except OrderGridError:
                    pass  # the next attempt shows it

    def close(self) -> None:
        """Ends the stream; the next batch would come over a new one."""
        c, self._connection = self._connection, None
        if c is not None:
            c.fail(Lost("not used any more"))
        self._queue.clear()
        self._pending = 0

    async def _connect(self) -> None:
        address = self._replica or self._grid.replica(self.partition, True, self._back.attempts)
        self._epoch = self._grid.parts[self.partition].epoch
        if not address:
            raise Lost(f"p{self.partition} has no copy in sync at epoch {self._epoch}")
        self._req_id += 1
        a = self.after
        request = wire.FOLLOW.write(
            wire.Follow(
                self._req_id, 0 if self._at_end else a.seq + 1, a.hash, a.lineage, self._window,
                1 if self._account else 0, self._name, self._account,
            ), self.partition,
        )  # fmt: skip
        limit = self._grid.config.attempt_timeout(1.0)
        c = await within(limit, dial(self._grid.config, address, request), f"{address}: no connection in time")
        self._connection, self._taken, self._granted = c, 0, self._window
        c.on_lost = lambda _: self._news.set()
        c.handle(self._arrived)

    def _arrived(self, number: int, frame: bytes) -> None:
        self._pending += len(frame)
        c = self._connection
        if c is not None and self._pending > self._window + 2 * wire.MAX_FRAME:
            raise ProtocolError(c.address, f"{self._pending} bytes came without credit, allowed: {self._window} and a frame")
        self._queue.append((number, frame))
        self._news.set()

    async def _next(self) -> Batch:
        c = self._connection
        assert c is not None
        pinged = False
        while True:
            while self._queue:
                number, frame = self._queue.popleft()
                self._pending -= len(frame)
                batch = self._take(c, number, frame)
                if batch is not None:
                    return batch
                pinged = False
            if c.error is not None:
                raise c.error
            if self._taken >= self._granted // 4:
                self._taken = 0
                c.write(wire.FOLLOW_CREDIT.write(wire.FollowCredit(self._req_id, self.after.seq, self._window), self.partition))
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), max(self._grid.config.suspect_after, _SILENCE))
            except asyncio.TimeoutError:
                if pinged:
                    raise Lost(f"{c.address}: silent, another replica is followed") from None
                pinged = True
                c.write(wire.PING.write(wire.Request(self._req_id)))

    def _take(self, c: Connection, number: int, frame: bytes) -> Optional[Batch]:
        if number == wire.FOLLOW_ENTRIES.number:
            self._taken += len(frame)
            return self._batch(c, c.read(wire.FOLLOW_ENTRIES, frame))
        if number == wire.FOLLOW_END.number:
            raise self._ended(c, c.read(wire.FOLLOW_END, frame))
        if number == wire.PONG.number:
            self._still_there(c)
            return None
        error = refusal(c.address, frame)
        if error is not None:
            raise error
        if number == wire.GOAWAY.number:
            raise goaway(c.address, frame)
        raise ProtocolError(c.address, f"a frame of type 0x{number:02x} was not asked for")

    def _still_there(self, c: Connection) -> None:
        """Leaves a replica that is quiet, if the partition has moved on without it."""
        p = self._grid.parts[self.partition]
        if self._replica or p.epoch <= self._epoch:
            return
        self._epoch = p.epoch
        if not any(m.in_sync and m.address == c.address for m in p.members):
            raise Lost(f"{c.address}: no copy of p{self.partition} in sync any more at epoch {p.epoch}")

    def _batch(self, c: Connection, m: wire.FollowEntries) -> Batch:
        def fault(seq: int, what: str) -> LogFault:
            return LogFault(self.partition, c.address, seq, what)

        if self._at_end:
            self._at_end, self.after = False, Position(m.from_seq - 1)
        a, all_ = self.after, not self._account
        if m.from_seq != a.seq + 1:
            raise fault(m.from_seq, f"it begins a part of the stream, allowed: entry {a.seq + 1}")
        self._granted = m.window or self._granted
        hash_, known, seq, entries = a.hash, a.hash != 0 or a.seq == 0, a.seq, []
        try:
            for e in read_entries(m.entries):
                if e.seq <= seq or e.seq > m.through or all_ and e.seq != seq + 1:
                    raise fault(e.seq, f"it follows entry {seq} in a part that ends with {m.through}")
                if all_ and known and e.prev_hash != hash_:
                    raise fault(e.seq, f"prevHash is {e.prev_hash:016x}, allowed: that of the entry before, {hash_:016x}")
                hash_, known, seq = e.hash, True, e.seq
                entries.append(e)
        except FrameError as e2:
            raise fault(seq + 1, str(e2)) from None
        if all_ and seq != m.through:
            raise fault(seq + 1, f"it is missing in a part that ends with {m.through}")
        if known and seq == m.through and hash_ != m.through_hash and (entries or m.through == a.seq):
            raise fault(seq, f"its hash is {hash_:016x}, the replica says {m.through_hash:016x}")
        self.after = Position(m.through, m.through_hash, m.lineage)
        return Batch(self.partition, m.from_seq, self.after, m.commit_seq, c.address, entries)

    def _ended(self, c: Connection, m: wire.FollowEnd) -> OrderGridError:
        text = printable(m.text)
        if m.reason == 1:
            return SnapshotRequired(self.partition, m.seq - 1, m.hash, text)
        if m.reason == 2:
            return Diverged(self.partition, self.after.seq, m.hash, text)
        if m.reason == 5:
            return Replaced(f"follow p{self.partition}: replaced by another follower of {self._name}: {text}")
        if m.reason == 7:
            return Rejected(self.partition, 15, text=text, address=c.address)
        return Lost(f"{c.address}: the stream ended (reason {m.reason}): {text}")
