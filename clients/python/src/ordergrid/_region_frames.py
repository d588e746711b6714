"""Frames of regions: their tails are several parts, whose lengths are fields."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple, Optional, TypeVar

from .errors import FrameError
from .wire import MAX_FRAME, Layout, Request, from_text, header, to_text

MAX_PAIR = 65_440
"""Bytes of a key and its value together."""
MAX_NAME = 48
PUT, PATCH, REMOVE, TAKE, CLEAR = 4, 5, 6, 7, 8
IF_ANY, IF_ABSENT, IF_VERSION = 0, 1, 2
HAS_VALUE = 2
"""The flag of RegionApplied: it has what a take removed."""

_T = TypeVar("_T", bound=NamedTuple)
_row = struct.Struct("<QqII")
_info = struct.Struct("<QQQqB")


class RegionApply(NamedTuple):
    epoch: int
    slot: int
    generation: int
    client_seq: int
    received: int
    op: int
    condition: int
    offset: int
    version: int
    life_ns: int
    region: str
    key: bytes
    value: bytes


class RegionApplied(NamedTuple):
    client_seq: int
    seq: int
    epoch: int
    slot: int
    copies: int
    flags: int
    hash: int
    lineage: int
    value: bytes


class RegionGet(NamedTuple):
    req_id: int
    mode: int
    region: str
    key: bytes


class RegionGot(NamedTuple):
    req_id: int
    epoch: int
    commit_seq: int
    version: int
    expire_ns: int
    value: bytes


class RegionScan(NamedTuple):
    req_id: int
    mode: int
    behind: int
    max_bytes: int
    region: str
    from_key: bytes
    prefix: bytes


class RegionPage(NamedTuple):
    req_id: int
    epoch: int
    commit_seq: int
    next: bytes
    rows: bytes


class RegionListed(NamedTuple):
    req_id: int
    used: int
    limit: int
    rows: bytes


class RegionRow(NamedTuple):
    version: int
    expire_ns: int
    key: bytes
    value: bytes


class RegionInfoRow(NamedTuple):
    entries: int
    bytes: int
    max_bytes: int
    life_ns: int
    name: str


class Parts(Layout[_T]):
    """A layout whose tail are the last fields of the message. parts are the lengths: the field's name and its place among
    the fixed fields. With exact the last length has to be all that follows, otherwise what is left is a tail too many."""

    def __init__(
        self, number: int, make: Callable[..., _T], fixed: str, parts: tuple[tuple[str, int], ...],
        check: Callable[[_T], Optional[tuple[str, int, str]]], exact: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(number, make, fixed, check=check)
        self.parts, self.exact = parts, exact

    def write(self, m: _T, partition: int = 0) -> bytes:
        n = len(m) - len(self.parts)
        fixed: list[Any] = list(m[:n])
        tail = b""
        for (_, at), part in zip(self.parts, m[n:]):
            b = from_text(part) if isinstance(part, str) else part
            fixed.insert(at, len(b))
            tail += b
        out = bytearray(self.fixed.pack(*fixed)) + tail
        header.pack_into(out, 0, len(out), self.number, 0, partition)
        return bytes(out)

    def read(self, frame: bytes) -> _T:
        self.open(frame, self.fixed.size, False)
        fields = list(self.fixed.unpack_from(frame))
        rest, tail = frame[self.fixed.size :], []
        for i, (name, at) in enumerate(self.parts):
            n = fields[at]
            last = self.exact and i == len(self.parts) - 1
            if n > len(rest) or last and n != len(rest) or name == "regionLen" and not n:
                raise FrameError(self.name, name, n, "with the lengths before it the bytes that follow, of a region 1 or more")
            tail.append(to_text(rest[:n]) if name == "regionLen" else rest[:n])
            rest = rest[n:]
        if rest:
            raise FrameError(self.name, "tail", len(rest), "no bytes after the last field")
        places = [at for _, at in self.parts]
        m = self.make(*(f for i, f in enumerate(fields) if i not in places), *tail)
        wrong = self.check(m) if self.check else None
        if wrong:
            raise FrameError(self.name, *wrong)
        return m


def _apply(m: RegionApply) -> Optional[tuple[str, int, str]]:
    keyed = m.op != CLEAR
    for wrong, field, value, allowed in (
        (not m.client_seq, "clientSeq", 0, "1 or more"),
        (m.received >= m.client_seq, "received", m.received, "less than clientSeq"),
        (not PUT <= m.op <= CLEAR, "op", m.op, "4 put, 5 patch, 6 remove, 7 take, 8 clear"),
        (
            m.condition > IF_VERSION or m.condition == IF_ABSENT and m.op != PUT or m.condition != IF_ANY and not keyed,
            "if", m.condition, "0 any, 1 absent of a put, 2 version",
        ),
        (keyed != bool(m.key), "keyLen", len(m.key), "1 or more, 0 of a clear"),
        (m.op > PATCH and bool(m.value), "value", len(m.value), "none but of a put or patch"),
        (m.offset != 0 and m.op != PATCH, "offset", m.offset, "0 but of a patch"),
        (m.life_ns < -1 or m.life_ns != 0 and m.op != PUT, "lifeNs", m.life_ns, "-1 or more of a put, 0 otherwise"),
    ):  # fmt: skip
        if wrong:
            return field, value, allowed
    return None


def _mode(mode: int) -> Optional[tuple[str, int, str]]:
    return None if 1 <= mode <= 3 else ("mode", mode, "1 confirmed, 2 leased, 3 backup")


def _get(m: RegionGet) -> Optional[tuple[str, int, str]]:
    return _mode(m.mode) if 1 <= len(m.key) <= MAX_PAIR else ("keyLen", len(m.key), "1..65440")


def _scan(m: RegionScan) -> Optional[tuple[str, int, str]]:
    if m.behind > 1:
        return "behind", m.behind, "0, 1"
    longest = max(len(m.from_key), len(m.prefix))
    return _mode(m.mode) if longest <= MAX_PAIR else ("fromLen", longest, "0..65440, the prefix too")


def _page(m: RegionPage) -> Optional[tuple[str, int, str]]:
    rows(m.rows)
    return None


def _listed(m: RegionListed) -> Optional[tuple[str, int, str]]:
    infos(m.rows)
    return None


def rows(data: bytes) -> list[RegionRow]:
    """The entries of a page."""
    out = []
    while data:
        if len(data) < _row.size:
            raise FrameError("RegionPage", "rows", len(data), "24 bytes, a key and a value each")
        version, expire_ns, key, value = _row.unpack_from(data)
        data = data[_row.size :]
        if key + value > len(data):
            raise FrameError("RegionPage", "keyLen", key, "with the value no more than the bytes that follow")
        out.append(RegionRow(version, expire_ns, data[:key], data[key : key + value]))
        data = data[key + value :]
    return out


def infos(data: bytes) -> list[RegionInfoRow]:
    """The regions of a partition."""
    out = []
    while data:
        if len(data) < _info.size or len(data) < _info.size + data[32]:
            raise FrameError("RegionListed", "rows", len(data), "33 bytes and a name each")
        entries, size, max_bytes, life_ns, n = _info.unpack_from(data)
        end = _info.size + n
        out.append(RegionInfoRow(entries, size, max_bytes, life_ns, to_text(data[_info.size : end])))
        data = data[end:]
    return out


REGION_APPLY = Parts(0x50, RegionApply, "QIIQQBBBxIQqII", (("regionLen", 7), ("keyLen", 11), ("valueLen", 12)), _apply)
REGION_APPLIED = Layout(
    0x51, RegionApplied, "QQQIBB2xQI4xQ", tail="bytes", size=("valueLen", 8, MAX_FRAME),
    check=lambda m: None if m.flags & HAS_VALUE or not m.value else ("value", len(m.value), "none but of a take"),
)  # fmt: skip
REGION_GET = Parts(0x52, RegionGet, "QBB2xI", (("regionLen", 2), ("keyLen", 3)), _get, exact=False)
REGION_GOT = Layout(
    0x53, RegionGot, "QQQQqQ", tail="bytes", size=("valueLen", 5, MAX_FRAME),
    check=lambda m: None if m.version or not m.value else ("value", len(m.value), "none without a version"),
)  # fmt: skip
REGION_SCAN = Parts(0x54, RegionScan, "QBBBxIII", (("regionLen", 2), ("fromLen", 5), ("prefixLen", 6)), _scan)
REGION_PAGE = Parts(0x55, RegionPage, "QQQII", (("nextLen", 3), ("nextLen", 4)), _page)
REGION_LIST = Layout(0x56, Request, "Q", "RegionList")
REGION_LISTED = Layout(0x57, RegionListed, "QQQQ", tail="bytes", size=("rowsLen", 3, MAX_FRAME), check=_listed)
