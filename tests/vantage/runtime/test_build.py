"""What a runtime is made of, which files are one, and which one a host gets."""

from __future__ import annotations

import ast
import asyncio
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.errors import FileErrors, RequestError
from netprobe.vantage.runtime import cache
from netprobe.vantage.runtime.build import _find_base, agent_modules, build_runtime
from netprobe.vantage.runtime.cache import (
    NoRuntime,
    Runtimes,
    keep_runtime,
    list_runtimes,
    make_runtime,
    own_arch,
)
from netprobe.vantage.runtime.elf import arch_of, read_elf
from netprobe.vantage.runtime.file import MANIFEST, Runtime, check_runtime, load_runtime
from tests.needs import skip
from tests.patience import PATIENCE_S
from tests.vantage.runtime.support import lean_host
from tests.warm import run_warm_text

AGENT = Path(__file__).parents[3] / "netprobe/agent"


def imported_by_the_agent() -> set[str]:
    """Every absolute import of the agent's files, read as Python reads it."""
    names: set[str] = set()
    for path in AGENT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module)
    return names


@pytest.mark.slow
def test_every_import_of_the_agent_is_known() -> None:
    """Also those inside functions, and whatever is added next."""
    assert not imported_by_the_agent() - set(agent_modules()) - {"typing"}


@pytest.fixture(scope="module")
def virtual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a virtual environment."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=False)
    return folder / "bin/python"


def test_a_virtual_environment_is_its_base(virtual: Path) -> None:
    """Whose program has the library; also where the environment has a copy of the program."""
    base = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
    assert _find_base(str(virtual)) == base
    assert _find_base(None) == base


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "no Python can be run at {path}: name an interpreter with --python"),
        ("#!/bin/sh\nexit 3\n", "no runtime can be made of {path}: it is no Python 3.6 or later"),
        ("#!/bin/sh\necho False\n",
         "no runtime can be made of {path}: it is no Python 3.6 or later"),
        ("#!/bin/sh\necho True; echo $0\n", "no runtime can be made of {path}: it is no ELF "
         "program; name a Python of a distribution or of pyenv with --python"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_said(tmp_path: Path, text: str | None, words: str) -> None:
    """And what to do."""
    path = tmp_path / "python3"
    if text is not None:
        path.write_text(text)
        path.chmod(0o755)
    with pytest.raises(RequestError) as caught:
        build_runtime(str(path))
    assert str(caught.value) == words.format(path=path)


def test_a_static_python_is_refused(tmp_path: Path) -> None:
    """It has no loader that a host could start it with."""
    source, program = tmp_path / "static.c", tmp_path / "static"
    source.write_text("int main(void) { return 0; }")
    compiler = ["cc", "-static", "-nostdlib", "-Wl,-e,main", "-o", str(program), str(source)]
    try:
        subprocess.run(compiler, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        skip("no C compiler", "Debian's gcc and libc6-dev")
    path = tmp_path / "python3"
    path.write_text(f"#!/bin/sh\necho True; echo {program}\n")
    path.chmod(0o755)
    with pytest.raises(RequestError, match="it is linked statically, without a loader; name a"):
        build_runtime(str(path))


@pytest.mark.parametrize(
    ("machine", "arch"),
    [("x86_64", "x86_64"), ("i586", "i686"), ("armv7l", "arm"), ("aarch64", "aarch64")],
)
def test_names_of_machines(machine: str, arch: str) -> None:
    """What ``uname -m`` says becomes the name of a runtime."""
    assert arch_of(machine) == arch


def test_this_program_is_of_this_machine() -> None:
    """The headers of a real program."""
    elf = read_elf(Path(sys.executable).read_bytes())
    assert elf is not None
    assert elf.arch == own_arch() == arch_of(os.uname().machine)
    assert Path(str(elf.loader)).is_file()
    assert read_elf(b"\x7fELF" + bytes(20)) is None


Change = Callable[[dict[str, bytes]], Any]


def repacked(runtime: Runtime, change: Change) -> bytes:
    """The runtime with other members."""
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(runtime.payload))) as old:
        files = {one.name: old.extractfile(one) for one in old if one.isfile()}
        members = {name: b"" if file is None else file.read() for name, file in files.items()}
    change(members)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as new:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    return gzip.compress(made.getvalue(), 0)


def told(members: dict[str, bytes], **changes: object) -> None:
    """Change what the manifest says."""
    members[MANIFEST] = json.dumps(json.loads(members[MANIFEST]) | changes).encode()


