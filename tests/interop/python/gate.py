"""A gate before a server: what the server sends after the upgrade waits until the test opens it.

In: a server -> out: an address, and the moment between a client's first command and its reply, as long as one likes.
May use the standard library only; never changes a byte.
What clients do meanwhile stands in the tests.
"""

import asyncio
import contextlib


class Gate:
    """Passes connections on to a server; use it as an asynchronous context manager."""

    def __init__(self, server):
        self._host, self._port = server.http.removeprefix("http://").split(":")
        self.commanded = asyncio.Event()
        """The first command of a client has passed."""
        self.opened = asyncio.Event()
        self._tasks = set()

    async def __aenter__(self):
        self._listener = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        port = self._listener.sockets[0].getsockname()[1]
        self.websocket = f"ws://127.0.0.1:{port}/connection/websocket"
        return self

    async def __aexit__(self, *_):
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pass(self, client_reader, client_writer):
        self._tasks.add(asyncio.current_task())
        server_reader, server_writer = await asyncio.open_connection(self._host, self._port)
        try:
            server_writer.write(await client_reader.readuntil(b"\r\n\r\n"))
            client_writer.write(await server_reader.readuntil(b"\r\n\r\n"))
            up = self._up(client_reader, server_writer)
            await asyncio.gather(up, self._down(server_reader, client_writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # One of the two has gone.
        finally:
            for writer in (client_writer, server_writer):
                writer.close()

    async def _up(self, client_reader, server_writer):
        with contextlib.closing(server_writer):
            while chunk := await client_reader.read(65_536):
                server_writer.write(chunk)
                self.commanded.set()

    async def _down(self, server_reader, client_writer):
        await self.opened.wait()
        with contextlib.closing(client_writer):
            while chunk := await server_reader.read(65_536):
                client_writer.write(chunk)
