"""The one file on jump hosts that have nothing: where it unpacks, what it refuses, how it runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netprobe import __version__
from release.places import own_arch
from tests.needs import skip
from tests.patience import PATIENCE_S
from tests.release.roots import CACHE, FILE, JumpHost, onefile_of
from tests.vantage.runtime.support import EVERYWHERE, has_busybox

pytestmark = pytest.mark.slow
VERSION = f"netprobe {__version__}\n"
NO_ROOM = (
    r"no place to unpack it: .*make \d+ MB free in one of them, or give another: "
    r"XDG_CACHE_HOME=DIR\n"
)
REFUSED = 4


@pytest.fixture(scope="module")
def onefile() -> Path:
    """The file of this checkout."""
    if not has_busybox():
        skip("no static busybox", "Debian's busybox-static")
    return onefile_of(own_arch())


@pytest.fixture
def hosts() -> Iterator[list[JumpHost]]:
    """Jump hosts that end with the test."""
    made: list[JumpHost] = []
    yield made
    for one in made:
        one.close()


def test_busybox_alone(hosts: list[JumpHost], onefile: Path) -> None:
    """It starts where no libc is, in a folder of mode 0700, and brings the Python for hosts."""
    hosts.append(JumpHost(onefile))
    first, again = hosts[0].run("--version"), hosts[0].run("runtime", "list")
    assert (first.status, first.stdout, first.stderr) == (0, VERSION, "")
    (folder,) = hosts[0].unpacked()
    assert folder.startswith(f"/{CACHE}/{__version__}-")
    assert (hosts[0].inside / folder[1:]).stat().st_mode & 0o7777 == 0o700
    assert again.stderr == ""
    path = f"{folder}/share/netprobe/runtime-{own_arch()}.tar.gz"
    assert re.fullmatch(rf"{re.escape(path)}: Python 3\.11.*\n", again.stdout)
    assert "as it was made" in hosts[0].run("--verify").stdout.splitlines()[1]


def test_two_first_starts_at_once(hosts: list[JumpHost], onefile: Path) -> None:
    """Both run, and one unpacked folder is left."""
    hosts.append(JumpHost(onefile))
    argv = hosts[0].command(FILE, "--version")
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.communicate(timeout=PATIENCE_S)[0] for one in both] == [VERSION, VERSION]
    assert len(hosts[0].unpacked()) == 1


def test_a_changed_file_is_refused(hosts: list[JumpHost], onefile: Path) -> None:
    """One other byte, in the payload, in the text before it, or none at the end: exit status 4, one
    line that names the file, and nothing is unpacked. Whole again, it starts."""
    hosts.append(JumpHost(onefile))
    data = onefile.read_bytes()
    path = hosts[0].folder / FILE.lstrip("/")
    comment = data.index(b"packed Python")
    for at in (len(data) // 2, comment, None):
        behind = b"" if at is None else bytes([data[at] ^ 1]) + data[at + 1 :]
        path.write_bytes(data[: -1 if at is None else at] + behind)
        ended = hosts[0].run("--version")
        assert (ended.status, ended.stdout, ended.stderr.count("\n")) == (REFUSED, "", 1)
        assert ended.stderr.startswith(f"netprobe: {FILE}: ")
        assert "changed" in ended.stderr
        assert (hosts[0].unpacked(), (hosts[0].folder / "root/.cache").exists()) == ([], False)
    path.write_bytes(data)
    assert hosts[0].run("--version").stdout == VERSION


@pytest.mark.full
def test_noexec_tmp_and_home(hosts: list[JumpHost], onefile: Path) -> None:
    """It takes the first place where programs may run; where there is none, each is named with its
    reason, exit status 4, and nothing is left."""
    hosts += [
        JumpHost(onefile, "noexec", ("/tmp", "/root")),
        JumpHost(onefile, "noexec", EVERYWHERE),
    ]
    assert hosts[0].run("--version").stdout == VERSION
    assert [Path(one).parent for one in hosts[0].unpacked()] == [Path("/dev/shm/netprobe-0")]
    assert (hosts[0].inside / "dev/shm/netprobe-0").stat().st_mode & 0o777 == 0o700
    ended = hosts[1].run("--version")
    places = ("/root/.cache", "/dev/shm", "/run", "/tmp", "/var/tmp")
    assert ended.status == REFUSED
    assert ", ".join(f"{place} (noexec)" for place in places) in ended.stderr
    assert re.fullmatch(f"netprobe: {FILE}: {NO_ROOM}", ended.stderr)
    assert (hosts[1].unpacked(), list((hosts[1].inside / "root").iterdir())) == ([], [])


@pytest.mark.full
def test_a_home_that_cannot_be_written(hosts: list[JumpHost], onefile: Path) -> None:
    """Read only, or of a user without a home, a name or anything: the next place will do."""
    hosts += [JumpHost(onefile, "ro", ("/root",)), JumpHost(onefile)]
    assert hosts[0].run("--version").stdout == VERSION
    assert [Path(one).parts[1] for one in hosts[0].unpacked()] == ["dev"]
    (hosts[1].inside / "tmp").chmod(0o1777)
    bare = {"PATH": "/bin"}
    for _ in range(2):
        ended = hosts[1].run("runtime", "list", env=bare, user=12345)
        assert (ended.status, ended.stderr) == (0, "")
    assert [Path(one).parent for one in hosts[1].unpacked()] == [Path("/dev/shm/netprobe-12345")]


@pytest.mark.full
def test_no_room(hosts: list[JumpHost], onefile: Path) -> None:
    """Everything is full, also where it turns out only while it is unpacked: exit status 4, one
    line, nothing left."""
    hosts.append(JumpHost(onefile, "size=20m", EVERYWHERE))
    # Its df says that there is room.
    for name in (None, "bin/df"):
        if name is not None:
            (hosts[0].inside / name).unlink()
            hosts[0].put(name, "#!/bin/sh\necho x x x 900000000 x\n", 0o755)
        ended = hosts[0].run("--version")
        assert (ended.status, ended.stdout) == (REFUSED, "")
        assert re.fullmatch(f"netprobe: {FILE}: {NO_ROOM}", ended.stderr)
        assert "/root/.cache (no room" in ended.stderr
        assert (hosts[0].unpacked(), list((hosts[0].inside / "root").iterdir())) == ([], [])


@pytest.mark.full
def test_the_folder_of_another_user(hosts: list[JumpHost], onefile: Path) -> None:
    """Root with a user's HOME, a user whose cache or place is another's, or open to others: exit
    status 4, one line that names it, and nothing is written there."""
    hosts.append(JumpHost(onefile))
    for name, owner, mode in (("home/ann", 501, 0o755), ("tmp", 0, 0o1777)):
        (hosts[0].inside / name).mkdir(parents=True, exist_ok=True)
        os.chown(hosts[0].inside / name, owner, owner)
        (hosts[0].inside / name).chmod(mode)
    ann = {"PATH": "/bin", "HOME": "/home/ann"}
    ended = hosts[0].run("--version", env=ann)
    assert (ended.status, ended.stderr.count("\n")) == (REFUSED, 1)
    assert ended.stderr.startswith("netprobe: /home/ann: belongs to another user")
    assert list((hosts[0].inside / "home/ann").iterdir()) == []
    # She has one of her own, which is root's no more than it was.
    assert hosts[0].run("--version", env=ann, user=501).stdout == VERSION
    ended = hosts[0].run("--version", env=ann)
    assert (ended.status, ended.stdout) == (REFUSED, "")
    assert "/home/ann/.cache/netprobe/" in ended.stderr
    for mode, words in ((0o777, "is open to others"), (0o700, "belongs to another user")):
        place = hosts[0].inside / "dev/shm/netprobe-777"
        place.mkdir(exist_ok=True)
        place.chmod(mode)
        os.chown(place, *((777, 777) if mode == 0o777 else (501, 501)))
        ended = hosts[0].run("--version", env={"PATH": "/bin"}, user=777)
        assert (ended.status, words in ended.stderr) == (REFUSED, True)
        assert list(place.iterdir()) == []


@pytest.mark.full
def test_what_was_changed_since(hosts: list[JumpHost], onefile: Path) -> None:
    """A file that is gone, or has another size or time, or that was added: all of it is unpacked
    again at the next start. What keeps size and time is found by --verify."""
    hosts.append(JumpHost(onefile))
    hosts[0].run("--version")
    (folder,) = hosts[0].unpacked()
    place = hosts[0].inside / folder[1:]
    sources = place / "lib/python3.11/dist-packages/netprobe"
    changes = (
        (sources / "__init__.py").unlink,
        lambda: shutil.rmtree(place / "lib/python3.11/encodings"),
        lambda: (sources / "__init__.py").write_text("raise SystemExit(77)\n"),
        (sources / "added.py").touch,
        lambda: place.chmod(0o755),
        (place / "lib/ld.so").unlink,
    )
    for change in changes:
        change()
        ended = hosts[0].run("--version")
        assert (ended.status, ended.stdout, ended.stderr) == (0, VERSION, "")
        assert hosts[0].unpacked() == [folder]
        assert not (sources / "added.py").exists()
        assert "SystemExit" not in (sources / "__init__.py").read_text()
    path = sources / "errors.py"
    when = path.stat()
    path.write_bytes(path.read_bytes().replace(b"because", b"becauze").replace(b"error", b"errur"))
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
    ended = hosts[0].run("--verify")
    assert (ended.status, "dist-packages/netprobe/errors.py: FAILED" in ended.stderr) == (
        REFUSED,
        True,
    )


@pytest.mark.full
def test_extracted_to_look_at(hosts: list[JumpHost], onefile: Path) -> None:
    """--extract unpacks it into a new folder, with a command that starts; it writes into no other
    folder and over none."""
    hosts.append(JumpHost(onefile))
    ended = hosts[0].run("--extract", "/tmp/to look")
    assert (ended.status, ended.stdout, ended.stderr) == (0, "/tmp/to look/bin/netprobe\n", "")
    assert hosts[0].run("--version", file="/tmp/to look/bin/netprobe").stdout == VERSION
    assert hosts[0].unpacked() == []
    again = hosts[0].run("--extract", "/tmp/to look")
    assert (again.status, again.stderr.count("\n")) == (REFUSED, 1)


@pytest.mark.full
def test_every_shell(hosts: list[JumpHost], onefile: Path) -> None:
    """Whatever sh is, and whatever the file is called (a plugin of kubectl, a link): it starts."""
    hosts.append(JumpHost(onefile))
    home = {"HOME": str(hosts[0].folder / "root"), "PATH": os.environ["PATH"]}
    plugin = hosts[0].folder / "kubectl-netprobe"
    plugin.symlink_to(onefile)
    shells = [["dash"], ["bash"], ["mksh"], ["busybox", "sh"], ["zsh", "--emulate", "sh"]]
    for shell in (one for one in shells if shutil.which(one[0])):
        shutil.rmtree(hosts[0].folder / CACHE, ignore_errors=True)
        for _ in range(2):
            done = subprocess.run(
                [*shell, plugin, "--version"],
                env=home, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stdout, done.stderr) == (0, VERSION, ""), shell


# It is started in place of ssh, and writes down what it got.
FAKE_SSH = "#!/bin/sh\nenv | sort >/ssh-environment\nexit 255\n"
INVENTORY = """schema: netprobe.inventory/1
hosts:
  a: {addresses: [10.98.77.1], roles: [node]}
