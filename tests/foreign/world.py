"""Gives a document to the command line as a user would, and looks at what comes back."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from netprobe.cli.main import status_of
from netprobe.cli.options import REQUEST_FORMATS, RUN_FORMATS
from netprobe.errors import FileErrors
from netprobe.report.record.record import read_run
from netprobe.request.syntaxes import SYNTAXES
from tests.foreign.proofs import REPORTS, REQUESTS, check_text
from tests.foreign.sandbox import check_commands, listed_rules, run_scripts

UNDOS = tuple(name for name, one in SYNTAXES.items() if one.undo)
SCRIPTS = ("iptables", "firewalld", "ufw")
WISHES = (
    "--include", "exposed", "--include", "inconclusive", "--stateless", "--until", "2027-01-31",
    "--ticket", "Cost Centre=4711",
)  # fmt: skip
CONSENT = ("--reason", "why", "--owner", "me", "--ticket", "CHG-1", "--until", "never")

Written = Mapping[str, bytes]
# Writes a document into a folder, and gives the words that name it to the verb request.
Store = Callable[[Path, Any], tuple[str, ...]]


def store_report(folder: Path, document: Any) -> tuple[str, ...]:
    """Write a JSON report."""
    (folder / "f").write_text(json.dumps(document))
    return ("f",)


def store_record(folder: Path, document: Any) -> tuple[str, ...]:
    """Write a record."""
    (folder / "f").write_text("".join(f"{json.dumps(line)}\n" for line in document))
    return ("f",)


def store_plan(folder: Path, document: Any) -> tuple[str, ...]:
    """Write an inventory and a matrix."""
    for name, part in document.items():
        (folder / f"{name}.yaml").write_text(json.dumps(part))
    return ("--from-plan", "-m", "./matrix.yaml", "-i", "inventory.yaml")


def run_command(*words: str) -> tuple[int, str, str]:
    """Run a command line in this process; give its status and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = status_of(words)
    return status, out.getvalue(), err.getvalue()


def write_all(folder: Path, verb: Sequence[str], formats: Sequence[str]) -> dict[str, bytes]:
    """Write every format of a verb into a file of its own; give their bytes."""
    outputs = [word for name in formats for word in ("-o", f"{name}={name}")]
    status, out, err = run_command(*verb, *outputs)
    assert (status in (0, 1, 3), out) == (True, ""), err
    check_text(b"", err.encode())
    return {name: (folder / name).read_bytes() for name in formats}


def write_undos(folder: Path, words: Sequence[str]) -> dict[str, bytes]:
    """Write what takes the rules of each syntax away again."""
    undos = [word for name in UNDOS for word in ("--undo", f"{name}={name}.undo")]
    status, _, err = run_command("request", *words, *WISHES, *undos, "-o", "json=json")
    assert status == 0, err
    return {name: (folder / f"{name}.undo").read_bytes() for name in UNDOS}


def find_problem(path: str) -> str:
    """Read a report or a record; give the words that refuse it, or nothing."""
    try:
        _, collector = read_run(path)
    except FileErrors as error:
        return str(error)
    collector.close()
    return ""


class Genuine:
    """What netprobe writes out of a genuine document, and the proofs that another is like it."""

    def __init__(self, folder: Path, store: Store, document: Any, tools: Path) -> None:
        self._folder, self._store, self._tools = folder, store, tools
        self.words = store(folder, document)
        self._rules, self._undos = self._write_rules()
        self._reports = self._write_reports()
        assert run_scripts(tools, *self._scripts(self._rules, self._undos))

    def is_refused(self, document: Any) -> bool:
        """Tell whether a document is refused, in lines that name the file."""
        self._store(self._folder, document)
        if self.words == ("f",):
            problem = find_problem("f")
        else:
            status, _, problem = run_command("request", *self.words, "-o", "csv=csv")
            assert status == (2 if problem.startswith("inventory") else status), problem
            problem = problem if status else ""
        check_text(b"", problem.encode())
        names = ("f:", "inventory.yaml:", "./matrix.yaml:", "netprobe:")
        assert all(line.startswith(names) for line in problem.splitlines()), problem
        return problem != ""

    def write_rules(self, document: Any) -> Written:
        """Give the rules in every syntax that are written out of a document."""
        self._store(self._folder, document)
        return self._write_rules()[0]

    def prove(self, document: Any) -> int:
        """Check everything that is written out of a document; give how many outputs there are."""
        self._store(self._folder, document)
        rules, undos = self._write_rules()
        for name, text in rules.items():
            REQUESTS[name](self._rules[name], text)
        for name, text in undos.items():
            proof = check_text if name == "nftables" else REQUESTS[name]
            proof(self._undos[name], text)
        check_commands(run_scripts(self._tools, *self._scripts(rules, undos)))
        reports = self._write_reports()
        for name, text in reports.items():
            REPORTS[name](self._reports[name], text)
        return len(rules) + len(undos) + len(reports)

    def _write_rules(self) -> tuple[Written, Written]:
        verb = ("request", *self.words, *WISHES)
        return write_all(self._folder, verb, REQUEST_FORMATS), write_undos(self._folder, self.words)

    def _write_reports(self) -> Written:
        if self.words != ("f",):
            return {}
        for words in (("report", "f"), ("diff", "f", "f"), ("accept", "f", "--finding", "1")):
            more = CONSENT if words[0] == "accept" else ()
            status, out, err = run_command(*words, *more)
            assert status in (0, 1, 2, 3), err
            check_text(b"", (out + err).encode())
        return write_all(self._folder, ("report", "f"), RUN_FORMATS)

    def _scripts(self, rules: Written, undos: Written) -> tuple[dict[str, str], str]:
        scripts = {name: rules[name].decode() for name in SCRIPTS}
        more = {f"{name}-undo": undos[name].decode() for name in (*SCRIPTS, "nftables")}
        return {**scripts, **more}, listed_rules(rules["nftables"].decode())
