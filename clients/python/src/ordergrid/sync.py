"""The plain client: the asyncio client on a thread of its own, for callers on any thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import select
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Optional, TypeVar, Union

from ._connection import Connection
from ._grid import Partition
from ._readers import Batch
from ._region_sync import Region
from .aio import AsyncClient, ReadMode
from .errors import Closed, OrderError, WindowFull
from .log import LogEntry, Order, OrderID, Position, Receipt
from .regions import RegionInfo
from .wire import ACK

_T = TypeVar("_T")
_LOOP_EVERY = 1.0
_ACK_SIZE = 56
Outcome = Union[Receipt, OrderError]


class Client:
    """Submits to a grid and reads from it; safe for any number of threads.

    with Client(["127.0.0.1:7400"]) as client:
        receipt = client.submit(fix)
    """

    def __init__(self, endpoints: Sequence[str], **options: Any) -> None:
        """Learns the table of the whole grid from any endpoint. options are the fields of Config."""
        self._endpoints, self._options = endpoints, options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ordergrid", daemon=True)
        self._thread.start()
        self._closed = False
        try:
            self._client = self._run(AsyncClient.connect(endpoints, **options))
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        """Ends all sessions and connections. Orders without an answer end as unknown, or not sent."""
        if not self._closed:
            self._run(self._client.close())
            self._stop()

    def _stop(self) -> None:
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:  # fmt: skip
        self.close()

    def _run(self, work: Awaitable[_T]) -> _T:
        async def job() -> _T:
            return await work

        if self._closed:
            raise Closed("the client was closed")
        future = asyncio.run_coroutine_threadsafe(job(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    # orders

    def submit(self, fix: bytes, *, timeout: Optional[float] = None) -> Receipt:
        """Sends one FIX message (35=D, F or G) and waits until every copy in sync holds it, once.

        Raises an OrderError, whose fate says what is known of the order.
        """
        return self._run(self._client.submit(fix, timeout=timeout))

    def submit_async(self, fix: bytes, *, timeout: Optional[float] = None) -> concurrent.futures.Future[Receipt]:
        """submit without waiting; the future has the outcome. With the window full the order waits for room."""
        if self._closed:
            raise Closed("the client was closed")
        return asyncio.run_coroutine_threadsafe(self._client.submit(fix, timeout=timeout), self._loop)

    def submit_many(self, orders: Iterable[bytes], *, timeout: Optional[float] = None) -> list[Outcome]:
        """Sends many orders, as many under way at a time as the windows hold. The outcomes, a receipt or an OrderError
        each, in the order of the orders; orders of one partition are sequenced in their order."""
        return self._run(self._submit_many(orders, timeout))

    async def _submit_many(self, orders: Iterable[bytes], timeout: Optional[float]) -> list[Outcome]:
        out: list[Optional[Outcome]] = []
        under_way = 0
        news = asyncio.Event()

        def taken(i: int) -> Callable[[Optional[Receipt], Optional[BaseException]], None]:
            def done(receipt: Optional[Receipt], error: Optional[BaseException]) -> None:
                nonlocal under_way
                under_way -= 1
                out[i] = receipt if receipt is not None else error  # type: ignore[assignment]
                news.set()

            return done

        for i, fix in enumerate(orders):
            out.append(None)
            under_way += 1
            while True:
                try:
                    self._client._shared(self._client.route(fix)).enqueue(fix, taken(i), timeout=timeout)
                    break
                except WindowFull:
                    news.clear()
                    await news.wait()
                except OrderError as e:
                    out[i], under_way = e, under_way - 1
                    break
        while under_way:
            news.clear()
            await news.wait()
        return [x for x in out if x is not None]

    def session(self, partition: int) -> PlainSession:
        """A session of one's own, for a thread that cares about latency: it writes and reads the socket itself."""
        return PlainSession(self._endpoints, self._options, partition)

    # reads

    def get(
        self, order: Union[str, OrderID, Receipt], *, mode: ReadMode = ReadMode.CONFIRMED, timeout: Optional[float] = None
    ) -> Order:  # fmt: skip
        """The order with this id: p1/17, p1/17@3-1c9f0e2a77b3d401, or a receipt. With epoch or hash no other one is returned."""
        return self._run(self._client.get(order, mode=mode, timeout=timeout))

    def get_by_cl_ord_id(
        self, cl_ord_id: str, *, mode: ReadMode = ReadMode.CONFIRMED, timeout: Optional[float] = None
    ) -> Order:  # fmt: skip
        """The order with this ClOrdID."""
        return self._run(self._client.get_by_cl_ord_id(cl_ord_id, mode=mode, timeout=timeout))

    def read_log(self, partition: int, *, replica: str = "", from_seq: int = 1) -> Iterator[LogEntry]:
        """The committed log of a replica, by its address; empty: the primary."""
        entries = self._run(_call(lambda: self._client.read_log(partition, replica=replica, from_seq=from_seq).__aiter__()))
        while True:
            chunk = self._run(_some(entries, 1024))
            yield from chunk
            if len(chunk) < 1024:
                return

    def follow(
        self, partition: int, *, after: Position = Position(), at_end: bool = False, replica: str = "", name: str = "",
        account: str = "", window: int = 1 << 20,
    ) -> Generator[Batch, None, None]:  # fmt: skip
        """The committed log of a partition as it grows, behind `after`, without end; see AsyncClient.follow."""
        follower = self._run(
            _call(
                lambda: self._client.follow(
                    partition, after=after, at_end=at_end, replica=replica, name=name, account=account, window=window
                )
            )
        )
        try:
            while True:
                yield self._run(follower.__anext__())
        finally:
            if not self._closed:
                self._loop.call_soon_threadsafe(follower.close)

    def advance(self, partition: int, name: str, held: Position, *, timeout: Optional[float] = None) -> int:
        """Says that a sink of type External durably holds everything up to a position."""
        return self._run(self._client.advance(partition, name, held, timeout=timeout))

    # regions

    def region(self, name: str) -> Region:
        """A region: a named map of keys to values."""
        return Region(self._client.region(name), self._run)

    def regions(self, *, timeout: Optional[float] = None) -> list[RegionInfo]:
        """The regions of the grid with their entries and bytes, as the primaries have them now."""
        return self._run(self._client.regions(timeout=timeout))

    # the table

    def partitions(self) -> list[Partition]:
        """What is known of each partition, by number."""
        return self._run(_call(self._client.partitions))

    def refresh(self) -> None:
        """Asks the grid where its partitions are now."""
        self._run(self._client.refresh())

    def route(self, fix: bytes) -> int:
        """The partition that a FIX message belongs to, by its ClOrdID."""
        return self._client.route(fix)


