"""Entries of a partition's log, names of orders, and positions in a log."""

from __future__ import annotations

import datetime
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple, Optional

from ._xxh64 import xxh64
from .errors import FrameError, InvalidArgument
from .wire import MAX_PARTITIONS

KINDS = {1: "noop", 2: "order", 3: "session", 4: "cursor", 5: "truncate", 6: "reader", 7: "fix"}
KINDS |= {8: "execute", 9: "market", 10: "continue"}  # of partitions that match
KINDS |= {11: "guard", 12: "functions", 14: "region"}  # a change of limits, of functions, of a region
KINDS |= {15: "drop-copy"}  # of whose reports a FIX session gets copies
ORDER = 2
EXECUTE = 8
_FIXED_PAYLOAD = {1: 16, 3: 16, 4: 8, 5: 8, 10: 0}
_header = struct.Struct("<IBBHQQIIQqBBHHBBHHI")
_READER = re.compile(rb"[a-z0-9-]{1,32}\Z")


class LogEntry(NamedTuple):
    """One entry. Offsets count in the payload, 0 for none."""

    size: int
    kind: int
    side: int
    cl_ord_id_off: int
    seq: int
    prev_hash: int
    epoch: int
    session: int
    client_seq: int
    time_ns: int
    cl_ord_id_len: int
    symbol_len: int
    symbol_off: int
    account_off: int
    account_len: int
    qty_off: int
    price_off: int
    raw: bytes
    """The entry as every replica stores it: header and payload."""

    @property
    def kind_name(self) -> str:
        return KINDS[self.kind]

    @property
    def payload(self) -> bytes:
        """Of an order the FIX message verbatim, of an execute 64 bytes of instruction and the message."""
        return self.raw[64:]

    @property
    def hash(self) -> int:
        """Covers the entries before, too; that of the order's receipt."""
        return xxh64(self.raw)

    @property
    def cl_ord_id(self) -> str:
        return self._text(self.cl_ord_id_off, self.cl_ord_id_len)

    @property
    def account(self) -> str:
        return self._text(self.account_off, self.account_len)

    @property
    def symbol(self) -> str:
        return self._text(self.symbol_off, self.symbol_len)

    @property
    def received(self) -> datetime.datetime:
        """When the primary received it; time_ns has the nanoseconds."""
        return datetime.datetime.fromtimestamp(self.time_ns / 1e9, datetime.timezone.utc)

    def _text(self, off: int, n: int) -> str:
        return self.raw[64 + off : 64 + off + n].decode("latin-1")


def _wrong(seq: int, field: str, value: int, allowed: str) -> FrameError:
    return FrameError(f"entry {seq}", field, value, allowed)


def read_entry(data: bytes) -> LogEntry:
    """The entry that data begins with, every field of it checked."""
    if len(data) < 64:
        raise _wrong(0, "bytes", len(data), "64 or more")
    fields = _header.unpack_from(data)
    size, seq = fields[0], fields[4]
    if not 64 <= size <= 65536 or size > len(data):
        raise _wrong(seq, "size", size, "64..65536 and no more than the bytes there")
    e = LogEntry._make((*fields[:15], fields[16], fields[17], data[:size]))
    _check(e, fields[15], fields[18])
    return e


def _check(e: LogEntry, flags: int, reserved: int) -> None:
    payload = e.size - 64
    if e.kind not in KINDS:
        raise _wrong(e.seq, "kind", e.kind, ", ".join(f"{k} {v}" for k, v in KINDS.items()))
    if payload != _FIXED_PAYLOAD.get(e.kind, payload):
        raise _wrong(e.seq, "size", e.size, f"{64 + _FIXED_PAYLOAD[e.kind]} for a {e.kind_name} entry")
    if e.kind == 6 and not _READER.match(e.raw[72:]):
        raise _wrong(e.seq, "size", e.size, "72 and a name of 1 to 32 lowercase letters, digits and hyphens")
    if not e.seq:
        raise _wrong(0, "seq", 0, "1 or more")
    if flags and (not flags & 1 or e.kind not in (ORDER, EXECUTE)):
        raise _wrong(e.seq, "flags", flags, "0, and an odd number for an order")
    if reserved:
        raise _wrong(e.seq, "reserved", reserved, "0")
    if e.kind == 7:
        _check_fix(e.seq, e.raw[64:])
    if e.kind == EXECUTE and payload <= 64:
        raise _wrong(e.seq, "size", e.size, "more than 128 for an execute entry")
    if e.kind in (ORDER, EXECUTE) and not (e.cl_ord_id_off and e.cl_ord_id_len):
        raise _wrong(e.seq, "clOrdIDOff", e.cl_ord_id_off, "1 or more: an order has a ClOrdID")
    if e.kind not in (ORDER, EXECUTE) and (e.side or e.cl_ord_id_off or any(e[10:17])):
        raise _wrong(e.seq, "clOrdIDOff", e.cl_ord_id_off, "0: only an order has fields")
    for name, off, n in (
        ("clOrdIDOff", e.cl_ord_id_off, e.cl_ord_id_len), ("symbolOff", e.symbol_off, e.symbol_len),
        ("accountOff", e.account_off, e.account_len), ("qtyOff", e.qty_off, 1 if e.qty_off else 0),
        ("priceOff", e.price_off, 1 if e.price_off else 0),
    ):  # fmt: skip
        if off + n > payload:
            raise _wrong(e.seq, name, off, "an offset inside the payload")


