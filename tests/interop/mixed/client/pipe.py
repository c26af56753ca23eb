"""WebSockets on orders, for the Python stacks: the twin of pipe.js.

In: orders on stdin, one JSON object per line -> out: reports on stdout; ends with stdin.
May use asyncio only; never looks into a message.
A stack gives `connect(url, protocols, window_bits)`, which returns an object with
`messages()` (text or bytes), `send(message)`, `close()` and `end()` (code and reason).
"""

import asyncio
import json
import sys


async def pipe(connect):
    """Obeys orders until stdin ends."""
    sockets, tasks = {}, set()
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        if order["do"] == "open":
            task = asyncio.create_task(_run(connect, order, sockets))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            continue
        socket = sockets[order["id"]]
        if order["do"] == "send":
            text = order.get("text")
            await socket.send(bytes.fromhex(order["hex"]) if text is None else text)
        else:
            await socket.close()
    for task in tasks:
        task.cancel()


async def _run(connect, order, sockets):
    name = order["id"]
    try:
        socket = sockets[name] = await connect(order["url"], order["protocols"], order.get("windowBits"))
        _report(event="open", id=name)
        async for message in socket.messages():
            is_text = isinstance(message, str)
            _report(event="message", id=name, **({"text": message} if is_text else {"hex": message.hex()}))
        code, reason = socket.end()
    except Exception as error:  # whatever a stack raises is for the driver to judge
        code, reason = None, f"{type(error).__name__}: {error}"
    _report(event="close", id=name, code=code, reason=reason)


def _report(**report):
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()
