"""The vantages for nodes without ssh, as ``netprobe init`` prints them, with stand-ins.

They do what `oc debug` and `kubectl debug` do with standard input, and nothing of a pod: oc gives a
command none unless -T is given, kubectl only with -i; without -q kubectl talks on its output.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netprobe.load.inventory.discover import load_inventory
from netprobe.load.matrix.file import load_matrices
from netprobe.load.starter import starter_inventory
from tests.vantage.conftest import Start

pytestmark = pytest.mark.slow

PROGRAM = """\
#!/bin/sh
wanted=$(basename "$0" | sed 's/oc/-T/; s/kubectl/-iq/')
case " $* " in *" $wanted "*) ;; *) exec </dev/null;; esac
case " $* " in *" -q "*|*" -iq "*) ;; *) echo "Creating debugging pod ...";; esac
while [ "$1" != -- ]; do shift; done
shift
[ "$1 $2" = "chroot /host" ] && shift 2
exec "$@"
"""


@pytest.mark.parametrize("program", ["oc", "kubectl"])
async def test_a_node_without_ssh(
    program: str, tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of the printed inventory starts an agent: its standard input reaches the node."""
    text = starter_inventory(load_matrices(["openshift-host-ports"]))
    (vantage,) = re.findall(rf"# ({{command: \[{program}, debug, .*}})\n", text)
    stand_in = tmp_path / program
    stand_in.write_text(PROGRAM)
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(
        "schema: netprobe.inventory/1\nhosts:\n"
        f"  NAME: {{address: 10.0.0.10, roles: [node], vantage: {vantage}}}\n"
    )
    (host,) = load_inventory([str(inventory)]).hosts

    assert host.vantage.command[:3] == (program, "debug", "node/w0")
    assert (await start(host)).hello.pid > 0
