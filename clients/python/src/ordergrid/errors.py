"""Exceptions. Each names what was wrong, its value and what is allowed."""

from __future__ import annotations

import enum
from typing import Optional, Union

CODES = {
    1: "BadFIX", 2: "DuplicateClOrdID", 3: "Capacity", 4: "Overloaded", 5: "SessionUnknown", 6: "SessionWindow",
    7: "SequenceGap", 8: "Draining", 9: "InsufficientInSync", 10: "TooLarge", 11: "Unsupported", 12: "SessionMoved",
    13: "SnapshotRequired", 14: "SinkUnreadable", 15: "NotPermitted", 17: "ReaderUnknown", 18: "Diverged",
    19: "ReaderAhead", 20: "Standby", 23: "FunctionRefused", 24: "LimitRefused", 26: "RegionUnknown",
    27: "ConditionFailed", 32: "VersionAwaited",
}  # fmt: skip
"""Names of the reject codes, as in docs/protocol.md."""

DECIDES = {1, 2, 3, 4, 9, 10, 23, 24, 26, 27, 32}
"""Codes that a primary gives after it has looked at the session: no copy of the order, or change, was applied."""

_HINTS = {
    1: "correct the message; the same bytes are refused again",
    2: "use a new ClOrdID, or read the order that has it with get_by_cl_ord_id",
    4: "submit again, slower",
    9: "submit again once a backup has joined, or lower minInSync",
    10: "send fewer bytes",
    11: "use a client and a node of neighbouring releases",
    13: "read from the entry after them; the sinks have the freed ones",
    26: "name one of the grid's regions; regions() lists them",
    32: "submit again when all nodes of the grid are updated; nothing was stored",
    15: "ask for a rule in spec.security.authorization.rules of the OrderGrid",
}


class Fate(enum.Enum):
    """What is known about an order after submit returned or raised."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    """It is not in the log, and this submission never will be."""
    UNKNOWN = "unknown"
    """It may or may not be in the log: read it before it is submitted again."""


class OrderGridError(Exception):
    """Base of all exceptions of this package."""


class InvalidArgument(OrderGridError, ValueError):
    """An argument has a value that is not allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"{field} is {value!r:.90}, allowed: {allowed}")
        self.field, self.value, self.allowed = field, value, allowed


class FrameError(OrderGridError):
    """Bytes that are no frame, or no log entry."""

    def __init__(self, frame: str, field: str, value: int, allowed: str) -> None:
        super().__init__(f"{frame or 'frame'}: {field} is {value}, allowed: {allowed}")
        self.frame, self.field, self.value, self.allowed = frame, field, value, allowed


class ProtocolError(OrderGridError):
    """A node broke the protocol. Its connection is closed; orders in flight on it are sent again on a new one."""

    def __init__(self, address: str, what: str) -> None:
        super().__init__(f"protocol violation by {address}: {what}")
        self.address, self.what = address, what


class Goaway(OrderGridError):
    """A node's reason for closing the connection."""

    def __init__(self, address: str, code: int, text: str) -> None:
        super().__init__(f"{address} closed the connection (goaway {code}): {text}")
        self.address, self.code, self.text = address, code, text

    @property
    def permanent(self) -> bool:
        """Whether connecting again cannot help: another version, another grid, a role, no proof, no permission."""
        return self.code in (2, 3, 6, 8, 9)


class TLSFailure(OrderGridError):
    """Only one end speaks TLS, or one does not take the other's certificate."""


class Closed(OrderGridError):
    """The client was closed."""


class Unavailable(OrderGridError):
    """No replica answered in time. The last failure is the cause."""


class NotFound(OrderGridError, LookupError):
    """No such order is committed; of a region: the key has no value."""


class Freed(OrderGridError, LookupError):
    """The partition does not hold the order, and may have held it: entries up to `freed` are freed, sinks have them."""

    def __init__(self, partition: int, what: str, freed: int) -> None:
        super().__init__(f"p{partition}: {what} is not held: entries up to {freed} of p{partition} are freed")
        self.partition, self.freed = partition, freed


