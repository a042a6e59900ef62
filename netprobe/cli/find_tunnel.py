"""Where Konnectivity's agents dial, where nobody says it: a pipe, and what a cluster prints."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence

from netprobe.errors import FileErrors, Problem
from netprobe.files import read_file
from netprobe.load.manifest.file import read_manifest_text
from netprobe.load.manifest.kinds import read_tunnels
from netprobe.load.manifest.kinds.hosted_cluster import TunnelSaid
from netprobe.model.printable import word_command

STDIN = "/dev/stdin"
PROGRAMS = ("oc", "kubectl")
# What says it in a cluster: the management cluster has the one, a hosted cluster the other.
CLUSTERS = ("get", "hostedcluster", "--all-namespaces", "-o", "yaml")
AGENTS = ("-n", "kube-system", "get", "daemonset", "konnectivity-agent", "-o", "yaml")
PATIENCE_S = 10.0

_PIPED = "| netprobe diagnose konnectivity"
_OF_MANAGEMENT = f"oc -n NAMESPACE get hostedcluster NAME -o yaml {_PIPED}"
_OF_HOSTED = f"kubectl {' '.join(AGENTS)} {_PIPED}"


def how_to_tell(printing: str = "") -> str:
    """Name the commands that print what is missing; ``printing`` where one is known for it."""
    ways = (
        f"on the management cluster: {printing or _OF_MANAGEMENT}",
        f"in the hosted cluster: {_OF_HOSTED}",
    )
    return "".join(f"\n  {one}" for one in ways)


def has_piped_manifest() -> bool:
    """Tell whether standard input is a pipe or file with something in it; a terminal is none."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
            return False
        return bool(read_file(STDIN, "a manifest").strip())
    except (OSError, ValueError, AttributeError, FileErrors):
        return False


def ask_clusters() -> list[TunnelSaid]:
    """Ask the cluster of the user's kubeconfig, where there is one and a program to ask it."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None or not any(map(os.path.exists, _list_kubeconfigs())):
        return []
    name = os.path.basename(program)
    return [found for words in (AGENTS, CLUSTERS) for found in _ask_cluster(program, name, words)]


def _list_kubeconfigs() -> Sequence[str]:
    given = os.environ.get("KUBECONFIG", "")
    return given.split(os.pathsep) if given else [os.path.expanduser("~/.kube/config")]


def _ask_cluster(program: str, name: str, words: Sequence[str]) -> Iterator[TunnelSaid]:
    """Give what a command's output says; a cluster that does not answer says nothing."""
    limit = f"--request-timeout={PATIENCE_S / 2:g}s"
    try:
        done = subprocess.run(
            [program, *words, limit],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    if done.returncode == 0:
        problems: list[Problem] = []
        objects = read_manifest_text(done.stdout, f"`{word_command([name, *words])}`", problems)
        yield from read_tunnels(objects)
