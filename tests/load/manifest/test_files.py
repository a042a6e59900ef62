"""Files of manifests: several documents, lists, JSON, and everything that is none."""

from __future__ import annotations

import base64
import json

import pytest
import yaml

from netprobe.errors import FileErrors
from netprobe.load.manifest.manifests import GivenManifests, read_manifests
from netprobe.load.request import load_request
from tests.load.manifest.estate import SAMPLES, Desk

OKD = "okd-hcp"


def as_list(name: str, kind: str) -> dict[str, object]:
    """A sample's documents as the list that ``oc get`` prints."""
    items = [one for one in yaml.safe_load_all((SAMPLES / name).read_text()) if one]
    return {"apiVersion": "v1", "kind": kind, "items": items, "metadata": {}}


@pytest.mark.slow
def test_every_way_to_write_it_is_the_same(desk: Desk) -> None:
    """Documents, a list, a list in a list's document, JSON, JSON with tabs: one meaning."""
    name = "hosted-cluster-agent.yaml"
    desk.sample(name)
    wanted = desk.load(OKD, name)
    listed = as_list(name, "List")
    texts = {
        "list.yaml": yaml.safe_dump(listed),
        "kind.yaml": yaml.safe_dump(as_list(name, "HostedClusterList")),
        "nested.yaml": yaml.safe_dump({"kind": "List", "items": [listed]}),
        "list.json": json.dumps(listed, indent=4),
        "tabs.json": json.dumps(listed, indent="\t"),
        "flat.json": json.dumps(listed),
    }
    for path, text in texts.items():
        desk.write(path, text)
        found = desk.load(OKD, path)
        assert found.settings == wanted.settings, path
        assert found.addresses() == wanted.addresses(), path
        assert sorted(found.gives) == sorted(wanted.gives), path


def test_empty_documents_are_nothing(desk: Desk) -> None:
    """Separators, comments and empty documents stand between manifests as they like."""
    text = (SAMPLES / "okd-document.yaml").read_text()
    desk.write("hc.yaml", f"---\n# nothing\n---\n{text}\n---\n---\n...\n")

    assert desk.load(OKD, "hc.yaml").settings["version"] == "4.20.3"


def test_several_files(desk: Desk) -> None:
    """--manifest is repeatable, and a file that is given twice is read once."""
    desk.sample("hosted-cluster-proxy.yaml")
    desk.sample("management-proxy.yaml", ("10.0.0.0/8", "192.168.0.0/16"))
    desk.sample("secondary-network.yaml")
    names = ("hosted-cluster-proxy.yaml", "management-proxy.yaml", "secondary-network.yaml")
    once, twice = desk.load(OKD, *names), desk.load(OKD, *names, *names)

    assert once.settings["management-proxy-port"] == 3130
    assert (once.settings, once.notes) == (twice.settings, twice.notes)
    assert once.inventory == twice.inventory


BAD = [
    ("", 'bad.yaml:1:1: there is no manifest in it, expected objects that have the key "kind"'),
    ("- 1\n", 'bad.yaml:1:1: the file holds a list, expected a mapping that has the key "kind"'),
    ("text\n", "bad.yaml:1:1: the file holds a single value, expected a mapping that has the key"),
    ("kind: Pod\nspec: {}\n", "bad.yaml:1:1: nothing in this file can be used, expected one of: "),
    ("a: 1\n", "bad.yaml:1:1: nothing in this file can be used"),
    ("kind: HostedCluster\nkind: x\n", 'bad.yaml:2:1: the key "kind" stands here a second time'),
    ("kind: HostedCluster\n---\nspec: {a: [\n", "bad.yaml:4:1: not valid YAML"),
    ('{"kind": "HostedCluster",}x', "bad.yaml:1:27: not valid YAML"),
    ("kind: HostedCluster\nspec: {services: {a: 1}}\n", "bad.yaml:2:18: this is a mapping, expec"),
    ("kind: HostedCluster\nspec: 7\n", ""),
]  # fmt: skip