class OtherOrder(OrderGridError, LookupError):
    """Another order has the id now: the loss of data was accepted since, or the grid was made again."""

    def __init__(self, wanted: str, found: str) -> None:
        super().__init__(f"order {wanted} is not held: another order, {found}, has the id; look for its ClOrdID")
        self.wanted, self.found = wanted, found


class OrderError(OrderGridError):
    """Base of what submit raises about an order; `fate` says what is known of it."""

    fate = Fate.REFUSED


class Rejected(OrderError):
    """A request was refused. Of an order: it is not in the log and took no sequence number."""

    def __init__(
        self, partition: int, code: int, tag: int = 0, detail: int = 0, limit: int = 0, text: str = "", address: str = ""
    ) -> None:
        self.name = CODES.get(code, f"Code{code}")
        message = f"p{partition}: refused ({self.name})"
        if tag:
            message += f", tag {tag}"
        for more in (text, _HINTS.get(code, "")):
            if more:
                message += f"; {more}"
        super().__init__(message)
        self.partition, self.code, self.tag, self.detail, self.limit = partition, code, tag, detail, limit
        self.text, self.address = text, address


class ConditionFailed(Rejected):
    """A change of a region was not made: the key has no value (version 0), or one of another version."""

    def __init__(self, refusal: Rejected) -> None:
        super().__init__(refusal.partition, refusal.code, detail=refusal.detail, text=refusal.text, address=refusal.address)
        self.version = refusal.detail


class NotSent(OrderError):
    """The order never left this process, and never will."""


class WindowFull(OrderError):
    """As many orders are unanswered as the session may have; nothing was sent."""


class UnknownOutcome(OrderError):
    """The order, or change of a region, was sent and its fate was not answered. It is not sent again: read it first."""

    fate = Fate.UNKNOWN

    def __init__(
        self, partition: int, client_seq: int, waited: float, why: Union[str, BaseException], what: str, do: str
    ) -> None:  # fmt: skip
        super().__init__(
            f"p{partition}: outcome unknown after {waited * 1e3:.1f} ms: {what} {client_seq} of the session was sent and "
            f"its fate was not answered ({why}); {do}"
        )
        self.partition, self.client_seq, self.waited = partition, client_seq, waited
        if isinstance(why, BaseException):
            self.__cause__ = why


class LogFault(OrderGridError):
    """A replica sent a log that is not one: a number is missing, or the hash chain is broken."""

    def __init__(self, partition: int, address: str, seq: int, what: str) -> None:
        super().__init__(f"log of p{partition} at {address}: entry {seq}: {what}")
        self.partition, self.address, self.seq = partition, address, seq


class SnapshotRequired(OrderGridError):
    """Entries that a follower wants are freed. The log begins behind `after_seq`, whose hash is `after_hash`."""

    def __init__(self, partition: int, after_seq: int, after_hash: int, text: str) -> None:
        super().__init__(f"follow p{partition}: {text}")
        self.partition, self.after_seq, self.after_hash = partition, after_seq, after_hash


class Diverged(OrderGridError):
    """What the follower holds is another history than the log."""

    def __init__(self, partition: int, seq: int, log_hash: int, text: str) -> None:
        super().__init__(f"follow p{partition}: {text}")
        self.partition, self.seq, self.log_hash = partition, seq, log_hash


class Replaced(OrderGridError):
    """Another follower follows under the same name."""


class NotPrimary(OrderGridError):
    """Another node is the primary; the client follows the hint. It is never the outcome of an order."""

    def __init__(self, partition: int, address: str, epoch: int, hint: str) -> None:
        super().__init__(f"p{partition}: {address} is not the primary at epoch {epoch}, {hint or 'it knows none'}")
        self.partition, self.address, self.epoch, self.hint = partition, address, epoch, hint


def fate_of(error: Optional[BaseException]) -> Fate:
    """What an exception of submit, or None, says about the order. Exceptions of other origin: UNKNOWN."""
    if error is None:
        return Fate.ACCEPTED
    return error.fate if isinstance(error, OrderError) else Fate.UNKNOWN


def permanent(error: BaseException) -> bool:
    """Whether trying again cannot help: the caller has to change something."""
    if isinstance(error, Goaway):
        return error.permanent
    return isinstance(error, (Closed, InvalidArgument)) or isinstance(error, Rejected) and error.code == 15
