"""The two frames whose layout is their own: Table, a list of lists, and GetReply, whose tail follows its status."""

from __future__ import annotations

import struct

from .errors import FrameError
from .wire import HEADER, MAX_PARTITIONS, NO_PRIMARY, GetReply, Layout, Table, TableMember, TablePart, cut_strings, header

_part = struct.Struct("<HQIBBB")


def _string(text: str) -> bytes:
    b = text.encode("utf-8", "surrogateescape")
    return bytes([len(b)]) + b

_BY_SYMBOL = 1  # the flag of Table: orders belong to the partition of their symbol


class TableLayout(Layout[Table]):
    """Table."""

    def __init__(self) -> None:
        super().__init__(0x06, Table, "QHH")

    def write(self, m: Table, partition: int = 0) -> bytes:
        out = bytearray(self.fixed.pack(m.req_id, m.partitions, len(m.parts)))
        for p in m.parts:
            out += _part.pack(p.partition, p.epoch, p.lineage, p.primary, len(p.members), p.n_in_sync)
            for member in p.members:
                out += _string(member.address) + _string(member.member)
        header.pack_into(out, 0, len(out), self.number, _BY_SYMBOL if m.by_symbol else 0, partition)
        return bytes(out)

    def read(self, frame: bytes) -> Table:
        self.open(frame, self.fixed.size, False)
        req_id, partitions, n = self.fixed.unpack_from(frame)
        rest = frame[self.fixed.size :]
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise FrameError("Table", "partitions", partitions, "1..1024")
        if n * _part.size > len(rest):
            raise FrameError("Table", "nParts", n, "no more than fit the frame")
        parts: list[TablePart] = []
        for _ in range(n):
            part, rest = self._cut(rest)
            if part.partition >= partitions:
                raise FrameError("Table", "partition", part.partition, "below partitions")
            parts.append(part)
        if rest:
            raise FrameError("Table", "tail", len(rest), "no bytes after the last field")
        return Table(req_id, partitions, parts, bool(frame[5] & _BY_SYMBOL))

    def _cut(self, data: bytes) -> tuple[TablePart, bytes]:
        if len(data) < _part.size:
            raise FrameError("Table", "parts", len(data), "17 bytes and the members")
        number, epoch, lineage, primary, n, in_sync = _part.unpack_from(data)
        if n > 8:
            raise FrameError("Table", "nMembers", n, "0..8")
        if in_sync > n:
            raise FrameError("Table", "nInSync", in_sync, "at most nMembers")
        if primary not in (NO_PRIMARY, *range(n)):
            raise FrameError("Table", "primary", primary, "an index below nMembers, or 255")
        strings, rest = cut_strings("Table", data[_part.size :], ("address", "member") * n)
        members = [TableMember(strings[i], strings[i + 1]) for i in range(0, 2 * n, 2)]
        return TablePart(number, epoch, lineage, primary, in_sync, members), rest


class GetReplyLayout(Layout[GetReply]):
    """GetReply."""

    def __init__(self) -> None:
        super().__init__(0x31, GetReply, "QQQB7x")

    def write(self, m: GetReply, partition: int = 0) -> bytes:
        out = bytearray(self.fixed.pack(*m[:4]))
        out += m.freed.to_bytes(8, "little") if m.status == 2 else m.entry
        header.pack_into(out, 0, len(out), self.number, 0, partition)
        return bytes(out)

    def read(self, frame: bytes) -> GetReply:
        self.open(frame, self.fixed.size, False)
        req_id, epoch, commit_seq, status = self.fixed.unpack_from(frame)
        rest = frame[HEADER + 32 :]
        if status > 2:
            raise FrameError("GetReply", "status", status, "0 found, 1 not found, 2 freed")
        if status == 2:
            if len(rest) != 8:
                raise FrameError("GetReply", "freed", len(rest), "8 bytes")
            return GetReply(req_id, epoch, commit_seq, status, b"", int.from_bytes(rest, "little"))
        if (status == 0) != bool(rest):
            raise FrameError("GetReply", "entry", len(rest), "an entry when found, none otherwise")
        return GetReply(req_id, epoch, commit_seq, status, rest, 0)


TABLE = TableLayout()
GET_REPLY = GetReplyLayout()
