"""The codec against docs/protocol/vectors, which the Go codec makes."""

from __future__ import annotations

import json
import pathlib
import re
import unittest
from typing import Any

from ordergrid import _frames, _region_frames, fix, log, wire
from ordergrid._xxh64 import xxh64
from ordergrid.errors import FrameError, InvalidArgument

VECTORS = pathlib.Path(__file__).parents[3] / "docs" / "protocol" / "vectors"

# Frames of the node's file sinks, which this client does not read.
NOT_HERE = {"ListSinks", "SinkFiles", "ReadSink", "SinkChunk", "LinkOpen", "LinkEntries", "LinkState"} | {
    "FixOpen", "FixOpened", "FixSubmit", "FixAck", "FixReports", "FixStep", "FixStepped", "FixResend", "FixResent", "FixProbe", "FixHere",
    "Query", "QueryRows", "QueryEnd", "QueryCancel",
    "ReadRecords", "RecordsRead", "Stream", "StreamPart", "StreamSelect", "StreamSelected",
    "ReadBook", "BookLevels", "Market", "MarketDone", "ReadOrders", "OrdersShown",
    "Executions", "ReadExecutions", "ExecutionsRead", "PrepareExec", "PrepareExecAck",
    "Kill", "KillDone", "ReadKill", "KillIs", "ReadLimits", "LimitsAre",
    "Invoke", "Invoked", "Map", "MapPart", "MapOrders", "MapOrdersPart", "RegionBatch", "RegionBatched",
}  # fmt: skip

LAYOUTS: dict[str, wire.Layout[Any]] = {
    x.name: x for module in (wire, _frames, _region_frames) for x in vars(module).values() if isinstance(x, wire.Layout)
}  # fmt: skip


def vectors(name: str) -> list[dict[str, Any]]:
    with open(VECTORS / name, encoding="utf-8") as f:
        out: list[dict[str, Any]] = json.load(f)["vectors"]
    return out


def snake(name: str) -> str:
    """The name of a field here: req_id of reqID, n_in_sync of nInSync."""
    name = {"from": "from_seq", "if": "condition"}.get(name, name).replace("IDOff", "IdOff").replace("IDLen", "IdLen")
    return re.sub(r"(?<=[a-z])([A-Z]+)|([A-Z])(?=[a-z])", lambda m: "_" + m[0], name).lower()


def fields_of(frame: str, fields: dict[str, Any], message: Any) -> dict[str, Any]:
    """The vector's fields, typed as the message's are."""
    out: dict[str, Any] = {}
    for name, v in fields.items():
        key = snake(name[:-3] if name.endswith("Hex") else name)
        if (frame, name) == ("RegionScan", "from"):
            key = "from_key"
        if name.endswith("Hex"):
            out[key] = bytes.fromhex(v)
        elif key == "parts":
            out[key] = [
                wire.TablePart(
                    p["partition"], int(p["epoch"]), p["lineage"], p["primary"], p["nInSync"],
                    [wire.TableMember(m["address"], m["member"]) for m in p["members"]],
                ) for p in v
            ]  # fmt: skip
        elif isinstance(getattr(message, key), int):
            out[key] = int(v)
        elif isinstance(getattr(message, key), bytes):
            out[key] = v.encode()
        else:
            out[key] = v
    return out


