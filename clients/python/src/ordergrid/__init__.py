"""Client of OrderGrid, a replicated in-memory order cache. Standard library only.

from ordergrid import Client, fix
with Client(["127.0.0.1:7400"]) as client:
    receipt = client.submit(fix.new_order_single("ORD-1", symbol="IBM", side="1", qty=100, price="104.25"))
    order = client.get_by_cl_ord_id("ORD-1")
"""

from . import fix
from ._grid import Member, Partition
from ._region_sync import Region
from .aio import AsyncClient, Batch, Follower, LogReader, ReadMode, Session
from .config import TLS, Config
from .errors import (
    Closed,
    ConditionFailed,
    Diverged,
    Fate,
    FrameError,
    Freed,
    Goaway,
    InvalidArgument,
    LogFault,
    NotFound,
    NotSent,
    OrderError,
    OrderGridError,
    OtherOrder,
    ProtocolError,
    Rejected,
    Replaced,
    SnapshotRequired,
    TLSFailure,
    Unavailable,
    UnknownOutcome,
    WindowFull,
    fate_of,
)
from .log import LogEntry, Order, OrderID, Position, Receipt, parse_order_id
from .regions import AsyncRegion, Entry, RegionInfo, Taken
from .sync import Client, PlainSession

__version__ = "0.1.0"

__all__ = [
    "TLS", "AsyncClient", "AsyncRegion", "Batch", "Client", "Closed", "ConditionFailed", "Config", "Diverged", "Entry",
    "Fate", "Follower", "FrameError", "Freed", "Goaway", "InvalidArgument", "LogEntry", "LogFault", "LogReader", "Member",
    "NotFound", "NotSent",
    "Order", "OrderError", "OrderGridError", "OrderID", "OtherOrder", "Partition", "PlainSession", "Position",
    "ProtocolError", "ReadMode", "Receipt", "Region", "RegionInfo", "Rejected", "Replaced", "Session", "SnapshotRequired",
    "TLSFailure", "Taken", "Unavailable", "UnknownOutcome", "WindowFull", "fate_of", "fix", "parse_order_id",
]  # fmt: skip
