"""Every syntax of a request. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from netprobe.request.syntaxes import (
    aerleon,
    calico,
    cisco,
    csv_table,
    document,
    firewalld,
    fortios,
    iptables,
    junos,
    markdown,
    nftables,
    paloalto,
    terraform,
    tickets,
    ufw,
    windows,
    xlsx,
)
from netprobe.request.syntaxes.common import Syntax, of_lines

SYNTAXES: Final[Mapping[str, Syntax]] = {
    "markdown": Syntax(of_lines(markdown.lines)),
    "json": Syntax(of_lines(document.lines)),
    "csv": Syntax(csv_table.write),
    "xlsx": Syntax(xlsx.write, library="xlsxwriter"),
    "nftables": Syntax(of_lines(nftables.lines), of_lines(nftables.undo)),
    "iptables": Syntax(of_lines(iptables.lines), of_lines(iptables.undo)),
    "firewalld": Syntax(of_lines(firewalld.lines), of_lines(firewalld.undo)),
    "tufin": Syntax(of_lines(tickets.tufin)),
    "algosec": Syntax(of_lines(tickets.algosec)),
    "cisco-asa": Syntax(of_lines(cisco.asa), of_lines(cisco.asa_undo)),
    "cisco-ios": Syntax(of_lines(cisco.ios), of_lines(cisco.ios_undo)),
    "paloalto": Syntax(of_lines(paloalto.lines), of_lines(paloalto.undo)),
    "fortios": Syntax(of_lines(fortios.lines)),
    "junos": Syntax(of_lines(junos.lines), of_lines(junos.undo)),
    "terraform-aws": Syntax(of_lines(terraform.aws), of_lines(terraform.undo)),
    "terraform-openstack": Syntax(of_lines(terraform.openstack), of_lines(terraform.undo)),
    "calico": Syntax(of_lines(calico.lines), of_lines(calico.undo)),
    "windows": Syntax(of_lines(windows.lines), of_lines(windows.undo)),
    "ufw": Syntax(of_lines(ufw.lines), of_lines(ufw.undo)),
    "aerleon": Syntax(of_lines(aerleon.lines)),
}
