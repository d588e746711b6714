"""Orders of a version of FIX that the copies of the partition are asked about, which a primary refuses for now."""

from __future__ import annotations

import asyncio
import time
import unittest
from typing import Optional

import grid
from grid import PATIENT, order
from node import Node, Peer
from test_session import run
from ordergrid import AsyncClient, Client, Fate, OrderError, Rejected, Session, WindowFull, fix, wire


def later(cl_ord_id: str) -> bytes:
    return fix.rebuild(order(cl_ord_id).replace(b"8=FIX.4.4", b"8=FIXT.1.1"))


class Refusing:
    """Refuses orders of FIX 5.0 SP2 so many times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.refused: dict[bytes, int] = {}

    def __call__(self, p: Peer, m: wire.Submit) -> Optional[bytes]:
        if not m.payload:
            return p.reject(m, 1)
        if m.payload.startswith(b"8=FIXT") and self.left:
            self.left -= 1
            self.refused[m.payload] = self.refused.get(m.payload, 0) + 1
            return p.reject(m, 32)
        return p.ack(m)

    async def until(self, payload: bytes, times: int) -> None:
        while self.refused.get(payload, 0) < times:
            await asyncio.sleep(0.001)


def log(node: Node) -> list[bytes]:
    return [payload for _, payload in sorted(node.applied.values())]


class Awaited(unittest.TestCase):
    def test_sent_again(self) -> None:
        answer = Refusing(3)
        a, b = later("A"), later("B")

        async def test(node: Node, s: Session) -> None:
            await s.submit(a)
            self.assertEqual((log(node), answer.refused), ([a], {a: 3}))
            answer.left = 1 << 40  # a copy of a release before stays
            began = time.monotonic()
            with self.assertRaises(Rejected) as raised:
                await s.submit(b)
            self.assertEqual((raised.exception.name, raised.exception.fate), ("VersionAwaited", Fate.REFUSED))
            self.assertGreater(time.monotonic() - began, 0.9)
            self.assertEqual((s.accepted, s.refused, log(node)), (1, 1, [a]))

        run(answer, test)

    def test_order(self) -> None:
        """Pipelined ones keep their order, also behind a lost connection; one at a time is sent again, and orders of other
        versions do not wait."""
        answer = Refusing(1 << 40)
        orders = [later(f"K-{i}") for i in range(20)]
        before = order("BEFORE")

        async def test(node: Node, s: Session) -> None:
            s._awaited.patience = 60
            first = [s.submit_nowait(o) for o in orders[:10]]
            await answer.until(orders[0], 3)
            rest = [s.submit_nowait(o) for o in orders[10:]]
            await s.submit(before)
            seen = answer.refused[orders[0]]
            max(node.peers, key=lambda p: p.number).drop()
            await answer.until(orders[0], seen + 2)
            answer.left = 0
            receipts = await asyncio.gather(*first, *rest)
            self.assertEqual(log(node), [before, *orders])
            self.assertEqual([r.seq for r in receipts], sorted(r.seq for r in receipts))
            self.assertEqual(list(answer.refused), orders[:1], "refused although the first one was not taken")

        run(answer, test)

    def test_bounded_and_closed(self) -> None:
        answer = Refusing(1 << 40)
        orders = [later(f"C-{i}") for i in range(4)]

        async def test(node: Node, s: Session) -> None:
            s._awaited.patience = 60
            futures = [s.submit_nowait(o) for o in orders]
            await answer.until(orders[0], 3)
            with self.assertRaises(WindowFull):
                s.submit_nowait(later("C-9"))
            futures.pop(2).cancel()
            while s._win.held > 3:
                await asyncio.sleep(0.001)
            await s.close()
            errors = await asyncio.gather(*futures, return_exceptions=True)
            self.assertEqual([e for e in errors if not isinstance(e, OrderError)], [])
            self.assertGreaterEqual(sum(isinstance(e, Rejected) and e.code == 32 for e in errors), 2, errors)

        run(answer, test, max_in_flight=4)


@unittest.skipUnless(grid.PROGRAM, "ORDERGRID_NODE names no grid-node program")
class FirstOfVersion(unittest.TestCase):
    """Nodes have not asked each other for FIX 5.0 SP2 when the first orders of it come. All are taken, in their order."""

    def test_pipelined(self) -> None:
        async def work() -> None:
            async with await AsyncClient.connect(g.endpoints, grid="dev", **PATIENT) as client:
                s = await client.session(0)
                receipts = await asyncio.gather(*(s.submit_nowait(later(f"PIPE-{i}")) for i in range(20)))
                self.assertEqual([r.seq for r in receipts], sorted(r.seq for r in receipts))

        with grid.Grid() as g:
            asyncio.run(work())

    def test_plain(self) -> None:
        with grid.Grid() as g, Client(g.endpoints, grid="dev", **PATIENT) as client:
            self.assertGreater(client.submit(later("PLAIN-0")).seq, 0)
            with client.session(1 - client.route(later("PLAIN-0"))) as s:
                self.assertGreater(s.submit(later("PLAIN-1")).seq, 0)
