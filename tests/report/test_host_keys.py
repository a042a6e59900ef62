"""Host keys that ssh does not trust: one line for many hosts, with a command that a shell runs."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from netprobe.model.host_key import HostKey
from netprobe.model.names import names_text
from netprobe.report.page.host_keys import word_host_keys

WORKERS = [f"worker-{number}" for number in range(40)]


def run_in_shell(command: str, program: str) -> list[list[str]]:
    """Run a command with a program that only tells its words."""
    script = f'{program}() {{ printf "%s\\n" "$@"; echo; }}\n{command}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    return [call.splitlines() for call in done.stdout.split("\n\n") if call]


def test_unknown_keys_of_many_hosts_are_one_command() -> None:
    """It goes onto each of them as netprobe does, and asks."""
    options = ("-F", "my config")
    keys = {
        name: HostKey(state="unknown", target=f"ssh://admin@{name}:2222", options=options)
        for name in WORKERS
    }
    (trouble,) = word_host_keys(keys)

    assert trouble.what == f"the host keys of 40 hosts ({names_text(WORKERS, 8)}) are not known yet"
    command = trouble.to_do.partition("accept it: ")[2]
    asking = [*options, "-o", "StrictHostKeyChecking=ask"]
    assert run_in_shell(command, "ssh") == [
        [*asking, f"ssh://admin@{name}:2222", "true"] for name in WORKERS
    ]


def test_changed_keys_of_many_hosts_are_another_command() -> None:
    """It forgets the known ones, and only after a warning; each key that was shown is named."""
    keys = {
        name: HostKey(
            state="changed", target=name, name=f"[{name}]:22", file="/a b/known", sent="K"
        )
        for name in ("a", "b")
    }
    (trouble,) = word_host_keys(keys)

    assert trouble.what.startswith("on the way to 2 hosts (a, b) a host key is NOT THE KNOWN ONE")
    assert ": [a]:22 (K), [b]:22 (K); this may be an attack" in trouble.what
    before, _, command = trouble.to_do.partition("for those that agree: ")
    assert "by another way than this network" in before
    script = command.removesuffix(", then connect once by hand.").replace("ssh-keygen", "keygen")
    assert run_in_shell(script, "keygen") == [
        ["-f", "/a b/known", "-R", f"[{name}]:22"] for name in ("a", "b")
    ]


def test_the_key_of_a_jump_host_is_not_that_of_the_hosts_behind_it() -> None:
    """Those who keep the hosts do not know it: it is told once, by the name of the jump host."""
    keys = {
        name: HostKey(state="changed", target=name, name="bastion", file="known", sent="K")
        for name in ("a", "b")
    }
    (trouble,) = word_host_keys(keys)

    assert ": bastion (K); this may be an attack" in trouble.what
    assert "ssh-keygen -f known -R bastion, then" in trouble.to_do


@pytest.mark.parametrize("state", ["unknown", "changed"])
def test_one_host_needs_no_loop(state: str) -> None:
    """Its command has no more words than it needs; names of others stay words."""
    key = HostKey(state=state, target="x; reboot")  # type: ignore[arg-type]  # one of the two
    (trouble,) = word_host_keys({"w": key})

    assert "for host in" not in trouble.to_do
    assert shlex.quote("x; reboot") in trouble.to_do


def test_what_needs_another_command_is_another_line() -> None:
    """Keys that are not known and keys that changed, and other options of ssh."""
    keys = {
        "a": HostKey(state="unknown", target="a"),
        "b": HostKey(state="changed", target="b"),
        "c": HostKey(state="unknown", target="c", options=("-J", "jump")),
        "d": HostKey(state="unknown", target="d"),
    }

    whats = [one.what for one in word_host_keys(keys)]
    assert [what.partition(" is ")[0].partition(" are ")[0] for what in whats] == [
        "the host keys of 2 hosts (a, d)", "on the way to b a host key", "the host key of c",
    ]  # fmt: skip
