"""The one file on jump hosts that have nothing: where it unpacks, what it refuses, how it runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

from demo import estate
from netprobe import __version__
from release.places import ARCHES, own_arch
from tests.lab.cli import flows_of
from tests.lab.expected import PATH_MTU
from tests.lab.netlab import Lab
from tests.needs import skip
from tests.patience import PATIENCE_S
from tests.release.roots import CACHE, FILE, JumpHost, make_small_file, onefile_of
from tests.vantage.runtime.support import EVERYWHERE, has_busybox

# The file is built once, which takes a minute of processor time and a package index.
pytestmark = [pytest.mark.slow]
VERSION = f"netprobe {__version__}\n"
NO_ROOM = (
    r"no place to unpack it: .*make \d+ MB free in one of them, or give another: "
    r"XDG_CACHE_HOME=DIR\n"
)
REFUSED = 4


@pytest.fixture(scope="module")
def onefile() -> Path:
    """The file of this checkout."""
    _need_busybox()
    return onefile_of(own_arch())


@pytest.fixture(params=["small", pytest.param("whole", marks=pytest.mark.full)])
def started(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of which only the shell text matters: one with little in it does, too."""
    _need_busybox()
    return make_small_file(tmp_path) if request.param == "small" else onefile_of(own_arch())


def _need_busybox() -> None:
    if not has_busybox():
        skip("no static busybox", "Debian's busybox-static")


@pytest.fixture
def hosts() -> Iterator[list[JumpHost]]:
    """Jump hosts that end with the test."""
    made: list[JumpHost] = []
    yield made
    for one in made:
        one.close()


@pytest.mark.full
def test_busybox_alone(hosts: list[JumpHost], onefile: Path) -> None:
    """Two first starts at once, where no libc is: both run, and one folder of mode 0700 is left. It
    brings the Python for hosts that have none."""
    hosts.append(JumpHost(onefile))
    argv = hosts[0].command(FILE, "--version")
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.communicate(timeout=PATIENCE_S)[0] for one in both] == [VERSION, VERSION]
    (folder,) = hosts[0].unpacked()
    assert folder.startswith(f"/{CACHE}/{__version__}-")
    assert (hosts[0].inside / folder[1:]).stat().st_mode & 0o7777 == 0o700
    listed = hosts[0].run("runtime", "list")
    path = f"{folder}/share/netprobe/runtime-{own_arch()}.tar.gz"
    assert re.fullmatch(rf"{re.escape(path)}: Python 3\.11.*\n", listed.stdout)
    assert (listed.status, listed.stderr) == (0, "")


def test_a_changed_file_is_refused(hosts: list[JumpHost], started: Path) -> None:
    """One other byte, in the payload, in the text before it, or none at the end: exit status 4, one
    line that names the file, and nothing is unpacked. Whole again, it is as it was made."""
    hosts.append(JumpHost(started))
    data = started.read_bytes()
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
    assert hosts[0].run("--verify") == (0, f"{FILE}: as it was made\n", "")


@pytest.mark.needs("other users")
def test_root_with_the_home_of_a_user(hosts: list[JumpHost], started: Path) -> None:
    """Exit status 4, one line that names the folder, and nothing is written there."""
    hosts.append(JumpHost(started))
    home = hosts[0].inside / "home/ann"
    home.mkdir(parents=True)
    os.chown(home, 501, 501)
    ended = hosts[0].run("--version", env={"PATH": "/bin", "HOME": "/home/ann"})
    assert (ended.status, ended.stdout, ended.stderr.count("\n")) == (REFUSED, "", 1)
    assert ended.stderr.startswith("netprobe: /home/ann: belongs to another user")
    assert (list(home.iterdir()), hosts[0].unpacked()) == ([], [])


