"""Servers of one version of PyPI websockets that echo publications, with every parameter of permessage-deflate that they have.

In: no arguments; the version is the first one on PYTHONPATH -> out: a line with the addresses of the servers, which run until stdin ends.
May use websockets only; speaks as much of the JSON protocol as a subscriber needs.
The parameters are those of RFC 7692 section 7.1 and those of zlib; a server has one set.
"""

import asyncio
import json
import sys

from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

try:
    from websockets.asyncio.server import serve
except ImportError:  # before 13
    from websockets.server import serve


def _parameters():
    yield {}
    yield {"server_no_context_takeover": True}
    yield {"client_no_context_takeover": True}
    yield {"server_no_context_takeover": True, "client_no_context_takeover": True}
    for bits in range(9, 16):  # zlib has no raw window of 8 bits
        yield {"server_max_window_bits": bits}
        yield {"client_max_window_bits": bits}
    for level in (0, 1, 9):
        yield {"compress_settings": {"level": level}}
    for memory in (1, 9):
        yield {"compress_settings": {"memLevel": memory}}
    for strategy in range(1, 5):
        yield {"compress_settings": {"strategy": strategy}}


def _answers(command):
    """The lines that answer a command."""
    number = command.get("id")
    if "connect" in command:
        yield {"id": number, "connect": {"client": "c", "version": "echo"}}
    elif "subscribe" in command:
        yield {"id": number, "subscribe": {}}
    elif "publish" in command:
        publish = command["publish"]
        yield {"push": {"channel": publish["channel"], "pub": {"data": publish["data"]}}}
        yield {"id": number, "publish": {}}


async def _echo(socket, _path=None):
    async for message in socket:
        for line in message.splitlines():
            for answer in _answers(json.loads(line)):
                await socket.send(json.dumps(answer, separators=(",", ":"), ensure_ascii=False))


async def _main():
    servers = []
    for parameters in _parameters():
        extension = ServerPerMessageDeflateFactory(**parameters)
        servers.append(await serve(_echo, "127.0.0.1", 0, compression=None, extensions=[extension]))
    ports = [next(iter(server.sockets)).getsockname()[1] for server in servers]
    print(" ".join(f"ws://127.0.0.1:{port}" for port in ports), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(_main())
