"""The demo where no firewall can be built: sockets of its own on loopback addresses."""

from __future__ import annotations

import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).parent
BACK, DATABASE, FOREIGN = "127.0.0.12", "127.0.0.13", "127.0.0.14"

DESCRIPTION = """\
Three hosts (127.0.0.11 to 13) and one without a way in (127.0.0.14), all of them this machine.
  back      serves TCP 18080: required, and there
  database  serves TCP 19100, which the matrix says must not answer
  foreign   has TCP 16443 whose queue is full, so it drops what comes, as a firewall would
  foreign   has UDP 15353 that never says a word, so nobody can know
"""

EXPECTED = {
    ("web", "front", "back", "pass"),
    ("sql", "back", "database", "pass"),
    ("gossip", "front", "back", "pass"),
    ("gossip", "back", "front", "pass"),
    ("metrics", "front", "database", "exposed"),
    ("api", "front", "foreign", "blocked"),
    ("names", "front", "foreign", "inconclusive"),
}


class Estate:
    """The sockets that the description names, while the context lasts."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self.folder = Path()
        self.words = ["--matrix", str(HERE / "reduced-matrix.yaml")]
        self.words += ["-i", str(HERE / "reduced-inventory.yaml")]

    def __enter__(self) -> Estate:
        folder = tempfile.TemporaryDirectory(prefix="netprobe-demo-")
        self.folder = Path(self._open.enter_context(folder))
        self._listen(BACK, 18080)
        self._listen(DATABASE, 19100)
        self._fill(self._listen(FOREIGN, 16443, backlog=0))
        silent = self._open.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        silent.bind((FOREIGN, 15353))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def _listen(self, address: str, port: int, backlog: int = 64) -> socket.socket:
        listener = self._open.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(backlog)
        return listener

    def _fill(self, listener: socket.socket) -> None:
        """Take the one place in the queue, which nobody accepts from: Linux then drops SYNs."""
        client = self._open.enter_context(socket.socket())
        client.connect(listener.getsockname())
