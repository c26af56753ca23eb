"""Starts the server for a test, calls its API and stops it by its own process id.

In: settings with Centrifugo's keys -> out: a `Server` that listens on a free port of 127.0.0.1.
May use the standard library only; never waits for a moment, always for an event and with a limit.
How a server is started is changed here; what is expected of it stands in the tests.
"""

import atexit
import base64
import hashlib
import hmac
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import urllib.request
from pathlib import Path

API_KEY = "interop-api-key"
TOKEN_SECRET = "interop-token-secret"
PATIENCE_S = 60.0
"""The longest a test waits for one event."""

_WRONG_FRAME = "a compressed frame was wrong"
"""What the server logs when a compressed frame would not have been understood."""

_ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = os.environ.get("FANWIRE", str(_ROOT / "target/debug/fanwire"))
_ADDRESS = re.compile(r"\blistens on (127\.0\.0\.1:\d+)")


class Server:
    """A running server; use it as a context manager."""

    def __init__(self, settings):
        self._folder = tempfile.TemporaryDirectory(prefix="fanwire-")
        self._successor = None
        file = Path(self._folder.name) / "config.json"
        file.write_text(json.dumps(_merge(_COMMON_SETTINGS, settings)))
        self.process = subprocess.Popen(
            [_PROGRAM, "serve", "--config", str(file)],
            cwd=self._folder.name,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # A test that fails before it stops its server leaves nothing behind, and nothing waits for it.
        atexit.register(self.process.kill)
        self.lines = []
        host = self._first_address()
        self.http = f"http://{host}"
        self.websocket = f"ws://{host}/connection/websocket"
        self._printed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def api(self, method, **request):
        """Calls a method of the server API and returns its result."""
        call = urllib.request.Request(
            f"{self.http}/api/{method}",
            data=json.dumps(request).encode(),
            headers={"X-API-Key": API_KEY, "Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(call, timeout=PATIENCE_S) as answer:
            reply = json.load(answer)
        if "error" in reply:
            raise AssertionError(f"{method}: {reply}")
        return reply["result"]

    def metrics(self):
        """The page of metrics."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.http}/metrics", timeout=PATIENCE_S) as answer:
            return answer.read().decode()

    def line_with(self, pattern):
        """Waits for a line that the server prints. Returns the group of the pattern."""

        def found():
            return next((match for line in self.lines if (match := re.search(pattern, line))), None)

        with self._printed:
            match = self._printed.wait_for(found, PATIENCE_S)
        if match is None:
            raise AssertionError(f"no {pattern} in:\n" + "".join(self.lines))
        return match.group(1)

    def upgrade(self):
        """Lets a new process go on with the connections. Needs a `pid_file`."""
        command = [_PROGRAM, "upgrade", "--config", "config.json"]
        options = {"cwd": self._folder.name, "capture_output": True, "text": True}
        answer = subprocess.run(command, timeout=PATIENCE_S, **options)
        found = re.match(r"process (\d+) serves now", answer.stdout)
        assert found, answer
        self._successor = int(found.group(1))

    def stop(self):
        """Ends the server with SIGTERM and returns its exit status."""
        if self._successor:
            os.kill(self._successor, signal.SIGKILL)
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(timeout=40)
        atexit.unregister(self.process.kill)
        self._reader.join()
        self.process.stdout.close()
        self._folder.cleanup()
        wrong = [line for line in self.lines if _WRONG_FRAME in line]
        assert not wrong, f"websocket.compression_verify held frames back: {wrong}"
        return status

    def _read(self):
        for line in self.process.stdout:
            with self._printed:
                self.lines.append(line)
                self._printed.notify_all()

    def _first_address(self):
        for line in self.process.stdout:
            self.lines.append(line)
            if found := _ADDRESS.search(line):
                return found.group(1)
        raise AssertionError("the server ended; it printed:\n" + "".join(self.lines))


def token(claims, secret=TOKEN_SECRET):
    """A token as the server's `client.token.hmac_secret_key` verifies it (HS256)."""

    def part(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    text = part(b'{"alg":"HS256","typ":"JWT"}') + b"." + part(json.dumps(claims).encode())
    signature = hmac.new(secret.encode(), text, hashlib.sha256).digest()
    return (text + b"." + part(signature)).decode()


def _merge(below, above):
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


_COMMON_SETTINGS = {
    "http_server": {"address": "127.0.0.1", "port": 0},
    "http_api": {"key": API_KEY},
    "client": {"token": {"hmac_secret_key": TOKEN_SECRET}},
    "websocket": {"compression_verify": True},
}
