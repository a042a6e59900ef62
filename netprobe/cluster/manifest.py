"""The objects of a run in a cluster, for people to read before they apply them."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from netprobe.agent.wire.batch_pages import limit_page
from netprobe.cluster.pod_states import RUN_LABEL
from netprobe.errors import Problem, RequestError
from netprobe.load.yaml.source import parse_documents

# What a ConfigMap may hold; the API counts the bytes before base64.
MOST_BYTES = 1024 * 1024
# A label as RFC 1123 has it, as the API demands of the name of a namespace.
_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
# One page is the message of one init container. The last container hands on further ones: the
# kubelet tells its last end, and starts it again at once, later after 10 s, 20 s (kubernetes.io,
# Pod Lifecycle, container restarts), so that each can be read for this time at least.
PAGES, FURTHER_PAGES = 2, 4
PAUSE_S = 45
LIMITS = [limit_page(PAGES + 1)] * (PAGES + FURTHER_PAGES)

_OBJECTS = """\
# netprobe run {run}: {nodes} probe each other. Everything lies in this namespace, and
# `kubectl delete namespace {name}` removes all of it. Use `kubectl create -f`:
# `apply` without --server-side takes no large ConfigMap.
apiVersion: v1
kind: Namespace
metadata:
  name: "{name}"
  labels:
    {label}: "{run}"  # all objects have it: `kubectl netprobe clean` finds them by it
    pod-security.kubernetes.io/enforce: privileged  # lower levels forbid hostNetwork
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: netprobe, namespace: "{name}", labels: {{{label}: "{run}"}}}}
immutable: true  # so that kubelets need not watch it
binaryData:
  # The agent, what each node has to do, and the keys of this run: who reads it can answer the
  # run's probes, and write results in any node's name.
  run.pyz: {bundle}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: netprobe, namespace: "{name}", labels: {{{label}: "{run}"}}}}
spec:
  selector: {{matchLabels: {{{label}: "{run}"}}}}
  template:
    metadata: {{labels: {{{label}: "{run}"}}}}
    spec:
      # Host processes and host paths are not asked for. Seccomp, AppArmor and SELinux: as the node
      # has them for every pod.
      hostNetwork: true  # flows are those of the node, and so are listeners
      dnsPolicy: Default  # names as the node looks them up
      automountServiceAccountToken: false  # no right in the cluster
      enableServiceLinks: false  # no variables of services, which it does not need
      terminationGracePeriodSeconds: 5  # nothing is to be saved when it is deleted
      nodeSelector: {{kubernetes.io/os: linux}}  # what the agent is written for
{affinity}      tolerations: [{{operator: Exists}}]  # control planes and cordoned nodes, too
      # One after the other. The first one listens and probes; each leaves one page of results as
      # its termination message, of so many bytes (--limits) as kubelets keep.
      initContainers:
{pages}
      containers:
        # Its start says that this node is done. What had no room on the pages it hands on, one page
        # each time that it ends, so long (--pause) after the last one; then it waits.
        - name: rest
          image: {image}
          command: [python3, /netprobe/run.pyz, --page, "{rest}", --pause, "{pause}",
                    --limits, "{limits}", --pages, /pages, --message, /dev/termination-log]
{rights}
      volumes:
        - {{name: run, configMap: {{name: netprobe}}}}
        - {{name: pages, emptyDir: {{medium: Memory, sizeLimit: 1Mi}}}}  # it goes with the pod
"""
_PAGE = """\
        - name: page-{page}
          image: {image}
          command: [python3, /netprobe/run.pyz, --host, $(NODE), --page, "{page}",
                    --limits, "{limits}", --pages, /pages, --message, /dev/termination-log]
          env: [{{name: NODE, valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}}}]  # who it is
{rights}"""
# The last container needs none of both capabilities, but an image's python3 may have them as file
# capabilities (Dockerfile): then it starts only where they are allowed.
_RIGHTS = """\
          securityContext:
            runAsUser: 0  # else the capabilities would have to be those of the image's python3
            allowPrivilegeEscalation: false  # no program gains rights by its start
            readOnlyRootFilesystem: true
            # Raw sockets, and ports below 1024: nothing else of root's rights.
            capabilities: {drop: [ALL], add: [NET_RAW, NET_BIND_SERVICE]}
          volumeMounts:
            - {name: run, mountPath: /netprobe, readOnly: true}
            - {name: pages, mountPath: /pages}  # pages that wait for their container"""