class Frames(unittest.TestCase):
    def test_frames(self) -> None:
        seen = set()
        for v in vectors("frames.json"):
            if v["frame"] in NOT_HERE:
                continue
            seen.add(v["frame"])
            with self.subTest(v["name"]):
                layout, data = LAYOUTS[v["frame"]], bytes.fromhex(v["hex"])
                self.assertEqual(layout.number, v["type"])
                m = layout.read(data)
                have = m._asdict()
                have.pop("magic", None)
                self.assertEqual(have, fields_of(v["frame"], v["fields"], m))
                if "ignored" not in v["name"] and "unknown flags" not in v["name"]:
                    self.assertEqual(layout.write(m, v["partition"]).hex(), v["hex"])
                self.assertEqual(wire.frame_length(data, 0), len(data))
        self.assertEqual(seen, set(LAYOUTS), "every frame has vectors")

    def test_hostile(self) -> None:
        for v in vectors("hostile.json"):
            if v["frame"] in NOT_HERE:
                continue
            data = bytes.fromhex(v["hex"])
            with self.subTest(v["name"]), self.assertRaises(FrameError) as caught:
                if v["frame"]:
                    LAYOUTS[v["frame"]].read(data)
                else:
                    wire.frame_length(data, 0)
            self.assertEqual(caught.exception.field, v["field"], v["name"])

    def test_every_cut_is_refused(self) -> None:
        """No prefix of a frame is taken, and none reads outside of it."""
        for name, layout in LAYOUTS.items():
            data = next(bytes.fromhex(v["hex"]) for v in vectors("frames.json") if v["frame"] == name)
            for n in range(len(data)):
                with self.subTest(f"{name}, {n} bytes"), self.assertRaises(FrameError):
                    layout.read(data[:n])


class Log(unittest.TestCase):
    def test_entries(self) -> None:
        chain = 0
        for v in vectors("entries.json"):
            data = bytes.fromhex(v["hex"])
            with self.subTest(v["name"]):
                if v.get("refused"):
                    with self.assertRaises(FrameError) as caught:
                        list(log.read_entries(data))
                    self.assertEqual(caught.exception.field, v["field"])
                    continue
                e = log.read_entry(data)
                for name, want in v["fields"].items():
                    have = getattr(e, snake(name))
                    self.assertEqual(
                        f"{have:016x}" if name == "prevHash" else have, want if name == "prevHash" else int(want), name
                    )
                self.assertEqual((e.cl_ord_id, e.account, e.payload.hex()), (v["clOrdID"], v["account"], v["payloadHex"]))
                self.assertEqual(f"{e.hash:016x}", v["hash"])
                padded = data + bytes(v["padded"] - len(data))
                self.assertEqual(list(log.read_entries(padded)), [e])
                if v["name"].startswith("log, "):
                    self.assertEqual(e.prev_hash, chain)
                    chain = e.hash
        self.assertNotEqual(chain, 0)

    def test_hashes(self) -> None:
        routed = 0
        for v in vectors("hashes.json"):
            data = bytes.fromhex(v["hex"])
            self.assertEqual(f"{xxh64(data):016x}", v["hash"], v["hex"])
            for n, partition in v.get("partitions", {}).items():
                routed += 1
                self.assertEqual(log.partition_of(v["clOrdID"].encode(), int(n)), partition, v["clOrdID"])
        self.assertGreater(routed, 50)

    def test_names(self) -> None:
        for v in vectors("names.json"):
            with self.subTest(v["text"]):
                if v.get("refused"):
                    self.assertRaises(InvalidArgument, log.parse_order_id, v["text"])
                    continue
                want = log.OrderID(v["partition"], int(v["seq"]), int(v["epoch"]), int(v["hash"], 16))
                self.assertEqual(log.parse_order_id(v["text"]), want)
                self.assertEqual(str(want), v["text"])


class Orders(unittest.TestCase):
    def test_orders(self) -> None:
        for v in vectors("orders.json"):
            if v.get("refused"):
                continue
            message = bytes.fromhex(v["hex"])
            with self.subTest(v["name"]):
                if "data" not in v["name"]:  # 11= in data misleads a client that does not read it
                    self.assertEqual(log.find_cl_ord_id(message), v["clOrdID"].encode())
                self.assertEqual(fix.rebuild(message), message, "the envelope this package makes")

    def test_new_order(self) -> None:
        message = fix.new_order_single("ORD-1", symbol="IBM", side="1", qty=100, price="104.25", account="ACCT-7")
        self.assertEqual(log.find_cl_ord_id(message), b"ORD-1")
        self.assertEqual(fix.rebuild(message), message)
        with self.assertRaises(InvalidArgument):
            fix.new_order_single("ORD\x01", symbol="IBM", side="1", qty=100)


if __name__ == "__main__":
    unittest.main()