"""
MATRIX = """schema: netprobe.matrix/1
name: m
title: M
roles: {node: {}}
requirements:
  - {id: one, from: node, to: node, purpose: p, row: r, tcp: [22]}
"""


@pytest.mark.full
def test_the_environment_of_the_caller(hosts: list[JumpHost], onefile: Path) -> None:
    """PYTHONHOME, PYTHONPATH and LD_LIBRARY_PATH would break the Python that came along, and reach
    ssh as they are."""
    hosts.append(JumpHost(onefile))
    hosts[0].put("bin/ssh", FAKE_SSH, 0o755)
    hosts[0].put("bad/libc.so.6", "no library")
    hosts[0].put("bad/os.py", "raise SystemExit(77)\n")
    hosts[0].put("i.yaml", INVENTORY + "  b: {addresses: [10.98.77.2], roles: [node]}\n")
    hosts[0].put("m.yaml", MATRIX)
    bad = dict.fromkeys(("LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"), "/bad")
    own = {"PATH": "/bin", "HOME": "/root", "np_dir": "/mine", "TERM": "dumb", "umask": "x"}
    ended = hosts[0].run("run", "-m", "/m.yaml", "-i", "/i.yaml", env=own | bad)
    assert "Traceback" not in ended.stderr
    seen = (hosts[0].inside / "ssh-environment").read_text().splitlines()
    assert {f"{name}=/bad" for name in bad} <= set(seen)
