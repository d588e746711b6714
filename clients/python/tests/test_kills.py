"""Exactly once: primaries are killed, stopped and handed over under load, on real grids."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import unittest
from collections import Counter
from typing import Optional

import grid
from grid import PATIENT, order
from ordergrid import (
    AsyncClient,
    Client,
    Fate,
    LogEntry,
    OrderError,
    OrderGridError,
    Receipt,
    WindowFull,
    fate_of,
)

CUT = 100  # orders of a partition between two cuts of its connection, with orders under way
BURST = 8  # orders of a partition in 10 ms: a log that grows faster takes longer to be copied after each kill
KILLS = int(os.environ.get("ORDERGRID_CLIENT_KILLS", "3"))


class Load:
    """Orders to one partition, in bursts, until it is stopped."""

    def __init__(self, client: AsyncClient, partition: int) -> None:
        self.client, self.partition = client, partition
        self.n = len(client.partitions())
        self.ids: list[str] = []
        self.outcomes: dict[str, Optional[BaseException]] = {}
        self.receipts: dict[str, Receipt] = {}
        self.done = False

    async def run(self) -> None:
        session = await self.client.session(self.partition)
        i = 0
        while not self.done:
            cl_ord_id = f"L{self.partition}-{i}"
            i += 1
            try:
                session.enqueue(order(cl_ord_id), self._taken(cl_ord_id), timeout=60)
                self.ids.append(cl_ord_id)
                if i % BURST == 0:
                    await asyncio.sleep(0.01)
                if i % CUT == 0 and session.connection is not None:
                    session.connection.fail(OrderGridError("cut by the test"))  # its answers are lost
            except WindowFull:
                i -= 1
                await asyncio.sleep(0.005)
        await session.drain()

    def _taken(self, cl_ord_id: str):  # type: ignore[no-untyped-def]
        def done(receipt: Optional[Receipt], error: Optional[BaseException]) -> None:
            assert cl_ord_id not in self.outcomes, "an order has one outcome"
            self.outcomes[cl_ord_id] = error
            if receipt is not None:
                self.receipts[cl_ord_id] = receipt

        return done


@unittest.skipUnless(grid.PROGRAM, "ORDERGRID_NODE names no grid-node program")
class Kills(unittest.TestCase):
    """Primaries are killed -9 while orders flow: what was acknowledged is there once, in order, and nothing twice."""

    def test_primaries_killed(self) -> None:
        asyncio.run(self._primaries_killed())

    async def _primaries_killed(self) -> None:
        with grid.Grid() as g:
            async with await AsyncClient.connect(g.endpoints, **PATIENT) as client:
                loads = [Load(client, p) for p in range(len(client.partitions()))]
                tasks = [asyncio.create_task(load.run()) for load in loads]
                followed: list[LogEntry] = []
                follower = asyncio.create_task(self._follow(client, 0, followed))
                single = asyncio.create_task(self._one_by_one(client, loads[0]))
                own = asyncio.create_task(asyncio.to_thread(self._of_a_thread, g, loads[1]))
                for n in range(KILLS):
                    await self._in_sync(client, g)
                    primary = client.partitions()[n % len(loads)].primary
                    assert primary is not None
                    before = len(loads[n % len(loads)].receipts)
                    await asyncio.to_thread(g.kill, primary.address)
                    await self._progress(loads[n % len(loads)], before)
                for load in loads:
                    load.done = True
                await asyncio.gather(*tasks, single)
                mine = await own
                await self._in_sync(client, g)
                for load in loads:
                    await self._judge(client, load)
                at = {e.seq: e.cl_ord_id async for e in client.read_log(1)}
                self.assertEqual([at[r.seq] for r in mine.values()], list(mine), "orders of a thread's own session")
                self.assertEqual(Counter(at.values())["THREAD-1"], 1)
                end = client.read_log(0)
                want = [e async for e in end]
                while len(followed) < len(want) and not follower.done():
                    await asyncio.sleep(0.01)
                follower.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await follower
                self.assertEqual([e.hash for e in followed[: len(want)]], [e.hash for e in want], "each entry once, in order")
                self.assertGreater(sum(s.duplicates for s in client.sessions()), 0, "orders whose answers were lost")
                reconnects = sum(s.connects for s in client.sessions())
                print(f"{KILLS} kills: {sum(len(x.receipts) for x in loads)} orders acknowledged, {reconnects} connections, "
                      f"{sum(s.resent for s in client.sessions())} sent again, "
                      f"{sum(s.duplicates for s in client.sessions())} answered from the log")  # fmt: skip
            code, text = await asyncio.to_thread(g.verify)
            self.assertEqual(code, 0, text)

    def test_primary_stopped_and_handed_over(self) -> None:
        """A primary that stands still (kill -STOP) closes no connection: its successor is found. Then a planned hand-over."""
        asyncio.run(self._stopped())

    async def _stopped(self) -> None:
        with grid.Grid("--partitions", "1", "--shards", "1") as g:
            async with await AsyncClient.connect(g.endpoints, **PATIENT) as client:
                load = Load(client, 0)
                task = asyncio.create_task(load.run())
                await self._in_sync(client, g)
                await self._progress(load, 0)
                was = client.partitions()[0].primary
                assert was is not None
                before = len(load.receipts)
                with g.stopped(was.address):
                    await self._progress(load, before)
                    await client.refresh()
                    now = client.partitions()[0].primary
                    assert now is not None
                    self.assertNotEqual(now.id, was.id)
                await self._in_sync(client, g)
                other = next(m for m in client.partitions()[0].members if m != client.partitions()[0].primary)
                g.prefer("dev-p0", other.id.split("/")[0])
                deadline = time.monotonic() + 120
                while client.partitions()[0].primary != other:
                    self.assertLess(time.monotonic(), deadline, "it was not handed over")
                    await asyncio.sleep(0.02)
                    with contextlib.suppress(OrderGridError):
                        await client.refresh()
                await self._progress(load, len(load.receipts))
                load.done = True
                await task
                await self._judge(client, load)
            code, text = await asyncio.to_thread(g.verify)
            self.assertEqual(code, 0, text)

    async def _in_sync(self, client: AsyncClient, g: grid.Grid) -> None:
        """Waits until every partition has both copies again."""
        deadline = time.monotonic() + 120
        while True:
            with contextlib.suppress(OrderGridError):
                await client.refresh()
            if all(p.primary and sum(m.in_sync for m in p.members) == 2 for p in client.partitions()):
                return
            self.assertLess(time.monotonic(), deadline, f"copies are not in sync again: {client.partitions()}")
            await asyncio.sleep(0.02)

    async def _progress(self, load: Load, before: int) -> None:
        """Waits until orders are acknowledged again."""
        deadline = time.monotonic() + 120
        while len(load.receipts) < before + 200:
            self.assertLess(time.monotonic(), deadline, "no order was acknowledged after the kill")
            await asyncio.sleep(0.005)

    async def _follow(self, client: AsyncClient, partition: int, into: list[LogEntry]) -> None:
        async for batch in client.follow(partition):
            into += batch.entries

    def _of_a_thread(self, g: grid.Grid, load: Load) -> dict[str, Receipt]:
        """Synchronous orders over a session of a thread's own."""
        receipts: dict[str, Receipt] = {}
        with Client(g.endpoints, **PATIENT) as client, client.session(load.partition) as session:
            while not load.done:
                cl_ord_id = f"THREAD-{len(receipts) + 1}"
                receipts[cl_ord_id] = session.submit(order(cl_ord_id))
                time.sleep(0.001)
        return receipts

    async def _one_by_one(self, client: AsyncClient, load: Load) -> None:
        """Synchronous orders and reads beside the load."""
        i = 0
        while not load.done:
            i += 1
            receipt = await client.submit(order(f"ONE-{i}"), timeout=60)
            got = await client.get(receipt, timeout=60)
            self.assertEqual(got.cl_ord_id, f"ONE-{i}")
            await asyncio.sleep(0.001)

    async def _judge(self, client: AsyncClient, load: Load) -> None:
        self.assertEqual(len(load.outcomes), len(load.ids), "every order has an outcome")
        entries = {e.seq: e async for e in client.read_log(load.partition) if e.kind_name == "order"}
        times = Counter(e.cl_ord_id for e in entries.values())
        self.assertEqual([i for i, n in times.items() if n > 1], [], "orders that are in the log twice")
        last = 0
        for cl_ord_id in load.ids:
            error, receipt = load.outcomes[cl_ord_id], load.receipts.get(cl_ord_id)
            if receipt is None:
                self.assertIsInstance(error, OrderError)
                if fate_of(error) is Fate.REFUSED:
                    self.assertEqual(times[cl_ord_id], 0, f"{cl_ord_id} was refused: {error}")
                continue
            self.assertEqual(entries[receipt.seq].cl_ord_id, cl_ord_id, "an acknowledged order is at its place")
            self.assertEqual(entries[receipt.seq].hash, receipt.hash or entries[receipt.seq].hash)
            self.assertGreater(receipt.seq, last, "orders of a session are in their order")
            last = receipt.seq
        self.assertGreater(len(load.receipts), 0)
        self.assertEqual([e for e in load.outcomes.values() if e is not None], [], "no order failed in 60 s of retries")


if __name__ == "__main__":
    unittest.main()