def test_noexec_tmp_and_home(hosts: list[JumpHost], started: Path) -> None:
    """It takes the first place where programs may run; where there is none, each is named with its
    reason, exit status 4, and nothing is left."""
    hosts += [
        JumpHost(started, "noexec", ("/tmp", "/root")),
        JumpHost(started, "noexec", EVERYWHERE),
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


@pytest.mark.needs("other users")
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


@pytest.mark.needs("other users")
def test_the_folder_of_another_user(hosts: list[JumpHost], started: Path) -> None:
    """What a user unpacked is not run by root, and a place that is another user's, or open to
    others, is not used: exit status 4, one line that names it, and nothing is written there."""
    hosts.append(JumpHost(started))
    for name, owner, mode in (("home/ann", 501, 0o755), ("tmp", 0, 0o1777)):
        (hosts[0].inside / name).mkdir(parents=True, exist_ok=True)
        os.chown(hosts[0].inside / name, owner, owner)
        (hosts[0].inside / name).chmod(mode)
    ann = {"PATH": "/bin", "HOME": "/home/ann"}
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
        done = subprocess.run(
            [*shell, plugin, "clean", "--help"],
            env=home, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "cluster clean [OPTIONS]" in done.stdout, shell


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
    own = {"PATH": "/bin", "HOME": "/root", "XDG_CACHE_HOME": "/my cache", "TERM": "dumb"}
    ended = hosts[0].run("run", "-m", "/m.yaml", "-i", "/i.yaml", env=own | bad)
    assert "Traceback" not in ended.stderr
    text = (hosts[0].inside / "ssh-environment").read_text()
    seen = dict(line.split("=", 1) for line in text.splitlines())
    # What a shell adds is that of the fake ssh.
    assert {name: seen[name] for name in seen.keys() - {"PWD", "SHLVL", "OLDPWD", "_"}} == own | bad


# A name server for one name. It says when it listens.
NAME_SERVER = """
import socket, dns.message, dns.rrset
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    data, peer = link.recvfrom(4096)
    query = dns.message.from_wire(data)
    answer = dns.message.make_response(query)
    if query.question[0].rdtype == 1:
        answer.answer.append(dns.rrset.from_text(query.question[0].name, 5, 1, 1, "10.98.77.9"))
    link.sendto(answer.to_wire(), peer)
"""
# A library of this machine that any libc could load.
LIBRARY = f"/lib/{own_arch()}-linux-gnu/libnss_files.so.2"
# What the travelling Python sees of the host.
LOOKS = """
import json, os, pwd, socket, ssl, sys, ctypes, sqlite3, lzma, bz2
def user():
    try: return pwd.getpwuid(4711).pw_name
    except KeyError: return None
print(json.dumps({
    "hosts": socket.getaddrinfo("of-hosts", 1)[0][4][0],
    "dns": socket.getaddrinfo("of-dns.example.com", 1, socket.AF_INET)[0][4][0],
    "user": user(),
    "authorities": len(ssl.create_default_context().get_ca_certs()),
    "libraries": sorted({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}),
    "folder": sys.prefix,
}))
"""
AUTHORITIES = (
    "usr/lib/ssl/cert.pem",
    "etc/ssl/certs/ca-certificates.crt",
    "etc/pki/tls/certs/ca-bundle.crt",
    "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "etc/ssl/ca-bundle.pem",
    "var/lib/ca-certificates/ca-bundle.pem",
)


@pytest.mark.full
def test_name_services_and_authorities_of_the_host(hosts: list[JumpHost], onefile: Path) -> None:
    """Where nsswitch.conf names sss: /etc/hosts, DNS and /etc/passwd are read, and no library of
    the host is loaded. The host's authorities are found where Debian, RHEL and SLES keep them."""
    hosts.append(JumpHost(onefile, within=("unshare", "-n")))
    host, pid = hosts[0], hosts[0].enter[2]
    host.put("etc/nsswitch.conf", "passwd: sss files systemd\nhosts: sss files [!UP=return] dns\n")
    host.put("etc/hosts", "10.98.77.8 of-hosts\n")
    host.put("etc/resolv.conf", "nameserver 127.0.0.1\n")
    host.put("etc/passwd", "ann:x:4711:4711::/:/bin/sh\n")
    # Each would be loaded as it is: it needs nothing but a libc.
    for folder in ("lib64", "usr/lib64", f"lib/{own_arch()}-linux-gnu", "lib"):
        (host.inside / folder).mkdir(parents=True, exist_ok=True)
        for library in ("sss", "systemd"):
            shutil.copy(LIBRARY, host.inside / folder / f"libnss_{library}.so.2")
    host.run("--version")
    (folder,) = host.unpacked()
    network = ["nsenter", "-t", pid, "-n"]
    subprocess.run([*network, "ip", "link", "set", "lo", "up"], check=True)
    server = subprocess.Popen([*network, sys.executable, "-c", NAME_SERVER], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        for place in AUTHORITIES:
            host.put(place, Path(certifi.where()).read_text())
            seen = json.loads(host.run("-c", LOOKS, file=f"{folder}/bin/python").stdout)
            (host.inside / place).unlink()
            assert (seen["hosts"], seen["dns"], seen["user"]) == ("10.98.77.8", "10.98.77.9", "ann")
            assert seen["authorities"] > 0, place
            assert [one for one in seen["libraries"] if not one.startswith(seen["folder"])] == []
    finally:
        server.kill()
        server.communicate()


@pytest.mark.full
def test_every_module_is_there(hosts: list[JumpHost], onefile: Path) -> None:
    """All of netprobe can be imported."""
    hosts.append(JumpHost(onefile))
    hosts[0].run("--version")
    (folder,) = hosts[0].unpacked()
    code = (
        "import importlib, pkgutil, netprobe\n"
        "names = [m.name for m in pkgutil.walk_packages(netprobe.__path__, 'netprobe.')]\n"
        "names = [n for n in names if not n.endswith(('__main__', 'ansible_guard', 'inside'))]\n"
        "for n in [*names, 'yaml._yaml', 'xlsxwriter', 'sqlite3', 'ssl', 'ctypes', 'lzma',"
        " 'bz2', 'uuid', 'zoneinfo', 'h2']:\n"
        "    importlib.import_module(n)\n"
        "print(len(names) > 200)"
    )
    ended = hosts[0].run("-c", code, file=f"{folder}/bin/python")
    assert (ended.stdout, ended.stderr) == ("True\n", "")


@pytest.mark.full
def test_the_estate_of_the_demo(hosts: list[JumpHost], onefile: Path) -> None:
    """From a jump host with busybox alone, to hosts with busybox alone: exactly what the firewall
    stops is blocked. All agents run with the Python that the file brought; none was built."""
    with Lab() as lab:
        estate.build(lab)
        hosts.append(JumpHost(onefile, places=()))
        host, inside = hosts[0], f"{hosts[0].folder}/run/netns"
        Path(inside).mkdir()
        mount = ["mount", "--rbind", "/run/netns", inside]
        subprocess.run(["nsenter", "-t", host.enter[2], "-m", *mount], check=True)
        ways: dict[str, dict[str, object]] = {
            name: {
                "zone": zone,
                "vantage": {"command": ["nsenter", f"--net=/run/netns/{lab[name].netns}"]},
            }
            for name, zone in estate.ZONES.items()
        }
        for name in estate.ROLES.keys() - ways.keys():
            net = f"--net=/run/netns/{lab[name].netns}"
            ways[name] = {"vantage": {"command": ["nsenter", net]}}
        host.put("i.yaml", lab.inventory(estate.ROLES, overrides=ways).read_text())
        words = ("--matrix", estate.MATRIX, "-i", "/i.yaml", "-o", "json=/run.json")
        ended = host.run("run", *words)
        assert "built a Python" not in ended.stderr
        document = json.loads((host.inside / "run.json").read_text())
    every, stopped = estate.expected()
    results = document["results"]
    blocked = {flow for one in results if one["verdict"] == "blocked" for flow in flows_of(one)}
    passed = {flow for one in results if one["verdict"] == "pass" for flow in flows_of(one)}
    passed = {flow for flow in passed if flow.requirement != PATH_MTU}
    assert blocked == stopped, (blocked - stopped, stopped - blocked)
    others = [one for one in results if one["verdict"] not in ("blocked", "pass")]
    assert passed == every - stopped, (passed - every, others)
    assert all(one["facts"].get("python_sent") for one in document["hosts"])


@pytest.mark.needs("qemu-aarch64-static")
@pytest.mark.full
def test_the_other_architecture(tmp_path: Path) -> None:
    """The file for aarch64 starts where a processor of that kind is imitated."""
    (arch,) = [one for one in ARCHES if one != own_arch()]
    path = onefile_of(arch)
    subprocess.run(["sh", path, "--extract", tmp_path / "tree"], check=True, capture_output=True)
    start = ["qemu-aarch64-static", f"{tmp_path}/tree/lib/ld.so", "--library-path"]
    start += [f"{tmp_path}/tree/lib", "--argv0", f"{tmp_path}/tree/bin/python"]
    start += [f"{tmp_path}/tree/lib/python", "-I", "-B", "-X", "utf8"]
    for words, out in ((["--version"], VERSION), (["matrix", "list"], "dce ")):
        argv = [*start, "-m", "netprobe", *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert out in done.stdout
