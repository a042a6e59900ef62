"""The command line starts light: help and completion import none of the heavy libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from netprobe import __version__
from netprobe.cli import options as cli_options
from netprobe.cli.asked import DiffOptions
from netprobe.cli.help import GROUPS
from netprobe.cli.main import cli
from netprobe.probe.settings import FORKS
from netprobe.report.run import REPORTS
from netprobe.report.verbs.diff import DIFF_WRITERS
from netprobe.report.verbs.konnectivity import KONNECTIVITY_WRITERS
from netprobe.request.syntaxes import SYNTAXES
from tests.cli.command import ROOT, environment, netprobe

HEAVY = (
    "pydantic",
    "rich",
    "asyncio",
    "httpx",
    "httpcore",
    "h2",
    "yaml",
    "dns",
    "cryptography",
    "ssl",
)
LATE = ("httpx", "httpcore", "h2", "netprobe.probe.rehearsals.playing")
COUNT = """
import sys
from netprobe.cli.main import status_of
status = status_of(sys.argv[1:])
print(status, *(name for name in {heavy!r} if name in sys.modules), file=sys.stderr)
"""


def imported(*words: str, **variables: str) -> str:
    """The exit status and which of the heavy libraries were imported."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT.format(heavy=HEAVY), *words],
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return done.stderr.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["run", "--help"], ["completion", "zsh"], ["matrix", "--help"]],
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    """Help, version and completion scripts need click alone."""
    assert imported(*words) == "0"


@pytest.mark.slow
def test_wrong_usage_imports_nothing_heavy() -> None:
    """A mistyped option is told at once."""
    assert imported("run", "--no-such-option").endswith("\n2")


COMPLETE = """
import sys
import netprobe.cli.main
try:
    netprobe.cli.main.cli.main(prog_name="netprobe")
except SystemExit:
    print(*(name for name in {heavy!r} if name in sys.modules), file=sys.stderr)
"""


def complete(words: str, current: str) -> list[str]:
    """What the shell would offer at the end of this line; nothing heavy may be imported for it."""
    done = subprocess.run(
        [sys.executable, "-c", COMPLETE.format(heavy=HEAVY)],
        env=environment(
            _NETPROBE_COMPLETE="bash_complete",
            COMP_WORDS=f"netprobe {words} {current}",
            COMP_CWORD=str(len(words.split()) + 1),
        ),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stderr.strip() == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_completion_of_matrix_names() -> None:
    """The shell offers the bundled matrices, and imports nothing heavy for it."""
    assert complete("run -m", "deck") == ["deckhouse-nodes"]
    assert complete("matrix show", "okd") == ["okd-hcp"]


@pytest.mark.slow
def test_completion_of_verbs_and_formats() -> None:
    """The shell offers verbs, formats and protocols."""
    assert "plan" in complete("", "p")
    assert complete("run -o", "") == list(cli_options.RUN_FORMATS)
    assert complete("run -o", "m") == ["map", "markdown"]
    assert complete("plan --protocol", "ic") == ["icmp"]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, tmp_path: Path) -> None:
    """Each shell has its script."""
    done = netprobe("completion", shell, cwd=tmp_path)

    assert done.returncode == 0
    assert "_NETPROBE_COMPLETE" in done.stdout


def list_verbs(
    group: click.Group, above: click.Context | None = None, columns: int = 80
) -> dict[str, click.Context]:
    """Each verb by its words, also those of groups, on a terminal of so many columns."""
    width = columns - 2
    here = click.Context(group, parent=above, info_name=group.name, terminal_width=width)
    found: dict[str, click.Context] = {}
    for name, verb in group.commands.items():
        if isinstance(verb, click.Group):
            found |= list_verbs(verb, here, columns)
        else:
            context = click.Context(verb, parent=here, info_name=name, terminal_width=width)
            found[context.command_path.partition(" ")[2]] = context
    return found


def list_options(verb: click.Context) -> set[str]:
    """The long names of a verb's options that the help may show."""
    options = (one for one in verb.command.params if isinstance(one, click.Option))
    return {one.opts[-1] for one in options if not one.hidden}


