"""The programs of README.md run as they stand there, at a grid of the test's."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import unittest

import grid
from test_regions import with_regions

README = pathlib.Path(__file__).parents[1] / "README.md"


@unittest.skipUnless(grid.PROGRAM, "ORDERGRID_NODE names no grid-node program")
class Readme(unittest.TestCase):
    def test_programs(self) -> None:
        text = README.read_text(encoding="utf-8")
        programs = [p for p in re.findall(r"```python\n(.*?)```", text, re.S) if "127.0.0.1:7400" in p]
        lines = re.findall(r"^python3 -m ordergrid ([^#\n]*)", text, re.M)
        self.assertEqual((len(programs), len(lines)), (3, 3))
        with with_regions(self) as g:
            for line in lines:
                self._run(["-m", "ordergrid", "--endpoint", g.endpoints[0], *line.split()])
            for program in programs:
                self.assertIn(
                    "ORD-" if "submit_many" in program else "b'175'" if "region(" in program else "",
                    self._run(["-c", program.replace("127.0.0.1:7400", g.endpoints[0])]),
                )

    def _run(self, args: list[str]) -> str:
        done = subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=180)
        self.assertEqual((done.returncode, done.stderr), (0, ""), args)
        self.assertNotEqual(done.stdout, "", args)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
