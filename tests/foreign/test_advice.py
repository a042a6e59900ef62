"""Advice is safe to paste: a command line that netprobe prints keeps the words of others apart."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.cli.run import check_record_path
from netprobe.errors import RequestError
from netprobe.konnectivity.run import word_explain
from netprobe.model.inventory import Address, Host, Ssh, Vantage
from netprobe.model.printable import clean, word_command
from netprobe.model.run import RunInfo
from netprobe.report.record.earlier import TakeOver
from netprobe.report.record.record import Earlier
from netprobe.vantage.base import COMMAND
from netprobe.vantage.ssh import SSH
from tests.foreign.payloads import PAYLOADS
from tests.konnectivity.test_report import diagnosis

NO_WAY = ("sh", "-c", "echo no way in >&2; exit 7")
# The words of a shell, each ended by a NUL.
SPLIT = 'while IFS= read -r line; do eval "set -- $line"; printf \'%s\\0\' "$#" "$@"; done'


def split_by_shell(folder: Path, lines: list[str]) -> list[list[str]]:
    """Let bash split command lines in an empty folder, where nothing may appear."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["/bin/bash", "-c", SPLIT],
        input="".join(f"{line}\n" for line in lines).encode(),
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr, list(folder.iterdir())) == (0, b"", [])
    words = iter(done.stdout.decode().split("\0")[:-1])
    return [[next(words) for _ in range(int(count))] for count in words]


def test_words_stay_words(tmp_path: Path) -> None:
    """What a shell reads are the words themselves, without what cannot be seen."""
    texts = [text for text in PAYLOADS.values() if "\0" not in text]
    lines = [word_command(["netprobe", text, f"-o={text}", text]) for text in texts]
    wanted = [["netprobe", clean(text), clean(f"-o={text}"), clean(text)] for text in texts]

    assert all(line.isprintable() for line in lines)
    assert split_by_shell(tmp_path / "empty", lines) == wanted


@pytest.mark.slow
@given(st.lists(st.text(), min_size=1))
@settings(max_examples=50)
def test_commands_are_one_line(words: list[str]) -> None:
    """Whatever the words are."""
    assert word_command(words).isprintable()


def advice_of_command(text: str) -> str:
    """A vantage command that ended."""
    host = Host("w", (Address("10.0.0.1", 4),), (), Vantage("command", command=("nsenter", text)))
    return COMMAND.explain(host, 7, ["no way in"], False).words


def advice_of_ssh(text: str) -> str:
    """An ssh that was refused."""
    host = Host("w", (Address("10.0.0.1", 4),), (), Vantage("ssh", ssh=Ssh(text)))
    return SSH.explain(host, 255, ["Permission denied"], False).words


def advice_of_diagnosis(text: str) -> str:
    """A tunnel whose server is silent."""
    found = replace(diagnosis(text, "TCP_FILTERED"), flow=("10.0.0.9", "tcp/443"))
    return word_explain(found, [text])


def advice_of_resuming(text: str) -> str:
    """A run that went on from an earlier one."""
    earlier = Earlier(text, True, RunInfo(), {}, lambda: iter(()))
    return TakeOver("--resume", earlier).word_kept({})


def advice_of_record(text: str) -> str:
    """A record that is there already."""
    Path(text).write_text("x")
    with pytest.raises(RequestError) as caught:
        check_record_path(text)
    return str(caught.value)


ADVICE: dict[Callable[[str], str], tuple[str, ...]] = {
    advice_of_command: ("nsenter", "{}", "sh", "-c", "command -v python3"),
    advice_of_ssh: ("ssh", "{}"),
    advice_of_diagnosis: ("netprobe", "explain", "{}", "10.0.0.9", "tcp/443", "-i", "{}"),
    advice_of_resuming: ("--retry", "{}"),
    advice_of_record: ("--resume", "{}"),
}


@pytest.mark.parametrize("advise", ADVICE, ids=lambda one: one.__name__.removeprefix("advice_of_"))
@pytest.mark.parametrize("text", ["x; touch OWNED", "$(touch OWNED)", "a'b\"c `d`", "plain"])
def test_every_command_in_advice_is_quoted(
    advise: Callable[[str], str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words come from inventories and command lines, and are those that a shell reads."""
    monkeypatch.chdir(tmp_path)
    words = [word.replace("{}", text) for word in ADVICE[advise]]

    said = advise(text)

    assert word_command(words) in said
    assert split_by_shell(tmp_path / "empty", [word_command(words)]) == [words]


def test_a_command_that_is_a_script() -> None:
    """As it stands in the inventory, it can be tried by hand."""
    host = Host("w", (Address("10.0.0.1", 4),), (), Vantage("command", command=NO_WAY))
    said = COMMAND.explain(host, 7, ["no way in"], False).words

    assert said == (
        "`sh -c 'echo no way in >&2; exit 7'` ended with status 7: no way in "
        "(try: sh -c 'echo no way in >&2; exit 7' sh -c 'command -v python3')"
    )
