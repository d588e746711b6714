"""Regions on real grids: each operation, and changes that are applied once although primaries are killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import tempfile
import time
import unittest
from collections.abc import Callable
from typing import Optional

import grid
from grid import PATIENT
from node import Node, Peer
from ordergrid import (
    AsyncClient, AsyncRegion, Client, ConditionFailed, Fate, InvalidArgument, NotFound, OrderError, OrderGridError, ReadMode,
    Receipt, Region, Rejected, Unavailable, UnknownOutcome, wire,
)  # fmt: skip
from ordergrid._region_frames import HAS_VALUE, REGION_APPLIED, REGION_APPLY, RegionApplied, RegionApply
from ordergrid.log import partition_of

KILLS = int(os.environ.get("ORDERGRID_CLIENT_KILLS", "3"))
COUNTERS = 8
TOKENS = 4000


def with_regions(test: unittest.TestCase) -> grid.Grid:
    """A grid that has regions `positions` and `tokens`."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as f:
        f.write("memory: 64Mi\nregions:\n- name: positions\n- name: tokens\n- name: small\n  maxBytes: 8Ki\n- name: brief\n  life: 200ms\n")
    test.addCleanup(os.unlink, f.name)
    return grid.Grid("--", "--regions", f.name)


@unittest.skipUnless(grid.PROGRAM, "ORDERGRID_NODE names no grid-node program")
class Operations(unittest.TestCase):
    def test_operations(self) -> None:
        with with_regions(self) as g, Client(g.endpoints, **PATIENT) as client:
            region = client.region("positions")
            self._changes(region)
            self._takes(region)
            self._scans(client, region)
            self._refusals(client)
            self._expiry(client)
            code, text = g.verify()
            self.assertEqual(code, 0, text)

    def _changes(self, region: Region) -> None:
        first = region.put(b"ACC-1/IBM", b"100")
        self.assertEqual((first.copies, first.duplicate), (2, False))
        got = region.get(b"ACC-1/IBM")
        self.assertEqual((got.value, got.version, got.expires, got.partition), (b"100", first.seq, None, first.partition))
        second = region.put_if(b"ACC-1/IBM", b"150", got.version)
        with self.assertRaises(ConditionFailed) as caught:
            region.put_if(b"ACC-1/IBM", b"999", got.version)
        self.assertEqual((caught.exception.version, caught.exception.fate), (second.seq, Fate.REFUSED))
        with self.assertRaises(ConditionFailed) as caught:
            region.put_if(b"ACC-1/IBM", b"999", 0)
        self.assertEqual(caught.exception.version, second.seq)
        region.put_if(b"NEW", b"first", 0)
        region.patch(b"ACC-1/IBM", 1, b"75")
        region.patch(b"ACC-1/IBM", 3, b".5")
        for mode in (ReadMode.CONFIRMED, ReadMode.LEASED):
            self.assertEqual(region.get(b"ACC-1/IBM", mode=mode).value, b"175.5")
        with self.assertRaises(Rejected) as refused:
            region.patch(b"ACC-1/IBM", 6, b"x")
        self.assertEqual(refused.exception.name, "TooLarge")
        with self.assertRaises(ConditionFailed) as caught:
            region.patch(b"NONE", 0, b"x")
        self.assertEqual(caught.exception.version, 0)
        self.assertEqual([region.remove(b"NEW"), region.remove(b"NEW")], [True, False])
        self.assertRaises(NotFound, region.get, b"NEW")
        self.assertEqual(region.put(b"\0\xff", bytes(range(256))).copies, 2)
        self.assertEqual(region.get(b"\0\xff").value, bytes(range(256)))

    def _takes(self, region: Region) -> None:
        put = region.put(b"TICKET", b"7")
        taken = region.take(b"TICKET")
        self.assertEqual((taken.value, taken.receipt.partition), (b"7", put.partition))
        self.assertGreater(taken.receipt.seq, put.seq)
        self.assertRaises(NotFound, region.take, b"TICKET")
        region.put(b"EMPTY", b"")
        self.assertEqual(region.get(b"EMPTY").value, b"")
        self.assertEqual(region.take(b"EMPTY").value, b"")

    def _scans(self, client: Client, region: Region) -> None:
        big = bytes(1000)
        for i in range(600):  # pages of 256 KiB: more than one of each partition
            region.put(b"S/%04d" % i, big)
        seen = [e.key for e in region.scan(b"S/")]
        self.assertEqual(sorted(seen), [b"S/%04d" % i for i in range(600)])
        n = len(client.partitions())
        for p in range(n):
            of = [k for k in seen if partition_of(k, n) == p]
            self.assertEqual(of, sorted(of))
        info = {r.name: r for r in client.regions()}
        self.assertEqual(set(info), {"positions", "tokens", "small", "brief"})
        self.assertEqual(info["positions"].entries, len(list(region.scan())))
        self.assertGreater(info["positions"].bytes, 600 * 1000)
        self.assertEqual((info["brief"].life, info["small"].life), (0.2, None))
        region.clear()
        self.assertEqual(list(region.scan()), [])

    def _refusals(self, client: Client) -> None:
        with self.assertRaises(Rejected) as refused:
            client.region("nowhere").put(b"k", b"v")
        self.assertEqual(refused.exception.name, "RegionUnknown")
        with self.assertRaises(Rejected) as refused:
            client.region("nowhere").get(b"k")
        self.assertEqual(refused.exception.name, "RegionUnknown")
        with self.assertRaises(Rejected) as refused:
            for i in range(100):
                client.region("small").put(b"%d" % i, bytes(1000))
        self.assertEqual(refused.exception.name, "Capacity")
        region = client.region("positions")
        for call in (
            lambda: region.put(b"", b"v"), lambda: region.put(b"k", bytes(65_440)), lambda: region.put("k", b"v"),  # type: ignore[arg-type]
            lambda: region.patch(b"k", -1, b""), lambda: region.put(b"k", b"v", expires=0.0), lambda: region.get(b"k", mode=4),
            lambda: region.put(b"k", b"v", expires=1.0, forever=True), lambda: client.region(""), lambda: region.clear_partition(99),
        ):  # fmt: skip
            self.assertRaises(InvalidArgument, call)
        self.assertEqual(region.put(b"k", bytes(65_439)).copies, 2)
        self.assertEqual(len(region.get(b"k").value), 65_439)

    def _expiry(self, client: Client) -> None:
        brief = client.region("brief")
        brief.put(b"default", b"1")
        brief.put(b"own", b"1", expires=3600)
        brief.put(b"forever", b"1", forever=True)
        self.assertIsNone(brief.get(b"forever").expires)
        at = brief.get(b"own").expires
        assert at is not None
        self.assertAlmostEqual(at.timestamp(), time.time() + 3600, delta=600)
        deadline = time.monotonic() + 60
        while "default" in {e.key.decode() for e in brief.scan()}:
            self.assertLess(time.monotonic(), deadline, "a value did not expire")
            time.sleep(0.02)
        self.assertEqual({e.key for e in brief.scan()}, {b"own", b"forever"})


