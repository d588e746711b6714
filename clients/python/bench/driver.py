"""The Python client's load for `go run ./clients/bench`: prints a line of JSON.

driver.py ENDPOINTS CLIENTS WINDOW WARMUP_MS DURATION_MS SIZE PREFIX; WINDOW 0: synchronous, one order after the other.
"""

from __future__ import annotations

import asyncio
import gc
import json
import pathlib
import sys
import threading
import time
from typing import Any, Optional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "src"))

from ordergrid import AsyncClient, Client, Receipt, Session  # noqa: E402

MAX_SAMPLES = 1 << 20


class Orders:
    """Orders whose ClOrdIDs count up."""

    def __init__(self, prefix: str, size: int) -> None:
        self.prefix, self.n = prefix, 0
        before = "35=D|49=CLIENT|56=GRID|34=1|52=20261121-09:30:00|11="
        after = "|1=ACC|21=1|55=IBM|54=1|60=20261121-09:30:00|38=100|40=2|44=125.25|59=0|"
        body = len(before) + len(prefix) + 10 + len(after)
        pad = size - body - len("8=FIX.4.2|9=000|10=000|58=|")
        if pad > 0:
            after += "58=" + "x" * pad + "|"
        body = len(before) + len(prefix) + 10 + len(after)
        head = f"8=FIX.4.2|9={body}|"
        self.before = (head + before + prefix).replace("|", "\x01").encode()
        self.after = after.replace("|", "\x01").encode()
        self.sum = sum(self.before) + sum(self.after)

    def next(self) -> bytes:
        self.n += 1
        digits = b"%010d" % self.n
        return b"%s%s%s10=%03d\x01" % (self.before, digits, self.after, (self.sum + sum(digits)) & 255)


class Figures:
    """Counts and times between begin and end."""

    def __init__(self) -> None:
        self.on, self.stop, self.orders = False, False, 0
        self.samples: list[float] = []

    def line(self, took: float, resent: int) -> str:
        s = sorted(self.samples) or [0.0]
        return json.dumps({
            "ordersPerSecond": self.orders / took, "p50us": s[len(s) // 2] * 1e6, "p99us": s[len(s) * 99 // 100] * 1e6,
            "resent": resent,
        })  # fmt: skip


def synchronous(endpoints: list[str], clients: int, warmup: float, duration: float, size: int, prefix: str) -> str:
    """As many threads, each with a plain client of its own."""
    figures = Figures()
    failed: list[BaseException] = []

    def work(i: int) -> None:
        try:
            submit(i)
        except BaseException as e:
            failed.append(e)

    def submit(i: int) -> None:
        with Client(endpoints) as client, client.session(i % len(client.partitions())) as session:
            orders = Orders(prefix + chr(ord("a") + i), size)
            while not figures.stop:
                fix = orders.next()
                t = time.perf_counter()
                session.submit(fix)
                if figures.on:
                    figures.samples.append(time.perf_counter() - t)
                    figures.orders += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    for t in threads:
        t.start()
    time.sleep(warmup)
    began, figures.on = time.perf_counter(), True
    time.sleep(duration)
    figures.on, took, figures.stop = False, time.perf_counter() - began, True
    for t in threads:
        t.join()
    if failed:
        raise failed[0]
    return figures.line(took, 0)


async def pipelined(
    endpoints: list[str], clients: int, window: int, warmup: float, duration: float, size: int, prefix: str
) -> str:
    """As many sessions of one asyncio client, each with window orders in flight."""
    figures, now = Figures(), time.perf_counter
    async with await AsyncClient.connect(endpoints) as client:
        sessions: list[Session] = []

        def start(session: Session, orders: Orders) -> None:
            def enqueue() -> None:
                sent = now()

                def done(receipt: Optional[Receipt], error: Optional[BaseException]) -> None:
                    if error is not None:
                        raise error
                    if figures.on:
                        figures.orders += 1
                        if len(figures.samples) < MAX_SAMPLES:
                            figures.samples.append(now() - sent)
                    if not figures.stop:
                        enqueue()

                session.enqueue(orders.next(), done)

            for _ in range(window):
                enqueue()

        for i in range(clients):
            session = await client.session(i % len(client.partitions()))
            sessions.append(session)
            start(session, Orders(prefix + chr(ord("a") + i), size))
        await asyncio.sleep(warmup)
        began, figures.on = now(), True
        await asyncio.sleep(duration)
        figures.on, took, figures.stop = False, now() - began, True
        for session in sessions:
            await session.drain()
        return figures.line(took, sum(s.resent for s in sessions))


def main(args: list[str]) -> None:
    endpoints, clients, window, warmup, duration, size, prefix = args
    gc.freeze()
    times = int(warmup) / 1e3, int(duration) / 1e3
    if int(window):
        work: Any = pipelined(endpoints.split(","), int(clients), int(window), *times, int(size), prefix)
        print(asyncio.run(work))
    else:
        print(synchronous(endpoints.split(","), int(clients), *times, int(size), prefix))


if __name__ == "__main__":
    main(sys.argv[1:])
