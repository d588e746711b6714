"""python -m ordergrid: a first look from the command line."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Optional

from . import Client, InvalidArgument, LogEntry, OrderError, OrderGridError, Position, ReadMode, __version__, fix
from .config import TLS

_MODES = {m.name.lower(): m for m in ReadMode}


def main(argv: Optional[list[str]] = None) -> int:
    """Returns 0, 1 where the grid refused or has not what was asked for, 2 for wrong arguments."""
    args = _parser().parse_args(argv)
    tls = TLS(args.tls_ca, args.tls_cert, args.tls_key, args.tls_name) if args.tls_ca else None
    try:
        with Client(
            args.endpoint.split(","), grid=args.grid, tls=tls, token=args.token_file or None, request_timeout=args.timeout, dial_timeout=args.timeout
        ) as client:  # fmt: skip
            args.run(client, args)
    except InvalidArgument as e:
        return _fail(str(e), 2)
    except OrderError as e:
        return _fail(f"{e.fate.value}: {e}", 1)
    except OrderGridError as e:
        return _fail(str(e), 1)
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    return 0


def _fail(text: str, code: int) -> int:
    print(f"ordergrid: {text}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m ordergrid", description="Submit orders to an OrderGrid and read them.")
    p.add_argument("--version", action="version", version=__version__)
    p.add_argument("--endpoint", default="127.0.0.1:7400", help="host:port of any nodes, separated by commas (%(default)s)")
    p.add_argument("--grid", default="", help="name of the grid; empty takes the grid that answers")
    p.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="of a request with its retries (%(default)s)")
    p.add_argument(
        "--tls-ca", default="", metavar="FILE", help="PEM file of the authorities that sign nodes; with it TLS is used"
    )
    p.add_argument("--tls-cert", default="", metavar="FILE", help="PEM file of the certificate to present")
    p.add_argument("--tls-key", default="", metavar="FILE", help="PEM file of its private key")
    p.add_argument("--tls-name", default="", metavar="NAME", help="DNS name in the nodes' certificates")
    p.add_argument("--token-file", default="", metavar="FILE", help="file with a token to authenticate with, over TLS")
    commands = p.add_subparsers(required=True, metavar="submit | get | tail")

    c = commands.add_parser("submit", help="send an order and print its receipt", description="Send an order, print its receipt.")
    c.add_argument("--file", metavar="FILE", help="the FIX message, | or SOH between fields; - for standard input")
    c.add_argument("--cl-ord-id", help="make a limit order with this ClOrdID")
    c.add_argument("--symbol", default="IBM")
    c.add_argument("--side", default="1", choices=["1", "2"], help="1 buy, 2 sell")
    c.add_argument("--qty", type=int, default=100)
    c.add_argument("--price", default="104.25")
    c.set_defaults(run=_submit)

    c = commands.add_parser("get", help="print an order", description="Print an order, as a line of JSON.")
    c.add_argument("order", help="its ClOrdID, or with --id its name, for example p1/17@3-1c9f0e2a77b3d401")
    c.add_argument("--id", action="store_true", help="ORDER is a name or place")
    c.add_argument("--mode", default="confirmed", choices=list(_MODES))
    c.set_defaults(run=_get)

    c = commands.add_parser("tail", help="print a partition's log as it grows", description="Print a log as lines of JSON.")
    c.add_argument("--partition", type=int, default=0)
    c.add_argument("--after", type=int, metavar="SEQ", help="begin behind this entry; default: behind what is committed")
    c.add_argument("--account", default="", help="orders of this account only")
    c.add_argument("--limit", type=int, default=0, help="end after as many entries")
    c.set_defaults(run=_tail)
    return p


def _submit(client: Client, args: argparse.Namespace) -> None:
    if bool(args.file) == bool(args.cl_ord_id):
        raise InvalidArgument("--file and --cl-ord-id", [args.file, args.cl_ord_id], "one of them")
    if args.file:
        with sys.stdin.buffer if args.file == "-" else open(args.file, "rb") as f:
            message = f.read().strip(b"\r\n").replace(b"|", fix.SOH)
    else:
        message = fix.new_order_single(args.cl_ord_id, symbol=args.symbol, side=args.side, qty=args.qty, price=args.price)
    print(client.submit(message))


def _get(client: Client, args: argparse.Namespace) -> None:
    mode = _MODES[args.mode]
    order = client.get(args.order, mode=mode) if args.id else client.get_by_cl_ord_id(args.order, mode=mode)
    print(json.dumps({"id": str(order.id), **_fields(order.entry), "from": order.address}))


def _tail(client: Client, args: argparse.Namespace) -> None:
    left = args.limit or -1
    batches = client.follow(
        args.partition, after=Position(args.after or 0), at_end=args.after is None, account=args.account
    )  # fmt: skip
    for batch in batches:
        for e in batch.entries:
            print(json.dumps({"seq": e.seq, "kind": e.kind_name, **_fields(e)}), flush=True)
            left -= 1
            if left == 0:
                return


def _fields(e: LogEntry) -> dict[str, Any]:
    out: dict[str, Any] = {"received": e.received.isoformat(), "epoch": e.epoch}
    if e.kind_name == "order":
        out.update(clOrdID=e.cl_ord_id, symbol=e.symbol, account=e.account, fix=e.payload.decode("latin-1").replace("\x01", "|"))
    return out


if __name__ == "__main__":
    sys.exit(main())
