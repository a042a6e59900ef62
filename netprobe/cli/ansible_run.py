"""``run --engine ansible``: Ansible's own program plays the steps of an engine folder on the hosts.

It is ``bundle --folder``, the playbook of our collection, and ``merge``. Nothing of Ansible is
imported: ansible-playbook is a program, as ssh is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import netprobe
from netprobe.batch.engine_folder import ENGINE_FILE
from netprobe.batch.results import open_run
from netprobe.cli import ansible_guard
from netprobe.cli.asked import RunOptions
from netprobe.cli.bundle import write_engine_run
from netprobe.cli.given import read_outputs
from netprobe.cli.launch import read_become_password
from netprobe.cli.merge import report_stored
from netprobe.cli.options import RUN_FORMATS
from netprobe.cli.streams import tell
from netprobe.errors import RequestError
from netprobe.load.inventory.discover import find_inventories
from netprobe.signals import run_until_signal

# What Ansible prints of every host is for its own users; ours read what failed, and the report.
_QUIET = {"ANSIBLE_DISPLAY_OK_HOSTS": "no", "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "no"}
PASSWORD_WORDS = ("--become-password-file", "-")


class GuardedPlay:
    """One play at most, and a private ``folder``; both end with us, however that comes."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="netprobe-"))
        self._control, theirs = socket.socketpair()
        with theirs:
            self._guard = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", ansible_guard.__file__),
                    *(str(theirs.fileno()), str(self.folder)),
                ],
                stdout=sys.stderr,
                env=_QUIET | dict(os.environ),
                pass_fds=(theirs.fileno(),),
            )

    def close(self) -> None:
        """Let the guard remove the folder; what a killed one has left, too."""
        self._control.close()
        self._guard.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def play(
        self, play: Sequence[str], end: Sequence[str], results: Path, password: str | None
    ) -> tuple[int | None, bool]:
        """Play, and give ansible-playbook's status and whether a signal has ended it.

        ``end``: the words that end early what was begun; ``results``: where answers go. The status
        is None where somebody has killed the guard.
        """
        extra = PASSWORD_WORDS if password else ()
        order: dict[str, Any] = {
            "play": [*play, *extra],
            "end": [*end, *extra],
            "results": str(results),
            "password": password or None,
        }
        told: list[bytes] = []
        stopped = run_until_signal(self._wait_for_status(json.dumps(order), told))
        return (int(told[0]) if told and told[0] else None), stopped

    async def _wait_for_status(self, order: str, told: list[bytes]) -> None:
        # The guard takes the end of the last copy for ours.
        reader, writer = await asyncio.open_connection(sock=self._control.dup())
        writer.write(order.encode("ascii") + b"\n")
        waiting = asyncio.ensure_future(_read_line(reader))
        # The first signal ends the play in order, the second one waits for nothing.
        for word in (ansible_guard.END, ansible_guard.NOW):
            try:
                await asyncio.shield(waiting)
                break
            except asyncio.CancelledError:
                writer.write(word + b"\n")
        told.append(await waiting)
        writer.close()


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """Read what the guard says; nothing where it was killed."""
    with contextlib.suppress(ConnectionError):
        return await reader.readline()
    return b""


PROGRAM = "ansible-playbook"
COLLECTION = "netprobe.preflight"
# Its playbooks: the whole run, and the end of one that ends early.
CHECK, END = "check", "end"
# A checkout has the collection beside the package; else it is one that the user has installed.
_IN_CHECKOUT = "ansible_collections/netprobe/preflight/playbooks"
FOLDER = "run"


def ansible_verb(options: RunOptions) -> int:
    """Plan, let Ansible do it on the hosts, and report as ``run`` does."""
    # They need a coordinator that stays connected, or results that a bundle does not carry.
    only_live = {"resume": options.resume, "retry": options.retry, "evidence": options.evidence}
    for name in filter(only_live.get, only_live):
        raise RequestError(f"--{name} and --engine ansible contradict each other: leave out one")
    outputs = read_outputs(options.outputs, RUN_FORMATS, options)
    program = _find_ansible()
    inventories = options.inventories or find_inventories()
    password = read_become_password(options)
    with contextlib.closing(GuardedPlay()) as guarded:
        folder = guarded.folder / FOLDER
        write_engine_run(options, folder)
        stopped = _play_folder(guarded, program, inventories, password)
        return report_stored(options, outputs, open_run(folder, ()), interrupted=stopped)


def _find_ansible() -> str:
    """Find ansible-playbook on PATH or beside this Python. Raises RequestError."""
    beside = os.path.dirname(sys.executable)
    found = shutil.which(PROGRAM) or shutil.which(PROGRAM, path=beside)
    if found is None:
        raise RequestError(f"--engine ansible: {PROGRAM} is not installed (ansible-core)")
    return found


def _play_folder(
    guarded: GuardedPlay, program: str, inventories: Sequence[str], password: str | None
) -> bool:
    """Play the folder's steps on its hosts, and tell whether a signal has ended that.

    Raises RequestError where no host was even tried. Hosts that fail on the way have that in the
    folder, for the report: no status is looked at.
    """
    folder = guarded.folder / FOLDER
    hosts: dict[str, object] = json.loads((folder / ENGINE_FILE).read_text(encoding="utf-8"))[
        "hosts"
    ]
    limit = folder / "limit"
    limit.write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
    variables = {
        "netprobe_folder": str(folder),
        "netprobe_command": shlex.join((sys.executable, "-m", "netprobe")),
    }
    words = ["--limit", f"@{limit}", "-e", json.dumps(variables)]
    words += [word for path in inventories for word in ("-i", path)]
    play, end = ([program, _find_playbook(name), *words] for name in (CHECK, END))
    status, stopped = guarded.play(play, end, folder / "results", password)
    if status != 0 and not stopped and not any((folder / "results").glob("*")):
        raise RequestError(
            f"{PROGRAM} {_word_status(status)} before it came to any host; its own words are "
            "above (the collection netprobe.preflight must be installed, and the inventory be one "
            "of Ansible's)"
        )
    if not stopped and (status is None or status < 0):
        tell(f"netprobe: note: {PROGRAM} {_word_status(status)}; the report is of what came before")
    return stopped


def _word_status(status: int | None) -> str:
    if status is None or status < 0:
        return "was killed"
    return f"ended with status {status}"


def _find_playbook(name: str) -> str:
    beside = Path(netprobe.__file__).parents[1] / _IN_CHECKOUT / f"{name}.yml"
    return str(beside) if beside.is_file() else f"{COLLECTION}.{name}"
