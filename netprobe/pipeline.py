"""Loading and planning in a row, and the look at hosts before a run (``session`` is the run)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from msgspec.structs import replace

from netprobe.judge.holder import say_held
from netprobe.load.manifest.manifests import NO_MANIFESTS, GivenManifests
from netprobe.load.request import load_request
from netprobe.model.plan import Plan
from netprobe.model.result import HostReport
from netprobe.model.run import Events
from netprobe.plan import expand
from netprobe.plan.cover.zones import zone_by_groups
from netprobe.plan.quality import with_quality
from netprobe.plan.rehearsals import with_rehearsals
from netprobe.plan.select import Selection, select
from netprobe.probe import preflight
from netprobe.signals import run_to_end
from netprobe.vantage.launch import Launcher


def make_plan(  # noqa: PLR0913  # all that a user may name
    matrices: Sequence[str],
    inventories: Sequence[str],
    sets: Sequence[str],
    selection: Selection,
    role_options: Sequence[str] = (),
    zone_groups: Sequence[str] = (),
    *,
    manifests: GivenManifests = NO_MANIFESTS,
    probing: bool = False,
    rehearse: Sequence[str] = (),
    quality: int | None = None,
) -> Plan:
    """Load and plan; no inventories: found as docs/design.md says (section 3).

    ``probing``: the plan will be sent, so that no address may be one that ``init`` wrote.
    ``rehearse``: what is rehearsed of its rows. ``quality``: by how many samples their ways are
    measured (``read_samples``).
    Raises RequestError with every problem of every file.
    """
    chosen, inventory, notes = load_request(
        matrices, inventories, sets, role_options, manifests=manifests, probing=probing
    )
    inventory = zone_by_groups(inventory, zone_groups)
    plan = expand.make_plan(chosen, inventory, date.today(), notes)
    plan = select(plan, selection, chosen, inventory)
    return with_quality(with_rehearsals(plan, rehearse, chosen, inventory), quality)


def check_hosts(plan: Plan, launcher: Launcher, events: Events) -> tuple[HostReport, ...]:
    """Start and stop every agent of the plan, and say what each can do. Nothing is probed."""
    work = preflight.check_hosts(plan, launcher, events.host, say_held)
    reports = run_to_end(work)
    return tuple(replace(one, roles=plan.roles.get(one.name, ())) for one in reports)
