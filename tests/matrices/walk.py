"""Writes the tables of docs/matrices.md from the matrices: which row became which requirement.

``python -m tests.matrices.walk`` rewrites the page; a test says when it is stale.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.matrices.source import NAMES, Plain, as_list, read

PAGE = Path(__file__).parents[2] / "docs" / "matrices.md"
PROTOCOLS = ("tcp", "udp", "icmp", "ipproto")


def fresh(page: str) -> str:
    """The page with the text between each pair of markers made new; the prose is left alone."""
    for name in NAMES:
        start, end = f"<!-- walk {name} -->", f"<!-- end {name} -->"
        pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
        if len(pattern.findall(page)) != 1:
            raise ValueError(f"{PAGE}: expected one pair of markers for {name}")
        before, after = pattern.split(page)
        page = f"{before}{start}\n{walk(read(name))}\n{end}{after}"
    return page


def walk(matrix: Plain) -> str:
    """Roles, settings and one table of requirements for each table of the document."""
    lines = ["Roles: " + "; ".join(role_text(*role) for role in matrix["roles"].items()) + ".", ""]
    lines += ["| setting | values | default |", "|---|---|---|"]
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


def role_text(name: str, body: Plain) -> str:
    """A role and what it implies."""
    implied = ", ".join(as_list(body.get("implies")))
    marks = [f"implies {implied}"] if implied else []
    marks += ["existing"] if body.get("existing") else []
    marks += ["nothing can run there"] if body.get("vantage") == "none" else []
    return f"`{name}`" + (f" ({'; '.join(marks)})" if marks else "")


def setting_line(name: str, body: Plain) -> str:
    """A line of the settings table."""
    values = ", ".join(body.get("values", [])) or body["type"]
    listed = "list of " if body.get("type") == "list" else ""
    default = body["default"]
    if isinstance(default, dict):
        default = f"as `{default['setting']}`"
    if isinstance(default, list):
        default = "all" if default == body["values"] else (", ".join(default) or "none")
    return f"| `{name}` | {listed}{values} | {value_text(default) or 'empty'} |"


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


if __name__ == "__main__":
    PAGE.write_text(fresh(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
