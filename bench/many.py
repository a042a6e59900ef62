"""Many agents: few open files, much load, recorders, recorded fleets, Ansible, and bundles."""

from __future__ import annotations

import contextlib
import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.command import list_agents, most_wrong, run_command
from bench.table import Row, ratio, seconds
from bench.tools import Timed
from tests.lab.netlab import Lab

ROOT = Path(__file__).parents[1]
# Agents, ports of each, and the open files that a login has by default.
FEW_FILES_AGENTS, FEW_FILES_PORTS, FILES = 380, 8, 1024
LOADED_AGENTS, LOADED_PORTS, LOOPS = 300, 200, 15
RECORDED_PORTS, RECORDER_PERCENT = 10_000, 5.0
COVER = 5
COVER_CPU_S, COVER_MB = 60.0, 300.0
PLAYED_HOSTS, PLAYED_CPU_S = 100, 0.5
MOST_ROUNDS = 2

MATRIX = """\
schema: netprobe.matrix/1
name: many
title: The same ports of many agents
roles: {{source: {{description: any}}, target: {{description: any}}}}
requirements:
  - {{id: tcp, from: source, to: target, tcp: ["20001-{last}"], purpose: bench}}
"""


def few_files() -> list[Row]:
    """More agents than the ordinary limit of open files allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    try:
        run = _run_local(FEW_FILES_AGENTS, FEW_FILES_PORTS)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    work = f"`run`, {FEW_FILES_AGENTS} agents, {FILES:,} open files"
    return [_tested_row(work, run)]


def loaded() -> list[Row]:
    """Many agents on a machine that has no time for them."""
    with _busy_loops(LOOPS):
        run = _run_local(LOADED_AGENTS, LOADED_PORTS)
    return [_tested_row(f"`run`, {LOADED_AGENTS} agents beside {LOOPS} busy loops", run)]


@contextlib.contextmanager
def _busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _run_local(agents: int, ports: int) -> Timed:
    """Let one agent of this machine ask all others, each at an address of its own."""
    hosts: dict[str, Any] = {
        f"h{number}": {
            "address": f"127.7.{number // 200}.{number % 200 + 1}",
            "roles": ["target" if number else "source"],
            "vantage": "local",
        }
        for number in range(agents + 1)
    }
    with Lab() as lab:
        matrix = MATRIX.format(last=20000 + ports)
        return run_command(lab.folder, matrix, hosts, _is_no_pass, agents * ports)


def _tested_row(work: str, run: Timed) -> Row:
    untested = run.answers["not_tested"]
    return Row(f"{work}, {run.answers['pass'] + untested:,} flows", seconds([run]), "",
               f"{untested:,} not-tested", "0 not-tested, 0 wrong",
               not untested and not run.wrong, most_wrong([run]))  # fmt: skip


def recorded(repeats: int) -> list[Row]:
    """What recorders cost a run, whose own packets are all that there are."""
    with Lab() as lab:
        router = lab.router("router", "10.10.0.1")
        left, right = (lab.host(f"h{end}", router, f"10.10.1.{end}") for end in (1, 2))
        hosts = list_agents({"left": (left, "source"), "right": (right, "target")})
        matrix = MATRIX.format(last=20000 + RECORDED_PORTS)
        runs: tuple[list[Timed], list[Timed]] = ([], [])
        for _ in range(repeats):
            for kind, options in zip(runs, ((), ("--no-recorder",)), strict=True):
                kind.append(run_command(lab.folder, matrix, hosts, _is_no_pass, options=options))
    with_it, without = runs
    wall, cpu = ((1 / ratio(with_it, without, cpu=is_cpu) - 1) * 100 for is_cpu in (False, True))
    return [
        Row(f"`run`, two agents, {RECORDED_PORTS:,} ports, with recorders", seconds(with_it),
            f"without {seconds(without)}", f"{wall:+.1f} % ({cpu:+.1f} % CPU)",
            f"<= {RECORDER_PERCENT:g} %", wall <= RECORDER_PERCENT,
            most_wrong([*with_it, *without]))
    ]  # fmt: skip


def _is_no_pass(result: Mapping[str, Any]) -> int:
    return int(result["verdict"] != "pass")


def cover() -> list[Row]:
    """A cover of zones of 5,000 hosts, whose agents are answers (``tests.reach.fleets``)."""
    found = json.loads(_run_module("tests.reach.fleets", "--one", str(COVER)))
    met = found["cpu_s"] <= COVER_CPU_S and found["mb"] <= COVER_MB
    return [
        Row(f"coordinator, {found['fleet']}, {found['flows']:,} flows",
            f"{found['cpu_s']:.1f} s CPU", "", f"{found['mb']} MB",
            f"<= {COVER_CPU_S:g} s CPU, <= {COVER_MB:g} MB", met,
            f"{found['flows'] - found['counts']['pass']:,}")
    ]  # fmt: skip


def played() -> list[Row]:
    """What a whole check by Ansible costs for each host, all of which are this machine."""
    words = ("--only", "local", "--local-hosts", str(PLAYED_HOSTS))
    printed = _run_module("tests.reach.ansible", *words)
    cost_s = int(_find(r"(\d+) ms a host", printed)) / 1000
    return [
        Row(f"Ansible, {PLAYED_HOSTS} hosts, a whole check", f"{cost_s:.2f} s CPU a host", "", "",
            f"<= {PLAYED_CPU_S:g} s CPU a host", cost_s <= PLAYED_CPU_S)
    ]  # fmt: skip


def rounds() -> list[Row]:
    """What rounds of a bundle decide of the demo's estate, of which a run decides everything."""
    printed = _run_module("tests.reach.batch", "--engine")
    took = _find(r"round \d+ on \d+ hosts, ([\d.]+) s\nmerge", printed)
    number = _find(r"round (\d+) on \d+ hosts, [\d.]+ s\nmerge", printed)
    merged = _find(r"merge \(engine\): [\d.]+ s, (.*)", printed)
    left = sum(map(_read_number, re.findall(r"([\d,]+) (?:inconclusive|not-tested)", merged)))
    return [
        Row("bundle of `make demo` in rounds, driven by an engine", f"{took} s", "",
            f"{number} rounds: {merged}", f"{MOST_ROUNDS} rounds leave nothing open",
            not left and int(number) <= MOST_ROUNDS, "0" if "BATCH OK" in printed else "some")
    ]  # fmt: skip


def _run_module(name: str, *words: str) -> str:
    """Run a module of the long tests, whose exit status tells of its own bounds."""
    argv = [sys.executable, "-m", name, *words]
    return subprocess.run(
        argv, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT
    ).stdout  # fmt: skip


def _find(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"no {pattern} in: {text[-2000:]}")
    return found[1]


def _read_number(text: str) -> int:
    return int(text.replace(",", ""))