@unittest.skipUnless(grid.PROGRAM, "ORDERGRID_NODE names no grid-node program")
class Kills(unittest.TestCase):
    """Primaries are killed -9 while counters are counted and tokens are taken."""

    def test_primaries_killed(self) -> None:
        asyncio.run(self._primaries_killed())

    async def _primaries_killed(self) -> None:
        with with_regions(self) as g:
            async with await AsyncClient.connect(g.endpoints, **PATIENT) as client:
                region, tokens = client.region("positions"), client.region("tokens")
                await asyncio.gather(*(tokens.put(b"T%04d" % i, b"token %d" % i) for i in range(TOKENS)))
                self.done = False
                self.steps = 0
                counting = [asyncio.create_task(self._count(client, region, b"C%d" % i)) for i in range(COUNTERS)]
                taking = [asyncio.create_task(self._take(tokens, i)) for i in range(4)]
                cutting = asyncio.create_task(self._cut(client))
                for n in range(KILLS):
                    await self._in_sync(client)
                    primary = client.partitions()[n % len(client.partitions())].primary
                    assert primary is not None
                    await asyncio.to_thread(g.kill, primary.address)
                    before, deadline = self.steps, time.monotonic() + 120
                    while self.steps < before + 100:
                        self.assertLess(time.monotonic(), deadline, "nothing was counted after the kill")
                        await asyncio.sleep(0.01)
                deadline = time.monotonic() + 120
                while not sum(s.duplicates for s in client.sessions()):  # a cut meets a change that was applied
                    self.assertLess(time.monotonic(), deadline, "no change whose answer was lost is answered from the log")
                    await asyncio.sleep(0.01)
                self.done = True
                counts = await asyncio.gather(*counting)
                taken = [t for part in await asyncio.gather(*taking) for t in part]
                await cutting
                for i, want in enumerate(counts):
                    value = (await region.get(b"C%d" % i, timeout=60)).value
                    self.assertEqual(struct.unpack("<Q", value)[0], want, "each count is there once")
                left = {e.key: e.value async for e in tokens.scan(timeout=60)}
                keys = [k for k, _ in taken]
                self.assertEqual(len(set(keys)), len(keys), "a token was taken twice")
                self.assertEqual(set(keys) & set(left), set(), "a token that was taken is still there")
                self.assertEqual(len(keys) + len(left), TOKENS, "a token is lost")
                for key, value in [*taken, *left.items()]:
                    self.assertEqual(value, b"token %d" % int(key[1:]))
                resent, duplicates = (sum(getattr(s, x) for s in client.sessions()) for x in ("resent", "duplicates"))
                print(f"{KILLS} kills: {sum(counts)} counts, {len(keys)} tokens taken, {resent} changes sent again, "
                      f"{duplicates} answered from the log")  # fmt: skip
                await self._in_sync(client)
            code, text = await asyncio.to_thread(g.verify)
            self.assertEqual(code, 0, text)

    async def _count(self, client: AsyncClient, region: AsyncRegion, key: bytes) -> int:
        """Counts up, each step on the condition that no other was made: a step applied twice or lost is a failure here."""
        n = 0
        version = (await region.put_if(key, struct.pack("<Q", 0), 0, timeout=60)).seq
        while not self.done:
            version = (await region.put_if(key, struct.pack("<Q", n + 1), version, timeout=60)).seq
            n += 1
            self.steps += 1
            await asyncio.sleep(0.002)
        return n

    async def _take(self, tokens: AsyncRegion, start: int) -> list[tuple[bytes, bytes]]:
        """Takes tokens that others take too."""
        out: list[tuple[bytes, bytes]] = []
        for i in range(TOKENS):
            if self.done:
                break
            key = b"T%04d" % (i // 2 * 2 + (start + i) % 2)
            with contextlib.suppress(NotFound):
                out.append((key, (await tokens.take(key, timeout=60)).value))
            await asyncio.sleep(0.002)
        return out

    async def _cut(self, client: AsyncClient) -> None:
        """Loses connections with changes under way."""
        while not self.done:
            await asyncio.sleep(0.05)
            for s in client.sessions():
                if s.connection is not None:
                    s.connection.fail(OrderGridError("cut by the test"))

    async def _in_sync(self, client: AsyncClient) -> None:
        deadline = time.monotonic() + 120
        while True:
            with contextlib.suppress(OrderGridError):
                await client.refresh()
            if all(p.primary and sum(m.in_sync for m in p.members) == 2 for p in client.partitions()):
                return
            self.assertLess(time.monotonic(), deadline, f"copies are not in sync again: {client.partitions()}")
            await asyncio.sleep(0.02)


class RegionNode(Node):
    """A scripted node that takes changes of regions."""

    def __init__(self) -> None:
        super().__init__(lambda peer, m: peer.reject(m, 1))
        self.changes: list[tuple[int, RegionApply]] = []
        self.script: Callable[[Peer, RegionApply], Optional[bytes]] = lambda peer, m: self.applied_change(m)

    def applied_change(self, m: RegionApply, flags: int = 0, value: bytes = b"") -> bytes:
        if m.client_seq in self.applied:
            flags |= 1
        else:
            self.applied[m.client_seq] = (len(self.applied) + 10, m.value)
        seq = self.applied[m.client_seq][0]
        return REGION_APPLIED.write(RegionApplied(m.client_seq, seq, self.epoch, self.slot, 2, flags, 7, 1, value))

    def refused(self, m: RegionApply, code: int, detail: int = 0) -> bytes:
        return wire.REJECT.write(wire.Reject(m.client_seq, detail, self.slot, 0, code, 0x50, 0, f"code {code}"))

    def _on_frame(self, peer: Peer, frame: bytes) -> Optional[bytes]:
        if frame[4] != REGION_APPLY.number:
            return super()._on_frame(peer, frame)
        m = REGION_APPLY.read(frame)
        self.changes.append((peer.number, m))
        return self.script(peer, m)


class Answers(unittest.TestCase):
    """What an answer says about a change, on a scripted node."""

    def _run(self, node: RegionNode, test, **options: float) -> None:  # type: ignore[no-untyped-def]
        async def work() -> None:
            async with node:
                options_ = {"request_timeout": 20.0, "dial_timeout": 20.0, "suspect_after": 0.05, **options}
                async with await AsyncClient.connect([node.address], **options_) as client:
                    await test(client.region("r"))

        asyncio.run(asyncio.wait_for(work(), 60))

    def test_lost_answer_of_a_take(self) -> None:
        """The first answer is lost; the copy that is sent again has the same number and gets the stored value."""
        node = RegionNode()

        def script(peer: Peer, m: RegionApply) -> Optional[bytes]:
            answer = node.applied_change(m, HAS_VALUE, b"value")
            if peer.number == 1:
                peer.drop()
                return None
            return answer

        node.script = script

        async def test(region: AsyncRegion) -> None:
            taken = await region.take(b"k")
            self.assertEqual((taken.value, taken.receipt.duplicate), (b"value", True))

        self._run(node, test)
        self.assertEqual([(n, m.client_seq) for n, m in node.changes], [(1, 1), (2, 1)])
        self.assertEqual(node.changes[0][1], node.changes[1][1])

    def test_received_rises_with_answers(self) -> None:
        node = RegionNode()

        async def test(region: AsyncRegion) -> None:
            for _ in range(3):
                await region.put(b"k", b"v")

        self._run(node, test)
        self.assertEqual([m.received for _, m in node.changes], [0, 1, 2])

    def test_overloaded_is_sent_again_under_a_new_number(self) -> None:
        node = RegionNode()
        node.script = lambda peer, m: node.refused(m, 4) if m.client_seq < 3 else node.applied_change(m)

        async def test(region: AsyncRegion) -> None:
            self.assertIsInstance(await region.put(b"k", b"v"), Receipt)

        self._run(node, test)
        self.assertEqual([m.client_seq for _, m in node.changes], [1, 2, 3])

    def test_condition_that_failed_before_is_final(self) -> None:
        """Refused after a copy was sent: the primary has looked at the session, so nothing was applied."""
        node = RegionNode()

        def script(peer: Peer, m: RegionApply) -> Optional[bytes]:
            if peer.number == 1:
                peer.drop()
                return None
            return node.refused(m, 27, 42)

        node.script = script

        async def test(region: AsyncRegion) -> None:
            with self.assertRaises(ConditionFailed) as caught:
                await region.put_if(b"k", b"v", 7)
            self.assertEqual((caught.exception.version, caught.exception.fate), (42, Fate.REFUSED))

        self._run(node, test)

    def test_not_permitted_after_a_copy_was_sent_is_unknown(self) -> None:
        node = RegionNode()

        def script(peer: Peer, m: RegionApply) -> Optional[bytes]:
            if peer.number == 1:
                peer.drop()
                return None
            return node.refused(m, 15)

        node.script = script

        async def test(region: AsyncRegion) -> None:
            with self.assertRaises(UnknownOutcome) as caught:
                await region.remove(b"k")
            self.assertIs(caught.exception.fate, Fate.UNKNOWN)
            self.assertIn("read the key", str(caught.exception))

        self._run(node, test)

    def test_a_value_where_none_is_due_ends_the_connection(self) -> None:
        node = RegionNode()
        node.script = lambda peer, m: node.applied_change(m, HAS_VALUE if peer.number == 1 else 0, b"x" if peer.number == 1 else b"")

        async def test(region: AsyncRegion) -> None:
            self.assertTrue((await region.put(b"k", b"v")).duplicate)

        self._run(node, test)
        self.assertEqual([n for n, _ in node.changes], [1, 2])

    def test_time_is_over(self) -> None:
        node = RegionNode()
        node.script = lambda peer, m: None

        async def test(region: AsyncRegion) -> None:
            with self.assertRaises(OrderError) as caught:
                await region.put(b"k", b"v", timeout=0.2)
            self.assertIs(caught.exception.fate, Fate.UNKNOWN)
            self.assertIsInstance(caught.exception.__cause__, Unavailable)

        self._run(node, test)


if __name__ == "__main__":
    unittest.main()
