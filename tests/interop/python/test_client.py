"""Our client for Rust programs with PyPI websockets as its server, whose zlib is not ours, in several versions.

In: versions of websockets in FANWIRE_WEBSOCKETS, the example `compression` of the client -> out: every message comes back as it was sent.
May use the program and the servers of echo_server.py only.
The parameters of a server are in echo_server.py, those of the client in the example.
"""

import os
import pathlib
import subprocess
import sys
import unittest

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_PROGRAM = os.environ.get("FANWIRE_CLIENT", str(_ROOT / "target/debug/examples/compression"))
_VERSIONS = os.environ.get("FANWIRE_WEBSOCKETS", "").split(os.pathsep)


class Compression(unittest.TestCase):
    def test_every_parameter_of_both_sides(self):
        installed = [folder for folder in _VERSIONS if pathlib.Path(folder, "websockets").is_dir()]
        if not installed:
            self.skipTest("no version of websockets is installed for this test")
        for folder in installed:
            with self.subTest(websockets=pathlib.Path(folder).name):
                self._echoed_by(folder)

    def _echoed_by(self, folder):
        server = subprocess.Popen(
            [sys.executable, "-B", pathlib.Path(__file__).with_name("echo_server.py")],
            env={**os.environ, "PYTHONPATH": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with server:
            addresses = server.stdout.readline().split()
            self.assertGreater(len(addresses), 20)
            echo = subprocess.run([_PROGRAM, *addresses], capture_output=True, text=True)
            server.stdin.close()
        self.assertEqual(echo.returncode, 0, echo.stderr)
        self.assertEqual(len(echo.stdout.splitlines()), len(addresses))
