"""`make demo-shell`: the demo's cluster, and a shell on a jump host of it to try netprobe by hand.

    python demo/shell.py [FOLDER]

The shell starts in FOLDER, ``build/demo`` of this checkout, where the cluster's inventory is. What
is made there stays. The cluster ends with the shell.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from demo import estate  # noqa: E402
from tests.lab import userns  # noqa: E402
from tests.lab.netlab import Lab, LabError, find_program  # noqa: E402
from tests.rights import lack_of  # noqa: E402

WELCOME = """\
This shell is the jump host. The inventory is here: inventory.yaml.
`on HOST COMMAND` runs a command on a host, or on the router: on router nft list ruleset
`exit` ends the cluster; what you make here stays in {folder}.
"""
# The command `on` runs another one on a machine of the cluster.
ON = """\
#!/bin/sh
[ $# -gt 1 ] || {{ echo "usage: on HOST COMMAND; hosts: {names}"; exit 2; }}
host=$1
shift
case $host in
{cases}*) echo "on: there is no $host; hosts: {names}"; exit 2 ;;
esac
"""


def main() -> int:
    """Build the cluster and wait until its shell ends; the shell's exit status."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    folder = Path(sys.argv[1] if sys.argv[1:] else ROOT / "build" / "demo").absolute()
    if lack_of("namespaces") is not None:
        reason = userns.why_not()
        if reason is not None:
            return _explain_failure(f"no network namespaces here: {reason}")
        userns.enter([sys.executable, __file__, str(folder)])
    try:
        with Lab() as lab:
            estate.build(lab)
            _write_files(lab, folder)
            return _open_shell(folder)
    except LabError as problem:
        return _explain_failure(str(problem).splitlines()[0])


def _explain_failure(reason: str) -> int:
    print(f"demo-shell: {reason}", file=sys.stderr)
    return 4


def _write_files(lab: Lab, folder: Path) -> None:
    """The inventory, and the command ``on``."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(estate.write_inventory(lab), folder / "inventory.yaml")
    machines = lab.namespaces
    cases = "".join(
        f'{name}) exec {shlex.join(machine.enter)} "$@" ;;\n' for name, machine in machines.items()
    )
    on = folder / "bin" / "on"
    on.write_text(ON.format(cases=cases, names=" ".join(machines)))
    on.chmod(0o755)


def _open_shell(folder: Path) -> int:
    """Run the shell that people type into, or that reads commands from a file."""
    places = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment = os.environ | {
        "PATH": os.pathsep.join([*places, "/usr/sbin", "/sbin"]),
        "PS1": "demo$ ",
    }
    by_hand = sys.stdin.isatty()
    if by_hand:
        print(estate.DESCRIPTION)
        print(WELCOME.format(folder=folder), flush=True)
    bash = find_program("bash")
    command = [bash, "--norc", "--noprofile"] if bash else ["sh"]
    shell = subprocess.Popen(command, cwd=folder, env=environment)
    # Ctrl-C ends what runs in the shell, not the cluster.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return shell.wait()


if __name__ == "__main__":
    sys.exit(main())
