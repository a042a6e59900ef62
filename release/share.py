"""What belongs below share/ of an installation: manual pages, completions of three shells, and what
a watch is used with."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from inspect import cleandoc
from pathlib import Path

import click
from click.shell_completion import get_completion_class
from click_man.man import ManPage

from netprobe.cli.main import cli
from release.places import BUILD, ROOT, VERSION, source_date

_LINE = 100
# The wheel takes it from here: hatch_build.py.
SHARE = BUILD / "share"
_COMPLETIONS = {
    "bash": "bash-completion/completions/netprobe",
    "zsh": "zsh/site-functions/_netprobe",
    "fish": "fish/vendor_completions.d/netprobe.fish",
}


def write_share() -> Path:
    """Write all of it anew, and give its folder."""
    shutil.rmtree(SHARE, ignore_errors=True)
    pages = SHARE / "man/man1"
    pages.mkdir(parents=True)
    _write_pages(cli, "netprobe", None, pages)
    for shell, name in _COMPLETIONS.items():
        path = SHARE / name
        path.parent.mkdir(parents=True)
        kind = get_completion_class(shell)
        assert kind is not None
        path.write_text(kind(cli, {}, "netprobe", "_NETPROBE_COMPLETE").source(), encoding="utf-8")
    shutil.copytree(ROOT / "contrib", SHARE / "netprobe/contrib")
    return SHARE


def _write_pages(
    command: click.Command, name: str, parent: click.Context | None, folder: Path
) -> None:
    context = click.Context(command, info_name=name, parent=parent)
    page = str(_describe_command(command, context)) + _end_of(command)
    path = folder / f"{context.command_path.replace(' ', '-')}.1"
    path.write_text(_keep_lines(page), encoding="utf-8")
    if isinstance(command, click.Group):
        for child, one in command.commands.items():
            if not one.hidden:
                _write_pages(one, child, context, folder)


def _describe_command(command: click.Command, context: click.Context) -> ManPage:
    page = ManPage(context.command_path)
    page.version = VERSION
    page.date = datetime.fromtimestamp(source_date(), UTC).strftime("%Y-%m-%d")
    page.short_help = command.get_short_help_str(_LINE)
    page.description = cleandoc(command.help or "")
    page.synopsis = " ".join(command.collect_usage_pieces(context))
    records = (one.get_help_record(context) for one in command.params)
    page.options = [one for one in records if one is not None]
    if isinstance(command, click.Group):
        shown = ((name, one) for name, one in command.commands.items() if not one.hidden)
        page.commands = [(name, one.get_short_help_str(_LINE)) for name, one in shown]
    return page


def _end_of(command: click.Command) -> str:
    """Give what the help of a command ends with, which click-man leaves out."""
    if not command.epilog:
        return ""
    heading, _, rest = command.epilog.replace("\b\n", "").partition(":")
    return f"\n.SH {heading.strip().upper()}\n{cleandoc(rest)}\n"


def _keep_lines(page: str) -> str:
    """Leave lines as they are where click is asked to: behind a backspace, up to an empty line."""
    escaped = re.sub(r"(?m)^(['\x08]?)(\.{3})", r"\1\\&\2", page)
    return re.sub(r"\x08\n(.*?)(?=\n\.|\Z)", r".nf\n\1\n.fi\n", escaped, flags=re.DOTALL)
