"""What a run asks for, as a file keeps it: the plan, how it is probed, and the run's key.

Hosts stand in it once, by name. What only a live run needs is left out: ways onto hosts, and the
passwords of proxies.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from netprobe.agent.wire.batch import HostBudgets
from netprobe.agent.wire.codec import read_record
from netprobe.agent.wire.parts import NumberedTemplate
from netprobe.batch.checked_lines import BatchIdentity
from netprobe.batch.limits import count_flows, is_plan_too_large
from netprobe.batch.run_values import check_key, make_settings, read_run_values
from netprobe.errors import RequestError
from netprobe.model.inventory import Address, Host, Proxy, Vantage
from netprobe.model.matrix import Condition
from netprobe.model.plan import Block, Plan
from netprobe.model.ports import MAX_PORT, Ports
from netprobe.model.struct_json import WrongValue, from_json, to_json
from netprobe.probe.settings import ProbeSettings
from netprobe.protocols.services.proxy_url import parse_proxy

REQUEST_FORMAT = 10

# Hosts of a block are names here, and its destinations have their addresses beside them.
_BY_NAME = ("sources", "destinations")


class BatchRequest(Struct, frozen=True):
    """One run in batch mode.

    ``hosts``: all of its hosts in the order of their indices. ``templates``: all packets so far, by
    their numbers from 1. ``next_id``: the first id that no order has. ``round``: the last one that
    was written. ``starts_at`` is UTC epoch seconds, for the barrier ``clock``. ``cover``: how often
    and by which seed the plan is covered; None: all of it is probed. ``key``: by which probes are
    answered; ``results_key``: of which each host's own is made. ``is_shared``: all keys were in one
    file for all hosts, so that each of them could have written what another one did.
    """

    run: str
    key: bytes
    results_key: bytes
    plan: Plan
    hosts: tuple[str, ...]
    settings: ProbeSettings
    barrier: str
    starts_at: float | None
    window_s: float
    margin_s: float
    budgets: HostBudgets
    is_shared: bool = False
    live: bool = False
    sample: str | None = None
    cover: tuple[int, int] | None = None
    round: int = 1
    next_id: int = 1
    templates: tuple[NumberedTemplate, ...] = field(default=())

    @property
    def identity(self) -> BatchIdentity:
        """Which results belong to the run."""
        hosts, flows = dict(enumerate(self.hosts)), count_flows(self.plan)
        return BatchIdentity(self.run, self.results_key, self.round, hosts, self.next_id, flows)


def write_request(request: BatchRequest) -> bytes:
    """Give a run as JSON. Raises RequestError for one that is too large to be read again."""
    plan = request.plan
    hosts = {name: to_json(_strip_host(host)) for name, host in plan.hosts().items()}
    data = json.dumps(
        {
            "format": REQUEST_FORMAT,
            "run": request.run,
            "key": b64encode(request.key).decode("ascii"),
            "results_key": b64encode(request.results_key).decode("ascii"),
            "is_shared": request.is_shared,
            "round": request.round,
            "next_id": request.next_id,
            "barrier": request.barrier,
            "starts_at": request.starts_at,
            "window_s": request.window_s,
            "margin_s": request.margin_s,
            "budgets": list(request.budgets),
            "live": request.live,
            "sample": request.sample,
            "cover": request.cover,
            "settings": _write_settings(request.settings),
            "order": list(request.hosts),
            "hosts": hosts,
            "plan": _write_plan(plan),
            "templates": [_write_template(one) for one in request.templates],
        },
        separators=(",", ":"),
    ).encode("utf-8")
    if is_plan_too_large(data):
        raise RequestError(
            f"this plan of {len(hosts):,} hosts is too large for a bundle: choose a part (--limit, "
            "--from, --to, --only), or --cover zones"
        )
    return data


def read_request(data: bytes, label: str) -> BatchRequest:
    """Read a run; ``label`` names the file. Raises RequestError."""
    try:
        if is_plan_too_large(data):
            raise RequestError(f"{label}: its plan is larger than any that netprobe writes")
        values = json.loads(data.decode("utf-8"))
        if values["format"] != REQUEST_FORMAT:
            raise RequestError(
                f"{label}: was made by another version of netprobe, and only that can merge it "
                f"(its format is {values['format']!r:.20}, expected {REQUEST_FORMAT})"
            )
        return _read_values(values)
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError):
        raise RequestError(f"{label}: is not what `netprobe bundle` wrote") from None
    except (ValueError, WrongValue) as error:
        raise RequestError(f"{label}: is not what `netprobe bundle` wrote: {error}") from None


def _read_values(values: dict[str, Any]) -> BatchRequest:
    hosts = {name: from_json(Host, one) for name, one in values["hosts"].items()}
    found = read_run_values(values)
    return BatchRequest(
        run=found.run,
        key=_read_key(values, "key"),
        results_key=_read_key(values, "results_key"),
        is_shared=found.is_shared,
        plan=_read_plan(values["plan"], hosts),
        hosts=found.order,
        settings=make_settings(found.settings),
        barrier=found.barrier,
        starts_at=found.starts_at,
        window_s=found.window_s,
        margin_s=found.margin_s,
        budgets=HostBudgets(*found.budgets),
        live=found.live,
        sample=found.sample,
        cover=found.cover,
        round=found.round,
        next_id=found.next_id,
        templates=tuple(read_record(NumberedTemplate, one) for one in values["templates"]),
    )


def _read_key(values: dict[str, Any], name: str) -> bytes:
    return check_key(name, b64decode(values[name], validate=True))


def _write_settings(settings: ProbeSettings) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings).items() if name != "keep"}


def _write_template(template: NumberedTemplate) -> Any:
    return json.loads(json.dumps(template, default=lambda data: b64encode(data).decode("ascii")))


def _strip_host(host: Host) -> Host:
    """Give a host without the ways onto it and without passwords."""
    kind = "none" if host.vantage.kind == "none" else "local"
    return replace(
        host,
        vantage=Vantage(kind),  # type: ignore[arg-type]
        become=None,
        proxy=host.proxy and _strip_proxy(host.proxy),
        proxies=tuple((service, _strip_proxy(one)) for service, one in host.proxies),
    )


def _strip_proxy(proxy: Proxy) -> Proxy:
    return replace(
        proxy,
        https_proxy=_hide_password(proxy.https_proxy, "https_proxy"),
        http_proxy=_hide_password(proxy.http_proxy, "http_proxy"),
    )


def _hide_password(url: str | None, name: str) -> str | None:
    return str(parse_proxy(url, name)) if url else url


def _write_plan(plan: Plan) -> dict[str, Any]:
    return {
        "matrices": to_json(plan.matrices),
        "blocks": [_write_block(block) for block in plan.blocks],
        "skipped": to_json(plan.skipped),
        "notes": list(plan.notes),
        "selection": plan.selection,
        "limited_to": sorted(plan.limited_to),
        "some_ports": plan.some_ports,
        "requirements": to_json(plan.requirements),
        "roles": to_json(plan.roles),
    }


def _write_block(block: Block) -> dict[str, Any]:
    # Ports are the block's own by now; the requirement's may still name settings.
    requirement = replace(
        block.requirement, tcp=(), udp=(), when=Condition(), unless=Condition(), warnings=()
    )
    values: dict[str, Any] = to_json(
        replace(block, requirement=requirement, sources=(), destinations=())
    )
    values["sources"] = [host.name for host in block.sources]
    values["destinations"] = [
        [host.name, address.text, address.family] for host, address in block.destinations
    ]
    return values


def _read_plan(values: dict[str, Any], hosts: dict[str, Host]) -> Plan:
    blocks = tuple(_read_block(one, hosts) for one in values["blocks"])
    return replace(from_json(Plan, {**values, "blocks": []}), blocks=blocks)


def _read_block(values: dict[str, Any], hosts: dict[str, Host]) -> Block:
    rest = {key: one for key, one in values.items() if key not in _BY_NAME}
    block = from_json(Block, {**rest, "sources": [], "destinations": []})
    _check_ports(block.ports)
    return replace(
        block,
        sources=tuple(hosts[name] for name in values["sources"]),
        destinations=tuple(
            (hosts[name], from_json(Address, {"text": text, "family": family}))
            for name, text, family in values["destinations"]
        ),
    )


def _check_ports(ports: Ports) -> None:
    """Raise ValueError for what are no ranges of ports, or not in their order."""
    before = 0
    for first, last in ports:
        if not before < first <= last <= MAX_PORT:
            raise ValueError(f"ports: {first}-{last}, expected ranges of 1 to {MAX_PORT}, sorted")
        before = last
