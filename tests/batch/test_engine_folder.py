"""The folder from which an engine drives a run: what each host is fed of it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from msgspec.structs import replace

from netprobe.batch.engine_folder import results_file, write_engine_folder
from netprobe.batch.script import HostScript
from tests.batch.test_per_host import spell_key, unpack_text
from tests.batch.world import RESULTS_KEY, first_round, plan_of, request_of

WEB = ("web", "tcp", ((80, 80),))


def test_a_host_is_fed_its_own_key_alone(tmp_path: Path) -> None:
    """As a bundle of its own holds: whatever an engine hands it, in every round."""
    _, scripts = first_round(request_of(plan_of(WEB)))
    keys = {script.start.name: script.start.result_key for script in scripts}
    for number in (1, 2):
        later = [replace(one, start=one.start._replace(round=number)) for one in scripts]
        write_engine_folder(tmp_path / "run", later)
        engine = json.loads((tmp_path / "run" / "engine.json").read_bytes())
        assert set(engine["hosts"]) == set(keys)
        for name, host in engine["hosts"].items():
            files = [file for some in host["stdin"].values() for file in some]
            fed = b"\n".join(unpack_text((tmp_path / "run" / file).read_bytes()) for file in files)
            fed += json.dumps([engine["commands"], host]).encode()
            there = {other for other, key in keys.items() for one in spell_key(key) if one in fed}
            assert there == {name}
            assert not any(one in fed for one in spell_key(RESULTS_KEY))


def test_no_name_of_a_host_leaves_the_folder(tmp_path: Path) -> None:
    """Neither what it is fed nor its results."""
    _, scripts = first_round(request_of(plan_of(WEB)))
    names = ("..", "../../x", "-rf")
    odd = [
        HostScript(one.start._replace(name=name), one.phases)
        for one, name in zip(scripts, names, strict=True)
    ]
    write_engine_folder(tmp_path / "run", odd)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert {path.name for path in (tmp_path / "run" / "hosts").iterdir()} == {
        "%2E.", "%2E.%2F..%2Fx", "%2Drf",
    }  # fmt: skip
    assert {results_file(tmp_path, name).parent for name in names} == {tmp_path / "results"}
    for path in (tmp_path / "run").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
