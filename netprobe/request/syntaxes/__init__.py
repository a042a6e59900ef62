"""Every syntax of a request. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from netprobe.request.syntaxes import (
    aerleon,
    calico,
    cisco,
    firewalld,
    nftables,
    page,
    scripts,
    table,
    terraform,
    tickets,
    windows,
    zones,
)
from netprobe.request.syntaxes.common import IntoPlace, Syntax, of_lines

# Names stand in commands without quotes, so they hold nothing that means something there.
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_LIST = IntoPlace(_NAME, "the name of an access list, such as OUTSIDE_IN")
_ZONES = IntoPlace(f"{_NAME}/{_NAME}", "FROM/TO, two zones, such as inside/dmz")
_TABLE = IntoPlace(
    r"(inet|ip|ip6|bridge|netdev)/[A-Za-z_][A-Za-z0-9_.-]*(/[A-Za-z_][A-Za-z0-9_/.-]*)?",
    "FAMILY/TABLE or FAMILY/TABLE/CHAIN, such as inet/filter/forward",
)
_CHAIN = IntoPlace(r"[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,27}", "the name of a chain, such as FORWARD")
_SELECTOR = IntoPlace(r".*\S.*", "a selector, such as role == 'node'")
_TARGET = IntoPlace(r".*\S.*", "a target with its options, such as cisco OUTSIDE_IN extended")

SYNTAXES: Final[Mapping[str, Syntax]] = {
    "markdown": Syntax("tickets and mails", of_lines(page.markdown)),
    "text": Syntax("mails", of_lines(page.text)),
    "json": Syntax("programs, and `run --retry`", of_lines(tickets.document)),
    "csv": Syntax("forms", table.write_csv),
    "xlsx": Syntax("forms", table.write_xlsx, library="xlsxwriter"),
    "nftables": Syntax(
        "`nft -f` on the router or host",
        of_lines(nftables.lines),
        of_lines(nftables.undo),
        into=_TABLE,
    ),
    "iptables": Syntax(
        "a shell script", of_lines(scripts.iptables), of_lines(scripts.iptables_undo), into=_CHAIN
    ),
    "firewalld": Syntax("a shell script", of_lines(firewalld.lines), of_lines(firewalld.undo)),
    "tufin": Syntax("the REST interface of SecureChange", of_lines(tickets.tufin)),
    "algosec": Syntax("the REST interface of FireFlow", of_lines(tickets.algosec)),
    "cisco-asa": Syntax(
        "object groups and permits above the others",
        of_lines(cisco.asa),
        of_lines(cisco.asa_undo),
        into=_LIST,
    ),
    "cisco-ios": Syntax(
        "object groups and permits above the others",
        of_lines(cisco.ios),
        of_lines(cisco.ios_undo),
        into=_LIST,
    ),
    "paloalto": Syntax(
        "objects and policies", of_lines(zones.paloalto), of_lines(zones.paloalto_undo), into=_ZONES
    ),
    "fortios": Syntax("objects and policies", of_lines(zones.fortios), into=_ZONES),
    "junos": Syntax(
        "objects and policies", of_lines(zones.junos), of_lines(zones.junos_undo), into=_ZONES
    ),
    "terraform-aws": Syntax(
        "rules of security groups, whose ids are variables",
        of_lines(terraform.aws),
        of_lines(terraform.undo),
    ),
    "terraform-openstack": Syntax(
        "rules of security groups, whose ids are variables",
        of_lines(terraform.openstack),
        of_lines(terraform.undo),
    ),
    "calico": Syntax(
        "a GlobalNetworkPolicy for host endpoints",
        of_lines(calico.lines),
        of_lines(calico.undo),
        into=_SELECTOR,
    ),
    "windows": Syntax(
        "PowerShell for the hosts at both ends", of_lines(windows.lines), of_lines(windows.undo)
    ),
    "ufw": Syntax("a shell script", of_lines(scripts.ufw), of_lines(scripts.ufw_undo)),
    "aerleon": Syntax(
        "definitions and terms for shops that compile policies",
        of_lines(aerleon.lines),
        into=_TARGET,
    ),
}
