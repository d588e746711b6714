"""The plain client and the command line against real grids."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grid
from grid import PATIENT, id_in, order
from ordergrid import (
    TLS,
    Client,
    Closed,
    Fate,
    Goaway,
    InvalidArgument,
    LogEntry,
    NotFound,
    Order,
    OtherOrder,
    Position,
    ReadMode,
    Receipt,
    Rejected,
    TLSFailure,
    Unavailable,
    fix,
)


@unittest.skipUnless(grid.PROGRAM, "ORDERGRID_NODE names no grid-node program")
class PlainClient(unittest.TestCase):
    """Client, on one grid for all tests."""

    grid: grid.Grid
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.grid = grid.Grid()
        cls.addClassCleanup(cls.grid.stop)
        cls.client = Client(cls.grid.endpoints, grid="dev", **PATIENT)
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

    def _cli(self, *args: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "ordergrid", "--endpoint", ",".join(self.grid.endpoints), "--timeout", "30", *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        return done.returncode, done.stdout, done.stderr

    def test_command_line(self) -> None:
        code, name, err = self._cli("submit", "--cl-ord-id", "CLI-1")
        self.assertEqual((code, err), (0, ""))
        code, out, _ = self._cli("get", "CLI-1")
        got = json.loads(out)
        self.assertEqual((code, got["clOrdID"], got["symbol"]), (0, "CLI-1", "IBM"))
        self.assertTrue(name.startswith(got["id"]))
        partition, seq = got["id"].split("@")[0][1:].split("/")
        code, out, _ = self._cli("tail", "--partition", partition, "--after", str(int(seq) - 1), "--limit", "1")
        self.assertEqual((code, json.loads(out)["clOrdID"]), (0, "CLI-1"))
        code, _, err = self._cli("get", "--id", got["id"][:-1] + ("0" if got["id"][-1] != "0" else "1"))
        self.assertEqual(code, 1, err)
        code, _, err = self._cli("submit", "--cl-ord-id", "CLI-1")
        self.assertEqual((code, "refused" in err), (1, True), err)
        code, _, err = self._cli("submit")
        self.assertEqual((code, "allowed" in err), (2, True), err)
        self.assertEqual(self._cli("--help")[0], 0)

    def test_another_grid(self) -> None:
        with self.assertRaises(Goaway) as caught:
            Client(self.grid.endpoints, grid="other", **PATIENT)
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
            with Client(g.endpoints, tls=g.tls, **PATIENT) as client:
                receipt = client.submit(order("TLS-1"))
                self.assertEqual(client.get_by_cl_ord_id("TLS-1").id, receipt.id)
                self.assertEqual(len(client.submit_many([order(f"TLS-M-{i}") for i in range(1000)])), 1000)
                self.assertGreater(next(client.follow(receipt.partition)).through.seq, 0)
                with client.session(0) as session:
                    self.assertEqual(len({session.submit(order(id_in(0, 2, f"TLS-S{i}"))).seq for i in range(50)}), 50)
            with tempfile.NamedTemporaryFile("w", suffix=".token") as token:
                token.write("a-secret\n")
                token.flush()
                for source in (token.name, lambda: "a-secret"):  # a grid without authentication takes any
                    with Client(g.endpoints, tls=g.tls, token=source, **PATIENT) as client:
                        client.submit(order(f"TOKEN-{callable(source)}"))
            with self.assertRaises(InvalidArgument) as caught:
                Client(g.endpoints, tls=g.tls, token=lambda: "a-secret" * 4096)
            self.assertNotIn("a-secret", str(caught.exception))
            with self.assertRaises(TLSFailure, msg="without a certificate"):
                Client(g.endpoints, tls=TLS(g.tls.ca), **PATIENT)
            with self.assertRaises(TLSFailure, msg="another name"):
                Client(g.endpoints, tls=TLS(g.tls.ca, g.tls.cert, g.tls.key, name="elsewhere.example"), **PATIENT)
            with self.assertRaises(TLSFailure, msg="without TLS"):
                Client(g.endpoints, **PATIENT)
            code, text = g.verify()
            self.assertEqual(code, 0, text)


if __name__ == "__main__":
    unittest.main()
