"""Command lines, environments and files that are bent in every way: clear lines, never a bug."""

from __future__ import annotations

import io
import json
import random
import resource
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from netprobe.cli.main import status_of
from tests.cli.command import COMMAND, environment, netprobe
from tests.mutations import ODD, json_of, mutated
from tests.patience import PATIENCE_S
from tests.warm import run_warm

# They start whole commands.
pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0"
TINY = ("-m", "./tiny.yaml")
FAR = (*TINY, "-i", "far.yaml")
LONG = "x" * 5000
PATH_LONG = "/" + LONG
TWO_HOSTS = """\
schema: netprobe.inventory/1
hosts:
  a: {address: 10.77.0.1, roles: [node], vantage: local}
  b: {address: 10.77.0.2, roles: [node], vantage: none}
"""
# Its only host has no agent, so that no packet is sent; it says that it has no Python.
BARE = """\
schema: netprobe.inventory/1
hosts:
  a:
    address: 10.77.0.1
    roles: [node]
    vantage: {command: [sh, -c, "echo NETPROBE-NO-PYTHON aarch64"]}
  b: {address: 10.77.0.2, roles: [node], vantage: ssh, ssh: {port: 9, host: 127.0.0.1}}
"""
CONSENT = ("--reason", "r", "--owner", "o", "--ticket", "t", "--until", "never")


def check_output(done: subprocess.CompletedProcess[str]) -> None:
    """Raise AssertionError for a command that blames itself."""
    said = done.stdout + done.stderr
    assert "Traceback" not in said, (done.args, said[-3000:])
    assert "a bug in netprobe" not in said, (done.args, said[-3000:])
    assert done.returncode in (0, 1, 2, 3, 4), (done.args, done.returncode, said[-3000:])


# Made once; what is planned is alike in all folders.
BUNDLES: list[bytes] = []


@pytest.fixture
def workshop(folder: Path) -> Path:
    """A folder with every kind of file that a command reads."""
    for name in ("full.jsonl", "strict.json", "request.json"):
        shutil.copy(GOLDEN / name, folder / name)
    (folder / "far.yaml").write_text(TWO_HOSTS)
    (folder / "bare.yaml").write_text(BARE)
    (folder / "a_file").write_text("x")
    if not BUNDLES:
        done = netprobe("bundle", *FAR, "--no-listen", "-o", "run.pyz", cwd=folder)
        assert done.returncode == 0, done.stderr
        BUNDLES.append((folder / "run.pyz").read_bytes())
    (folder / "run.pyz").write_bytes(BUNDLES[0])
    return folder


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["plan", *TINY, "-i", LONG], 2),
        (["plan", "-m", f"./{LONG}"], 2),
        (["init", "-m", LONG], 2),
        (["check", LONG], 2),
        (["merge", LONG], 2),
        (["merge", "run.pyz", LONG], 2),
        (["bundle", "--next", LONG, "-o", "next.pyz"], 2),
        (["bundle", *FAR, "--no-listen", "--per-host", LONG], 2),
        (["run", *TINY, "--evidence", LONG], 2),
        (["run", *TINY, "--record", LONG], 4),
    ],
)
def test_a_name_of_5000_letters(workshop: Path, words: list[str], status: int) -> None:
    """What the kernel refuses to open is one line that names it."""
    done = netprobe(*words, cwd=workshop)

    check_output(done)
    assert done.returncode == status
    assert "xxxx" in done.stderr
    assert len(done.stderr.splitlines()) == 1


HOMES = ("{folder}/a_file", "{folder}/none", "relative", "~", PATH_LONG)
OTHER_HOMES = ("", "/proc", "/dev/full", "\udcff")