# Each line is explained once.
_COMMENT = re.compile(r"\n +#.*|  #.*")
_PAGE_AGAIN, _RIGHTS_AGAIN = (_COMMENT.sub("", form) for form in (_PAGE, _RIGHTS))


class ManifestOf(Struct, frozen=True):
    """What a manifest is of. ``bundle``: for the hosts alone, without the plan.

    ``namespace``: its name, where that is not the run's. ``terms``: on which nodes, as a pod's
    affinity has it: on those that fit one of them; none: on all.
    """

    run: str
    nodes: int
    bundle: bytes
    image: str
    namespace: str = ""
    terms: tuple[dict[str, Any], ...] = ()


def name_namespace(run: str) -> str:
    """Give the name of a run's namespace."""
    return f"netprobe-{run}"


def check_namespace(name: str) -> None:
    """Raise RequestError for what is no name of a namespace; none at all is fine."""
    if name and not _NAMESPACE.fullmatch(name):
        raise RequestError(
            f"-n {name}: a namespace has at most 63 lower-case letters, digits and dashes, and "
            "neither begins nor ends with a dash"
        )


def write_manifest(wanted: ManifestOf) -> str:
    """Give the objects as YAML. Raises RequestError where no ConfigMap holds the run."""
    _check_size(wanted)
    image = json.dumps(wanted.image)
    limits = ",".join(map(str, LIMITS))
    forms = [(_PAGE, _RIGHTS), *[(_PAGE_AGAIN, _RIGHTS_AGAIN)] * (PAGES - 1)]
    pages = (
        form.format(page=page, image=image, limits=limits, rights=rights)
        for page, (form, rights) in enumerate(forms, 1)
    )
    return _OBJECTS.format(
        run=wanted.run, name=wanted.namespace or name_namespace(wanted.run), label=RUN_LABEL,
        image=image, rest=PAGES + 1, pause=PAUSE_S, limits=limits,
        affinity=_write_affinity(wanted.terms), rights=_RIGHTS_AGAIN,
        nodes=f"{wanted.nodes:,} node{'' if wanted.nodes == 1 else 's'}",
        bundle=b64encode(wanted.bundle).decode("ascii"),
        pages="\n".join(pages),
    )  # fmt: skip


def make_objects(wanted: ManifestOf) -> list[dict[str, Any]]:
    """Give the same objects as values: namespace, ConfigMap, DaemonSet. Raises RequestError."""
    _check_size(wanted)
    problems: list[Problem] = []
    # YAML takes long to read what is in base64.
    text = write_manifest(replace(wanted, bundle=b"")).replace("run.pyz: \n", 'run.pyz: ""\n')
    parsed = parse_documents(text.encode(), problems, "the manifest")
    assert not problems, problems
    objects = [dict(one.items(())) for one in parsed]
    objects[1]["binaryData"] = {"run.pyz": b64encode(wanted.bundle).decode("ascii")}
    return objects


def _check_size(wanted: ManifestOf) -> None:
    """Raise RequestError where no ConfigMap holds the run."""
    if len(wanted.bundle) > MOST_BYTES:
        raise RequestError(
            f"what {wanted.nodes:,} nodes have to do is {len(wanted.bundle):,} bytes, and a "
            f"ConfigMap holds {MOST_BYTES:,}: choose a part (--nodes, --limit, --from, --to, "
            "--only), or the least between zones (--cover zones)"
        )


def _write_affinity(terms: tuple[dict[str, Any], ...]) -> str:
    if not terms:
        return ""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    words = "      # On the nodes that have something to do alone.\n"
    return f"{words}      affinity: {json.dumps({'nodeAffinity': required})}\n"