class PlainSession:
    """Synchronous orders of one partition, in order, over a connection of its own. Client.session makes it.

    The calling thread runs the event loop while it waits, so no other thread is woken for an order; threads take turns.
    Nothing happens between calls: a primary that is lost meanwhile is noticed by the next order.
    """

    def __init__(self, endpoints: Sequence[str], options: dict[str, Any], partition: int) -> None:
        self._lock = threading.Lock()
        self._loop_due = 0.0
        self._polled: Optional[Connection] = None
        self._loop = asyncio.new_event_loop()
        try:
            self._client = self._loop.run_until_complete(AsyncClient.connect(endpoints, **options))
            try:
                self._session = self._loop.run_until_complete(self._client.session(partition))
            except BaseException:
                self._loop.run_until_complete(self._client.close())
                raise
        except BaseException:
            self._loop.close()
            raise

    def submit(self, fix: bytes, *, timeout: Optional[float] = None) -> Receipt:
        """Client.submit."""
        with self._lock:
            if self._loop.is_closed():
                raise Closed("the session was closed")
            outcome: list[Union[Receipt, BaseException, None]] = []

            def done(receipt: Optional[Receipt], error: Optional[BaseException]) -> None:
                outcome.append(receipt or error)
                if self._loop.is_running():
                    self._loop.stop()

            try:
                self._session.enqueue(fix, done, timeout=timeout)
            except WindowFull:  # of orders that were given up before
                return self._loop.run_until_complete(self._session.submit(fix, timeout=timeout))
            self._read(outcome)
            while not outcome:
                self._loop.run_forever()
            if isinstance(outcome[0], Receipt):
                return outcome[0]
            assert outcome[0] is not None
            raise outcome[0]

    def _read(self, outcome: list[Any]) -> None:
        """Waits for the answer at the socket, which spares the event loop's part of the time. What takes longer, or is a
        lost connection, is left to the event loop; so are its timers, now and then."""
        c, now = self._session.connection, time.monotonic()
        file = c.plain_file() if c is not None and hasattr(select, "poll") else -1
        if c is None or file < 0 or now >= self._loop_due:
            self._loop_due = now + _LOOP_EVERY
            return
        if c is not self._polled:
            self._polled, self._poll = c, select.poll()
            self._poll.register(file, select.POLLIN)
        while not outcome and c.error is None and self._poll.poll(20):
            try:
                data = os.read(file, 1 << 16)
            except OSError:
                return
            if len(data) != _ACK_SIZE or data[4] != ACK.number:
                self._loop.call_soon(c.data_received, data)  # what it leads to takes the event loop
                return
            c.data_received(data)

    def close(self) -> None:
        """Ends the session and its connection."""
        with self._lock:
            if not self._loop.is_closed():
                self._loop.run_until_complete(self._client.close())
                self._loop.close()

    def __enter__(self) -> PlainSession:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:  # fmt: skip
        self.close()


async def _call(f: Callable[[], _T]) -> _T:
    """f on the event loop's thread."""
    return f()


async def _some(entries: AsyncIterator[LogEntry], n: int) -> list[LogEntry]:
    out: list[LogEntry] = []
    async for e in entries:
        out.append(e)
        if len(out) == n:
            break
    return out