@pytest.mark.parametrize(
    "home",
    [*HOMES, *(pytest.param(home, marks=pytest.mark.full) for home in OTHER_HOMES)],
    ids=lambda home: ascii(home[:20]),
)
def test_a_home_of_no_use(workshop: Path, home: str) -> None:
    """Whatever HOME, XDG_* and TMPDIR are, a run goes on, and a list of runtimes says why."""
    homes = dict.fromkeys(("HOME", "XDG_RUNTIME_DIR", "TMPDIR"), home.format(folder=workshop))
    homes["XDG_CACHE_HOME"] = ""
    listed = netprobe("runtime", "list", cwd=workshop, **homes)
    check_output(listed)
    assert listed.returncode in (0, 2)
    done = netprobe("run", *TINY, "-i", "bare.yaml", cwd=workshop, **homes)
    check_output(done)
    assert done.returncode == 3


@pytest.mark.parametrize(
    "files", [5, *(pytest.param(files, marks=pytest.mark.full) for files in (6, 7, 8, 10))]
)
def test_a_few_open_files(workshop: Path, files: int) -> None:
    """A command that may open as many as Python needs to start says what is missing."""
    for words in (("run", *TINY), ("merge", "run.pyz"), ("check", "--hosts", *TINY)):
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=workshop, env=environment(), capture_output=True, text=True, check=False,
            timeout=PATIENCE_S,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        )  # fmt: skip
        check_output(done)
        assert "RuntimeWarning" not in done.stderr
        # Agents need more than there may be: so many are refused before anything is begun.
        assert done.returncode in (2, 4) or files > 5


def test_a_plan_without_flows_for_an_engine(workshop: Path) -> None:
    """No host has anything to do: that is said, and no folder is made."""
    done = netprobe("bundle", *FAR, "--from", "b", "--folder", "out", cwd=workshop)

    check_output(done)
    assert done.returncode == 2
    assert "the plan has no flow" in done.stderr
    assert not (workshop / "out").exists()


def bend_bundle(path: Path, chance: random.Random) -> bytes:
    """A bundle with flipped bits, an odd header of a member, or odd values in its plan."""
    raw = bytearray(path.read_bytes())
    if (kind := chance.randrange(3)) == 0:
        for _ in range(chance.choice((1, 1, 2, 10))):
            raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    elif kind == 1:
        sign = chance.choice((b"PK\1\2", b"PK\3\4", b"PK\5\6"))
        at = raw.index(sign, raw.index(sign) + chance.randrange(2)) if raw.count(sign) > 1 else 0
        at = max(at, raw.index(sign)) + 4 + chance.randrange(16)
        raw[at] = chance.choice((0, 1, 9, 255))
    else:
        packed, bent = zipfile.ZipFile(path), io.BytesIO()
        plan = mutated(json.loads(packed.read("plan")), chance)
        with zipfile.ZipFile(bent, "w") as archive:
            for name in packed.namelist():
                archive.writestr(
                    name, json_of(plan, chance) if name == "plan" else packed.read(name)
                )
        return bent.getvalue()
    return bytes(raw)


