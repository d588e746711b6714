"""A real grid for tests: `grid-node dev`, the product's own way to run one on a machine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any, Optional

from ordergrid import TLS, fix
from ordergrid.log import partition_of

PROGRAM = os.environ.get("ORDERGRID_NODE", "")
"""The grid-node program; tests of grids are skipped without it, and clients_test.go never runs them so."""


PATIENT = {"dial_timeout": 30.0, "request_timeout": 60.0}
"""Times for a machine that does much else."""


class Grid:
    """Two nodes, unless args say otherwise. A node that is killed is started again, as a new member."""

    def __init__(self, *args: str) -> None:
        self._process = subprocess.Popen(
            [PROGRAM, "dev", "--json", "--port", "0", "--http-port", "0", "--memory-limit", "512Mi", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if os.environ.get("ORDERGRID_GRID_LOG") is None else None,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.stop()
            raise RuntimeError("grid-node dev ended before the grid was ready")
        info: dict[str, Any] = json.loads(line)
        self.endpoints: list[str] = info["endpoints"]
        self.arbiter: str = info["arbiter"]
        tls = info.get("tls")
        self.tls: Optional[TLS] = TLS(tls["ca"], tls["cert"], tls["key"]) if tls else None

    def nodes(self) -> list[dict[str, Any]]:
        """The present processes: Pod, Address, PID."""
        with urllib.request.urlopen(self.arbiter + "/v1/nodes", timeout=10) as answer:
            out: list[dict[str, Any]] = json.load(answer)
        return [{k.lower(): v for k, v in n.items()} for n in out]

    def kill(self, address: str) -> None:
        """kill -9 of the process that listens there."""
        os.kill(self._pid(address), signal.SIGKILL)

    @contextlib.contextmanager
    def stopped(self, address: str) -> Iterator[None]:
        """The process that listens there stands still meanwhile."""
        pid = self._pid(address)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _pid(self, address: str) -> int:
        for n in self.nodes():
            if n["address"] == address and n["pid"]:
                return int(n["pid"])
        raise RuntimeError(f"no process of the grid listens on {address}")

    def prefer(self, partition: str, pod: str) -> None:
        """Asks for a hand-over: the primary of a partition, by the name of its record, is to be on this pod."""
        request = urllib.request.Request(
            f"{self.arbiter}/v1/partitions/{partition}/spec",
            json.dumps({"preferredPod": pod}).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        urllib.request.urlopen(request, timeout=10).close()

    def verify(self) -> tuple[int, str]:
        """The product's own judgement of all replicas: exit code and text."""
        args = [PROGRAM, "verify", "--endpoint", ",".join(self.endpoints)]
        if self.tls:
            args += ["--tls-ca", self.tls.ca, "--tls-cert", self.tls.cert, "--tls-key", self.tls.key]
        done = subprocess.run(args, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(20)
        finally:
            if self._process.poll() is None:
                self._process.kill()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()

    def __enter__(self) -> Grid:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def order(cl_ord_id: str, account: str = "") -> bytes:
    return fix.new_order_single(cl_ord_id, symbol="IBM", side="1", qty=100, price="104.25", account=account)


def id_in(partition: int, partitions: int, prefix: str) -> str:
    """A ClOrdID that belongs to the partition."""
    return next(x for x in (f"{prefix}-{i}" for i in range(1 << 20)) if partition_of(x.encode(), partitions) == partition)
