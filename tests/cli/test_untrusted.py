"""Files, hosts and programs that mean harm: one clean line in bounded memory, and private files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from netprobe.agent.wire.answers import Fault
from tests.cli.command import COMMAND, environment, netprobe
from tests.cost import run_measured
from tests.needs import skip
from tests.vantage.scripted import scripted

# They start whole commands, some of them many.
pytestmark = pytest.mark.slow

TINY = ("-m", "./tiny.yaml")
HERE = (*TINY, "--limit", "here", "--from", "here")
TUNNEL = ("diagnose", "konnectivity", "--server", "a:1", "--publishing", "nodeport")
MIB = 1024 * 1024
# Linux counts in KiB (getrusage(2)).
MOST_KIB = 500 * 1024
HEAD = "schema: netprobe.inventory/1\nhosts: {a: {address: 10.0.0.1, roles: [node]}}\nsettings:\n"
BARE = '{"schema": "netprobe.run/1", "results": []}'
RUN = '{"schema": "netprobe.run/1", "started_at": "", "matrices": [], '


def refused(folder: Path, *words: str) -> str:
    """The one line that a command prints which ends with status 2."""
    done = netprobe(*words, cwd=folder)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, ""), line
    assert line.isprintable()
    return line


def refused_in_little_memory(folder: Path, *words: str, stdin: int | None = None) -> str:
    """The same of a command that may take 500 MB."""
    with tempfile.TemporaryFile(dir=folder) as out, tempfile.TemporaryFile(dir=folder) as err:
        where = {"cwd": folder, "env": environment(), "stdin": stdin}
        cost = run_measured([*COMMAND, *words], stdout=out, stderr=err, **where)
        printed, said = (os.pread(one.fileno(), MIB, 0) for one in (out, err))
    (line,) = said.decode().splitlines()
    assert (cost.status, printed) == (2, b""), line
    assert cost.kib < MOST_KIB
    assert line.isprintable()
    return line


@pytest.mark.parametrize(
    "words",
    [
        ("report", "/dev/zero"),
        ("diff", "/dev/zero", "/dev/zero"),
        ("run", *TINY, "--resume", "/dev/zero"),
        ("plan", *TINY, "-i", "/dev/zero"),
        ("plan", "-m", "/dev/zero"),
        ("check", "/dev/zero"),
        (*TUNNEL, "--ca", "/dev/zero"),
    ],
    ids=lambda words: words[0],
)
def test_a_device(folder: Path, words: tuple[str, ...]) -> None:
    """A device is refused wherever a file is read."""
    assert "/dev/zero: this is a device, expected a" in refused(folder, *words)


def test_a_fifo(folder: Path) -> None:
    """A FIFO that nobody writes to is given up once, after 10 s."""
    os.mkfifo(folder / "fifo")
    readers = (("report", "fifo"), ("plan", *TINY, "-i", "fifo"), ("check", "fifo"))

    with ThreadPoolExecutor(len(readers)) as pool:
        for line in pool.map(lambda words: refused(folder, *words), readers):
            assert "fifo: nothing came out of this pipe for 10 s, expected a" in line


def test_a_pipe_without_end(folder: Path) -> None:
    """``yes | netprobe report /dev/stdin`` ends."""
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        standard_input = endless.stdout.fileno()
        line = refused_in_little_memory(folder, "report", "/dev/stdin", stdin=standard_input)
        endless.kill()

    assert line.startswith("/dev/stdin: more than 64 MiB come out of this pipe, expected a JSON")


# What stands first, what comes again and again, how often, and the end.
BOMBS = {
    "record-line": ('{"schema":"netprobe.record/1"}\n{"x":[', "[],", 20 * MIB, "1]}\n"),
    "run-results": (RUN + '"results": [', "[],", 20 * MIB, "1]}"),
    "run-hosts": (RUN + '"results": [], "hosts": [', "{},", 20 * MIB, "1]}"),
    "run-nested": (RUN + '"x": {"a": [', "[],", 20 * MIB, "1]}}"),
    "run-brackets": ('{"a": ', "[", 10 * MIB, ""),
    "yaml-items": (HEAD + "  a:\n", "   - a\n", 2 * MIB, ""),
    "yaml-lists": (HEAD + "  a: [", "[],", 5 * MIB, "]\n"),
    "yaml-brackets": ("", "[", 10 * MIB, ""),
}


# Only `make lab` reads these too: they are like others, and larger in memory.
LARGE = ("run-hosts", "yaml-items", "yaml-brackets")


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.full if one in LARGE else ()) for one in BOMBS]
)
def test_a_bomb(folder: Path, name: str) -> None:
    """A file that is small on disk and large in memory is refused before it is."""
    first, again, times, last = BOMBS[name]
    (folder / "bomb").write_text(first + again * times + last)
    words = ("plan", *TINY, "-i", "bomb") if name.startswith("yaml") else ("report", "bomb")

    assert refused_in_little_memory(folder, *words).startswith("bomb:")


@pytest.mark.parametrize("first", ["", '{"schema":"netprobe.record/1"}\n'])
def test_a_sparse_file(folder: Path, first: str) -> None:
    """A line of 10 GB is not read."""
    with (folder / "sparse").open("w") as stream:
        stream.write(first)
        stream.truncate(10 << 30)

    line = refused_in_little_memory(folder, "report", "sparse")
    assert ":1: longer than 64 MiB, expected a line of a record" in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("hello\n", "f:1:1: is not JSON, expected a JSON report (netprobe.run/1) or a record"),
        ("", "f:1:1: ends in the middle of its JSON, expected a JSON report"),
        ("{}", "f:1:1: is no report of netprobe, expected a JSON report (netprobe.run/1) or a"),
        ("[1]", "f:1:1: is not JSON, expected a JSON report"),
        ('{"schema":"netprobe.run/1"}', 'f: the key "results" is missing'),
        (RUN + '"results": {}}', 'f: the key "results" is missing or no list'),
        (BARE, 'f: is no report of a run (the key "started_at" is'),
        ('{"schema":"netprobe.record/1"}\n', 'f: is no report of a run (the key "started_at" is'),
        (RUN + '"results": [%s]}' % ("1" * 10_000), "has a number of too many digits"),
    ],
    ids=["text", "empty", "object", "list", "hollow", "results", "bare", "record", "digits"],
)  # fmt: skip
def test_no_report(folder: Path, content: str, words: str) -> None:
    """What is no earlier run is told so, by ``report`` and by ``diff`` alike."""
    (folder / "f").write_text(content)

    assert words in refused(folder, "report", "f")
    assert words in refused(folder, "diff", "f", "f")


def test_pipes_are_files(folder: Path) -> None:
    """``<(command)`` and ``/dev/stdin`` serve as matrix, inventory, record and JSON report."""
    files = "-m <(cat tiny.yaml) -i <(cat inventory.yaml)"
    commands = (
        f"{{}} run {files} --limit here --from here --record r -o json=j >/dev/null",
        f"{{}} check <(cat tiny.yaml) <(cat inventory.yaml) {files}",
        "cat r | {} report /dev/stdin -o json=again && cmp j again",
        "{} report <(cat j) -o json=again && cmp j again",
        "{} diff <(cat j) <(cat r)",
        f"{{}} run {files} --limit here --from here --resume <(cat r) >/dev/null",
        f"{{}} run {files} --limit here --from here --resume <(cat j) >/dev/null",
    )
    for text in commands:
        done = subprocess.run(
            ["bash", "-c", text.format(" ".join(COMMAND))],
            cwd=folder,
            env=environment(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (text, done.stderr)


EVIL = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b2J"
INVENTORY = """\
schema: netprobe.inventory/1
hosts:
  here: {{address: 10.0.0.1, roles: [node], vantage: {{command: {command}}}}}
