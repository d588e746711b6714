"""What an answer says about an order: docs/protocol.md, "What an answer says about an order" and "A session over many
connections", each row and rule."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Awaitable, Callable
from typing import Optional

from node import Node, Peer
from test_vectors import vectors
from ordergrid import (
    AsyncClient, Fate, NotSent, OrderError, Receipt, Rejected, Session, Unavailable, UnknownOutcome, WindowFull, wire,
)  # fmt: skip
from ordergrid.log import read_entries


def run(
    answer: Callable[[Peer, wire.Submit], Optional[bytes]], test: Callable[[Node, Session], Awaitable[None]], **options: float
) -> None:
    """The test with a session at a node that answers so."""

    async def work() -> None:
        async with Node(answer) as node:
            client = await AsyncClient.connect(
                [node.address], **{"request_timeout": 20.0, "dial_timeout": 20.0, "suspect_after": 0.05, **options}
            )
            async with client:
                await test(node, await client.session(0))

    asyncio.run(asyncio.wait_for(work(), 60))


def ack(p: Peer, m: wire.Submit) -> Optional[bytes]:
    return p.ack(m)


class Answers(unittest.TestCase):
    def _fate(
        self, answer: Callable[[Peer, wire.Submit], Optional[bytes]]
    ) -> tuple[Fate, Optional[BaseException], list[int], list[bytes]]:
        """Of one order: its fate, the error, the connections it came over, and what is in the log in the end."""
        out: list[tuple[Fate, Optional[BaseException], list[int], list[bytes]]] = []

        async def test(node: Node, s: Session) -> None:
            error: Optional[BaseException] = None
            try:
                await s.submit(b"order")
            except OrderError as e:
                error = e
            fate = error.fate if isinstance(error, OrderError) else Fate.ACCEPTED
            came = [p.number for p in node.peers for m in p.submits if m.payload == b"order"]
            out.append((fate, error, came, [payload for _, payload in node.applied.values()]))

        run(answer, test)
        return out[0]

    def _sent_before(self, code: int, applied: bool) -> Callable[[Peer, wire.Submit], Optional[bytes]]:
        """Drops the first connection, whether the order was applied or not, and refuses on the second."""

        def answer(p: Peer, m: wire.Submit) -> Optional[bytes]:
            if p.number == 1:
                if applied:
                    p.ack(m)
                p.drop()
                return None
            return p.reject(m, code)

        return answer

    def test_refused_on_the_only_connection(self) -> None:
        for code in (1, 2, 3, 4, 9, 10, 11, 15, 99):
            with self.subTest(code):
                fate, error, _, _ = self._fate(lambda p, m, code=code: p.reject(m, code))  # type: ignore[misc]
                self.assertIs(fate, Fate.REFUSED)
                assert isinstance(error, Rejected)
                self.assertEqual(error.code, code)

    def test_refused_after_a_copy_was_sent(self) -> None:
        for code in (1, 2, 3, 4, 9, 10):
            with self.subTest(code):
                self.assertIs(self._fate(self._sent_before(code, False))[0], Fate.REFUSED)
        for code in (6, 11, 15, 99):
            with self.subTest(code):
                self.assertIs(self._fate(self._sent_before(code, True))[0], Fate.UNKNOWN)

    def test_window_of_replies(self) -> None:
        self.assertIs(self._fate(lambda p, m: p.reject(m, 6))[0], Fate.UNKNOWN)

    def test_applied_and_lost_is_one_order(self) -> None:
        def answer(p: Peer, m: wire.Submit) -> Optional[bytes]:
            out = p.ack(m)
            if p.number == 1:
                p.drop()
                return None
            return out

        fate, _, came, log = self._fate(answer)
        self.assertEqual((fate, came, log), (Fate.ACCEPTED, [1, 2], [b"order"]))

    def test_sent_again(self) -> None:
        """Draining, SessionMoved, SequenceGap, NotPrimary and Goaway: on the next connection it is accepted."""
        for what, refusal in (
            ("Draining", lambda p, m: p.reject(m, 8)),
            ("SessionMoved", lambda p, m: p.reject(m, 12, 1)),
            ("SequenceGap", lambda p, m: p.reject(m, 7, 1)),
            (
                "NotPrimary",
                lambda p, m: wire.NOT_PRIMARY.write(wire.NotPrimaryFrame(m.client_seq, 2, m.slot, 0x20, p.node.address, "")),
            ),
            ("Goaway", lambda p, m: wire.GOAWAY.write(wire.GoawayFrame(4, "stopping"))),
        ):
            with self.subTest(what):
                fate, error, came, log = self._fate(lambda p, m, r=refusal: r(p, m) if p.number == 1 else p.ack(m))  # type: ignore[misc]
                self.assertEqual((fate, came, log), (Fate.ACCEPTED, [1, 2], [b"order"]), error)

    def test_forgotten_session(self) -> None:
        """An order seen for the first time goes out under the next session; one that was sent before is unknown."""

        def forget(p: Peer, m: wire.Submit) -> bytes:
            p.node.generation += 1
            p.node.applied.clear()
            return p.reject(m, 5)

        fate, _, came, _ = self._fate(lambda p, m: forget(p, m) if p.number == 1 else p.ack(m))
        self.assertEqual((fate, came), (Fate.ACCEPTED, [1, 2]))

        def answer(p: Peer, m: wire.Submit) -> Optional[bytes]:
            if p.number == 1:
                p.drop()
                return None
            return forget(p, m) if p.number == 2 else p.ack(m)

        fate, error, _, _ = self._fate(answer)
        self.assertIs(fate, Fate.UNKNOWN, error)

    def test_evicted_while_away(self) -> None:
        """SessionOpened with another generation: what was sent is unknown."""

        def answer(p: Peer, m: wire.Submit) -> Optional[bytes]:
            if p.number == 1:
                p.node.generation += 1
                p.drop()
                return None
            return p.ack(m)

        self.assertIs(self._fate(answer)[0], Fate.UNKNOWN)

    def test_violations(self) -> None:
        """An answer to another order, a number of the log that does not rise: the connection is dropped, once is once."""
        for what, wrong in (
            ("another number", lambda p, m: wire.ACK.write(wire.Ack(m.client_seq + 7, 9, 1, m.slot, 2, 0, 0, 1))),
            ("another slot", lambda p, m: wire.ACK.write(wire.Ack(m.client_seq, 9, 1, m.slot + 1, 2, 0, 0, 1))),
            ("seq 0", lambda p, m: wire.ACK.write(wire.Ack(m.client_seq, 0, 1, m.slot, 2, 0, 0, 1))),
            (
                "seq 0 again",
                lambda p, m: p.drop() if p.number == 1 else wire.ACK.write(wire.Ack(m.client_seq, 0, 1, m.slot, 2, 0, 0, 1)),
            ),
            ("no frame", lambda p, m: b"\0\0\0\0 no frame"),
            ("a frame not asked for", lambda p, m: wire.ADVANCED.write(wire.Advanced(1, 1))),
            ("a long Ack", lambda p, m: b"\x40\0\0\0\x21\0\0\0" + bytes(56)),
        ):
            with self.subTest(what):
                bad = 2 if what == "seq 0 again" else 1
                fate, _, came, log = self._fate(lambda p, m, w=wrong, n=bad: w(p, m) if p.number <= n else p.ack(m))  # type: ignore[misc]
                self.assertEqual((fate, came, log), (Fate.ACCEPTED, list(range(1, bad + 2)), [b"order"]))


class Window(unittest.TestCase):
    def test_order_and_numbers(self) -> None:
        """What is unanswered goes out again oldest first; what was refused between goes out empty; nothing is a gap."""

        def answer(p: Peer, m: wire.Submit) -> Optional[bytes]:
            if p.number == 1:
                if m.payload == b"order 2":
                    return p.reject(m, 1)
                if m.payload == b"order 5":
                    p.drop()
                return None
            return p.ack(m) if m.payload else p.reject(m, 1)

        async def test(node: Node, s: Session) -> None:
            futures = [s.submit_nowait(b"order %d" % i) for i in range(6)]
            out = await asyncio.gather(*futures, return_exceptions=True)
            self.assertEqual([type(x) for x in out], [Receipt, Receipt, Rejected, Receipt, Receipt, Receipt])
            second = [(m.client_seq, m.payload) for m in node.peers[-1].submits]
            self.assertEqual(second, [(i + 1, b"" if i == 2 else b"order %d" % i) for i in range(6)])
            self.assertIsInstance(await s.submit(b"order 7"), Receipt)
            self.assertEqual(node.peers[-1].submits[-1].client_seq, 7)
            self.assertEqual([m.attempt for m in node.opened], [1, 2])

        run(answer, test)

    def test_refusals_are_filled_for_a_new_primary(self) -> None:
        """A new primary knows what was applied: after 600 refusals with a window of 512 it would see a gap."""

        def answer(p: Peer, m: wire.Submit) -> Optional[bytes]:
            return p.ack(m) if m.payload == b"good" else p.reject(m, 1)

        async def test(node: Node, s: Session) -> None:
            for _ in range(600):
                with self.assertRaises(Rejected):
                    await s.submit(b"bad")
            node.peers[-1].drop()
            await s.submit(b"good")
            numbers = [m.client_seq for m in node.peers[-1].submits]
            self.assertEqual(numbers, list(range(512, 602)))
            self.assertTrue(all(m.payload == b"" for m in node.peers[-1].submits[:-1]))

        run(answer, test)

    def test_full(self) -> None:
        async def test(node: Node, s: Session) -> None:
            node.answer = lambda p, m: None
            held = [s.submit_nowait(b"held") for _ in range(4)]
            with self.assertRaises(WindowFull) as caught:
                s.submit_nowait(b"one more")
            self.assertIs(caught.exception.fate, Fate.REFUSED)
            waits = asyncio.create_task(s.submit(b"waits"))
            await asyncio.sleep(0.02)
            node.answer = ack
            node.peers[-1].drop()
            self.assertEqual(len(await asyncio.gather(*held, waits)), 5)

        run(ack, test, max_in_flight=4)

    def test_given_up(self) -> None:
        """An order whose time is over is unknown, is never sent with its payload again, and its number is used up."""

        async def test(node: Node, s: Session) -> None:
            node.answer = lambda p, m: None
            with self.assertRaises(UnknownOutcome) as caught:
                await s.submit(b"late", timeout=0.1)
            self.assertEqual((caught.exception.fate, caught.exception.client_seq), (Fate.UNKNOWN, 1))
            node.answer = lambda p, m: p.ack(m) if m.payload else p.reject(m, 1)
            node.peers[-1].drop()
            await s.submit(b"next")
            self.assertEqual([(m.client_seq, m.payload) for m in node.peers[-1].submits], [(1, b""), (2, b"next")])

        run(ack, test)

    def test_cancelled(self) -> None:
        """A future that is cancelled before a node saw its order takes it back."""

        async def test(node: Node, s: Session) -> None:
            for wait in (0.0, 0.03):
                node.peers[-1].drop()
                while s.connection is not None:
                    await asyncio.sleep(0)
                future = s.submit_nowait(b"taken back")
                future.cancel()
                await asyncio.sleep(wait)
                self.assertIsInstance(await s.submit(b"kept"), Receipt)
            self.assertNotIn(b"taken back", [m.payload for p in node.peers for m in p.submits])

        run(ack, test)

    def test_not_sent(self) -> None:
        """Without a connection an order that runs out of time was not sent, and its number is used again."""

        async def test(node: Node, s: Session) -> None:
            node.refuse_open = [wire.GOAWAY.write(wire.GoawayFrame(4, "stopping"))] * 1000
            node.peers[-1].drop()
            await asyncio.sleep(0.02)
            with self.assertRaises(NotSent) as caught:
                await s.submit(b"never", timeout=0.2)
            self.assertIn("stopping", str(caught.exception))
            node.refuse_open = []
            await s.submit(b"next")
            self.assertEqual([(m.client_seq, m.payload) for m in node.peers[-1].submits], [(1, b"next")])

        run(ack, test)

    def test_attempts(self) -> None:
        """A node that has seen a higher attempt names it, and gets one that is higher still."""

        async def test(node: Node, s: Session) -> None:
            node.refuse_open = [wire.REJECT.write(wire.Reject(1, 40, 0, 0, 12, 0x10, 0, "moved"))]
            node.peers[-1].drop()
            await asyncio.sleep(0.02)
            await s.submit(b"order")
            self.assertEqual([m.attempt for m in node.opened], [1, 2, 41])

        run(ack, test)

    def test_not_permitted_is_final(self) -> None:
        async def test(node: Node, s: Session) -> None:
            node.refuse_open = [wire.REJECT.write(wire.Reject(1, 0, 0, 0, 15, 0x10, 0, "may not submit"))] * 9
            node.peers[-1].drop()
            await asyncio.sleep(0.02)
            with self.assertRaises(NotSent) as caught:
                await s.submit(b"order")
            self.assertIn("may not submit", str(caught.exception))

        run(ack, test)

    def test_silent_node(self) -> None:
        """A node that answers neither orders nor pings is left; the order is answered once."""

        async def test(node: Node, s: Session) -> None:
            first = node.peers[-1]

            def answer(p: Peer, m: wire.Submit) -> Optional[bytes]:
                if p is first:
                    first.ack(m)
                    first.writer.write = lambda data: None  # type: ignore[method-assign]
                    return None
                return p.ack(m)

            node.answer = answer
            receipt = await s.submit(b"order")
            self.assertTrue(receipt.duplicate)
            self.assertEqual(len(node.applied), 1)

        run(ack, test)

    def test_closed(self) -> None:
        async def test(node: Node, s: Session) -> None:
            node.answer = lambda p, m: None
            future = s.submit_nowait(b"order")
            await asyncio.sleep(0.05)
            await s.close()
            with self.assertRaises(UnknownOutcome):
                await future
            self.assertRaises(NotSent, s.submit_nowait, b"order")

        run(ack, test)


class Reads(unittest.TestCase):
    def test_another_order_is_no_answer(self) -> None:
        """A node that answers with another order than asked for, or half an entry, is not believed."""
        from ordergrid import _frames

        async def test(node: Node, s: Session) -> None:
            client, on_frame = AsyncClient(s._grid), node._on_frame
            log = next(
                bytes.fromhex(v["fields"]["entriesHex"]) for v in vectors("frames.json") if v["name"] == "LogChunk, three entries"
            )
            entries = [e.raw for e in read_entries(log)]
            for reply in (
                wire.GetReply(0, 1, 99, 0, b"no entry", 0),
                wire.GetReply(0, 1, 99, 3, b"", 0),
                wire.GetReply(0, 1, 99, 0, entries[0], 0),  # no order
                wire.GetReply(0, 1, 99, 0, entries[2], 0),  # entry 3, not 1
            ):

                def answer(peer: Peer, frame: bytes, reply: wire.GetReply = reply) -> Optional[bytes]:
                    if frame[4] == wire.GET.number:
                        return _frames.GET_REPLY.write(reply._replace(req_id=wire.GET.read(frame).req_id))
                    return on_frame(peer, frame)

                node._on_frame = answer  # type: ignore[method-assign]
                with self.assertRaises(Unavailable) as caught:
                    await client.get("p0/1", timeout=1.0)
                self.assertIn("allowed", str(caught.exception))

        run(ack, test)


if __name__ == "__main__":
    unittest.main()
