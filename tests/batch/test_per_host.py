"""A bundle for each host: what it holds, where it lies, and for whom it is."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
import sys
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import pytest

from netprobe.batch.bundle import name_bundle, open_bundle, write_host_bundles
from netprobe.batch.file_names import safe_name
from netprobe.batch.request import write_request
from netprobe.batch.script import HostScript
from netprobe.errors import RequestError
from tests.batch.world import RESULTS_KEY, first_round, plan_of, request_of

WEB = ("web", "tcp", ((80, 80),))


def write(folder: Path, scripts: Sequence[HostScript] | None = None) -> list[HostScript]:
    """Write the bundles of a run of three hosts, and give their scripts."""
    request, made = first_round(request_of(plan_of(WEB)))
    scripts = made if scripts is None else scripts
    write_host_bundles(folder, {"run": request.run}, scripts, write_request(request))
    return list(scripts)


def unpack(path: Path) -> bytes:
    """Everything that somebody finds who takes a bundle apart."""
    with zipfile.ZipFile(path) as packed:
        found = [unpack_text(packed.read(name)) for name in packed.namelist()]
    return b"\n".join([*found, path.read_bytes()])


def unpack_text(data: bytes) -> bytes:
    """The same and whatever is packed in it."""
    found = [data]
    # What is packed at the best level begins so.
    for place in re.finditer(b"\x78\xda", data):
        with contextlib.suppress(zlib.error):
            found.append(zlib.decompressobj().decompress(data[place.start() :]))
    return b"\n".join(found)


def spell_key(key: bytes) -> set[bytes]:
    """A key in the ways in which programs write it."""
    return {key, b64encode(key), key.hex().encode()}


def test_a_host_gets_its_own_key_alone(tmp_path: Path) -> None:
    """Its bundle holds its script and its result key, and no other's; the plan can give all."""
    scripts = write(tmp_path / "run")
    keys = {script.start.name: script.start.result_key for script in scripts}
    assert len(set(keys.values())) == 3
    for name in keys:
        told = unpack(tmp_path / "run" / f"{name}.pyz")
        there = {other for other, key in keys.items() for one in spell_key(key) if one in told}
        assert there == {name}
        assert not any(one in told for one in spell_key(RESULTS_KEY))
        starts = re.findall(rb'\["BatchStart",3,\d+,"0{16}",1,\d+,"([a-c])"', told)
        assert set(starts) == {name.encode()}
    assert any(one in unpack(tmp_path / "run" / "plan.pyz") for one in spell_key(RESULTS_KEY))


def test_everything_is_for_its_owner_and_nothing_is_overwritten(tmp_path: Path) -> None:
    """Whatever the umask is; a folder that is there, or a link, is refused as it is."""
    before = os.umask(0)
    try:
        write(tmp_path / "deep" / "run")
    finally:
        os.umask(before)
    folder = tmp_path / "deep" / "run"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {
        "plan.pyz": 0o600, "a.pyz": 0o600, "b.pyz": 0o600, "c.pyz": 0o600,
    }  # fmt: skip
    kept = (folder / "a.pyz").read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for place in (folder, tmp_path / "link"):
        with pytest.raises(FileExistsError):
            write(place)
    assert (folder / "a.pyz").read_bytes() == kept
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("worker-1.example", "worker-1.example"),
        ("../../etc/x", "%2E.%2F..%2Fetc%2Fx"),
        ("..", "%2E."),
        ("-rf", "%2Drf"),
        ("a b;c", "a%20b%3Bc"),
        ("größe", "gr%C3%B6%C3%9Fe"),
        ("plan", "%70lan"),
        ("Plan", "%50lan"),
        ("%70lan", "%2570lan"),
    ],
)
def test_any_name_is_a_file_of_the_folder(host: str, name: str) -> None:
    """No name leaves the folder, is an option or hidden, is two hosts', or is that of the plan."""
    assert name_bundle(host) == name
    assert safe_name(host) == (host if host in ("plan", "Plan") else name)


def test_hosts_with_such_names_get_their_bundles(tmp_path: Path) -> None:
    """All of them, in the folder and nowhere else."""
    _, scripts = first_round(request_of(plan_of(WEB)))
    names = ("plan", "../up", ".")
    odd = [
        HostScript(one.start._replace(name=name), one.phases)
        for one, name in zip(scripts, names, strict=True)
    ]
    write(tmp_path / "run", odd)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "plan.pyz", "%70lan.pyz", "%2E.%2Fup.pyz", "%2E.pyz",
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_each_file_says_for_whom_it_is(tmp_path: Path) -> None:
    """A host's bundle is no plan for a merge, and the plan is no bundle for a host."""
    write(tmp_path / "run")
    with pytest.raises(RequestError, match=r"a\.pyz: is for a host; give the plan\.pyz"):
        open_bundle(tmp_path / "run" / "a.pyz")
    assert open_bundle(tmp_path / "run" / "plan.pyz").header["run"] == "0" * 16
    done = subprocess.run(
        [sys.executable, tmp_path / "run" / "plan.pyz", "--out", tmp_path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("netprobe: this is the plan of a run, for `netprobe merge`")