"""


def test_an_agent_writes_no_escapes(folder: Path) -> None:
    """What a host says of itself does nothing to the terminal."""
    host = scripted(folder, Fault(None, f"Error: {EVIL}", None))
    (folder / "inventory.yaml").write_text(
        INVENTORY.format(command=json.dumps(list(host.vantage.command)))
    )
    done = netprobe("check", "--hosts", *TINY, cwd=folder)
    assert "here: a bug in the agent: Error: red" in done.stderr
    for line in (done.stdout + done.stderr).splitlines():
        assert line.isprintable(), line


def test_ansible_writes_no_escapes(folder: Path) -> None:
    """Neither what Ansible says nor the names of its hosts do anything to the terminal."""
    host = {"ansible_host": "bad address", "ansible_become": True, "ansible_become_method": EVIL}
    names = {f"h{EVIL}": host, f"i{EVIL}": {**host, "ansible_host": "10.0.0.1"}}
    listing = {"node": {"hosts": list(names)}, "_meta": {"hostvars": names}}
    (folder / "listing").write_text(json.dumps(listing))
    program = folder / "ansible-inventory"
    (folder / "hosts").write_text("[node]\na\n")
    outputs = []
    for script in ("cat listing", "printf 'no\\033[31m hosts\\033]0;x\\007\\n' >&2; exit 1"):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        path = f"{folder}:{os.environ['PATH']}"
        for words in (("plan", *TINY), ("check",), ("check", "--hosts", *TINY)):
            outputs.append(netprobe(*words, "-i", "hosts", cwd=folder, PATH=path))
    for done in outputs:
        assert done.returncode == 2
        assert done.stderr
        for line in (done.stdout + done.stderr).splitlines():
            assert line.isprintable(), line


def test_arguments_write_no_escapes(folder: Path) -> None:
    """Not even what stood on the command line comes back raw."""
    for words in ((f"--{EVIL}",), ("report", EVIL), ("plan", "-m", f"./{EVIL}.yaml"), (EVIL,)):
        done = netprobe(*words, cwd=folder, NETPROBE_DEBUG="1")

        assert done.returncode == 2
        for line in done.stderr.splitlines():
            assert line.isprintable(), line


CORE = """
import os, resource, sys
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
from netprobe.cli.option_groups import LaunchOptions
from netprobe.cli.launch import make_launcher
launcher = make_launcher(LaunchOptions(ask_become_pass=False, agent_python=()))
if sys.argv[1] == "unlimited":
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
os.abort()
"""


@pytest.mark.parametrize(
    ("password", "limit"), [("", "kept"), ("secret", "kept"), ("secret", "unlimited")]
)
def test_no_core_dump_with_a_password(folder: Path, password: str, limit: str) -> None:
    """A crash while a password is held leaves no core, also where the limit is not heeded.

    (It is not where the kernel hands cores to a program.)
    """
    process = subprocess.Popen(
        [COMMAND[0], "-c", CORE, limit],
        cwd=folder,
        env=environment(NETPROBE_BECOME_PASSWORD=password),
        stderr=subprocess.DEVNULL,
    )
    _, status = os.waitpid(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert os.WTERMSIG(status) == signal.SIGABRT
    if not password and not os.WCOREDUMP(status):
        skip("this machine dumps no core", "`ulimit -Hc` above 0")

    assert os.WCOREDUMP(status) is (not password)