def of_other_machine(members: dict[str, bytes]) -> None:
    """Say in the program's header that it is for ARM."""
    program = bytearray(members["bin/python"])
    program[18] = 183
    members["bin/python"] = bytes(program)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: one.pop(MANIFEST), f"it has no {MANIFEST} that can be read"),
        (lambda one: one.pop("ld.so"), "its ld.so is no program"),
        (lambda one: one.update({"bin/python": b"#!/bin/sh\n"}), "its bin/python is no program"),
        (of_other_machine, "its bin/python is for aarch64 and the rest for x86_64"),
        (lambda one: told(one, schema="netprobe.runtime/9"),
         "this runtime is of another version of netprobe than netprobe.runtime/1"),
        (lambda one: told(one, python=3), f"it has no {MANIFEST} that can be read"),
        (lambda one: one.update({"../x": b""}),
         "its member '../x' is no plain file of a folder below"),
        (lambda one: one.update({"/etc/x": b""}),
         "its member '/etc/x' is no plain file of a folder below"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused(runtime: Runtime, change: Change, words: str) -> None:
    """Before any host gets it, with what is wrong."""
    with pytest.raises(ValueError, match="^" + words.replace(".", r"\.") + "$"):
        check_runtime(repacked(runtime, change))


@pytest.mark.slow
def test_a_file_that_is_cut_is_refused(runtime: Runtime, tmp_path: Path) -> None:
    """Wherever it was cut."""
    path = tmp_path / "runtime.tar.gz"
    for share in (0.1, 0.5, 0.999):
        path.write_bytes(runtime.payload[: int(len(runtime.payload) * share)])
        with pytest.raises(FileErrors, match="it is damaged or no tar file"):
            load_runtime(str(path))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of caches for this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "netprobe"


def count_builds(monkeypatch: pytest.MonkeyPatch, runtime: Runtime) -> list[int]:
    """Let nothing be built anew; the list grows with each time that it would be."""
    builds: list[int] = []

    def build() -> Runtime:
        builds.append(1)
        return runtime

    monkeypatch.setattr(cache, "build_runtime", build)
    return builds


@pytest.mark.slow
async def test_it_is_built_once(
    own_cache: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first need, and told; later runs take what is kept, unless it is of another netprobe
    or damaged."""
    builds = count_builds(monkeypatch, runtime)
    notes: list[str] = []
    machine = os.uname().machine
    first = Runtimes(tell=notes.append)
    for _ in range(2):
        assert (await first.find(machine)).payload == runtime.payload
    path = own_cache / f"runtime-{runtime.arch}.tar.gz"
    assert path.stat().st_mode & 0o777 == 0o600
    assert notes == [
        f"built a Python for hosts that have none: {path} ({len(runtime.payload) / 2**20:.1f} MB "
        f"of {runtime.manifest.built_from})"
    ]
    await Runtimes().find(machine)
    assert len(builds) == 1
    keep_runtime(
        replace(runtime, payload=repacked(runtime, lambda one: told(one, modules=["os"]))), path
    )
    await Runtimes().find(machine)
    assert len(builds) == 2
    path.write_bytes(b"\x1f\x8b and no more")
    await Runtimes().find(machine)
    assert len(builds) == 3


@pytest.mark.slow
async def test_one_that_came_with_netprobe_is_taken(
    tmp_path: Path, own_cache: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By runs and by ``runtime build``, also by a user without a home: none is built. It is listed
    before those that are kept. One that is damaged is named."""
    builds = count_builds(monkeypatch, runtime)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    carried = tmp_path / f"share/netprobe/runtime-{runtime.arch}.tar.gz"
    carried.parent.mkdir(parents=True)
    keep_runtime(runtime, carried)
    keep_runtime(runtime, own_cache / "runtime-other.tar.gz")
    assert list_runtimes() == [carried, own_cache / "runtime-other.tar.gz"]
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "nowhere")
    assert list_runtimes() == [carried]
    assert (await Runtimes().find(runtime.arch)).payload == runtime.payload
    assert make_runtime(None).payload == runtime.payload
    carried.write_bytes(b"no runtime")
    with pytest.raises(NoRuntime, match=f"no Python can be sent: {carried}"):
        await Runtimes().find(runtime.arch)
    assert builds == []


@pytest.mark.slow
def test_a_folder_that_cannot_be_written(
    own_cache: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is built for this run alone."""
    count_builds(monkeypatch, runtime)
    notes: list[str] = []
    own_cache.write_text("a file")
    found = asyncio.run(Runtimes(tell=notes.append).find(os.uname().machine))
    assert found.arch == runtime.arch
    assert "it is not kept: " in notes[0]
    assert "cannot be written: File exists" in notes[0]


@pytest.mark.usefixtures("own_cache")
def test_what_cannot_be_built_cannot_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's words have the reason; it is looked for once."""
    asked: list[int] = []

    def fail() -> Runtime:
        asked.append(1)
        raise RequestError("no runtime can be made of /x: it is linked statically")

    monkeypatch.setattr(cache, "build_runtime", fail)
    runtimes = Runtimes()

    async def find_twice() -> None:
        for _ in range(2):
            with pytest.raises(NoRuntime, match="no Python can be sent: no runtime can be made of"):
                await runtimes.find(os.uname().machine)

    asyncio.run(find_twice())
    assert asked == [1]


def test_another_machine_needs_another(own_cache: Path) -> None:
    """It cannot be built here, and the way to one is a command."""
    with pytest.raises(NoRuntime, match="no Python for sparc64 can be sent, none is kept"):
        asyncio.run(Runtimes().find("sparc64"))
    own_cache.mkdir()
    (own_cache / "runtime-sparc64.tar.gz").write_bytes(b"x")
    with pytest.raises(NoRuntime, match=r"sparc64\.tar\.gz: this is no gzip file, expected a runt"):
        asyncio.run(Runtimes().find("sparc64"))


def netprobe(*words: str, cache_home: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line with this folder of caches."""
    environment = os.environ | {"XDG_CACHE_HOME": str(cache_home)}
    return run_warm_text(words, environment, Path.cwd(), PATIENCE_S)


@pytest.mark.full
@pytest.mark.slow
def test_the_verbs(tmp_path: Path) -> None:
    """``build`` writes one that ``list`` shows; there is nothing before. Where it is needed and not
    there, it is built and told, and kept."""
    none = netprobe("runtime", "list", cache_home=tmp_path)
    assert none.stderr.endswith("/netprobe; `netprobe runtime build` makes one\n")
    built = netprobe("runtime", "build", cache_home=tmp_path)
    path = tmp_path / f"netprobe/runtime-{own_arch()}.tar.gz"
    version = sys.version.split()[0]
    assert built.stdout.startswith(f"{path}: Python {version} for {own_arch()}, ")
    assert netprobe("runtime", "list", cache_home=tmp_path).stdout == built.stdout
    (tmp_path / "netprobe/runtime-broken.tar.gz").write_text("no runtime")
    listed = netprobe("runtime", "list", cache_home=tmp_path)
    assert (listed.returncode, built.stdout in listed.stdout) == (2, True)
    assert "runtime-broken.tar.gz: " in listed.stdout
    (tmp_path / "netprobe/runtime-broken.tar.gz").unlink()
    nowhere = netprobe("runtime", "build", "-o", f"{tmp_path}/nope/x", cache_home=tmp_path)
    told = f"netprobe: {tmp_path}/nope/x cannot be written: No such file or directory\n"
    assert (nowhere.returncode, nowhere.stderr) == (2, told)
    words = ("diagnose", "konnectivity", "--server", "x:1", "--publishing", "route")
    inventory = tmp_path / "inventory.yaml"
    way = ["env", *lean_host(tmp_path / "bin").vantage.command[1:]]
    host = {"address": "192.0.2.9", "roles": ["node"], "vantage": {"command": way}}
    inventory.write_text(json.dumps({"schema": "netprobe.inventory/1", "hosts": {"lean": host}}))
    path.unlink()
    check = ("check", "--hosts", "-m", "deckhouse-nodes", "-i", str(inventory))
    first = netprobe(*check, cache_home=tmp_path)
    note = f"netprobe: note: built a Python for hosts that have none: {path} ("
    assert first.stderr.startswith(note)
    assert re.search(rf"^lean +yes +{re.escape(version)} \(sent\) ", first.stdout, re.M)
    assert "built a Python" not in netprobe(*check, cache_home=tmp_path).stderr
    twice = ("--agent-python", str(path), "--agent-python", str(path))
    done = netprobe(*words, *twice, cache_home=tmp_path)
    assert (done.returncode, done.stderr) == (
        2, f"netprobe: --agent-python {path}: two of them are for {own_arch()}\n"
    )  # fmt: skip
    program = netprobe(*words, "--agent-python", "/bin/sh", cache_home=tmp_path)
    assert (program.returncode, program.stderr) == (
        2, "/bin/sh: this is a program, expected a runtime made by `netprobe runtime build`\n"
    )  # fmt: skip
