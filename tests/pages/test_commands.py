"""Commands that pages show are commands that netprobe has."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from netprobe.cli.main import cli
from pages.printed import ROOT, list_pages

# A line of a block, after a prompt or an indent; or words between backquotes.
COMMAND = re.compile(r"^(?:\S*\$ | {4})netprobe (.+)|`netprobe ([^`\n]+)`", re.MULTILINE)
# What stands behind is the shell's, or explains it.
BEHIND = re.compile(r"[|;>#]| {2,}|\\$| \d?>")
OPTION = re.compile(r"(?:^|[\s\[])(--?[a-zA-Z][\w-]*)")


def list_commands() -> Iterator[tuple[str, str]]:
    """Each command of a page, as it is written there."""
    pages = [*list_pages(), ROOT / "release/README.md", *ROOT.glob("contrib/**/*.md")]
    for page in pages:
        for match in COMMAND.finditer(page.read_text("utf-8")):
            yield page.name, BEHIND.split(match[1] or match[2])[0]


def find_command(words: list[str]) -> click.Command:
    """The innermost command that the first words name."""
    command: click.Command = cli
    for word in words:
        context = click.Context(command)
        inner = command.get_command(context, word) if isinstance(command, click.Group) else None
        if inner is None:
            break
        command = inner
    return command


def test_pages_show_commands_that_exist() -> None:
    """Each names a command, in words that it knows, with options that it has."""
    commands = [(page, text) for page, text in list_commands() if text[0].islower()]
    wrong = []
    for page, text in commands:
        command = find_command(text.split())
        params = command.get_params(click.Context(command))
        has = {name for one in params for name in (*one.opts, *one.secondary_opts)}
        unknown = [name for name in OPTION.findall(text) if name not in has]
        lacks_verb = isinstance(command, click.Group) and not command.invoke_without_command
        if lacks_verb or unknown:
            wrong.append((page, text, unknown))

    assert len(commands) > 100
    assert wrong == []
