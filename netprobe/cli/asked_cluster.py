"""What the verbs of a cluster are asked, as ``cli/asked.py`` has it of the others."""

from __future__ import annotations

from typing import Literal

from netprobe.cli.asked import CostOptions, DiagnoseOptions, TellingOptions
from netprobe.cli.option_groups import CarryOptions, ScriptOptions, Texts, add_inventory_option
from netprobe.cli.options import (
    TUNNEL_FORMATS,
    AskedOptions,
    file_option,
    flag,
    option,
    output_option,
    repeat_option,
)


class ManifestOptions(ScriptOptions):
    """``netprobe cluster manifest``."""

    start: str | None = CarryOptions.start
    window: str = CarryOptions.window
    margin: str = CarryOptions.margin
    image: str | None = option(
        "--image", metavar="IMAGE", help="An image with python3 (3.6 or later) that all nodes get."
    )
    machines: Texts = repeat_option(
        "--machine",
        metavar="PROCESSOR",
        show_default="any",
        text="Processors that the image is for, such as amd64.",
    )
    stored: str | None = file_option(
        "--plan", "FILE", "Where what `netprobe merge` needs goes; it holds the keys of all nodes."
    )


class KubeOptions(AskedOptions):
    """Which cluster, and what a run in it has."""

    context: str | None = option(
        "--context", metavar="NAME", show_default="as kubectl", help="The context of kubectl."
    )
    kubeconfig: str | None = file_option(
        "--kubeconfig", "FILE", "The file of kubectl.", show_default="as kubectl"
    )
    namespace: str = option(
        "-n",
        "--namespace",
        metavar="NAME",
        default="",
        show_default="netprobe-RUN",
        help="The name of the namespace that is created, and deleted.",
    )


class ClusterPlanOptions(CostOptions, KubeOptions):
    """``netprobe cluster plan``."""

    inventories: Texts = add_inventory_option(
        "the nodes of the cluster", "Further hosts, which have no pod."
    )
    nodes: str = option(
        "--nodes",
        metavar="SELECTOR",
        default="",
        show_default="all",
        help="Only nodes with these labels, as kubectl's -l takes them.",
    )
    machines: Texts = ManifestOptions.machines


class ClusterDiagnoseOptions(KubeOptions):
    """``netprobe cluster diagnose konnectivity``."""

    server: str | None = option(
        "--server", metavar="HOST[:PORT]", show_default="as konnectivity-agent says",
        help="Where the agents dial; port by default: route 443, else 8091.",
    )  # fmt: skip
    publishing: Literal["route", "nodeport", "loadbalancer"] | None = DiagnoseOptions.publishing
    nodes: str = ClusterPlanOptions.nodes
    logs: str = option(
        "--logs", metavar="N|all", default="20",
        help="Of how many nodes logs are asked: first of those with a fault, then an even choice.",
    )  # fmt: skip
    image: str | None = ManifestOptions.image
    machines: Texts = ManifestOptions.machines
    start: str = option(
        "--start", metavar="TIME", default="+2m",
        help="When all nodes dial: pods must have started by then (the image is there).",
    )  # fmt: skip
    margin: str = CarryOptions.margin
    outputs: Texts = output_option(TUNNEL_FORMATS)


class ClusterRunOptions(ManifestOptions, KubeOptions, TellingOptions):
    """``netprobe cluster run``."""

    inventories: Texts = ClusterPlanOptions.inventories
    nodes: str = ClusterPlanOptions.nodes
    start: str = option(
        "--start", metavar="TIME", default="+2m",
        help="When all nodes probe: pods must have started by then (the image is there).",
    )  # fmt: skip
    window: str = option(
        "--window", metavar="TIME", default="", show_default="as the plan needs",
        help="How long probing may take.",
    )  # fmt: skip
    verbose: bool = flag("-v", "--verbose", "Say at the end where the time went.")
