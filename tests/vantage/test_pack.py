"""What an agent compiles and imports before its first probe leaves: that is most of its start."""

from __future__ import annotations

import functools
import importlib
import json
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import netprobe.agent
from netprobe.vantage import pack

AGENT = Path(netprobe.agent.__path__[0])
_NAMES = {".".join(path.relative_to(AGENT).with_suffix("").parts) for path in AGENT.rglob("*.py")}
MODULES = sorted(name for name in _NAMES - {"boot", "untyped"} if "__init__" not in name)


@functools.cache
def sources(*, batch: bool = False) -> dict[str, str]:
    """What a bundle holds; netprobe keeps it, and stripping all of it takes a third of a second."""
    packed = pack.bundle(batch=batch).partition(b"\n")[2]
    parts = zlib.decompress(packed).decode().split("\0")
    return dict(zip(parts[::2], parts[1::2], strict=True))


@functools.cache
def _records() -> list[Any]:
    """Every ``NamedTuple`` class of the agent."""
    modules = [importlib.import_module(f"netprobe.agent.{name}") for name in MODULES]
    values = [value for module in modules for value in vars(module).values()]
    return sorted(
        {each for each in values if isinstance(each, type) and hasattr(each, "_fields")}, key=str
    )


# What an agent that only probes TCP does without.
NEEDLESS = (
    "listeners.listeners",
    "probers.echo.engine",
    "probers.traceroute",
    "probers.datagram.udp",
)

# Imports modules of the bundle as the bootstrap does; says what is loaded, and what its code says.
LOAD = """
import json, sys
asked = json.load(sys.stdin)
names = {"__name__": "netprobe_agent.boot"}
exec(asked["sources"]["boot"], names)
sys.meta_path.insert(0, names["BundleFinder"](asked["sources"]))
for name in asked["modules"]:
    __import__("netprobe_agent." + name)
said = eval(asked["code"], {"modules": sys.modules})
print(json.dumps({"loaded": sorted(sys.modules), "said": said}))
"""


def _load(*modules: str, code: str = "None") -> tuple[set[str], object]:
    """The modules that are loaded once these of the bundle are, and what the code gave."""
    asked = json.dumps({"sources": sources(batch=True), "modules": modules, "code": code})
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOAD],
        input=asked, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    return set(found["loaded"]), found["said"]


@pytest.mark.slow
def test_an_agent_that_probes_tcp_imports_nothing_in_vain() -> None:
    """No listeners, no other engine, and of the standard library not what is slow to import."""
    loaded, _ = _load("main", "probers.tcp.engine")
    needless = {f"netprobe_agent.{name}" for name in NEEDLESS}
    needless |= {"typing", "contextlib", "hashlib", "subprocess", "threading", "traceback"}
    assert "netprobe_agent.probers.tcp.engine" in loaded
    assert not loaded & needless


def test_an_agent_that_asks_for_echoes_imports_no_ctypes() -> None:
    """Its import takes as long as asking some hundred hosts."""
    loaded, _ = _load("main", "probers.echo.engine")
    assert "netprobe_agent.probers.echo.sockets" in loaded
    assert "ctypes" not in loaded


@pytest.mark.slow
def test_no_module_imports_typing() -> None:
    """The stand-in has every name that modules import from ``typing``."""
    assert "typing" not in _load(*MODULES)[0]


def _bundled_records() -> dict[str, Any]:
    """What the bundle makes of each record, asked in one process: fields, and if it is a tuple."""
    found = {
        _path(record): f"modules['netprobe_agent.{_path(record)[0]}'].{record.__name__}"
        for record in _records()
    }
    words = [
        f"'{'.'.join(path)}': [{name}._fields, {name}.__mro__[1] is tuple]"
        for path, name in found.items()
    ]
    said = _load(*sorted({module for module, _ in found}), code=f"{{{', '.join(words)}}}")[1]
    assert isinstance(said, dict)
    return said


def _path(record: Any) -> tuple[str, str]:
    return record.__module__.removeprefix("netprobe.agent."), record.__name__


@pytest.mark.slow
def test_records_of_the_bundle_have_their_fields() -> None:
    """A ``NamedTuple`` of the bundle is the tuple that ``typing`` makes of the same class; defaults
    it cannot have."""
    expected = {".".join(_path(record)): [[*record._fields], True] for record in _records()}
    assert _bundled_records() == expected
    assert not [record for record in _records() if record._field_defaults]


def test_records_of_the_bundle_have_their_methods() -> None:
    """Methods of a ``NamedTuple`` class stay."""
    code = "modules['netprobe_agent.net.sockets'].ProbeTarget(2, '192.0.2.1', 0, None).sockaddr(7)"
    assert _load("net.sockets", code=code)[1] == ["192.0.2.1", 7]


@pytest.mark.slow
def test_records_of_the_bundle_are_made_and_changed_as_namedtuples_are() -> None:
    """By position or by name, all fields and no others; ``_replace`` gives another one."""
    hop = "modules['netprobe_agent.wire.parts'].WalkHop"
    code = f"[{hop}(1, 'a'), {hop}(ttl=1, address='a'), {hop}(1, 'b')._replace(address='a')]"
    assert _load("wire.parts", code=code)[1] == [[1, "a"]] * 3
    assert _load("wire.parts", code=f"repr({hop}(1, 'a'))")[1] == "WalkHop(ttl=1, address='a')"
    for arguments in ("1", "1, 2, 3", "ttl=1", "1, 'a', more=1", "1, ttl=1"):
        with pytest.raises(subprocess.CalledProcessError):
            _load("wire.parts", code=f"{hop}({arguments})")


def test_the_bundle_is_kept_beside_the_bytecode(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A second run strips nothing; other sources make another bundle."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(pack, "cache_from_source", lambda _: str(tmp_path / "pack.pyc"))
    monkeypatch.setattr(pack, "sources", lambda **_: {"main": "made = 1"})
    made = pack.bundle.__wrapped__()

    monkeypatch.setattr(pack, "sources", lambda **_: {})
    assert pack.bundle.__wrapped__() == made
    monkeypatch.setattr(pack, "_read_texts", lambda _batch: {"main": "changed = 1"})
    assert pack.bundle.__wrapped__() != made
    assert len(list(tmp_path.iterdir())) == 1


def test_without_bytecode_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTHONDONTWRITEBYTECODE holds for the bundle, too."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(pack, "sources", lambda **_: {"main": "made = 1"})
    monkeypatch.setattr(pack, "_keep_bundle", lambda *_: pytest.fail("it was written"))

    assert pack.bundle.__wrapped__()


@pytest.mark.slow
def test_a_live_agent_does_without_what_scripts_need() -> None:
    """It is told what to do, over the wire: it neither reads scripts nor writes results."""
    live, batch = set(sources()), set(sources(batch=True))
    assert {"batch.__init__", "wire.batch", "wire.result_lines"} <= batch - live
    assert all(name.startswith(("batch.", "wire.")) for name in batch - live)
    assert live < batch
