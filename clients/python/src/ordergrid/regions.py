"""Regions: named maps of keys to values in the partitions of a grid."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, Optional, TypeVar

from . import _region_frames as frames
from ._grid import Backoff, Grid
from ._region_session import RegionSession
from .errors import ConditionFailed, FrameError, InvalidArgument, NotFound, ProtocolError, Rejected
from .log import Receipt, partition_of
from .wire import Request

_T = TypeVar("_T")
_CONDITION_FAILED, _OVERLOADED = 27, 4
_LONGEST = 9_000_000_000.0


class Entry(NamedTuple):
    """A value of a region."""

    key: bytes
    value: bytes
    version: int
    """The log entry that wrote it; rises with every change of the key, never 0."""
    expires: Optional[datetime.datetime]
    """None: never."""
    partition: int
    commit_seq: int
    """Committed prefix of the replica that answered."""


class Taken(NamedTuple):
    """What a take removed."""

    value: bytes
    receipt: Receipt


class RegionInfo(NamedTuple):
    """A region of the grid: the sum of its partitions."""

    name: str
    entries: int
    bytes: int
    """That they take, in blocks."""
    max_bytes: int
    """That they may take, 0: what all regions together may."""
    life: Optional[float]
    """Seconds that a value lives whose put says nothing else; None: for ever."""


class AsyncRegion:
    """A region, by its name. Client.region makes it; whether the grid has it is known when it is used.

    A key is in the partition of its hash, as a ClOrdID is. Changes of one partition share a session: each is applied once,
    whatever fails in between. Key and value have at most 65,440 bytes together, a key 1 or more.
    """

    def __init__(self, grid: Grid, session: Callable[[int], RegionSession], name: str) -> None:
        if not 1 <= len(name.encode()) <= frames.MAX_NAME:
            raise InvalidArgument("region", name, f"a name of 1..{frames.MAX_NAME} bytes")
        self.name = name
        self._grid, self._session = grid, session

    @property
    def partitions(self) -> int:
        """How many partitions the grid has."""
        return len(self._grid.parts)

    # changes

    async def put(
        self, key: bytes, value: bytes, *, expires: Optional[float] = None, forever: bool = False, timeout: Optional[float] = None
    ) -> Receipt:  # fmt: skip
        """Sets a value; seq of the receipt is its version. expires: seconds that it lives; forever: whatever the region's
        default is. Raises Rejected (Capacity, RegionUnknown, …) or another OrderError, whose fate says what is known."""
        return (await self._keyed(self._put(key, value, expires, forever), timeout)).receipt

    async def put_if(
        self, key: bytes, value: bytes, version: int, *, expires: Optional[float] = None, forever: bool = False,
        timeout: Optional[float] = None,
    ) -> Receipt:  # fmt: skip
        """Sets a value if the present one has this version, 0: if there is none. ConditionFailed has the one it has."""
        condition = frames.IF_VERSION if version else frames.IF_ABSENT
        m = self._put(key, value, expires, forever)._replace(condition=condition, version=version)
        return (await self._keyed(m, timeout)).receipt

    async def patch(self, key: bytes, offset: int, data: bytes, *, timeout: Optional[float] = None) -> Receipt:
        """Writes data over the value's bytes from offset on, which may be its end; the expiry stays. ConditionFailed: there
        is no value."""
        if not 0 <= offset <= frames.MAX_PAIR:
            raise InvalidArgument("offset", offset, f"0..{frames.MAX_PAIR}")
        return (await self._keyed(self._message(frames.PATCH, key, data)._replace(offset=offset), timeout)).receipt

    async def remove(self, key: bytes, *, timeout: Optional[float] = None) -> bool:
        """Removes a key. Returns whether it had a value."""
        try:
            await self._keyed(self._message(frames.REMOVE, key), timeout)
        except ConditionFailed:
            return False
        return True

    async def take(self, key: bytes, *, timeout: Optional[float] = None) -> Taken:
        """Removes a key and returns its value, once: no other taker gets it, and a retry after a failover gets the same.

        Raises NotFound when there is none.
        """
        try:
            return await self._keyed(self._message(frames.TAKE, key), timeout)
        except ConditionFailed:
            raise NotFound(f"region {self.name}: key {key!r:.90} has no value") from None

    async def clear(self, *, timeout: Optional[float] = None) -> None:
        """Removes all keys: at once in each partition, in one after the other. timeout is that of each."""
        for partition in range(self.partitions):
            await self.clear_partition(partition, timeout=timeout)

    async def clear_partition(self, partition: int, *, timeout: Optional[float] = None) -> None:
        """Removes the keys that are in a partition, at once."""
        if not 0 <= partition < self.partitions:
            raise InvalidArgument("partition", partition, f"0..{self.partitions - 1}")
        await self._apply(partition, self._message(frames.CLEAR), timeout)

    def _message(self, op: int, key: bytes = b"", value: bytes = b"") -> frames.RegionApply:
        if op != frames.CLEAR:
            self._check(key, value)
        return frames.RegionApply(0, 0, 0, 1, 0, op, frames.IF_ANY, 0, 0, 0, self.name, bytes(key), bytes(value))

    def _put(self, key: bytes, value: bytes, expires: Optional[float], forever: bool) -> frames.RegionApply:
        m = self._message(frames.PUT, key, value)
        if forever and expires is not None:
            raise InvalidArgument("expires", expires, "None with forever")
        if expires is None:
            return m._replace(life_ns=-1 if forever else 0)
        if not 0 < expires <= _LONGEST:
            raise InvalidArgument("expires", expires, f"more than 0 seconds, at most {_LONGEST:.0f}")
        return m._replace(life_ns=max(int(expires * 1e9), 1))

    def _check(self, key: bytes, value: bytes = b"") -> None:
        for field, b in (("key", key), ("value", value)):
            if not isinstance(b, (bytes, bytearray, memoryview)):
                raise InvalidArgument(field, b, "bytes")
        if not key or len(key) + len(value) > frames.MAX_PAIR:
            raise InvalidArgument(
                "key and value", (len(key), len(value)), f"a key of 1 byte or more, together at most {frames.MAX_PAIR} bytes"
            )

    async def _keyed(self, m: frames.RegionApply, timeout: Optional[float]) -> Taken:
        return await self._apply(partition_of(m.key, self.partitions), m, timeout)

    async def _apply(self, partition: int, m: frames.RegionApply, timeout: Optional[float]) -> Taken:
        """Sends a change until it is applied or refused. After a refusal for load it is sent again: nothing was applied."""
        session, loop, back = self._session(partition), asyncio.get_running_loop(), Backoff()
        deadline = loop.time() + (self._grid.config.request_timeout if timeout is None else timeout)
        while True:
            await asyncio.sleep(back.pause(self._grid.config.retry_max))
            try:
                receipt, value = await session.apply(m, deadline - loop.time())
                return Taken(value, receipt)
            except Rejected as e:
                if e.code == _CONDITION_FAILED:
                    raise ConditionFailed(e) from None
                if e.code != _OVERLOADED or loop.time() >= deadline:
                    raise

    # reads

    async def get(self, key: bytes, *, mode: int = 1, timeout: Optional[float] = None) -> Entry:
        """Reads the value of a key; mode is a ReadMode. Raises NotFound when there is none."""
        self._check(key)
        m = frames.RegionGet(0, _mode(mode), self.name, bytes(key))
        partition = partition_of(m.key, self.partitions)

        def read(address: str, frame: bytes) -> frames.RegionGot:
            return _read(frames.REGION_GOT.read, address, frame)

        got = await self._grid.retry(
            partition, mode == 3, lambda r: frames.REGION_GET.write(m._replace(req_id=r), partition), read, timeout
        )
        if not got.version:
            raise NotFound(f"region {self.name}: key {key!r:.90} has no value")
        return Entry(m.key, got.value, got.version, _time(got.expire_ns), partition, got.commit_seq)

    async def scan(self, prefix: bytes = b"", *, mode: int = 1, timeout: Optional[float] = None) -> AsyncIterator[Entry]:
        """The entries whose keys begin with prefix, partition by partition, in each in the order of their keys' bytes.

        Pages are read one after the other and go on behind the last key, at any node: a key that is there all the time is
        seen once, one that changes meanwhile as before or as after. timeout is that of a page.
        """
        for partition in range(self.partitions):
            behind: Optional[bytes] = None
            while behind != b"":
                entries, behind = await self.page(partition, prefix, behind, mode=mode, timeout=timeout)
                for e in entries:
                    yield e

    async def page(
        self, partition: int, prefix: bytes = b"", behind: Optional[bytes] = None, *, mode: int = 1,
        timeout: Optional[float] = None,
    ) -> tuple[list[Entry], bytes]:  # fmt: skip
        """A page of a partition, from its first key or from behind a key on, and the key that the next page is behind; empty:
        there is none. A page may have no entry and still be followed by one that has."""
        self._check(b"\0", prefix)
        start = bytes(behind or b"")
        ask = frames.RegionScan(0, _mode(mode), int(behind is not None), 0, self.name, start, bytes(prefix))

        def read(address: str, frame: bytes) -> tuple[list[Entry], bytes]:
            m = _read(frames.REGION_PAGE.read, address, frame)
            entries, last, strictly = [], start, behind is not None
            for row in frames.rows(m.rows):
                if row.key < last or strictly and row.key == last or not row.key.startswith(ask.prefix):
                    raise ProtocolError(address, f"key {row.key!r:.90} in a page behind {last!r:.90} with prefix {prefix!r:.90}")
                last, strictly = row.key, True
                entries.append(Entry(row.key, row.value, row.version, _time(row.expire_ns), partition, m.commit_seq))
            if m.next and m.next <= start:
                raise ProtocolError(address, f"the page goes on behind {m.next!r:.90}, allowed: behind {start!r:.90}")
            return entries, m.next

        return await self._grid.retry(
            partition, mode == 3, lambda r: frames.REGION_SCAN.write(ask._replace(req_id=r), partition), read, timeout
        )


async def list_regions(grid: Grid, timeout: Optional[float]) -> list[RegionInfo]:
    """The regions of the grid, as the primaries have them now."""
    found: dict[str, RegionInfo] = {}
    for partition in range(len(grid.parts)):

        def read(address: str, frame: bytes) -> frames.RegionListed:
            return _read(frames.REGION_LISTED.read, address, frame)

        def request(req_id: int, partition: int = partition) -> bytes:
            return frames.REGION_LIST.write(Request(req_id), partition)

        listed = await grid.retry(partition, False, request, read, timeout)
        for row in frames.infos(listed.rows):
            was = found.get(row.name) or RegionInfo(row.name, 0, 0, 0, row.life_ns / 1e9 if row.life_ns > 0 else None)
            found[row.name] = was._replace(
                entries=was.entries + row.entries, bytes=was.bytes + row.bytes, max_bytes=was.max_bytes + row.max_bytes
            )
    return list(found.values())


def _read(read: Callable[[bytes], _T], address: str, frame: bytes) -> _T:
    try:
        return read(frame)
    except FrameError as e:
        raise ProtocolError(address, str(e)) from None


def _mode(mode: int) -> int:
    if not 1 <= mode <= 3:
        raise InvalidArgument("mode", mode, "1 confirmed, 2 leased, 3 backup")
    return mode


def _time(ns: int) -> Optional[datetime.datetime]:
    return datetime.datetime.fromtimestamp(ns / 1e9, datetime.timezone.utc) if ns else None
