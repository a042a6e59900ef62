"""An agent that says what a test wants: its hello, and the bytes after every order of one kind."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from netprobe.agent.wire.frames import HELLO_PREFIX, encode_frame, encode_message
from netprobe.model.inventory import Host
from tests.probe.fakes import HELLO
from tests.vantage.support import command

SCRIPT = """
import struct, sys
from pathlib import Path

folder, kind = Path(sys.argv[1]), sys.argv[2].encode()
read, out = sys.stdin.buffer.read, sys.stdout.buffer
out.write(b"NETPROBE-READY\\n")
out.flush()
read(int(sys.stdin.buffer.readline()))
out.write((folder / "hello").read_bytes())
out.flush()
while size := read(4):
    if read(*struct.unpack(">I", size)).startswith(b'["' + kind + b'"'):
        out.write((folder / "frames").read_bytes())
        out.flush()
"""

GOOD_HELLO = encode_message(HELLO)


def frame(body: bytes) -> bytes:
    """These bytes as a frame, whatever they are."""
    return struct.pack(">I", len(body)) + body


def scripted(
    folder: Path, *messages: object, after: str = "StartOrder", hello: bytes = GOOD_HELLO
) -> Host:
    """A host whose agent says these messages (or bytes) after every order of one kind."""
    said = [each if isinstance(each, bytes) else encode_frame(each) for each in messages]
    (folder / "hello").write_bytes(HELLO_PREFIX + hello + b"\n")
    (folder / "frames").write_bytes(b"".join(said))
    return command(sys.executable, "-I", "-S", "-c", SCRIPT, str(folder), after)
