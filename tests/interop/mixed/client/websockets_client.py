"""PyPI websockets as a client of the mixed suite.

In: orders on stdin -> out: reports on stdout, both through pipe.py.
May use websockets only.
What it offers the server is changed here.
"""

import asyncio

from websockets.asyncio.client import connect as open_socket
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory

from pipe import pipe


class Socket:
    def __init__(self, socket):
        self.socket, self.send = socket, socket.send

    def messages(self):
        return aiter(self.socket)

    async def close(self):
        await self.socket.close(1000)

    def end(self):
        return self.socket.close_code, self.socket.close_reason


async def connect(url, protocols, window_bits):
    options = {"subprotocols": protocols or None, "max_size": None, "proxy": None}
    if window_bits:
        offer = ClientPerMessageDeflateFactory(server_max_window_bits=window_bits, client_max_window_bits=True)
        options |= {"compression": None, "extensions": [offer]}
    return Socket(await open_socket(url, **options))


asyncio.run(pipe(connect))
