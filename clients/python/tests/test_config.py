"""Arguments: each error names the field, the value and what is allowed."""

from __future__ import annotations

import unittest
from typing import Any

from ordergrid import TLS, Config, InvalidArgument, Position, fix, parse_order_id


class Arguments(unittest.TestCase):
    def test_config(self) -> None:
        tls = TLS("ca.pem")
        good: dict[str, Any] = {"endpoints": ["127.0.0.1:7400", "[::1]:7400", "trades-client.trading.svc:7400"]}
        Config(**good, tls=tls, token="file")
        for field, options in (
            ("endpoints", {"endpoints": []}),
            ("endpoints", {"endpoints": "127.0.0.1:7400"}),
            ("address", {"endpoints": ["127.0.0.1"]}),
            ("address", {"endpoints": [":7400"]}),
            ("address", {"endpoints": ["host:0"]}),
            ("address", {"endpoints": ["host:65536"]}),
            ("grid", {"grid": "g" * 256}),
            ("name", {"name": "n" * 256}),
            ("token", {"token": "file"}),
            ("TLS.key", {"tls": TLS("ca", cert="c")}),
            ("TLS.key", {"tls": TLS("ca", key="k")}),
            ("max_in_flight", {"max_in_flight": 0}),
            ("max_in_flight", {"max_in_flight": 1 << 17}),
            ("request_timeout", {"request_timeout": 0.0}),
            ("dial_timeout", {"dial_timeout": -1.0}),
        ):
            with self.subTest(options), self.assertRaises(InvalidArgument) as caught:
                Config(**{**good, **options})
            self.assertEqual(caught.exception.field, field)
            self.assertIn("allowed: ", str(caught.exception))

    def test_files(self) -> None:
        self.assertRaises(InvalidArgument, TLS("/no/such/file").context)
        self.assertRaises(InvalidArgument, TLS(__file__).context)
        with self.assertRaises(InvalidArgument) as caught:
            Config(["h:1"], tls=TLS("ca"), token="/no/such/token").read_token()
        self.assertIn("/no/such/token", str(caught.exception))

    def test_token(self) -> None:
        for text, size in (("", 0), (" \n", 0), ("x" * 16_385, 16_385)):
            with self.assertRaises(InvalidArgument) as caught:
                Config(["h:1"], tls=TLS("ca"), token=text.__str__).read_token()
            self.assertEqual(caught.exception.value, f"{size} bytes")
        self.assertEqual(Config(["h:1"], tls=TLS("ca"), token=lambda: " t \n").read_token(), b"t")

    def test_names(self) -> None:
        self.assertEqual(str(parse_order_id("p1/17@3-1c9f0e2a77b3d401")), "p1/17@3-1c9f0e2a77b3d401")
        self.assertEqual(Position(), Position(0, 0, 0))
        self.assertRaises(InvalidArgument, fix.message, "FIX.5.0", [(35, "D")])
        self.assertEqual(fix.message("FIXT.1.1", [(35, "D")]), b"8=FIXT.1.1\x019=5\x0135=D\x0110=005\x01")


if __name__ == "__main__":
    unittest.main()
