"""The commands that pages show run: none is refused, and each gives the report that it is for."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from demo import estate
from tests.lab.batch import carry_out, word_start
from tests.lab.cli import ROOT, Finished, netprobe
from tests.lab.netlab import Lab
from tests.lab.page_files import FILES, MAKING, PRINTING
from tests.pages.test_commands import find_command, list_commands

# Hosts of the demo, with the words that all matrices of the pages have for them.
NODE = ["node", "worker", "global-node", "a"]
OUTSIDE = ["client", "dns", "hcp", "registry", "web-client", "router-node", "b"]
ROLES = {
    "master-0": [*estate.ROLES["master-0"], *NODE, "control-plane"],
    "master-1": [*estate.ROLES["master-1"], *NODE, "control-plane"],
    "worker-0": NODE,
    "outside": [*estate.ROLES["outside"], *OUTSIDE],
}
# In place of the demo's rules three that answer: silence would be asked for long.
RULES = """
flush chain inet demo forward
table inet demo { chain forward {
  ip saddr 10.10.1.11 ip daddr 10.10.1.10 tcp dport 2380 reject with icmp admin-prohibited
  ip saddr 10.10.1.30 ip daddr 10.10.1.10 tcp dport 6443 reject with icmp port-unreachable
  ip saddr 10.10.1.10 ip daddr 10.10.1.30 udp dport 8472 reject with icmp host-prohibited
  }
}
"""
STOPPED = {
    ("master-1", "master-0", 2380),
    ("worker-0", "master-0", 6443),
    ("master-0", "worker-0", 8472),
}
DAY = (datetime.now(UTC) + timedelta(days=60)).date().isoformat()
# What pages leave to their reader, and hosts and days of their own.
WORDS: Mapping[str, str] = {
    "FILE": "run.jsonl",
    "FILE...": "hc.yaml",
    "NAME": "deckhouse-nodes",
    "M": "deckhouse-nodes",
    "INVENTORY": "inventory.yaml",
    "lab.yaml": "inventory.yaml",
    "DIR": "engine",
    "PATH": sys.executable,
    "SOURCE": "master-0",
    "DESTINATION": "master-1",
    "PROTOCOL/PORT": "tcp/6443",
    "TIME": f"{DAY}T00:00Z",
    "2027-01-31": DAY,
    "node-1": "worker-0",
    "node-2": "master-1",
    "w1": "worker-0",
    "dns-1": "outside",
}
# A whole command where a page shows its form only, or a part of it.
WHOLE = {
    "COMMAND --help-all": "run --help-all",
    "explain SOURCE DESTINATION PROTOCOL/PORT [-i INVENTORY] [-m MATRIX ...] [-o text|json]": (
        "explain master-0 master-1 tcp/2379 -i inventory.yaml -m deckhouse-nodes -o json"
    ),
    "check --manifest ...": "check --manifest hosted-cluster-proxy.yaml",
    "merge run/plan.pyz /media/usb/*.npr": "merge run/plan.pyz each/*.npr",
    "merge run.pyz DIR/*.npr": "merge run.pyz /media/usb/*.npr",
    "plan --count": "plan -m deckhouse-nodes --count",
    "check --hosts": "check --hosts -m deckhouse-nodes",
    "request --from-plan": "request --from-plan -m deckhouse-nodes",
    "bundle --folder DIR": "bundle -m deckhouse-nodes -i inventory.yaml --folder DIR",
    "history --history FILE": "history --history netprobe.db",
}
# Words at the end: with them a long command takes seconds, and a bundle goes into a file.
ADDED = {
    "bundle -m deckhouse-nodes -i inventory.yaml --start 14:00Z --window 10m": "-o run.pyz",
    "bundle --next run.pyz /media/usb/*.npr --start 15:00Z": "-o run-2.pyz",
    "plan -m ./canonical-kubernetes.yaml --count": "-i 1000.yaml",
    "run -m okd-hcp --manifest hc.yaml --manifest stub.yaml -o wide": "--timeout 1 --retries 1",
    "run --matrix kubeadm --matrix cni-cilium": "--from master-0 --to worker-0",
    "run --matrix kubeadm --matrix cni-cilium -i inventory.yaml": "--from master-0 --to worker-0",
}
# These words alone are a command; of other verbs a page names the verb, and their help is asked.
COMPLETE = ("matrix list", "runtime list", "runtime build", "history", "check")
# What pages show to be refused, with words of the answer.
REFUSED = {
    "check --registry ./twice.yaml": "tcp 9500 has two owners",
    "run -m deckhouse-nodes -i 1000.yaml": "choose",
}
# What other labs run, by the reason: it has no end, or needs what this lab has not.
ELSEWHERE = {
    "watch -m deckhouse-nodes -i inventory.yaml --every 5m": ("has no end", "test_watch.py"),
    "watch -m deckhouse-nodes -i lab.yaml --every 10s --metrics 0.0.0.0:9815": (
        "has no end",
        "test_watch_prometheus.py",
    ),
    "merge plan.pyz pods-*.json": ("needs a cluster", "test_in_cluster.py"),
    "run --engine ansible": ("needs Ansible", "test_ansible.py"),
    "run --engine ansible -m dce -i inventory/": ("needs Ansible", "test_ansible.py"),
}
# Options before the name of what a command makes; `-o` alone may be a format, which is printed.
MAKES = ("-o", "--plan", "--record", "--undo", "--per-host", "--folder")
# Verbs that print nothing where all is well, print notes only, or write into a folder.
SILENT = ("check", "history", "bundle")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A jump host's folder beside the demo's cluster, with all files that pages name."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "made"
    made.mkdir()
    monkeypatch.chdir(made)
    with Lab() as lab:
        estate.build(lab)
        lab["router"].nft(RULES)
        _write_files(lab, made)
        for command in MAKING:
            _run_well(_words_of(command))
        for name, command in PRINTING.items():
            (made / name).write_text(_run_well(_words_of(command)).stdout)
        _make_bundles(lab, made)
        yield made


def _write_files(lab: Lab, made: Path) -> None:
    """What people write or get from elsewhere."""
    shutil.copyfile(lab.inventory(ROLES, settings={"modules": []}), made / "inventory.yaml")
    for name, text in FILES.items():
        (made / name).write_text(text)


def _make_bundles(lab: Lab, made: Path) -> None:
    """A run with one file for all, carried out, its next round, and a run with a file for each."""
    bundle = shlex.split("bundle -m deckhouse-nodes -i inventory.yaml --window 10s")
    _run_well([*bundle, "-o", "run.pyz", "--start", word_start(8)])
    carry_out(lab, made / "run.pyz", made / "usb", list(ROLES), 0.0)
    _run_well(_words_of("bundle --next run.pyz /media/usb/*.npr --start 15:00Z"))
    _run_well([*bundle, "--per-host", "run", "--start", word_start(8)])
    with ThreadPoolExecutor(len(ROLES)) as pool:
        starts = [
            pool.submit(carry_out, lab, made / f"run/{name}.pyz", made / "each", [name], 0.0)
            for name in ROLES
        ]
    assert [start.exception() for start in starts] == [None] * len(ROLES)


def _run_well(words: list[str]) -> Finished:
    """Run a command that must not be refused, and must not fail by itself."""
    done = netprobe(*words)
    assert done.status in {0, 1, 3}, f"{words}: {done.status} {done.stderr}"
    return done


def _words_of(text: str) -> list[str]:
    """The words of a page's command, with what a reader would write for its placeholders."""
    words = shlex.split(f"{WHOLE.get(text, text)} {ADDED.get(text, '')}")
    if words[-1] == "...":
        del words[-1]
    if _names_verb(words):
        words.append("--help")
    return [one for word in words for one in _expand_word(WORDS.get(word, word))]


