"""PyPI aiohttp as a client of the mixed suite, with compress=15.

In: orders on stdin -> out: reports on stdout, both through pipe.py.
May use aiohttp only.
What it offers the server is changed here; aiohttp cannot ask for a window of the server.
"""

import asyncio

from aiohttp import ClientSession, WSMsgType

from pipe import pipe


class Socket:
    def __init__(self, session, socket):
        self.session, self.socket, self.reason, self.closing = session, socket, "", None

    async def messages(self):
        while True:
            message = await self.socket.receive()
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                self.reason = str(message.extra or "")
                await (self.closing or self.socket.close())
                await self.session.close()
                return
            yield message.data

    async def send(self, message):
        await (self.socket.send_str(message) if isinstance(message, str) else self.socket.send_bytes(message))

    async def close(self):
        self.closing = asyncio.create_task(self.socket.close(code=1000))

    def end(self):
        return self.socket.close_code, self.reason


async def connect(url, protocols, _window_bits):
    session = ClientSession()
    return Socket(session, await session.ws_connect(url, protocols=protocols, compress=15, max_msg_size=0))


asyncio.run(pipe(connect))