def _check_fix(seq: int, records: bytes) -> None:
    """The form of the records of FIX sessions, as far as a reader needs it."""
    if not records:
        raise _wrong(seq, "size", 64, "64 and one record or more for a fix entry")
    last, at = -1, 0
    while at < len(records):
        if len(records) - at < 24:
            raise _wrong(seq, "record", len(records) - at, "24 bytes and the body")
        slot, body = struct.unpack_from("<I14xH", records, at)
        end = at + 24 + (body + 7 & ~7)
        if body > 4096 or end > len(records):
            raise _wrong(seq, "bodySize", body, "0..4096, and no more than the bytes there")
        if slot <= last:
            raise _wrong(seq, "slot", slot, "rising slots")
        last, at = slot, end


def read_entries(data: bytes) -> Iterator[LogEntry]:
    """Entries that are padded to 8 bytes each, one after the other."""
    at = 0
    while at < len(data):
        e = read_entry(data[at : at + 65536])
        end = at + (e.size + 7 & ~7)
        if end > len(data):
            raise _wrong(e.seq, "padding", len(data) - at, "entries padded to 8 bytes")
        if any(data[at + e.size : end]):
            raise _wrong(e.seq, "padding", max(data[at + e.size : end]), "zero bytes")
        yield e
        at = end


class Position(NamedTuple):
    """A place in a partition's log: an entry, and what tells its history from others."""

    seq: int = 0
    hash: int = 0
    lineage: int = 0


class OrderID(NamedTuple):
    """Names an order: its place, and with epoch and hash (0: not known) no other one that ever gets the place."""

    partition: int
    seq: int
    epoch: int = 0
    hash: int = 0

    def __str__(self) -> str:
        text = f"p{self.partition}/{self.seq}"
        if self.hash:
            return f"{text}@{self.epoch}-{self.hash:016x}"
        return f"{text}@{self.epoch}" if self.epoch else text


_NAME = re.compile(r"p(0|[1-9]\d{0,3})/([1-9]\d*)(?:@([1-9]\d*)(?:-([0-9a-fA-F]{16}))?)?\Z", re.ASCII)


def parse_order_id(text: str) -> OrderID:
    """Reads p1/17, p1/17@3 or p1/17@3-1c9f0e2a77b3d401."""
    m = _NAME.match(text)
    if m:
        out = OrderID(int(m[1]), int(m[2]), int(m[3] or 0), int(m[4] or "0", 16))
        if out.partition < MAX_PARTITIONS and max(out.seq, out.epoch) < 1 << 64 and (out.hash or not m[4]):
            return out
    raise InvalidArgument("order id", text, "p1/17, p1/17@3 or p1/17@3-1c9f0e2a77b3d401")


class Receipt(NamedTuple):
    """An accepted order's place in the log and its safety."""

    partition: int
    seq: int
    """Its place in the partition's log, dense over all kinds of entries."""
    epoch: int
    copies: int
    """Processes that hold it in memory, the primary included."""
    duplicate: bool
    """The grid had applied this very submission before, and gave the stored reply again. It is not a second order."""
    hash: int
    """Of the log entry: another order that is ever given this place has another one. 0: the entry is freed."""
    lineage: int
    """Of the partition. When it is higher later, the loss of data has been accepted, and the order may be gone."""

    @property
    def id(self) -> OrderID:
        return OrderID(self.partition, self.seq, self.epoch, self.hash)

    def __str__(self) -> str:
        return f"{self.id} lineage {self.lineage} copies {self.copies}" + (" (duplicate)" if self.duplicate else "")


class Order(NamedTuple):
    """A committed order as it stands in the log."""

    partition: int
    entry: LogEntry
    commit_seq: int
    """Committed prefix of the replica that answered: how far a backup is."""
    address: str
    """Of that replica."""

    @property
    def id(self) -> OrderID:
        return OrderID(self.partition, self.entry.seq, self.entry.epoch, self.entry.hash)

    @property
    def fix(self) -> bytes:
        """The message verbatim."""
        return self.entry.payload

    @property
    def cl_ord_id(self) -> str:
        return self.entry.cl_ord_id


def partition_of(cl_ord_id: bytes, partitions: int) -> int:
    """The partition that an order with this ClOrdID belongs to, of as many."""
    return xxh64(cl_ord_id) % partitions


def find_cl_ord_id(fix: bytes) -> Optional[bytes]:
    """The value behind the first SOH and 11= of a FIX message, by which it is routed."""
    return find_value(fix, b"\x0111=")


def find_value(fix: bytes, tag: bytes) -> Optional[bytes]:
    """The value behind the first SOH and tag, such as 11=, of a FIX message."""
    at = fix.find(tag)
    if at < 0:
        return None
    end = fix.find(b"\x01", at + 4)
    value = fix[at + 4 : end if end >= 0 else len(fix)]
    return value or None
