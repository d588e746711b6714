"""The client against real grids, with primaries killed under load."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
import unittest
from collections import Counter
from typing import Optional

import grid
from ordergrid import (
    TLS, AsyncClient, Client, Closed, Fate, Goaway, InvalidArgument, LogEntry, NotFound, Order, OrderError, OrderGridError,
    OtherOrder, Position, ReadMode, Receipt, Rejected, TLSFailure, Unavailable, WindowFull, fate_of, fix,
)  # fmt: skip

BURST = 8  # orders of a partition in 10 ms: a log that grows faster takes longer to be copied after each kill
KILLS = int(os.environ.get("ORDERGRID_CLIENT_KILLS", "3"))


def order(cl_ord_id: str, account: str = "") -> bytes:
    return fix.new_order_single(cl_ord_id, symbol="IBM", side="1", qty=100, price="104.25", account=account)


def id_in(partition: int, partitions: int, prefix: str) -> str:
    """A ClOrdID that belongs to the partition."""
    from ordergrid.log import partition_of

    return next(x for x in (f"{prefix}-{i}" for i in range(1 << 20)) if partition_of(x.encode(), partitions) == partition)


@unittest.skipUnless(grid.PROGRAM, "ORDERGRID_NODE names no grid-node program")
class PlainClient(unittest.TestCase):
    """Client, on one grid for all tests."""

    grid: grid.Grid
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.grid = grid.Grid()
        cls.addClassCleanup(cls.grid.stop)
        cls.client = Client(cls.grid.endpoints, grid="dev")
        cls.addClassCleanup(cls.client.close)

    def test_submit_and_get(self) -> None:
        receipt = self.client.submit(order("SG-1", account="ACCT-7"))
        self.assertEqual((receipt.copies, receipt.duplicate, receipt.partition), (2, False, self.client.route(order("SG-1"))))
        self._from_backup(receipt)
        for mode in ReadMode:
            with self.subTest(mode):
                for name in (receipt, receipt.id, str(receipt.id), f"p{receipt.partition}/{receipt.seq}"):
                    self.assertEqual(self.client.get(name, mode=mode).id, receipt.id)
                got = self.client.get_by_cl_ord_id("SG-1", mode=mode)
                self.assertEqual((got.cl_ord_id, got.entry.account, got.entry.symbol), ("SG-1", "ACCT-7", "IBM"))
                self.assertEqual(got.fix[:10], b"8=FIX.4.4\x01")

    def test_backup_reads_are_of_a_backup(self) -> None:
        receipt = self.client.submit(order("BR-1"))
        primary = self.client.partitions()[receipt.partition].primary
        assert primary is not None
        self.assertNotEqual(self._from_backup(receipt).address, primary.address)
        self.assertEqual(self.client.get(receipt).address, primary.address)

    def _from_backup(self, receipt: Receipt) -> Order:
        """What a backup says once it knows that the order is committed."""
        deadline = time.monotonic() + 30
        while True:
            try:
                return self.client.get(receipt, mode=ReadMode.BACKUP)
            except NotFound:
                self.assertLess(time.monotonic(), deadline)

    def test_refusals(self) -> None:
        self.client.submit(order("DUP-1"))
        for what, message, code, tag in (
            ("ClOrdID twice", order("DUP-1"), 2, 0),
            ("side Z", fix.rebuild(order("BAD-1").replace(b"\x0154=1\x01", b"\x0154=Z\x01")), 1, 54),
            ("too long", order("BAD-2") + bytes(70_000), 10, 0),
            ("no bytes", b"", 1, 11),
        ):
            with self.subTest(what), self.assertRaises(Rejected) as caught:
                self.client.submit(message)
            self.assertEqual((caught.exception.code, caught.exception.fate), (code, Fate.REFUSED), str(caught.exception))
            if tag:
                self.assertEqual(caught.exception.tag, tag)
                self.assertIn("allowed", str(caught.exception))

    def test_not_there(self) -> None:
        receipt = self.client.submit(order("NT-1"))
        self.assertRaises(NotFound, self.client.get_by_cl_ord_id, "NO-SUCH-ORDER")
        self.assertRaises(NotFound, self.client.get, f"p{receipt.partition}/999999999")
        self.assertRaises(OtherOrder, self.client.get, receipt._replace(hash=receipt.hash ^ 1))
        self.assertRaises(OtherOrder, self.client.get, f"p{receipt.partition}/{receipt.seq}@{receipt.epoch + 1}")
        self.assertRaises(InvalidArgument, self.client.get, "p99/1")
        self.assertRaises(InvalidArgument, self.client.get_by_cl_ord_id, "")

    def test_many(self) -> None:
        ids = [f"MANY-{i}" for i in range(3000)]
        out = self.client.submit_many([order(i) for i in ids] + [order(ids[0])])
        self.assertEqual([type(x) for x in out], [Receipt] * 3000 + [Rejected])
        for p in range(len(self.client.partitions())):
            seqs = [x.seq for x in out if isinstance(x, Receipt) and x.partition == p]
            self.assertEqual(seqs, sorted(seqs))
            at = {e.seq: e.cl_ord_id for e in self.client.read_log(p)}
            for i, x in zip(ids, out):
                if isinstance(x, Receipt) and x.partition == p:
                    self.assertEqual(at[x.seq], i)

    def test_threads(self) -> None:
        receipts: list[Receipt] = []

        def work(n: int) -> None:
            receipts.extend(self.client.submit(order(f"TH-{n}-{i}")) for i in range(50))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len({(r.partition, r.seq) for r in receipts}), 200)

    def test_submit_async(self) -> None:
        futures = [self.client.submit_async(order(f"SA-{i}")) for i in range(2000)]
        self.assertEqual(len({(f.result().partition, f.result().seq) for f in futures}), 2000)

    def test_session_of_ones_own(self) -> None:
        n = len(self.client.partitions())
        with self.client.session(1) as session:
            receipts = [session.submit(order(id_in(1, n, f"OWN{i}"))) for i in range(200)]
            self.assertEqual([r.partition for r in receipts], [1] * 200)
            self.assertEqual([r.seq for r in receipts], sorted({r.seq for r in receipts}))
            with self.assertRaises(Rejected) as caught:
                session.submit(order(id_in(1, n, "OWN0")))
            self.assertEqual((caught.exception.code, caught.exception.detail), (2, receipts[0].seq))
            self.assertGreater(session.submit(order(id_in(1, n, "OWN-LAST"))).seq, receipts[-1].seq)
        self.assertRaises(Closed, session.submit, order("OWN-CLOSED"))
        self.assertRaises(InvalidArgument, self.client.session, 99)

    def test_read_log_of_every_replica(self) -> None:
        p = self.client.submit(order("RL-1")).partition
        logs = [[e.hash for e in self.client.read_log(p, replica=m.address)] for m in self.client.partitions()[p].members]
        shortest = min(len(x) for x in logs)
        self.assertGreater(shortest, 2)
        self.assertEqual(logs[0][:shortest], logs[1][:shortest])
        self.assertRaises(InvalidArgument, lambda: next(self.client.read_log(p, from_seq=0)))

    def test_follow(self) -> None:
        p = 0
        n = len(self.client.partitions())
        first = self.client.submit(order(id_in(p, n, "F-A"), account="FOLLOW"))
        stream = self.client.follow(p, after=Position())
        seen: list[LogEntry] = []
        while not seen or seen[-1].seq < first.seq:
            seen += next(stream).entries
        second = self.client.submit(order(id_in(p, n, "F-B"), account="FOLLOW"))
        while seen[-1].seq < second.seq:
            seen += next(stream).entries
        stream.close()
        self.assertEqual([e.seq for e in seen], list(range(1, len(seen) + 1)))
        some = self.client.follow(p, account="FOLLOW")
        of_account = next(some)
        while of_account.through.seq < second.seq:
            more = next(some)
            of_account = more._replace(entries=of_account.entries + more.entries)
        self.assertEqual([e.seq for e in of_account.entries], [first.seq, second.seq])

    def test_follow_another_history(self) -> None:
        p = self.client.submit(order("FH-1")).partition
        from ordergrid import Diverged

        self.assertRaises(Diverged, next, self.client.follow(p, after=Position(1, 0x1234)))

    def test_another_grid(self) -> None:
        with self.assertRaises(Goaway) as caught:
            Client(self.grid.endpoints, grid="other")
        self.assertEqual(caught.exception.code, 3)

    def test_no_tls_there(self) -> None:
        here = os.path.dirname(__file__)
        with self.assertRaises((TLSFailure, InvalidArgument)):
            Client(self.grid.endpoints, tls=TLS(os.path.join(here, "grid.py")))

    def test_nobody_there(self) -> None:
        self.assertRaises(Unavailable, Client, ["127.0.0.1:1"], dial_timeout=0.3)


@unittest.skipUnless(grid.PROGRAM, "ORDERGRID_NODE names no grid-node program")
class OverTLS(unittest.TestCase):
    def test_mtls(self) -> None:
        with grid.Grid("--tls") as g:
            assert g.tls is not None
            with Client(g.endpoints, tls=g.tls) as client:
                receipt = client.submit(order("TLS-1"))
                self.assertEqual(client.get_by_cl_ord_id("TLS-1").id, receipt.id)
                self.assertEqual(len(client.submit_many([order(f"TLS-M-{i}") for i in range(1000)])), 1000)
                self.assertGreater(next(client.follow(receipt.partition)).through.seq, 0)
                with client.session(0) as session:
                    self.assertEqual(len({session.submit(order(id_in(0, 2, f"TLS-S{i}"))).seq for i in range(50)}), 50)
            with self.assertRaises(TLSFailure, msg="without a certificate"):
                Client(g.endpoints, tls=TLS(g.tls.ca), dial_timeout=2)
            with self.assertRaises(TLSFailure, msg="another name"):
                Client(g.endpoints, tls=TLS(g.tls.ca, g.tls.cert, g.tls.key, name="elsewhere.example"), dial_timeout=2)
            with self.assertRaises(TLSFailure, msg="without TLS"):
                Client(g.endpoints, dial_timeout=2)
            code, text = g.verify()
            self.assertEqual(code, 0, text)


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
                session.enqueue(order(cl_ord_id), self._taken(cl_ord_id), timeout=30)
                self.ids.append(cl_ord_id)
                if i % BURST == 0:
                    await asyncio.sleep(0.01)
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
            async with await AsyncClient.connect(g.endpoints, request_timeout=30.0) as client:
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
                while len(followed) < len(want):
                    await asyncio.sleep(0.01)
                follower.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await follower
                self.assertEqual([e.hash for e in followed[: len(want)]], [e.hash for e in want], "each entry once, in order")
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
            async with await AsyncClient.connect(g.endpoints, request_timeout=30.0) as client:
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
                deadline = time.monotonic() + 60
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
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OrderGridError):
                await client.refresh()
            if all(p.primary and sum(m.in_sync for m in p.members) == 2 for p in client.partitions()):
                return
            self.assertLess(time.monotonic(), deadline, f"copies are not in sync again: {client.partitions()}")
            await asyncio.sleep(0.02)

    async def _progress(self, load: Load, before: int) -> None:
        """Waits until orders are acknowledged again."""
        deadline = time.monotonic() + 60
        while len(load.receipts) < before + 200:
            self.assertLess(time.monotonic(), deadline, "no order was acknowledged after the kill")
            await asyncio.sleep(0.005)

    async def _follow(self, client: AsyncClient, partition: int, into: list[LogEntry]) -> None:
        async for batch in client.follow(partition):
            into += batch.entries

    def _of_a_thread(self, g: grid.Grid, load: Load) -> dict[str, Receipt]:
        """Synchronous orders over a session of a thread's own."""
        receipts: dict[str, Receipt] = {}
        with Client(g.endpoints, request_timeout=30.0) as client, client.session(load.partition) as session:
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
            receipt = await client.submit(order(f"ONE-{i}"), timeout=30)
            got = await client.get(receipt, timeout=30)
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
        self.assertEqual([e for e in load.outcomes.values() if e is not None], [], "no order failed in 30 s of retries")


if __name__ == "__main__":
    unittest.main()
