"""Web servers that mean no good, one a port: bodies and heads without end, bombs, garbage.

python hostile_web.py FIRST_PORT
"""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import Awaitable, Callable

HEAD = b"HTTP/1.1 200 OK\r\n"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Serve = Callable[[asyncio.StreamWriter], Awaitable[None]]


async def send_body_for_ever(writer: asyncio.StreamWriter) -> None:
    """A body as long as the connection."""
    writer.write(HEAD + b"\r\n")
    while True:
        writer.write(b"y" * 65536)
        await writer.drain()


async def send_head_for_ever(writer: asyncio.StreamWriter) -> None:
    """Headers as long as the connection."""
    writer.write(HEAD)
    while True:
        writer.write(b"X-A: " + b"z" * 1000 + b"\r\n")
        await writer.drain()


async def drip(writer: asyncio.StreamWriter) -> None:
    """A byte of the head now and then."""
    for place in range(100000):
        writer.write((HEAD + b"X: " + b"a" * 100000)[place : place + 1])
        await writer.drain()
        await asyncio.sleep(0.05)


# Made before the first request: all servers share one loop.
BOMB = gzip.compress(b"0" * (256 << 20))


async def send_bomb(writer: asyncio.StreamWriter) -> None:
    """A quarter of a gigabyte in a quarter of a megabyte."""
    data = BOMB
    writer.write(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    await writer.drain()


async def close_early(writer: asyncio.StreamWriter) -> None:
    """Three bytes of a thousand."""
    writer.write(HEAD + b"Content-Length: 1000\r\n\r\nhel")
    await writer.drain()


async def send_garbage(writer: asyncio.StreamWriter) -> None:
    """No HTTP at all."""
    writer.write(bytes(range(128, 256)) * 4)
    await writer.drain()


SERVERS: tuple[Serve, ...] = (
    send_body_for_ever, send_head_for_ever, drip, send_bomb, close_early, send_garbage,
)  # fmt: skip


async def talk(serve: Serve, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a GET so; whoever says anything else is hung up on."""
    try:
        if (await reader.read(4096)).startswith(b"GET"):
            await serve(writer)
    except ConnectionError:
        pass
    finally:
        writer.close()


def make_talk(serve: Serve) -> Talk:
    """Make the talk of one server."""
    return lambda reader, writer: talk(serve, reader, writer)


async def main(first: int) -> None:
    """Serve until killed."""
    for place, serve in enumerate(SERVERS):
        await asyncio.start_server(make_talk(serve), "0.0.0.0", first + place)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