@pytest.mark.parametrize("count", [10, pytest.param(1500, marks=pytest.mark.full)])
def test_a_bent_bundle(
    workshop: Path, count: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flipped, encrypted, of an odd method, or with odd settings, orders and hosts in its plan."""
    monkeypatch.chdir(workshop)
    chance = random.Random(count)
    for number in range(count):
        Path("bent.pyz").write_bytes(bend_bundle(Path("run.pyz"), chance))
        for words in (["merge", "bent.pyz"], ["bundle", "--next", "bent.pyz", "-o", f"n{number}"]):
            status = status_of(words)
            out, err = capsys.readouterr()
            check_output(subprocess.CompletedProcess(words, status, out, err))


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("run", *FAR, "--from", "b", "--timeout", "1"),
    ("plan", *TINY),
    ("plan", *TINY, "-i", "inventory.yaml", "--count", "-o", "json"),
    ("check", "tiny.yaml", "inventory.yaml"),
    ("report", "full.jsonl"),
    ("report", "strict.json", "-o", "html=out"),
    ("request", "full.jsonl", "-o", "nftables=out"),
    ("request", "--from-plan", *FAR),
    ("diff", "full.jsonl", "strict.json"),
    ("accept", "full.jsonl", "--finding", "1", *CONSENT),
    ("init", *TINY),
    ("matrix", "show", "./tiny.yaml"),
    ("bundle", *FAR, "--no-listen", "-o", "out"),
    ("bundle", *FAR, "--folder", "out"),
    ("merge", "run.pyz", "full.jsonl"),
    ("runtime", "list"),
)
WORDS = (
    "", LONG, "a/" * 2500, "/dev/full", "/", ".", "-", "--", "-1", "1e999", "nan", str(10**30),
    "\udcff\udcfe", "\x1b[2J", "~", "/proc/self/mem", "a_file", "a_file/x", "run.pyz", "full.jsonl",
    "NETPROBE-SUDO", "%s{0}", "\t", "a=b=c", "json=" + LONG, "-i", "-m", "--live", "-o", "--set",
)  # fmt: skip
PLACES = (*WORDS[:8], PATH_LONG, "relative", "/none", "\udcff")
VARIABLES = {
    **dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "PATH"), PLACES),
    **dict.fromkeys(("NETPROBE_INVENTORY", "NETPROBE_MATRIX", "NETPROBE_TIMEOUT"), WORDS),
    "COLUMNS": ("0", "-1", "abc", str(10**12)),
    "LC_ALL": ("C", "xx"),
    "TZ": ("", "X/Y", LONG, ":/etc/passwd"),
}
DEBRIS = (
    b"NETPROBE-SUDO\n", b"\0", b"\xff", b"{}", b"[", b": ", b'"', b"9" * 400, b"1e400", b"null",
    *(json.dumps(one).encode() for one in ODD if not isinstance(one, float)),
)  # fmt: skip


def bend_file(path: Path, chance: random.Random) -> None:
    """Flip, cut, repeat or insert."""
    data = bytearray(path.read_bytes())
    one, other = sorted((chance.randrange(len(data)), chance.randrange(len(data))))
    kind = chance.randrange(5)
    if kind == 0:
        data[one] ^= 1 << chance.randrange(8)
    elif kind == 1:
        del data[one:]
    elif kind == 2:
        del data[one:other]
    elif kind == 3:
        data[one:one] = data[one : one + chance.randrange(200)]
    else:
        data[one:one] = chance.choice(DEBRIS)
    path.write_bytes(data)


@pytest.mark.parametrize("count", [12, pytest.param(1500, marks=pytest.mark.full)])
def test_a_bent_command(workshop: Path, count: int) -> None:
    """One word, variable or file is another one: a report or a clear line comes of it."""
    chance = random.Random(count)
    for number in range(count):
        place = workshop / f"try{number}"
        place.mkdir()
        for one in workshop.iterdir():
            if one.is_file():
                shutil.copy(one, place / one.name)
        words, variables = list(chance.choice(COMMANDS)), dict[str, str]()
        kind = chance.randrange(4)
        if kind == 0:
            words[chance.randrange(len(words))] = chance.choice(WORDS)
        elif kind == 1:
            words.insert(chance.randrange(len(words) + 1), chance.choice(WORDS))
        elif kind == 2:
            name = chance.choice(sorted(VARIABLES))
            variables[name] = chance.choice(VARIABLES[name])
        else:
            read = [word for word in words if (place / word).is_file()] or ["inventory.yaml"]
            bend_file(place / chance.choice(read), chance)
        done = run_warm(words, environment(**variables), place, PATIENCE_S)
        # A bundle may go to standard output.
        out, err = (some.decode(errors="replace") for some in (done.stdout, done.stderr))
        check_output(subprocess.CompletedProcess(done.args, done.returncode, out, err))
        shutil.rmtree(place)
