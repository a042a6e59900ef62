"""Texts of others stay texts: no name, purpose or row becomes a rule, a formula or a command."""

from __future__ import annotations

import csv
import json
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.model.printable import disarm_cell
from netprobe.model.result import HostReport
from netprobe.request.safe import plain
from netprobe.request.syntaxes import SYNTAXES
from tests.request import samples
from tests.request.flows import ask, written

TEXT = sorted(set(SYNTAXES) - {"xlsx", "csv", "markdown", "text"})
NASTY = st.text(
    st.sampled_from("ab=+-@'\"`$(){}[]<>|&;#!?%\\/\n\r\t\0\x1b\u2028\u2019\u202e,:*~^é")
    | st.characters(),
    max_size=30,
)


def lines_of(text: str, syntax: str) -> list[str]:
    """What a device would read: comments, and texts that hold only words, are left out."""
    sign = "!" if syntax.startswith("cisco") else "#"
    return [line.split("description")[0] for line in text.splitlines() if line.lstrip()[:1] != sign]


@pytest.mark.slow
@given(NASTY)
@settings(max_examples=30)
def test_a_text_changes_no_line_that_a_device_reads(text: str) -> None:
    """With any purpose and row the commands are those of a harmless one, line by line."""
    harmless, nasty = samples.sample("harmless"), samples.sample(text)
    # The name of the request would differ only if rules did; texts are a part of it.
    nasty = replace(nasty, id=harmless.id)
    for syntax in ("nftables", "iptables", "firewalld", "cisco-ios", "paloalto", "windows", "ufw",
                   "terraform-aws", "fortios", "junos", "calico"):  # fmt: skip
        assert lines_of(written(nasty, syntax), syntax) == lines_of(
            written(harmless, syntax), syntax
        )


@pytest.mark.parametrize("syntax", TEXT)
def test_names_of_hosts_stay_names(syntax: str) -> None:
    """A host's name is whatever an inventory says; an address with a scope is no address."""
    evil = 'x"; reboot; $(id)\n`id`'
    host = HostReport(
        name=evil, state="agent", roles=(evil,), addresses=("10.0.0.9", "fe80::1%$(id)")
    )
    run = replace(samples.RUN, hosts=(host, *samples.HOSTS))
    asked = (
        samples.flow(evil, "master-0", "10.0.0.10", "tcp/1", where=("path", "destination")),
        samples.flow(evil, "master-0", "fe80::2%$(id)", "tcp/1", order=(1, 0, 0)),
    )
    request = ask(asked, info=run)
    text = written(request, syntax)

    assert not [line for line in text.splitlines() if line.lstrip().startswith(("`id`", "reboot"))]
    assert "NP_X_REBOOT" in text or "10.0.0.9" in text
    if syntax not in ("json", "tufin", "algosec"):
        assert "$(id)" not in text
        assert "`" not in text
    elif syntax == "json":
        json.loads(text)


@pytest.mark.slow
@given(NASTY)
@settings(max_examples=100)
def test_no_cell_is_a_formula(text: str) -> None:
    """Nothing that a spreadsheet evaluates, also where another sign separates its cells."""
    cell = disarm_cell(text)
    for sign in ";,\t\r\n|":
        assert not [part for part in cell.split(sign) if part.lstrip()[:1] in set("=+-@")]
    assert cell.replace("'", "") == text.replace("'", "")


def test_the_table_stays_a_table() -> None:
    """One row a rule, one cell a column, whatever the texts hold."""
    rows = list(csv.reader(written(samples.sample(), "csv").splitlines()))

    assert {len(row) for row in rows} == {19}
    assert len(rows) == 1 + len(samples.sample().rules)


@given(NASTY)
@settings(max_examples=100)
def test_plain_words(text: str) -> None:
    """Comments hold printable ASCII of a few signs, on one line."""
    assert set(plain(text)) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._:/,()+=@-"
    )


@pytest.mark.parametrize("syntax", ["nftables", "iptables", "firewalld", "ufw"])
@pytest.mark.parametrize("undo", [False, True])
def test_scripts_are_scripts(syntax: str, undo: bool) -> None:
    """A shell reads every script; rules of nft are read by nft in the lab."""
    text = written(samples.sample(), syntax, undo=undo)
    if syntax != "nftables" or undo:
        done = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