def test_the_help_of_each_verb_is_at_most_60_lines() -> None:
    """On a terminal of 80 or 100 columns the help of no verb is longer than 60 lines."""
    for columns in (80, 100):
        verbs = list_verbs(cli, columns=columns)
        lines = {name: len(verb.get_help().splitlines()) for name, verb in verbs.items()}
        assert {name: count for name, count in lines.items() if count > 60} == {}, columns


def test_the_help_lists_options_in_groups(tmp_path: Path) -> None:
    """The groups stand in one order, and no option of a verb stands in none of them."""
    lines = netprobe("run", "--help", cwd=tmp_path).stdout.splitlines()
    named = set[str]().union(*GROUPS.values())
    options = set[str]().union(*map(list_options, list_verbs(cli).values()))

    heads = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert heads == ["What:", "Where:", "How:", "Reports:", "After a fix:", "Other:"]
    assert {one.lstrip("-") for one in options} == named


@pytest.mark.slow
def test_help_all_shows_every_option(tmp_path: Path) -> None:
    """``--help-all`` has what the help leaves out, and the help of such a verb names it."""
    for name, verb in list_verbs(cli).items():
        words = verb.command_path.split()[1:]
        short = verb.get_help()
        if name in ("run", "request", "bundle", "diagnose konnectivity"):
            full = netprobe(*words, "--help-all", cwd=tmp_path).stdout
            assert {one for one in list_options(verb) if f"{one} " not in full} == set()
        is_short = any(f"{one} " not in short for one in list_options(verb))
        assert ("--help-all" in short) == is_short, name


@pytest.mark.slow
def test_completion_offers_what_the_help_leaves_out() -> None:
    """The shell offers options that only ``--help-all`` shows, and that itself."""
    assert complete("run", "--help") == ["--help-all", "--help"]
    assert complete("run", "--max-res") == ["--max-results"]


def test_help_shows_defaults(tmp_path: Path) -> None:
    """The help shows every default, and they are those of the stages."""
    text = netprobe("run", "--help-all", cwd=tmp_path).stdout

    assert f"[default: {FORKS};" in text
    assert "[default: 5000000;" in text
    assert "--jobs" not in text
    assert tuple(REPORTS) == cli_options.RUN_FORMATS
    assert "inventory.yaml" in text


def test_text_json_and_markdown_are_formats_of_all_reports() -> None:
    """What run, diff, request and diagnose report can be had in the same three formats."""
    verbs = (
        (cli_options.RUN_FORMATS, REPORTS),
        (cli_options.DIFF_FORMATS, DIFF_WRITERS),
        (cli_options.REQUEST_FORMATS, SYNTAXES),
        (cli_options.TUNNEL_FORMATS, KONNECTIVITY_WRITERS),
    )
    for offered, writers in verbs:
        assert {"text", "json", "markdown"} <= {*offered}
        assert offered == tuple(writers)


def test_version(tmp_path: Path) -> None:
    """The version is one line."""
    assert netprobe("--version", cwd=tmp_path).stdout == f"netprobe {__version__}\n"


@pytest.mark.slow
def test_garbage_is_collected_once_everything_is_imported() -> None:
    """Only the imports go without: a verb may run for an hour."""
    program = (
        "import gc, netprobe.cli.main\n"
        "netprobe.cli.main.main = lambda: print(gc.isenabled(), gc.get_freeze_count() > 0)\n"
        "from netprobe.__main__ import run\n"
        "run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(), capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert done.stdout == "True True\n"


@pytest.mark.slow
def test_a_run_imports_what_few_runs_need_when_they_do() -> None:
    """httpx takes longer than most runs need for all that they say, and most rehearse nothing."""
    code = (
        "import sys, netprobe.pipeline, netprobe.probe.collect, netprobe.konnectivity.run\n"
        f"print(*(name for name in {LATE!r} if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(), capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip

    assert done.stdout.strip() == ""


def test_an_option_without_a_value_is_an_error() -> None:
    """A class of options that is made by hand never holds the option itself as its value."""
    with pytest.raises(TypeError, match="DiffOptions: no value for old, outputs"):
        DiffOptions(new="f")