def test_a_file_of_strange_kinds_only(desk: Desk) -> None:
    """The problem lists every kind that is read, also those that only other rules read."""
    desk.write("bad.yaml", "kind: Pod\n")
    (found,) = desk.problems(OKD, "bad.yaml")
    assert found.endswith(
        "IngressNginxController, ConfigMap, DaemonSet, NetworkAttachmentDefinition, Secret"
    )


@pytest.mark.parametrize(("text", "expected"), BAD)
def test_what_is_no_manifest(desk: Desk, text: str, expected: str) -> None:
    """It is a problem with a place; a manifest that says nothing is none."""
    desk.write("bad.yaml", text)
    if not expected:
        assert desk.load(OKD, "bad.yaml").settings["platform"] == "aws"
        return
    found = desk.problems(OKD, "bad.yaml")
    assert found[0].startswith(expected)
    assert len(found) == 1


def test_a_file_that_is_not_there(desk: Desk) -> None:
    """It is told as every other file."""
    (found,) = desk.problems(OKD, "nowhere.yaml")
    assert found.startswith("nowhere.yaml: ")


def test_all_problems_of_all_files_at_once(desk: Desk) -> None:
    """Manifests, inventory and --set are told together."""
    desk.sample("hosted-cluster-agent.yaml", ("port: 30443", "port: 70000"))
    desk.sample("okd-document.yaml", ("4.20.3", "4.18.1"))
    desk.write("hosts.yaml", "schema: netprobe.inventory/1\nhosts:\n  a: {roles: [worker]}\n")
    files = ("hosted-cluster-agent.yaml", "okd-document.yaml", "nowhere.yaml")

    with pytest.raises(FileErrors) as caught:
        load_request([OKD], ["hosts.yaml"], ["x=1"], manifests=GivenManifests(files, ("bad",)))
    places = {str(problem).partition(" ")[0] for problem in caught.value.problems}
    assert places >= {
        *("hosted-cluster-agent.yaml:33:15:", "okd-document.yaml:20:11:", "nowhere.yaml:"),
        *("hosts.yaml:3:3:", "--set", "--network"),
    }


def test_kinds_that_nothing_is_taken_from(desk: Desk) -> None:
    """They are one note for a file, if something else in it is used."""
    text = (SAMPLES / "okd-document.yaml").read_text()
    desk.write("hc.yaml", f"{text}---\nkind: Pod\n---\nkind: Service\n---\nkind: Pod\n")

    notes = desk.load(OKD, "hc.yaml").notes
    assert "hc.yaml: nothing is taken from Pod, Service" in notes


def test_a_manifest_is_no_inventory(desk: Desk) -> None:
    """Without problems it costs nothing to read: no host is made, no password kept."""
    desk.sample("kubean.yaml")
    found = read_manifests(GivenManifests(("kubean.yaml",)), [])
    assert "dangerous" not in repr(found.said)


def test_strange_characters_reach_no_terminal(desk: Desk) -> None:
    """Names of others are printed as lines that do nothing."""
    text = (SAMPLES / "hosted-cluster-agent.yaml").read_text()
    desk.write("hc.yaml", text.replace("type: Agent\n    agent", 'type: "\\e[31mred"\n    agent'))
    loaded = desk.load(OKD, "hc.yaml")
    assert "\x1b" not in str(loaded.inventory.taken)


HURT_CONFIGS = [
    ('{"ignition": ' + "[" * 30_000 + "]" * 30_000 + "}", "nested deeper than 100 levels"),
    ('{"ignition": "\x01"}', "the character U+0001 is not allowed"),
    ('{"ignition": ', "not valid YAML"),
]


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
@pytest.mark.parametrize(("text", "words"), HURT_CONFIGS, ids=lambda one: one[:20])
def test_values_that_cannot_be_read(desk: Desk, kind: str, text: str, words: str) -> None:
    """What a value holds is bounded as a file is: a problem at the value's place."""
    value = base64.b64encode(text.encode()).decode() if kind == "Secret" else text
    key = "value" if kind == "Secret" else "group_vars.yml"
    desk.write("hurt.yaml", f"kind: {kind}\ndata:\n  {key}: {json.dumps(value)}\n")
    (found, *_) = desk.problems(OKD, "hurt.yaml")
    assert found.startswith(f"hurt.yaml:3:{len(key) + 5}: {words}")
