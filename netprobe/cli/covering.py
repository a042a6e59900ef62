"""How much of a plan is probed: ``--cover``, ``--seed``, ``--zone-groups``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from netprobe.cli.options import option, repeat_option, together
from netprobe.errors import RequestError

if TYPE_CHECKING:
    from netprobe.cli.asked import CoverOptions
    from netprobe.model.run import RunInfo
    from netprobe.plan.choices import CoverChoice

_COVER: Final = re.compile(r"all|zones(?::([1-9]\d{0,3}))?", re.ASCII)

cover_options = together(
    option(
        "--cover",
        metavar="all|zones[:K]",
        show_default="all, up to 5 minutes",
        help="zones: probe each host to and from each zone (K times), and each port between each "
        "pair of zones; the rest is covered, and probed only where zones turn out to be mixed.",
    ),
    option(
        "--seed",
        type=click.IntRange(0, 2**31 - 1),
        metavar="N",
        default=0,
        help="Which hosts --cover zones pairs: another number, other pairs.",
    ),
    repeat_option(
        "--zone-groups",
        "zone_groups",
        metavar="PATTERN",
        show_default="`zone:` of a host, else its network",
        text="Groups or roles that are zones, such as 'rack_*'.",
    ),
)


def read_cover(
    options: CoverOptions, sample: int | None = None, earlier: RunInfo | None = None
) -> CoverChoice:
    """Read ``--cover`` and ``--seed``; without them an earlier run is gone on with as it was.

    Raises RequestError.
    """
    from netprobe.plan.choices import CoverChoice

    text = options.cover
    if text is None and earlier is not None:
        was = earlier.coverage
        return CoverChoice(is_said=True) if was is None else CoverChoice(was.copies, was.seed, True)
    if text is None:
        return CoverChoice(is_said=sample is not None)
    found = _COVER.fullmatch(text)
    if found is None:
        raise RequestError(
            f"--cover {text}: expected all, zones, or zones:K with K from 1, such as zones:3"
        )
    if text == "all":
        return CoverChoice(is_said=True)
    if sample is not None:
        raise RequestError("--cover zones and --sample contradict each other: give one of them")
    return CoverChoice(int(found[1] or 1), options.seed, True)