def _names_verb(words: list[str]) -> bool:
    """Whether all words are names of a command that does not say all by itself."""
    return words[-1] == find_command(words).name and " ".join(words) not in COMPLETE


def _expand_word(word: str) -> list[str]:
    """As a shell does it; the stick of the pages is a folder here."""
    here = word.removeprefix("/media/")
    return sorted(map(str, Path().glob(here))) if "*" in here else [here]


def _list_made(words: list[str]) -> list[Path]:
    """The files and folders that a command promises to make."""
    named = [(option, value.rpartition("=")) for option, value in pairwise(words)]
    return [
        Path(name)
        for option, (style, _, name) in named
        if option in MAKES and (option != "-o" or style or "." in name)
    ]


def _find_fault(text: str) -> str | None:
    """Run a command; what is wrong with its end."""
    words = _words_of(text)
    made = _list_made(words)
    for path in made:
        # A record and a folder have to be new.
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
    done = netprobe(*words)
    if text in REFUSED:
        return None if done.status == 2 and REFUSED[text] in done.stderr else "is not refused"
    if done.status not in {0, 1, 3}:
        return f"status {done.status}: {done.stderr}"
    lacking = [str(path) for path in made if not path.exists()]
    reports = done.stdout or [path for path in made if path.suffix != ".jsonl"]
    if lacking or not (reports or words[0] in SILENT):
        return f"makes no {lacking or 'report'}"
    return None


@pytest.mark.full
@pytest.mark.lab
def test_every_command_of_the_pages_runs(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in a copy of the folder; what another lab runs is listed, with that lab."""
    texts = dict.fromkeys(text for _, text in list_commands())
    faults = {}
    for number, text in enumerate(texts):
        if text in ELSEWHERE:
            continue
        copied = shutil.copytree(folder, tmp_path / str(number))
        monkeypatch.chdir(copied)
        fault = _find_fault(text)
        if fault is not None:
            faults[text] = fault
        shutil.rmtree(copied)

    assert faults == {}
    results = json.loads((folder / "run.json").read_text())["results"]
    wrong = [one for one in results if one["verdict"] != "pass"]
    assert len(results) > 100
    assert {(one["source"], one["destination"], one["port"]) for one in wrong} == STOPPED


def test_the_lists_of_this_lab_name_commands_of_pages() -> None:
    """Whoever changes a command of a page changes its line here, too."""
    texts = {text for _, text in list_commands()}

    assert {*WHOLE, *ADDED, *REFUSED, *ELSEWHERE} <= texts
    for _, lab in ELSEWHERE.values():
        assert (ROOT / "tests/lab" / lab).is_file()
