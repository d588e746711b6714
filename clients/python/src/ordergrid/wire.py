"""Frames of the protocol, version 4, as docs/protocol.md has them byte by byte.

A layout writes a message (a NamedTuple) as a whole frame and reads one back; it refuses whatever does not add up with a
FrameError. Only frames that a client sends or gets are here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Generic, NamedTuple, Optional, TypeVar

from .errors import FrameError

VERSION = 4
MAGIC = 0x3152474F  # "OGR1"
HEADER = 8
MAX_FRAME = 1 << 20
MAX_PAYLOAD = 65_472
MAX_STRING = 255
MAX_TOKEN = 16_384
MAX_PARTITIONS = 1024
NO_PRIMARY = 255
_U64 = 0xFFFFFFFFFFFFFFFF

header = struct.Struct("<IBBH")
_T = TypeVar("_T", bound=NamedTuple)


class Hello(NamedTuple):
    magic: int
    min_version: int
    max_version: int
    role: int
    boot_id: int
    grid: str
    member: str
    address: str


class Welcome(NamedTuple):
    version: int
    features: int
    max_frame: int
    window: int
    grid: str
    member: str


class GoawayFrame(NamedTuple):
    code: int
    text: str


class Authenticate(NamedTuple):
    req_id: int
    token: bytes


class Authenticated(NamedTuple):
    req_id: int
    permissions: int
    for_s: int
    user: str


class Request(NamedTuple):
    """TableRequest, Ping and Pong."""

    req_id: int


class TableMember(NamedTuple):
    address: str
    member: str


class TablePart(NamedTuple):
    partition: int
    epoch: int
    lineage: int
    primary: int
    n_in_sync: int
    members: list[TableMember]


class Table(NamedTuple):
    req_id: int
    partitions: int
    parts: list[TablePart]
    by_symbol: bool = False


class OpenSession(NamedTuple):
    req_id: int
    id_hi: int
    id_lo: int
    epoch: int
    attempt: int


class SessionOpened(NamedTuple):
    req_id: int
    slot: int
    generation: int
    window: int
    last_client_seq: int
    epoch: int


class Submit(NamedTuple):
    epoch: int
    slot: int
    generation: int
    client_seq: int
    payload: bytes


class Ack(NamedTuple):
    client_seq: int
    seq: int
    epoch: int
    slot: int
    copies: int
    flags: int
    hash: int
    lineage: int


class Reject(NamedTuple):
    request_id: int
    detail: int
    slot: int
    tag: int
    code: int
    for_type: int
    limit: int
    text: str


class NotPrimaryFrame(NamedTuple):
    request_id: int
    epoch: int
    slot: int
    for_type: int
    address: str
    member: str


class Get(NamedTuple):
    req_id: int
    seq: int
    by: int
    mode: int
    key: bytes


class GetReply(NamedTuple):
    req_id: int
    epoch: int
    commit_seq: int
    status: int
    entry: bytes
    freed: int


class ReadLog(NamedTuple):
    req_id: int
    from_seq: int
    max_bytes: int


class LogChunk(NamedTuple):
    req_id: int
    epoch: int
    commit_seq: int
    last_seq: int
    last_hash: int
    first_seq: int
    entries: bytes


class Follow(NamedTuple):
    req_id: int
    from_seq: int
    from_hash: int
    lineage: int
    window: int
    filter: int
    name: str
    value: str


class FollowEntries(NamedTuple):
    req_id: int
    from_seq: int
    through: int
    commit_seq: int
    through_hash: int
    lineage: int
    window: int
    entries: bytes


class FollowCredit(NamedTuple):
    req_id: int
    through: int
    window: int


class FollowEnd(NamedTuple):
    req_id: int
    seq: int
    hash: int
    reason: int
    text: str


class Advance(NamedTuple):
    req_id: int
    seq: int
    hash: int
    name: str


class Advanced(NamedTuple):
    req_id: int
    seq: int


def frame_length(data: bytes, at: int) -> int:
    """Length of the frame that begins there, once 4 bytes of it are; a FrameError when no frame is so long."""
    length: int = struct.unpack_from("<I", data, at)[0]
    if not HEADER <= length <= MAX_FRAME:
        raise FrameError("", "length", length, "8..1048576 bytes")
    return length


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def from_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def cut_strings(frame: str, data: bytes, names: tuple[str, ...]) -> tuple[list[str], bytes]:
    """Strings with a length byte each, and what is behind them."""
    out: list[str] = []
    for name in names:
        n = data[0] if data else 0
        if len(data) < 1 + n:
            raise FrameError(frame, name + "Len", n, "one length byte, and no more than the bytes that follow")
        out.append(to_text(data[1 : 1 + n]))
        data = data[1 + n :]
    return out, data


class Layout(Generic[_T]):
    """How a message is a frame: fixed fields, then strings, text with its length, bytes, or nothing.

    fixed has a struct format behind the header; size is the field of fixed that has the length of what follows, by its
    index. strings are their names; tail is "" (nothing), "text", "bytes" or "entries".
    """

    def __init__(
        self, number: int, make: Callable[..., _T], fixed: str, name: str = "", strings: tuple[str, ...] = (), tail: str = "",
        size: tuple[str, int, int] = ("", -1, 0), check: Optional[Callable[[_T], Optional[tuple[str, int, str]]]] = None,
    ) -> None:  # fmt: skip
        self.number, self.make, self.fixed = number, make, struct.Struct("<8x" + fixed)
        self.name = name or make.__name__
        self.strings, self.tail, self.check = strings, tail, check
        self.size_name, self.size_at, self.size_max = size

    def write(self, m: _T, partition: int = 0) -> bytes:
        """The frame."""
        n = len(m) - len(self.strings) - (1 if self.tail else 0)
        fixed, tail = list(m[:n]), b""
        for s in m[n : n + len(self.strings)]:
            b = from_text(s)[:MAX_STRING]
            tail += bytes([len(b)]) + b
        if self.tail:
            last = m[-1]
            tail = from_text(last) if isinstance(last, str) else last
        if self.size_at >= 0:
            tail = tail[: self.size_max]
            fixed.insert(self.size_at, len(tail))
        out = bytearray(self.fixed.pack(*fixed)) + tail
        header.pack_into(out, 0, len(out), self.number, 0, partition)
        return bytes(out)

    def read(self, frame: bytes) -> _T:
        """The message."""
        self.open(frame, self.fixed.size, not self.strings and not self.tail)
        fields = list(self.fixed.unpack_from(frame))
        rest = frame[self.fixed.size :]
        if self.size_at >= 0:
            n = fields.pop(self.size_at)
            if n != len(rest) or n > self.size_max:
                raise FrameError(self.name, self.size_name, n, f"the bytes that follow, at most {self.size_max}")
        if self.strings:
            strings, rest = cut_strings(self.name, rest, self.strings)
            fields += strings
        if self.tail == "text":
            fields.append(to_text(rest))
        elif self.tail:
            if self.tail == "entries" and len(rest) % 8:
                raise FrameError(self.name, "entries", len(rest), "a multiple of 8 bytes")
            fields.append(rest)
        elif rest:
            raise FrameError(self.name, "tail", len(rest), "no bytes after the last field")
        m = self.make(*fields)
        wrong = self.check(m) if self.check else None
        if wrong:
            raise FrameError(self.name, *wrong)
        return m

    def open(self, frame: bytes, fixed: int, exact: bool) -> None:
        """Checks length and type."""
        n = len(frame)
        if n < HEADER:
            raise FrameError(self.name, "length", n, "at least 8 bytes")
        length, number, _, _ = header.unpack_from(frame)
        if number != self.number:
            raise FrameError(self.name, "type", number, self.name)
        if length != n or n > MAX_FRAME:
            raise FrameError(self.name, "length", length, "the frame's own size, at most 1048576")
        if n < fixed or exact and n != fixed:
            raise FrameError(self.name, "length", n, f"{'exactly' if exact else 'at least'} {fixed} bytes")


def _hello(m: Hello) -> Optional[tuple[str, int, str]]:
    if m.magic != MAGIC:
        return "magic", m.magic, 'the bytes "OGR1"'
    if m.min_version > m.max_version:
        return "minVersion", m.min_version, "at most maxVersion"
    return None if 1 <= m.role <= 5 else ("role", m.role, "1 client, 2 peer, 3 admin, 4 liveness, 5 bulk")


def _open_session(m: OpenSession) -> Optional[tuple[str, int, str]]:
    if not m.id_hi | m.id_lo:
        return "id", 0, "128 random bits, not all 0"
    return None if m.attempt else ("attempt", 0, "1 or more, one more for every connection that opens the id")


def _get(m: Get) -> Optional[tuple[str, int, str]]:
    if m.by not in (1, 2, 3):
        return "by", m.by, "1 seq, 2 ClOrdID, 3 ClOrdID of a FIX session"
    if m.by == 3 and len(m.key) <= 20:
        return "keyLen", len(m.key), "21..255 of a FIX session"
    if not 1 <= m.mode <= 3:
        return "mode", m.mode, "1 confirmed, 2 leased, 3 backup"
    return None if (m.by != 1) == bool(m.key) else ("keyLen", len(m.key), "0 by seq, 1..255 by ClOrdID")


def _follow(m: Follow) -> Optional[tuple[str, int, str]]:
    if not m.window:
        return "window", 0, "1 or more bytes"
    if m.filter > 1:
        return "filter", m.filter, "0 none, 1 account"
    if (m.filter == 0) != (m.value == "") or len(m.value) > 64:
        return "valueLen", len(m.value), "0 without a filter, 1..64 with one"
    return ("fromHash", m.from_hash, "0 where no entry is before fromSeq") if m.from_seq <= 1 and m.from_hash else None


def _follow_entries(m: FollowEntries) -> Optional[tuple[str, int, str]]:
    if not m.from_seq:
        return "from", 0, "1 or more"
    if not m.from_seq - 1 <= m.through <= m.commit_seq:
        return "through", m.through, "from-1 or more, at most commitSeq"
    return ("entries", len(m.entries), "none where none was examined") if m.through < m.from_seq and m.entries else None


HELLO = Layout(0x01, Hello, "IHHB3xQ", strings=("grid", "member", "address"), check=_hello)
WELCOME = Layout(0x02, Welcome, "HHII", strings=("grid", "member"))
GOAWAY = Layout(0x03, GoawayFrame, "HH", "Goaway", tail="text", size=("textLen", 1, 1024))
AUTHENTICATE = Layout(
    0x04, Authenticate, "QI", tail="bytes", size=("tokenLen", 1, MAX_TOKEN),
    check=lambda m: None if m.token else ("tokenLen", 0, "1..16384"),
)  # fmt: skip
TABLE_REQUEST = Layout(0x05, Request, "Q", "TableRequest")
AUTHENTICATED = Layout(0x07, Authenticated, "QH2xI", strings=("user",))
OPEN_SESSION = Layout(0x10, OpenSession, "QQQQQ", check=_open_session)
SESSION_OPENED = Layout(0x11, SessionOpened, "QIII4xQQ")
SUBMIT = Layout(0x20, Submit, "QIIQ", tail="bytes", check=lambda m: None if m.client_seq else ("clientSeq", 0, "1 or more"))
ACK = Layout(0x21, Ack, "QQQIBB2xQI4x")
REJECT = Layout(0x22, Reject, "QQIIHBxH2xQ", tail="text", size=("textLen", 6, 1024))
NOT_PRIMARY = Layout(0x23, NotPrimaryFrame, "QQIB3x", "NotPrimary", strings=("address", "member"))
GET = Layout(0x30, Get, "QQBBH4x", tail="bytes", size=("keyLen", 4, 255), check=_get)
READ_LOG = Layout(0x60, ReadLog, "QQI4x")
LOG_CHUNK = Layout(0x61, LogChunk, "QQQQQQ", tail="entries")
PING = Layout(0x62, Request, "Q", "Ping")
PONG = Layout(0x63, Request, "Q", "Pong")
FOLLOW = Layout(0x68, Follow, "QQQIIB3x", strings=("name", "value"), check=_follow)
FOLLOW_ENTRIES = Layout(0x69, FollowEntries, "QQQQQII", tail="entries", check=_follow_entries)
FOLLOW_CREDIT = Layout(0x6A, FollowCredit, "QQI4x")
FOLLOW_END = Layout(0x6B, FollowEnd, "QQQHH", tail="text", size=("textLen", 4, 1024))
ADVANCE = Layout(0x6C, Advance, "QQQ", strings=("name",), check=lambda m: None if m.seq else ("seq", 0, "1 or more"))
ADVANCED = Layout(0x6D, Advanced, "QQ")
