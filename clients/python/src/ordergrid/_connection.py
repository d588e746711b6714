"""A connection to a node: TCP or TLS, the handshake, frames; and requests that share one."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Optional

from . import wire
from .config import Config, split_address
from .errors import FrameError, Goaway, NotPrimary, OrderGridError, ProtocolError, Rejected, TLSFailure, Unavailable

_length = struct.Struct("<I").unpack_from
Handler = Callable[[int, bytes], None]
"""Takes the number of a frame and its bytes. What it raises ends the connection."""


def printable(text: str) -> str:
    """Text of a peer, safe for logs and terminals."""
    return "".join(c if c.isprintable() else "?" for c in text)


class Lost(OrderGridError):
    """The connection ended; the request may be asked again."""


class Connection(asyncio.Protocol):
    """Frames to and from a node."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.member = ""
        self._loop = asyncio.get_running_loop()
        self.heard = self._loop.time()
        """When the last bytes came."""
        self.on_lost: Callable[[BaseException], None] = lambda _: None
        self.error: Optional[BaseException] = None
        self._transport: Optional[asyncio.Transport] = None
        self._rest = b""
        self._handler: Optional[Handler] = None
        self._inbox: deque[bytes] = deque()
        self._waiter: Optional[asyncio.Future[None]] = None

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard = self._loop.time()
        if self._rest:
            data = self._rest + data
        at, n = 0, len(data)
        try:
            while n - at >= 4:
                length = _length(data, at)[0]
                if not 8 <= length <= wire.MAX_FRAME:
                    wire.frame_length(data, at)
                if n - at < length:
                    break
                frame = data[at : at + length]
                at += length
                if self._handler is None:
                    self._inbox.append(frame)
                    self._wake()
                else:
                    self._handler(frame[4], frame)
                if self.error is not None:
                    return
            self._rest = data[at:]
        except FrameError as e:
            self.fail(ProtocolError(self.address, str(e)))
        except Exception as e:  # the handler's reason to end the connection
            self.fail(e)

    def connection_lost(self, exc: Optional[Exception]) -> None:
        if isinstance(exc, ssl.SSLError):
            self.fail(_tls_failure(self.address, exc))
        self.fail(Lost(f"{self.address}: connection lost: {exc or 'closed by the node'}"))

    # its user

    def write(self, data: bytes) -> None:
        """Sends whole frames; nothing on a connection that ended."""
        if self._transport is not None and self.error is None:
            self._transport.write(data)

    def plain_file(self) -> int:
        """The file of a connection without TLS on which nothing waits to be written; -1 for others."""
        t = self._transport
        if t is None or t.get_extra_info("sslcontext") is not None or t.get_write_buffer_size():
            return -1
        return int(t.get_extra_info("socket").fileno())

    def fail(self, error: BaseException) -> None:
        """Ends the connection; its user is told once."""
        if self.error is not None:
            return
        self.error = error
        if self._transport is not None:
            self._transport.abort()
        self._wake()
        self.on_lost(error)

    def handle(self, handler: Handler) -> None:
        """From here on frames go to handler, those that came already first."""
        self._handler = handler
        while self._inbox and self.error is None:
            frame = self._inbox.popleft()
            try:
                handler(frame[4], frame)
            except Exception as e:
                self.fail(e)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next_frame(self) -> bytes:
        """Before handle was called: the next frame. Goaway is raised."""
        while not self._inbox:
            if self.error is not None:
                raise self.error
            self._waiter = self._loop.create_future()
            await self._waiter
        frame = self._inbox.popleft()
        if frame[4] == wire.GOAWAY.number:
            raise goaway(self.address, frame)
        return frame

    def read(self, layout: wire.Layout[Any], frame: bytes) -> Any:
        """A message of this layout; anything else is a violation of the protocol."""
        try:
            return layout.read(frame)
        except FrameError as e:
            raise ProtocolError(self.address, str(e)) from None


def goaway(address: str, frame: bytes) -> OrderGridError:
    """The reason in a Goaway frame."""
    try:
        m = wire.GOAWAY.read(frame)
    except FrameError as e:
        return ProtocolError(address, str(e))
    if m.code == 7:
        return TLSFailure(f"{address} speaks TLS only: set tls (TLS(ca=…), with cert and key or a token)")
    return Goaway(address, m.code, printable(m.text))


def refusal(address: str, frame: bytes) -> Optional[OrderGridError]:
    """What Reject and NotPrimary say; None of other frames."""
    partition = int.from_bytes(frame[6:8], "little")
    try:
        if frame[4] == wire.REJECT.number:
            r = wire.REJECT.read(frame)
            return Rejected(partition, r.code, r.tag, r.detail, r.limit, printable(r.text), address)
        if frame[4] == wire.NOT_PRIMARY.number:
            n = wire.NOT_PRIMARY.read(frame)
            return NotPrimary(partition, address, n.epoch, n.address)
    except FrameError as e:
        return ProtocolError(address, str(e))
    return None


