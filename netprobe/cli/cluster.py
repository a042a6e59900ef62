"""The verb ``cluster manifest``: a run in a cluster as objects to read and to apply."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from netprobe.batch.bundle import pack_bundle, pack_plan
from netprobe.batch.request import write_request
from netprobe.batch.results import write_private
from netprobe.cli.asked_cluster import ManifestOptions
from netprobe.cli.bundle import When, make_header, make_run
from netprobe.cli.given import read_start
from netprobe.cli.streams import tell
from netprobe.cluster.manifest import ManifestOf, name_namespace, write_manifest
from netprobe.cluster.nodes import close_hosts
from netprobe.errors import RequestError
from netprobe.model.exit import PASS


def manifest_verb(options: ManifestOptions) -> int:
    """Print the objects, and keep what a merge needs."""
    path, image, when = _read_given(options)
    request, scripts = make_run(
        options,
        lambda _: when,
        is_shared=True,
        prepare=lambda plan: close_hosts(plan, options.machines),
    )
    if not scripts:
        raise RequestError("no node has anything to do (`netprobe plan`)")
    header = make_header(request)
    text = write_manifest(
        ManifestOf(request.run, len(scripts), pack_bundle(header, scripts), image)
    )
    write_private(path, pack_plan(header, write_request(request)))
    sys.stdout.write(text)
    namespace = name_namespace(request.run)
    tell(
        f"netprobe: run {request.run} on {len(scripts):,} nodes: create it before the start; then "
        f"`kubectl get pods -n {namespace} -o json > pods.json` and `netprobe merge {path} "
        f"pods.json`; `kubectl delete namespace {namespace}` removes all"
    )
    return PASS


def _read_given(options: ManifestOptions) -> tuple[Path, str, When]:
    """Read where the plan goes, the image, and when nodes probe. Raises RequestError."""
    if not options.stored:
        raise RequestError("give --plan FILE: what `netprobe merge` needs of this run goes there")
    if os.path.lexists(options.stored):
        raise RequestError(f"--plan {options.stored}: exists; choose another name")
    if not options.image:
        raise RequestError("give --image IMAGE: one with python3 that all nodes can get")
    if not options.start:
        raise RequestError("give --start TIME: all nodes listen and probe at the same time")
    starts_at = read_start(options.start, datetime.now(UTC))
    return (
        Path(options.stored),
        options.image,
        When("clock", starts_at, options.window, options.margin),
    )
