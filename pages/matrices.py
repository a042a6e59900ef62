"""The bundled matrices as docs/matrices.md shows them: which row became which requirement.

The comment at the head of a file has the words about its document; ``drift/rows`` has the reasons
why rows are no flows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

MATRICES = Path(__file__).parents[1] / "matrices"
ROWS = Path(__file__).parents[1] / "drift" / "rows"
PROTOCOLS = ("tcp", "udp", "icmp", "ipproto")

# A matrix or a requirement as YAML gives it.
Plain = dict[str, Any]


@cache
def list_names() -> list[str]:
    """The platforms' matrices by their names, then the layers."""
    names = [path.stem for path in MATRICES.glob("*.yaml")]
    return sorted(names, key=lambda name: (bool(read(name).get("layer")), name))


@cache
def read(name: str) -> Plain:
    """The matrix of that name as it stands in its file."""
    data: Plain = yaml.load(read_text(name), yaml.CSafeLoader)
    return data


def read_text(name: str) -> str:
    """The text of a matrix's file."""
    return (MATRICES / f"{name}.yaml").read_text(encoding="utf-8")


def print_list() -> str:
    """A line for each matrix, with a link to its section."""
    lines = ["| matrix | of | document |", "|---|---|---|"]
    for name in list_names():
        matrix = read(name)
        document = f"{matrix['document']['publisher']}, *{matrix['document']['title']}*"
        lines.append(f"| [{name}](#{name}) | {matrix['title']} | {document} |")
    return "\n".join(lines)


def print_platforms() -> str:
    """The same for somebody who looks for a platform, with links from the top of the project."""
    lines = ["| matrix | of |", "|---|---|"]
    lines += [
        f"| [`{one}`](docs/matrices.md#{one}) | {read(one)['title']} |" for one in list_names()
    ]
    return "\n".join(lines)


def print_names_in_settings() -> str:
    """The settings whose values hosts look up, and the roles whose addresses these have."""
    lines = ["| matrix | settings that are names (roles whose addresses they have) |", "|---|---|"]
    for name in list_names():
        settings = read(name)["settings"].items()
        cells = [
            name_text(key, body["resolves_to"]) for key, body in settings if "resolves_to" in body
        ]
        lines += [f"| `{name}` | {', '.join(cells)} |"] if cells else []
    return "\n".join(lines)


def name_text(setting: str, roles: Any) -> str:
    """A setting with the roles whose addresses its value must have, if there are some."""
    return f"`{setting}`" + (f" ({', '.join(as_list(roles))})" if roles else "")


def print_sections() -> str:
    """A section for each matrix: what its file says of the document, no flows, then the tables."""
    return "\n\n".join("\n".join(print_section(name)) for name in list_names())


def print_section(name: str) -> Iterator[str]:
    """The lines about one matrix."""
    yield from (f"## {name}", "", *read_notes(read_text(name)), "")
    yield from explain_rows(name)
    yield walk(read(name))


def read_notes(text: str) -> list[str]:
    """The comment at the head of a file; a list in Markdown has an empty line before it."""
    lines = text.splitlines()
    end = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return [line[2:] for line in lines[:end]]


def explain_rows(name: str) -> Iterator[str]:
    """The rows of the document that are no flows, and why."""
    path = ROWS / f"{name}.yaml"
    kept = yaml.load(path.read_text("utf-8"), yaml.CBaseLoader) if path.exists() else {}
    if why := kept.get("no_flows"):
        yield from ("| row | why it is no flow |", "|---|---|")
        yield from (f"| {row} | {reason} |" for row, reason in why.items())
        yield ""


def walk(matrix: Plain) -> str:
    """Roles, settings and one table of requirements for each table of the document."""
    lines = ["| role | which hosts |", "|---|---|"]
    lines += [role_line(name, body or {}) for name, body in matrix["roles"].items()]
    lines += ["", "| setting | values | default | what it says |", "|---|---|---|---|"]
    lines += [setting_line(name, body) for name, body in matrix["settings"].items()]
    row = None
    for requirement in matrix["requirements"]:
        if requirement["row"] != row:
            row = requirement["row"]
            lines += [
                "",
                f"**{row}**",
                "",
                "| id | from → to | ports | condition | stops | purpose |",
            ]
            lines += ["|---|---|---|---|---|---|"]
        lines.append(requirement_line(requirement))
    return "\n".join(lines)


def role_line(name: str, body: Plain) -> str:
    """A line of the roles table: the role, what it implies, and which hosts have it."""
    implied = ", ".join(as_list(body.get("implies")))
    marks = [f"implies {implied}"] if implied else []
    marks += ["existing"] if body.get("existing") else []
    marks += ["nothing can run there"] if body.get("vantage") == "none" else []
    marked = f" ({'; '.join(marks)})" if marks else ""
    described = body.get("description", "")
    return f"| `{name}`{marked} | {described} |"


def setting_line(name: str, body: Plain) -> str:
    """A line of the settings table."""
    values = ", ".join(body.get("values", [])) or body["type"]
    listed = "list of " if body.get("type") == "list" else ""
    default = body["default"]
    if isinstance(default, dict):
        default = f"as `{default['setting']}`"
    if isinstance(default, list):
        default = "all" if default == body["values"] else (", ".join(default) or "none")
    described = body.get("description", "")
    return f"| `{name}` | {listed}{values} | {value_text(default) or 'empty'} | {described} |"


def requirement_line(one: Plain) -> str:
    """A line of a requirements table."""
    ends = f"{', '.join(as_list(one['from']))} → {', '.join(as_list(one['to']))}"
    weight = "".join(one["stops"])
    cells = (
        *(f"`{one['id']}`", ends, ports_text(one), condition_text(one), weight),
        one["purpose"],
    )
    return "| " + " | ".join(cells) + " |"


def ports_text(one: Plain) -> str:
    """Protocol and ports as people write them."""
    protocol = next(name for name in PROTOCOLS if name in one)
    entries = [
        f"`{entry['setting']}`" if isinstance(entry, dict) else str(entry)
        for entry in as_list(one[protocol])
    ]
    probe = f" ({one['probe']})" if "probe" in one else ""
    return f"{protocol} {', '.join(entries)}{probe}"


def condition_text(one: Plain) -> str:
    """Everything that decides whether the requirement applies, and what it expects."""
    parts = [term_text(*term) for term in one.get("when", {}).items()]
    parts += ["unless " + term_text(*term) for term in one.get("unless", {}).items()]
    parts += [f"{one['family'].replace('ip', 'IP')} alone"] if "family" in one else []
    parts += ["optional"] if one.get("optional") else []
    parts += [f"any of {one['any_of']}"] if "any_of" in one else []
    parts += [f"multicast {one['multicast']}"] if "multicast" in one else []
    parts += [f"persistence {one['persistence']}"] if "persistence" in one else []
    parts += ["**denied**"] if one.get("expect") == "denied" else []
    parts += ["warns"] if "warnings" in one else []
    held = " or ".join(as_list(one.get("process")))
    return ("; ".join(parts) or "always") + (f"; may be held by {held}" if held else "")


def term_text(name: str, values: Any) -> str:
    """One key of a condition: ``platform aws or azure``, ``version >=4.10``."""
    return f"{name} " + " or ".join(value_text(value) for value in as_list(values))


def value_text(value: Any) -> str:
    """A value as it stands in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_list(value: Any) -> list[Any]:
    """A scalar as a list of one; nothing as an empty list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
