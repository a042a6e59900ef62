"""The options of ``diagnose konnectivity``."""

from __future__ import annotations

import click

from netprobe.cli.given import FILE
from netprobe.cli.options import (
    add_inventory_option,
    add_number,
    agent_python_option,
    manifest_option,
    option,
    output_option,
    repeat_option,
    together,
)

tunnel_options = together(
    option(
        "--server",
        show_default="as --manifest says",
        metavar="HOST[:PORT]",
        help="Where the agents dial: --proxy-server-host and --proxy-server-port of "
        "konnectivity-agent. Port by default: route 443, loadbalancer 8091 (k0s 8132).",
    ),
    option(
        "--publishing",
        show_default="as --manifest says",
        type=click.Choice(("route", "nodeport", "loadbalancer")),
        help="How the server is published; nodeport needs the port.",
    ),
    option(
        "--flavour",
        type=click.Choice(("hypershift", "k0s")),
        show_default="found out",
        help="Whose Konnectivity it is: k0s has another port and tokens instead of certificates.",
    ),
    option(
        "--hostname",
        metavar="SNI",
        show_default="HOST, or none for an address",
        help="The server name in the ClientHello, by which a router finds its route.",
    ),
    option(
        "--proxy",
        default="env",
        metavar="URL|env|none",
        help="The agents' HTTPS proxy. env: HTTPS_PROXY and NO_PROXY of this process, or `proxy:` "
        "of a host of the inventory. A URL is used whatever NO_PROXY says.",
    ),
    option(
        "--ca", type=FILE, metavar="FILE", help="Verify the server's chain against this CA (PEM)."
    ),
    option("--client-cert", type=FILE, metavar="FILE", help="The agent's certificate (PEM)."),
    option("--client-key", type=FILE, metavar="FILE", help="Its key (PEM, without a password)."),
    add_number(
        "--repeat",
        1,
        200,
        "How many further connections must be answered: one of several servers may be dead.",
        default=4,
    ),
    option(
        "--hold",
        type=click.FloatRange(1, 3600),
        metavar="SECONDS",
        show_default="not held",
        help="Keep idle connections so long and see whether they still work; without a client "
        "certificate at most 115.",
    ),
    manifest_option,
    add_inventory_option(
        "from this host", "Diagnose from the workers of this inventory, through their vantages."
    ),
    repeat_option(
        "--from",
        "from_",
        metavar="ROLE|HOST",
        show_default="hosts of role worker",
        text="From which hosts of the inventory.",
    ),
    agent_python_option,
    output_option(),
)