def _tls_failure(address: str, error: ssl.SSLError) -> TLSFailure:
    reason = getattr(error, "verify_message", "") or error.reason or str(error)
    return TLSFailure(
        f"{address}: TLS: {reason}; the node has to speak TLS, its certificate to be signed by TLS.ca for TLS.name, and "
        "the client needs TLS.cert and TLS.key where the grid takes no tokens"
    )


async def dial(config: Config, address: str, more: bytes = b"") -> Connection:
    """Connects, and says who is there. more is sent right behind, without waiting where no token has to be taken first."""
    host, port = split_address(address)
    loop = asyncio.get_running_loop()
    context = config.tls.context() if config.tls is not None else None
    name = (config.tls.name or host) if config.tls is not None else None
    try:
        _, c = await loop.create_connection(lambda: Connection(address), host, port, ssl=context, server_hostname=name)
    except ssl.SSLError as e:
        raise _tls_failure(address, e) from e
    except OSError as e:
        raise Lost(f"{address}: {e}") from e
    try:
        await _greet(config, c, more)
    except BaseException as e:
        c.fail(e)
        raise
    return c


async def _greet(config: Config, c: Connection, more: bytes) -> None:
    hello = wire.HELLO.write(wire.Hello(wire.MAGIC, wire.VERSION, wire.VERSION, 1, 0, config.grid, config.name, ""))
    c.write(hello + more if config.token is None else hello)
    m = c.read(wire.WELCOME, await c.next_frame())
    if m.version != wire.VERSION:
        raise ProtocolError(c.address, f"Welcome.version is {m.version}, allowed: {wire.VERSION}")
    if config.grid and m.grid != config.grid:
        raise Goaway(c.address, 3, f"it is a node of grid {printable(m.grid)!r}, wanted: {config.grid!r}")
    c.member = m.member
    if config.token is not None:
        c.write(wire.AUTHENTICATE.write(wire.Authenticate(1, config.read_token())))
        c.read(wire.AUTHENTICATED, await c.next_frame())
        c.write(more)


class Caller:
    """Requests and answers over one connection, by their request id."""

    ANSWERS = {x.number for x in (wire.PONG, wire.LOG_CHUNK, wire.REJECT, wire.NOT_PRIMARY, wire.ADVANCED)} | {0x06, 0x31}
    ANSWERS |= {0x53, 0x55, 0x57}  # of regions

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._next = 0
        self._calls: dict[int, asyncio.Future[bytes]] = {}
        connection.on_lost = self._lost
        connection.handle(self._on_frame)

    async def call(self, request: Callable[[int], bytes], timeout: float) -> bytes:
        """The answer to the frame that request makes with an id. Reject and NotPrimary are raised."""
        c = self.connection
        if c.error is not None:
            raise Lost(str(c.error)) from c.error
        self._next += 1
        req_id = self._next
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        self._calls[req_id] = answer
        timer = loop.call_later(timeout, self._overdue, answer, loop.time())
        c.write(request(req_id))
        try:
            frame = await answer
        finally:
            timer.cancel()
            self._calls.pop(req_id, None)
        error = refusal(c.address, frame)
        if error is not None:
            raise error
        return frame

    def _overdue(self, answer: asyncio.Future[bytes], asked: float) -> None:
        c = self.connection
        if not answer.done():
            answer.set_exception(Unavailable(f"{c.address}: no answer in time"))
        if c.heard < asked:  # not even to others: something on the way may have dropped the connection
            c.fail(Lost(f"{c.address}: silent"))

    def _on_frame(self, number: int, frame: bytes) -> None:
        if number == wire.GOAWAY.number:
            raise goaway(self.connection.address, frame)
        if number not in self.ANSWERS or len(frame) < 16:
            raise ProtocolError(self.connection.address, f"a frame of type 0x{number:02x} was not asked for")
        req_id = int.from_bytes(frame[8:16], "little")
        if not 1 <= req_id <= self._next:
            raise ProtocolError(self.connection.address, f"reqID is {req_id}, allowed: 1..{self._next}")
        answer = self._calls.get(req_id)
        if answer is not None and not answer.done():
            answer.set_result(frame)

    def _lost(self, error: BaseException) -> None:
        for answer in self._calls.values():
            if not answer.done():
                lost = error if isinstance(error, (Goaway, TLSFailure, ProtocolError)) else Lost(str(error))
                answer.set_exception(lost)
