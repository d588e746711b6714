"""FIX messages for tests and first steps. Any bytes that the grid takes can be submitted; this makes a few of them."""

from __future__ import annotations

import datetime
from typing import Optional, Union

from .errors import InvalidArgument

SOH = b"\x01"


def message(version: str, fields: list[tuple[int, Union[str, int]]]) -> bytes:
    """The fields, 35 first, with BeginString, BodyLength and CheckSum around them. version is FIX.4.2, FIX.4.4, or
    FIXT.1.1 for FIX 5.0 SP2."""
    if version not in ("FIX.4.2", "FIX.4.4", "FIXT.1.1"):
        raise InvalidArgument("version", version, "FIX.4.2, FIX.4.4, FIXT.1.1")
    body = b""
    for tag, value in fields:
        text = str(value)
        if not text or not text.isascii() or not text.isprintable():
            raise InvalidArgument(f"tag {tag}", text, "printable ASCII, one character or more")
        body += b"%d=%s\x01" % (tag, text.encode())
    return _seal(version.encode(), body)


def _seal(version: bytes, body: bytes) -> bytes:
    out = b"8=%s\x019=%d\x01%s" % (version, len(body), body)
    return out + b"10=%03d\x01" % (sum(out) % 256)


def rebuild(fix: bytes) -> bytes:
    """The message with its lengths and sum made anew, for one whose fields were changed."""
    head, _, rest = fix.partition(SOH)
    _, _, body = rest.partition(SOH)
    return _seal(head[2:], body[: body.rindex(b"10=")])


def new_order_single(
    cl_ord_id: str, *, symbol: str, side: str, qty: int, price: Optional[str] = None, account: str = "",
    sender: str = "CLIENT", target: str = "GRID",
) -> bytes:  # fmt: skip
    """A FIX 4.4 NewOrderSingle: a limit order with a price, a market order without. side: "1" buy, "2" sell."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H:%M:%S.%f")[:-3]
    fields: list[tuple[int, Union[str, int]]] = [(35, "D"), (49, sender), (56, target), (34, 1), (52, now), (11, cl_ord_id)]
    if account:
        fields.append((1, account))
    fields += [(55, symbol), (54, side), (60, now), (38, qty), (40, "1" if price is None else "2")]
    if price is not None:
        fields.append((44, price))
    return message("FIX.4.4", fields)
