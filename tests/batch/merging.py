"""A run that three hosts have carried out, as files that a merge reads; tests change these."""

from __future__ import annotations

import json
import zlib
from base64 import b85encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netprobe.agent.wire.frames import encode_message
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.agent.wire.result_lines import chain_mac
from netprobe.batch.bundle import write_host_bundles
from netprobe.batch.request import BatchRequest, write_request
from netprobe.batch.results import HostRecording, open_run
from netprobe.batch.script import HostScript
from netprobe.model.inventory import Host
from tests.batch.world import (
    SILENT,
    A,
    B,
    C,
    Merged,
    carry_out,
    first_round,
    hear_each_other,
    request_of,
    write_results,
)

Block = tuple[str, str, tuple[tuple[int, int], ...]]
WEB: Block = ("web", "tcp", ((8000, 8009),))
# Six pairs of hosts; two flows of b to c are dropped.
FLOWS = 60
BLOCKED = (8001, 8002)
Files = Mapping[str, Sequence[bytes]]
# A message as JSON has it: its kind, then its fields.
Message = list[Any]


class Signer:
    """Writes lines behind others under a key, whatever they hold."""

    def __init__(self, key: bytes, lines: Sequence[bytes]) -> None:
        self._key = key
        self._number = len(lines)
        self._before = lines[-1].split(b" ")[2]

    def add(self, text: bytes) -> bytes:
        """Give the next line, which unpacks to this text."""
        content = b85encode(zlib.compress(text, 9))
        self._before = chain_mac(self._key, self._before, self._number, content)
        line = b"NPR1 %d %s %s\n" % (self._number, self._before, content)
        self._number += 1
        return line


@dataclass(frozen=True)
class World:
    """What was asked, and what each host has written."""

    request: BatchRequest
    scripts: Mapping[str, HostScript]
    recordings: Mapping[str, HostRecording]

    def lines(self, name: str) -> list[bytes]:
        """What a host has written."""
        return write_results(self.recordings[name], self.scripts[name].start)

    def files(self, **changed: Sequence[bytes]) -> dict[str, Sequence[bytes]]:
        """The files of all hosts, by their names; some of them with another content."""
        found = {name: changed.get(name, self.lines(name)) for name in self.scripts}
        return {f"{name}.npr": lines for name, lines in found.items()}

    def sign(self, name: str, messages: Sequence[Sequence[Any]]) -> list[bytes]:
        """Lines of these messages under the host's own key, as its root may write them."""
        signer = Signer(self.scripts[name].start.result_key, self.lines(name)[:1])
        texts = (b"\n".join(map(encode_message, some)) for some in messages)
        return [self.lines(name)[0], *(signer.add(text) for text in texts)]

    def signer(self, name: str, lines: Sequence[bytes]) -> Signer:
        """What goes on with these lines of a host."""
        return Signer(self.scripts[name].start.result_key, lines)

    def write_plan(self, folder: Path) -> Path:
        """Write the bundles of the run, and give the plan that stays at home."""
        scripts = list(self.scripts.values())
        write_host_bundles(folder, {}, scripts, write_request(self.request))
        return folder / "plan.pyz"


def lose(source: str, order: Any, port: int) -> OutcomeKind | None:
    """The firewall: two flows of b are dropped."""
    there = getattr(order, "dst", None) == "10.0.0.3"
    return SILENT._replace(packets=9) if source == "b" and there and port in BLOCKED else None


def make_world(
    plan: Any,
    barrier: str = "engine",
    fault: Callable[..., OutcomeKind | None] = lose,
    hosts: Sequence[Host] = (A, B, C),
) -> World:
    """A run of a plan that these hosts have carried out."""
    request, scripts = first_round(request_of(plan, barrier))
    made = {script.start.name: script for script in scripts}
    recordings = hear_each_other([carry_out(one, fault, hosts=hosts) for one in scripts])
    return World(request, made, dict(zip(made, recordings, strict=True)))


def merge_files(plan: Path, folder: Path, files: Files) -> Merged:
    """Write results by their paths in the folder, and merge them by a plan or a bundle."""
    paths = [folder / name for name in files]
    for path, lines in zip(paths, files.values(), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"".join(lines))
    stored = open_run(plan, paths)
    return Merged(stored.request, stored.recordings, missing=stored.missing, heard=True)


def count(merged: Merged, source: str = "abc", to: str = "abc") -> Counter[str]:
    """Flows between these hosts by their verdicts."""
    found: Counter[str] = Counter()
    for one in merged.results:
        if one.source in source and one.destination in to:
            found[one.verdict] += one.port_count
    return found


def list_messages(world: World) -> list[Message]:
    """Everything that a has written."""
    recording = world.recordings["a"]
    marks: list[Any] = list(recording.marks)
    found: list[Any] = [recording.hello, *marks[:-1]]
    for order in recording.orders:
        found += [order, *recording.answers[order.id]]
    return [json.loads(encode_message(one)) for one in (*found, marks[-1])]


def merge_messages(world: World, plan: Path, folder: Path, messages: Sequence[Message]) -> Merged:
    """Merge where a has written these, under its own key."""
    lines = world.sign("a", [])
    signer = world.signer("a", lines)
    text = b"\n".join(json.dumps(one).encode() for one in messages)
    return merge_files(plan, folder, world.files(a=[*lines, signer.add(text)]))


def between_others(merged: Merged) -> set[Any]:
    """What became of the flows between b and c."""
    return {
        (one.requirement, one.source, one.destination, one.ports, one.verdict, one.reason,
         one.where, one.because)
        for one in merged.results
        if "a" not in (one.source, one.destination)
    }  # fmt: skip


def merge_each(
    world: World, plan: Path, folder: Path, tries: Iterable[tuple[Any, list[Message]]]
) -> int:
    """Merge each; whatever becomes of a, b and c are as they were, and netprobe has no bug."""
    genuine = merge_files(plan, folder, world.files())
    done = 0
    for what, messages in tries:
        merged = merge_messages(world, plan, folder, messages)
        assert between_others(merged) == between_others(genuine), what
        assert merged.hosts["b"] == genuine.hosts["b"], what
        assert len(merged.results) >= len(genuine.results) - 60, what
        assert not any("a bug in netprobe" in one.because for one in merged.results), what
        done += 1
    return done
