"""Files that the pages' commands read: what people write, and commands that make the rest."""

from __future__ import annotations

import json

from tests.lab.cli import ROOT

SAMPLES = ROOT / "tests/load/manifest/samples"
COPIED = {
    "hosted-cluster-proxy.yaml": SAMPLES / "hosted-cluster-proxy.yaml",
    "hosted-cluster-agent.yaml": SAMPLES / "hosted-cluster-agent.yaml",
    "user-data-stub.yaml": SAMPLES / "user-data-stub.yaml",
    "stub.yaml": SAMPLES / "user-data-stub.yaml",
    "hc.yaml": SAMPLES / "hosted-cluster-agent.yaml",
    "nodes.json": ROOT / "tests/load/nodes/rke2.json",
    "canonical-kubernetes.yaml": ROOT / "docs/examples/canonical-kubernetes.yaml",
    "my-platform.yaml": ROOT / "docs/examples/matrix-to-copy.yaml",
}
HOSTS_INI = """\
[compute]
n1 ansible_host=10.10.1.30
n2 ansible_host=10.10.2.30
[ctl]
n3 ansible_host=10.10.1.10
"""
SITE = """\
schema: netprobe.matrix/1
name: site
title: Two kinds of hosts
roles: {a: {}, b: {}}
requirements:
  - {id: web, from: a, to: [a, b], tcp: [8080], purpose: Requests}
"""
TWICE = """\
schema: netprobe.matrix/1
name: twice
title: Twice
roles: {a: {}}
requirements:
  - {id: one, from: a, to: a, tcp: [9500], purpose: x, owner: one}
  - {id: two, from: a, to: a, tcp: [9500], purpose: x, owner: two}
"""
MANY = {
    f"n{n}": {"address": f"10.2.{n // 250}.{n % 250 + 1}", "roles": ["node"]} for n in range(1000)
}
FILES = {
    **{name: path.read_text() for name, path in COPIED.items()},
    "1000.yaml": json.dumps({"schema": "netprobe.inventory/1", "hosts": MANY}),
    "hosts.ini": HOSTS_INI,
    "matrix.yaml": SITE,
    "site.yaml": SITE,
    "twice.yaml": TWICE,
    "pods.json": '{"kind": "List", "items": []}',
}
# Commands of pages that make the files of others.
SELECTION = "--only kube-apiserver --only vxlan --only kubelet"
MAKING = (
    "run --matrix deckhouse-nodes --record run.jsonl -o json=run.json",
    *(
        f"run --matrix deckhouse-nodes --only etcd --record {day}.jsonl"
        for day in ("monday", "tuesday", "wednesday")
    ),
    f"run -m deckhouse-nodes {SELECTION} --record after.jsonl",
    "request run.jsonl -o json=request.json",
    "history add monday.jsonl",
    "runtime build",
    "runtime build -o runtime-aarch64.tar.gz",
    "bundle -m deckhouse-nodes -i inventory.yaml --folder engine",
)
# Those whose output is the file.
PRINTING = {
    "accepted.yaml": 'accept run.jsonl --finding 3 --reason "waits" --owner platform-team '
    "--ticket CHG-4711 --until 2027-01-31",
}
