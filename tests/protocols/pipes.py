"""A pipe of a plain asyncio connection: what protocols talk over where no agent is needed."""

from __future__ import annotations

import asyncio
import socket

from netprobe.model.konnectivity import Event


class SocketPipe:
    """The pipe of protocols over a connection of this process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._sent = self._now()

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        self._writer.write(data)
        await self._writer.drain()
        self._sent = self._now()

    async def receive(self, limit_s: float) -> Event:
        """Give the next event."""
        try:
            data = await asyncio.wait_for(self._reader.read(65536), limit_s)
        except TimeoutError:
            return self._event("timeout", b"")
        except ConnectionError:
            return self._event("reset", b"")
        return self._event("data" if data else "fin", data)

    def close(self) -> None:
        """End the connection."""
        self._writer.close()

    def _event(self, kind: str, data: bytes) -> Event:
        since_ms = (self._now() - self._sent) * 1000
        return Event(kind, data, since_ms, since_ms)  # type: ignore[arg-type]  # one of its words

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


async def open_pair() -> tuple[SocketPipe, asyncio.StreamReader, asyncio.StreamWriter]:
    """A pipe and its other end. What one sends is there for the other at once."""
    near, far = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=far)
    return SocketPipe(*await asyncio.open_connection(sock=near)), reader, writer


async def open_pipe(port: int) -> SocketPipe:
    """A pipe to a port of the loopback."""
    return SocketPipe(*await asyncio.open_connection("127.0.0.1", port))
