"""``run --engine ansible``: Ansible's own program plays the steps of an engine folder on the hosts.

It is ``bundle --folder``, the playbook of our collection, and ``merge``. Nothing of Ansible is
imported: ansible-playbook is a program, as ssh is.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import netprobe
from netprobe.batch.engine_folder import ENGINE_FILE
from netprobe.cli.batch_options import DEFAULT_MARGIN, DEFAULT_WINDOW
from netprobe.cli.bundle import bundle_verb
from netprobe.cli.merge import merge_verb
from netprobe.cli.options import RUN_FORMATS, VerbOptions
from netprobe.cli.outputs import read_outputs
from netprobe.cli.run import read_become_password
from netprobe.errors import RequestError
from netprobe.load.inventory.discover import find_inventories

PROGRAM = "ansible-playbook"
PLAYBOOK = "netprobe.preflight.check"
# A checkout has the collection beside the package; else it is one that the user has installed.
_IN_CHECKOUT = "ansible_collections/netprobe/preflight/playbooks/check.yml"
# What Ansible prints of every host is for its own users; ours read what failed, and the report.
_QUIET = {"ANSIBLE_DISPLAY_OK_HOSTS": "no", "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "no"}


# They need a coordinator that stays connected, or results that a bundle does not carry.
_ONLY_LIVE = ("resume", "retry", "evidence")
# What ``bundle`` asks for beyond what ``run`` has.
_BUNDLE = {
    "next_": None, "results": (), "output": None, "per_host": None, "with_runtime": False,
    "start": None, "window": DEFAULT_WINDOW, "margin": DEFAULT_MARGIN,
}  # fmt: skip


def ansible_verb(options: VerbOptions) -> int:
    """Plan, let Ansible do it on the hosts, and report as ``run`` does."""
    for name in _ONLY_LIVE:
        if options[name]:
            raise RequestError(
                f"--{name} and --engine ansible contradict each other: leave out one"
            )
    read_outputs(options, RUN_FORMATS)  # what cannot be written is told before anything is sent
    program = _find_ansible()
    inventories = options["inventories"] or find_inventories()
    password = read_become_password(options)
    with TemporaryDirectory(prefix="netprobe-") as private:
        folder = Path(private) / "run"
        bundle_verb({**options, **_BUNDLE, "folder": str(folder)})
        _play_folder(program, folder, inventories, password)
        return merge_verb({**options, "file": str(folder), "results": ()})


def _find_ansible() -> str:
    """Find ansible-playbook on PATH or beside this Python. Raises RequestError."""
    beside = os.path.dirname(sys.executable)
    found = shutil.which(PROGRAM) or shutil.which(PROGRAM, path=beside)
    if found is None:
        raise RequestError(f"--engine ansible: {PROGRAM} is not installed (ansible-core)")
    return found


def _play_folder(
    program: str, folder: Path, inventories: Sequence[str], password: str | None
) -> None:
    """Play the folder's steps on its hosts. Raises RequestError where no host was even tried.

    Hosts that fail on the way have that in the folder, for the report: no status is looked at.
    """
    hosts: dict[str, object] = json.loads((folder / ENGINE_FILE).read_text(encoding="utf-8"))[
        "hosts"
    ]
    limit = folder / "limit"
    limit.write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
    variables = {
        "netprobe_folder": str(folder),
        "netprobe_command": shlex.join((sys.executable, "-m", "netprobe")),
    }
    words = [program, _find_playbook(), "--limit", f"@{limit}", "-e", json.dumps(variables)]
    words += [word for path in inventories for word in ("-i", path)]
    status = _run_play(words, password)
    if status and not any((folder / "results").glob("*")):
        raise RequestError(
            f"{PROGRAM} ended with status {status} before it came to any host; its own words are "
            "above (the collection netprobe.preflight must be installed, and the inventory be one "
            "of Ansible's)"
        )


def _find_playbook() -> str:
    beside = Path(netprobe.__file__).parents[1] / _IN_CHECKOUT
    return str(beside) if beside.is_file() else PLAYBOOK


def _run_play(words: list[str], password: str | None) -> int:
    """Run Ansible with the sudo password on a pipe, where no other process can read it."""
    environment = _QUIET | dict(os.environ)
    if password is None:
        return _wait_for(subprocess.Popen(words, stdout=sys.stderr, env=environment))
    reading, writing = os.pipe()
    with open(reading, "rb") as handle:
        process = subprocess.Popen(
            [*words, "--become-password-file", f"/dev/fd/{reading}"],
            stdout=sys.stderr,
            env=environment,
            pass_fds=(handle.fileno(),),
        )
    with open(writing, "wb") as handle:
        handle.write(password.encode() + b"\n")
    return _wait_for(process)


def _wait_for(process: subprocess.Popen[bytes]) -> int:
    """Wait for Ansible. It gets a Ctrl-C too, and ends its own children first."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise
