"""The help of a verb: its options in groups, the frequent ones alone; ``--help-all`` has all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

# The options of each group, by their long names; what stands in none is listed last.
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "What": (
        "matrix", "manifest", "network", "set", "only", "protocol", "sample", "hosts", "registry",
        "pods", "count", "server", "publishing", "flavour", "hostname", "finding",
        "renumbered", "reason",
        "owner", "ticket", "from-plan", "at", "by", "include", "until", "python", "history",
    ),
    "Where": (
        "inventory", "role", "limit", "from", "to", "context", "kubeconfig", "namespace", "nodes",
    ),
    "How": (
        "rehearse", "quality", "cover", "seed", "zone-groups", "timeout", "retries", "rate",
        "forks", "ask-become-pass", "agent-python", "no-listen", "no-recorder", "strict", "live",
        "max-results", "engine", "start", "window", "margin", "with-runtime", "proxy", "ca",
        "client-cert", "client-key", "repeat", "hold", "every", "maintenance", "into", "stateless",
        "one-per-row", "same-place", "append", "image", "machine", "up-to", "logs",
    ),
    "Reports": (
        "output", "undo", "folder", "per-host", "plan", "redact", "title", "record", "evidence",
        "metrics", "notify", "verbose", "quiet",
    ),
    "After a fix": (
        "resume", "retry", "accepted", "max-acceptance", "baseline", "fail-on", "next",
    ),
}  # fmt: skip
_REST: Final = "Other"
# What few command lines need, of all verbs and of one: in ``--help-all`` only.
_RARE: Final[Mapping[str, tuple[str, ...]]] = {
    "": (
        "network", "role", "protocol", "sample", "seed", "zone-groups", "timeout", "retries",
        "rate", "forks", "agent-python", "no-listen", "no-recorder", "strict", "live",
        "max-results", "max-acceptance", "margin", "fail-on", "redact", "title", "repeat", "hold",
        "flavour", "hostname", "one-per-row", "stateless", "verbose",
    ),
    # A request takes a plan's options with --from-plan only.
    "request": ("manifest", "only", "limit", "from", "to"),
    "bundle": ("cover", "from", "to", "only", "rehearse", "quality"),
    "cluster run": (
        "manifest", "cover", "from", "to", "only", "rehearse", "quality", "inventory", "machine",
        "plan", "accepted", "baseline",
    ),
}  # fmt: skip
# What options with a value that may be left out stand for without one.
_WHOLE: Final[Mapping[str, str]] = {
    "--rehearse": "--rehearse=all", "--quality": "--quality=usual",
}  # fmt: skip
# Options with longer names stand on a line of their own.
_WIDEST: Final = 27

RUN_STATUS: Final = """\b
Exit status: 0 all required flows pass, 1 something is blocked or exposed,
2 the request was wrong, 3 something required could not be judged,
4 netprobe itself failed, 130 interrupted.
"""
AUDIT_STATUS: Final = """\b
Exit status: 0 every listening port is registered, 1 a violation was found, 2 the request was
wrong, 3 a host or an owner could not be looked at, 4 netprobe itself failed, 130 interrupted.
"""
TUNNEL_STATUS: Final = """\b
Exit status: 0 every tunnel is fine, 1 a fault was found (of the network or of credentials: the
verdict says which), 2 the request was wrong, 3 something could not be judged or looked at,
4 netprobe itself failed, 130 interrupted.
"""
IDLE_STATUS: Final = """\b
Exit status: 0 measured, 1 a keepalive is longer than what is remembered, 2 the request was wrong,
3 nothing could be measured, 4 netprobe itself failed, 130 interrupted.
"""
WATCH_STATUS: Final = """\b
Exit status: 0 a signal ended it, 2 the request was wrong, 4 netprobe itself failed.
"""
_ALL_OPTIONS: Final = (
    "An option with ... may be given several times. A new file is for its owner alone (0600). "
    "Every option can be set in the environment too: --max-results is NETPROBE_MAX_RESULTS."
)


class VerbCommand(click.Command):
    """A verb whose help lists its options in groups."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; some options have a value with = only, so that none of them is lost."""
        end = args.index("--") if "--" in args else len(args)
        whole = [_WHOLE.get(word, word) for word in args[:end]]
        return super().parse_args(ctx, whole + args[end:])

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Give the verb's own, ``--help-all``, and ``--help``."""
        *own, helping = super().get_params(ctx)
        has_rare = any(_is_rare(ctx, one) for one in own)
        return [*own, _add_help_all(has_rare), helping]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each group that has an option."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in (*GROUPS, _REST)}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if row is not None and (_shows_all(ctx) or not _is_rare(ctx, parameter)):
                sections[_group_of(parameter)].append(row)
        lengths = [len(names) for rows in sections.values() for names, _ in rows]
        width = max(length for length in lengths if length <= _WIDEST)
        for group, rows in sections.items():
            if rows:
                with formatter.section(group):
                    formatter.write_dl(
                        [(names.ljust(width), text) for names, text in rows], col_max=width
                    )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the exit status means, and with all options what holds for each."""
        super().format_epilog(ctx, formatter)
        if _shows_all(ctx):
            _write_all_options(formatter)


class VerbGroup(click.Group):
    """A group of such verbs, and of groups of them."""

    command_class = VerbCommand
    group_class = type

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what holds for all verbs."""
        super().format_epilog(ctx, formatter)
        if ctx.parent is None:
            _write_all_options(formatter)


def _write_all_options(formatter: click.HelpFormatter) -> None:
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(_ALL_OPTIONS)


def _add_help_all(has_rare: bool) -> click.Option:
    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        hidden=not has_rare,
        callback=_print_all,
        help="Show all options and exit.",
    )


def _print_all(ctx: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        ctx.meta[__name__] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _shows_all(ctx: click.Context) -> bool:
    return bool(ctx.meta.get(__name__))


def _long_name(parameter: click.Parameter) -> str:
    return next((one[2:] for one in parameter.opts if one.startswith("--")), "")


def _is_rare(ctx: click.Context, parameter: click.Parameter) -> bool:
    verb = ctx.command_path.partition(" ")[2]
    names = (*_RARE[""], *_RARE.get(verb, ()))
    return _long_name(parameter) in names


def _group_of(parameter: click.Parameter) -> str:
    name = _long_name(parameter)
    return next((group for group, names in GROUPS.items() if name in names), _REST)
