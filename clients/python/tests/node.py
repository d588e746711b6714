"""A scripted node, for what a real one does only rarely or never: it speaks the protocol and answers as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Optional

from ordergrid import _frames, wire

Answer = Callable[["Peer", wire.Submit], Optional[bytes]]


class Peer:
    """One connection of a client."""

    def __init__(self, node: Node, writer: asyncio.StreamWriter, number: int) -> None:
        self.node, self.writer, self.number = node, writer, number
        """number counts the connections that opened a session, from 1."""
        self.submits: list[wire.Submit] = []

    def ack(self, m: wire.Submit, seq: int = 0, flags: int = 0) -> bytes:
        """The order is in the log now, or was already."""
        if m.client_seq not in self.node.applied:
            self.node.applied[m.client_seq] = (seq or len(self.node.applied) + 10, m.payload)
        else:
            flags |= 1
        return wire.ACK.write(wire.Ack(m.client_seq, self.node.applied[m.client_seq][0], self.node.epoch, m.slot, 2, flags, 7, 1))

    def reject(self, m: wire.Submit, code: int, detail: int = 0) -> bytes:
        return wire.REJECT.write(wire.Reject(m.client_seq, detail, m.slot, 0, code, 0x20, 0, f"code {code}"))

    def drop(self) -> None:
        self.writer.transport.abort()


class Node:
    """The primary of partition 0 of 1. answer gives the answer to each Submit; None: none."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.epoch, self.slot, self.generation, self.window, self.last = 1, 3, 1, 512, 0
        self.applied: dict[int, tuple[int, bytes]] = {}
        """seq and payload of the numbers that are in the log."""
        self.opened: list[wire.OpenSession] = []
        self.peers: list[Peer] = []
        self.refuse_open: list[bytes] = []
        """Answers to the next OpenSessions, in place of SessionOpened."""
        self.address = ""
        self._server: Optional[asyncio.Server] = None

    async def __aenter__(self) -> Node:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = "127.0.0.1:%d" % self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        for p in self.peers:
            p.drop()
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(self, writer, 0)
        self.peers.append(peer)
        try:
            while True:
                head = await reader.readexactly(8)
                frame = head + await reader.readexactly(wire.frame_length(head, 0) - 8)
                out = self._on_frame(peer, frame)
                if out:
                    writer.write(out)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _on_frame(self, peer: Peer, frame: bytes) -> Optional[bytes]:
        number = frame[4]
        if number == wire.HELLO.number:
            return wire.WELCOME.write(wire.Welcome(4, 0, 1 << 20, self.window, "fake", "fake-0/0000000000000001"))
        if number == wire.TABLE_REQUEST.number:
            me = wire.TableMember(self.address, "fake-0/0000000000000001")
            part = wire.TablePart(0, self.epoch, 1, 0, 1, [me])
            return _frames.TABLE.write(wire.Table(wire.TABLE_REQUEST.read(frame).req_id, 1, [part]))
        if number == wire.PING.number:
            return wire.PONG.write(wire.PING.read(frame))
        if number == wire.OPEN_SESSION.number:
            return self._open(peer, wire.OPEN_SESSION.read(frame))
        m = wire.SUBMIT.read(frame)
        peer.submits.append(m)
        return self.answer(peer, m)

    def _open(self, peer: Peer, m: wire.OpenSession) -> bytes:
        self.opened.append(m)
        if self.refuse_open:
            return self.refuse_open.pop(0)
        peer.number = max(p.number for p in self.peers) + 1
        last = max([self.last, *self.applied])
        return wire.SESSION_OPENED.write(wire.SessionOpened(m.req_id, self.slot, self.generation, self.window, last, self.epoch))
