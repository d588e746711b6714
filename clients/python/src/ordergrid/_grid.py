"""What a client knows of the grid, the connections its requests share, and how it finds out more."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Optional, TypeVar

from . import wire
from ._connection import Caller, Lost, dial
from ._frames import TABLE
from .config import Config
from .errors import Closed, FrameError, NotPrimary, OrderGridError, ProtocolError, Rejected, TLSFailure, Unavailable, permanent

_T = TypeVar("_T")
_MAX_TARGETS = 16
_HEDGE = 0.05
PASSING = {4, 8, 9, 19}
"""Codes with which a read is refused that can succeed later."""


@dataclass(frozen=True)
class Member:
    """A replica of a partition."""

    id: str
    address: str
    in_sync: bool


@dataclass
class Partition:
    """What the client knows of a partition; epoch 0: nothing yet."""

    number: int
    epoch: int = 0
    lineage: int = 0
    primary: Optional[Member] = None
    members: list[Member] = field(default_factory=list)


class Backoff:
    """Spaces attempts that fail: the first at once, then a random part of a time that grows by half."""

    def __init__(self) -> None:
        self.attempts, self._longest = 0, 0.0

    def pause(self, limit: float) -> float:
        self.attempts += 1
        if self.attempts == 1:
            return 0.0
        self._longest = min(max(self._longest * 1.5, 0.002), limit)
        return random.uniform(0, self._longest)


class Grid:
    """The table of partitions, and a connection for requests to each node."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.parts: list[Partition] = []
        self.changed = asyncio.Event()
        """Set, and replaced, when a partition has another epoch."""
        self.closed = False
        self._callers: dict[str, asyncio.Task[Caller]] = {}
        self.by_symbol = False  # orders belong to the partition of their symbol: a node has said so
        self._questions: dict[str, asyncio.Task[wire.Table]] = {}
        self._flights: dict[int, asyncio.Task[None]] = {}
        self._keeper: Optional[asyncio.Task[None]] = None

    async def start(self) -> None:
        """Learns the table from any endpoint."""
        loop = asyncio.get_running_loop()
        deadline, back = loop.time() + self.config.dial_timeout, Backoff()
        while not self.parts:
            await asyncio.sleep(back.pause(self.config.retry_max))
            left = max(deadline - loop.time(), 0.01)
            try:
                await within(
                    left, self._ask("the grid's partitions", list(self.config.endpoints), lambda _: 2), "no endpoint answered"
                )
            except OrderGridError as e:
                cause = e.__cause__ if isinstance(e, Unavailable) else e
                if isinstance(cause, (TLSFailure, ProtocolError)) or isinstance(cause, OrderGridError) and permanent(cause):
                    raise cause from None
                if loop.time() >= deadline:
                    raise
        self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        self.closed = True
        tasks: list[asyncio.Task[object]] = [*self._flights.values(), *self._questions.values()]
        if self._keeper is not None:
            tasks.append(self._keeper)
        for t in tasks:
            t.cancel()
        for c in list(self._callers.values()):
            if not c.done():
                c.cancel()
            elif not c.cancelled() and c.exception() is None:
                c.result().connection.fail(Closed("the client was closed"))
        await asyncio.gather(*tasks, *self._callers.values(), return_exceptions=True)

    # connections

    async def caller(self, address: str) -> Caller:
        """The connection for requests to a node."""
        if self.closed:
            raise Closed("the client was closed")
        task = self._callers.get(address)
        if task is not None and task.done() and (task.cancelled() or task.exception() or task.result().connection.error):
            task = None
        if task is None:
            task = _quiet(asyncio.create_task(self._connect(address)))
            self._callers[address] = task
        return await asyncio.shield(task)

    async def _connect(self, address: str) -> Caller:
        limit = self.config.attempt_timeout(1.0)
        return Caller(await within(limit, dial(self.config, address), f"{address}: no connection in time"))

    async def call(self, address: str, request: Callable[[int], bytes], timeout: float) -> bytes:
        """One request to one node. A connection that was lost since it was used last is made anew."""
        caller = await self.caller(address)
        try:
            return await caller.call(request, timeout)
        except Lost:
            return await (await self.caller(address)).call(request, timeout)

    async def retry(
        self, partition: int, backup: bool, request: Callable[[int], bytes], read: Callable[[str, bytes], _T], timeout: Optional[float]
    ) -> _T:  # fmt: skip
        """Asks the right replica until it answers, refuses for good, or time is over."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        deadline = began + (self.config.request_timeout if timeout is None else timeout)
        back, hint, known = Backoff(), "", self.parts[partition].epoch
        last: Optional[BaseException] = None
        while True:
            pause = back.pause(self.config.retry_max)
            if loop.time() + pause >= deadline:
                raise Unavailable(f"p{partition}: no answer in time: {last}") from last
            await asyncio.sleep(pause)
            address, hint = hint or self.replica(partition, backup, back.attempts), ""
            try:
                if not address:
                    raise Lost(f"p{partition} has no primary at epoch {self.parts[partition].epoch}")
                now = loop.time()
                limit = min(deadline - now, self.config.attempt_timeout(2 * (now - began)))
                return read(address, await self.call(address, request, max(limit, 0.001)))
            except NotPrimary as e:
                last = e
                if e.hint and e.hint != address:
                    hint = e.hint
                    if e.epoch > known:
                        known, back = e.epoch, Backoff()
                    continue
            except OrderGridError as e:
                last = e
                if permanent(e) or isinstance(e, Rejected) and e.code not in PASSING:
                    raise
            with contextlib.suppress(OrderGridError):
                await self.refresh(partition, address)

    def replica(self, partition: int, backup: bool, attempt: int) -> str:
        """The primary, or for backup reads the copies in sync in turn, the primary last. Empty: none is known."""
        p = self.parts[partition]
        if not backup:
            return p.primary.address if p.primary else ""
        copies = [m.address for m in p.members if m.in_sync and m != p.primary]
        if p.primary:
            copies.append(p.primary.address)
        return copies[(attempt - 1) % len(copies)] if copies else ""

    # the table

    async def refresh(self, partition: int, avoid: str = "") -> None:
        """Asks where a partition is; avoid is an address that is most likely not the primary any more."""
        task = self._flights.get(partition)
        if task is None:
            task = _quiet(asyncio.create_task(self._fly(partition, avoid)))
            self._flights[partition] = task
            task.add_done_callback(lambda _: self._flights.pop(partition, None))
        await asyncio.shield(task)

    async def _fly(self, partition: int, avoid: str) -> None:
        def judge(m: wire.Table) -> int:
            for p in m.parts:
                if p.partition == partition:
                    stale = p.primary >= len(p.members) or p.members[p.primary].address == avoid
                    return 1 if stale else 2
            return 0

        own = [m.address for m in self.parts[partition].members]
        rest = [*self.config.endpoints, *(m.address for p in self.parts for m in p.members)]
        targets = [a for a in dict.fromkeys(own + rest) if a and a != avoid][:_MAX_TARGETS]
        if avoid:
            targets.append(avoid)
        try:
            own_targets = len([a for a in own if a and a != avoid])
            work = self._ask(f"p{partition}", targets, judge, own_targets)
            await within(self.config.attempt_timeout(1.0), work, "no node answered in time")
        finally:
            await asyncio.sleep(0.002)  # callers that come meanwhile share the answer

    async def refresh_all(self) -> None:
        """Asks one node for the table, and others only where that one does not know all of it."""
        targets = list(
            dict.fromkeys([m.address for p in self.parts for m in p.members if m.address] + list(self.config.endpoints))
        )
        random.shuffle(targets)
        work = self._ask("the grid's partitions", targets[:_MAX_TARGETS], lambda _: 2 if all(p.epoch for p in self.parts) else 1)
        await within(self.config.attempt_timeout(1.0), work, "no node answered in time")

    async def _ask(self, what: str, targets: list[str], judge: Callable[[wire.Table], int], own: int = 0) -> None:
        """Tables from targets, the next one when one fails or is slow, until judge says 2, or 1 and the own were asked."""
        asked, answered = 0, False
        errors: list[BaseException] = []
        open_: set[asyncio.Task[wire.Table]] = set()
        try:
            while True:
                if not open_:
                    if answered and asked >= own:
                        return
                    if asked == len(targets):
                        first = errors[0] if errors else None
                        if first is not None and permanent(first):
                            raise first
                        text = "; ".join(str(e) for e in errors)
                        raise Unavailable(f"no node knows where to find {what}: {text}") from first
                done, _ = (
                    await asyncio.wait(open_, timeout=_HEDGE, return_when=asyncio.FIRST_COMPLETED) if open_ else (set(), None)
                )
                for t in done:
                    open_.discard(t)
                    error = t.exception()
                    if error is not None:
                        errors.append(error)
                        continue
                    verdict = judge(t.result())
                    if verdict == 2:
                        return
                    answered = answered or verdict == 1
                if not done:
                    if answered and asked >= own:
                        return
                    if asked < len(targets):
                        open_.add(asyncio.create_task(self._question(targets[asked])))
                        asked += 1
        finally:
            for t in open_:
                t.cancel()

    async def _question(self, address: str) -> wire.Table:
        """The table of one node, merged into this one. Callers at the same time share it."""
        task = self._questions.get(address)
        if task is None:
            task = asyncio.create_task(self._table_of(address))
            self._questions[address] = task
            _quiet(task).add_done_callback(lambda _: self._questions.pop(address, None))
        return await asyncio.shield(task)

    async def _table_of(self, address: str) -> wire.Table:
        frame = await self.call(address, lambda r: wire.TABLE_REQUEST.write(wire.Request(r)), self.config.attempt_timeout(0.5))
        try:
            m = TABLE.read(frame)
        except FrameError as e:
            raise ProtocolError(address, str(e)) from None
        self._learn(address, m)
        return m

    def _learn(self, address: str, m: wire.Table) -> None:
        """Of two rows of a partition the one with the higher epoch counts: epochs only rise."""
        if self.parts and m.partitions != len(self.parts):
            raise ProtocolError(
                address,
                f"Table.partitions is {m.partitions}, allowed: {len(self.parts)}, as a node of this grid said before; "
                "a grid that was made again under its name needs a new client",
            )
        self.parts = self.parts or [Partition(i) for i in range(m.partitions)]
        self.by_symbol = self.by_symbol or m.by_symbol
        news = False
        for row in m.parts:
            p = self.parts[row.partition]
            if row.epoch < p.epoch:
                continue
            news = news or row.epoch != p.epoch
            p.epoch, p.lineage = row.epoch, row.lineage
            p.members = [Member(x.member, x.address, i < row.n_in_sync) for i, x in enumerate(row.members)]
            p.primary = p.members[row.primary] if row.primary < len(p.members) else None
        if news:
            self.changed.set()
            self.changed = asyncio.Event()

    async def _keep(self) -> None:
        every = self.config.table_every
        while True:
            await asyncio.sleep(every * random.uniform(0.5, 1.5))
            with contextlib.suppress(OrderGridError, OSError):
                await self.refresh_all()


async def within(seconds: float, work: Awaitable[_T], what: str) -> _T:
    """What work returns, or Unavailable when the time is over."""
    try:
        return await asyncio.wait_for(work, seconds)
    except asyncio.TimeoutError as e:
        if isinstance(e, OrderGridError):
            raise
        raise Unavailable(what) from None


def _quiet(task: asyncio.Task[_T]) -> asyncio.Task[_T]:
    """A failure of the task that no caller waits for is not reported by the loop."""
    task.add_done_callback(lambda t: t.cancelled() or t.exception())
    return task
