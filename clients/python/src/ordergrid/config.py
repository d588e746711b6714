"""What a client is told when it is made."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from .errors import InvalidArgument
from .wire import MAX_STRING, MAX_TOKEN

MAX_WINDOW = 1 << 16


@dataclass(frozen=True)
class TLS:
    """PEM files for connections over TLS 1.3. They are read at each connection, so they can be replaced.

    ca has the authorities that sign nodes; cert and key, both or none, prove who the client is (mTLS). name is the name
    in the nodes' certificates; empty: the host that is dialled.
    """

    ca: str
    cert: str = ""
    key: str = ""
    name: str = ""

    def context(self) -> ssl.SSLContext:
        """For one connection. Errors name the file."""
        out = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        out.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            out.load_verify_locations(self.ca)
        except (OSError, ssl.SSLError) as e:
            raise InvalidArgument("TLS.ca", self.ca, f"a file with one PEM certificate or more ({e})") from e
        if self.cert:
            try:
                out.load_cert_chain(self.cert, self.key)
            except (OSError, ssl.SSLError) as e:
                raise InvalidArgument("TLS.cert", self.cert, f"PEM files of a certificate and its key ({e})") from e
        return out


Token = Union[str, os.PathLike[str], Callable[[], str]]
"""The path of a file with the token, read anew for each connection, or a function that returns the token."""


@dataclass(frozen=True)
class Config:
    """Times are seconds."""

    endpoints: Sequence[str]
    """host:port of any nodes or of the grid's client Service; one that answers is enough."""
    grid: str = ""
    """The grid's name; a node of another grid is refused. Empty: the grid that answers."""
    name: str = "python"
    """Shown in the nodes' logs."""
    tls: Optional[TLS] = None
    token: Optional[Token] = None
    """Proves who the client is, over TLS only."""
    dial_timeout: float = 5.0
    request_timeout: float = 5.0
    """Bounds a submit or read that has no timeout of its own, all retries included."""
    max_in_flight: int = 1024
    """Bounds the unanswered orders of a session; the node's window lowers it."""
    suspect_after: float = 0.2
    """How long a primary may owe an answer before other nodes are asked who the primary is."""
    retry_max: float = 0.25
    """Bounds the pause between two attempts to connect."""
    table_every: float = 10.0
    """About how often the table is asked for while all is well."""

    def __post_init__(self) -> None:
        if isinstance(self.endpoints, str) or not self.endpoints:
            raise InvalidArgument("endpoints", self.endpoints, 'a list of host:port, for example ["127.0.0.1:7400"]')
        for e in self.endpoints:
            split_address(e)
        for field in ("grid", "name"):
            if len(getattr(self, field).encode()) > MAX_STRING:
                raise InvalidArgument(field, getattr(self, field), f"at most {MAX_STRING} bytes")
        if self.token is not None and self.tls is None:
            raise InvalidArgument("token", "set", "with tls only: over plain TCP others can read it")
        if self.tls is not None and bool(self.tls.cert) != bool(self.tls.key):
            raise InvalidArgument("TLS.key", self.tls.key, "with TLS.cert both, or none")
        if not 1 <= self.max_in_flight <= MAX_WINDOW:
            raise InvalidArgument("max_in_flight", self.max_in_flight, f"1..{MAX_WINDOW}")
        for field in ("dial_timeout", "request_timeout", "suspect_after", "retry_max", "table_every"):
            if not 0 < getattr(self, field) < 1e6:
                raise InvalidArgument(field, getattr(self, field), "more than 0 seconds")

    def attempt_timeout(self, spent: float = 0.0) -> float:
        """Bounds one attempt to connect: a node that is cut off must not use up the time in which another takes over."""
        return min(max(spent, self.suspect_after, 0.25), self.dial_timeout)

    def read_token(self) -> bytes:
        """The token as it is now. No error contains it."""
        if callable(self.token):
            text = self.token()
        else:
            assert self.token is not None
            try:
                with open(self.token, encoding="utf-8") as f:
                    text = f.read(MAX_TOKEN + 1024)
            except OSError as e:
                raise InvalidArgument("token", os.fspath(self.token), f"a file that can be read ({e.strerror})") from e
        token = text.strip().encode()
        if not 1 <= len(token) <= MAX_TOKEN:
            raise InvalidArgument("token", f"{len(token)} bytes", f"1..{MAX_TOKEN} bytes")
        return token


def split_address(address: str) -> tuple[str, int]:
    """host and port of host:port or [host]:port."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise InvalidArgument("address", address, "host:port, for example 127.0.0.1:7400")
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host, int(port)
