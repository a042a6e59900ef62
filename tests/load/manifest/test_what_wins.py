"""Who counts where several say something: --set, manifests, the inventory, the default."""

from __future__ import annotations

import pytest

from netprobe.load.manifest.manifests import GivenManifests
from netprobe.load.request import load_request
from tests.load.manifest.estate import SAMPLES, WORKERS, Desk

OKD, HYPERSHIFT = "okd-hcp", "hypershift-hcp"
AGENT = "hosted-cluster-agent.yaml"
NODES = "schema: netprobe.inventory/1\nhosts:\n  n: {address: 10.9.9.2, roles: [node]}\n"


@pytest.mark.parametrize("text", ["platform=kubevirt", "okd-hcp:platform=kubevirt"])
def test_set_wins(desk: Desk, text: str) -> None:
    """The value of --set counts, and what was taken says so."""
    desk.sample(AGENT)
    loaded = desk.load(OKD, AGENT, sets=[text])

    assert loaded.settings["platform"] == "kubevirt"
    assert "platform=agent, but --set wins" in loaded.gives
    assert loaded.settings["konnectivity-port"] == 30091


def test_a_manifest_wins_over_the_inventory(desk: Desk) -> None:
    """The manifest is what will be installed; the inventory's word and its place are told."""
    desk.sample(AGENT)
    inventory = WORKERS.replace("hosts:", "settings: {platform: kubevirt, private: true}\nhosts:")
    loaded = desk.load(OKD, AGENT, inventory=inventory)

    assert loaded.settings["platform"] == "agent"
    assert loaded.settings["private"] is True
    assert "platform=agent, instead of kubevirt at inventory.yaml:2:12" in loaded.gives


def test_items_of_a_list_are_added_and_taken_away(desk: Desk) -> None:
    """What manifests do not speak of stays as the inventory, or the default, has it."""
    desk.sample("deckhouse.yaml")
    inventory = NODES.replace("hosts:", "settings: {modules: [openvpn, metallb]}\nhosts:")
    loaded = desk.load("deckhouse-nodes", "deckhouse.yaml", inventory=inventory)
    assert loaded.settings["modules"] == ("metallb",)

    sets = ["modules=openvpn"]
    loaded = desk.load("deckhouse-nodes", "deckhouse.yaml", inventory=inventory, sets=sets)
    assert loaded.settings["modules"] == ("openvpn",)
    assert "modules without openvpn, but --set wins" in loaded.gives


def test_two_manifests_that_contradict_each_other(desk: Desk) -> None:
    """The second is a problem that names the place of the first."""
    desk.sample("kubean.yaml")
    desk.sample("kubean-vars.yaml")
    found = desk.problems("dce", "kubean-vars.yaml", "kubean.yaml", inventory=NODES)

    assert found[0] == (
        "kubean.yaml:25:26: setting cni is calico here and cilium at kubean-vars.yaml:1:22, "
        "expected one value"
    )
    assert len(found) == 3  # cni, metallb and kubevip


def test_two_hosted_clusters(desk: Desk) -> None:
    """A run is about one; to check files, there may be many."""
    desk.sample(AGENT)
    text = (SAMPLES / AGENT).read_text().partition("---")[0]
    desk.write("two.yaml", text.replace("name: hc1", "name: hc2"))

    assert desk.problems(OKD, AGENT, "two.yaml") == [
        "two.yaml:4:9: a run is about one hosted cluster, and HostedCluster hc1 is given too, "
        "expected one, as `oc get hostedcluster NAME -o yaml` prints it"
    ]


def test_each_matrix_takes_the_value_that_it_knows(desk: Desk) -> None:
    """The documents have two names for bare metal: one run of both matrices has each its own."""
    desk.sample("hosted-cluster.json")
    path = desk.write("inventory.yaml", WORKERS)
    given = GivenManifests(("hosted-cluster.json",))
    chosen, inventory, _ = load_request([OKD, HYPERSHIFT], [path], [], manifests=given)

    assert [one.settings["platform"] for one in chosen] == ["baremetal-no-agent", "none"]
    gives = {one.gives for one in inventory.taken}
    assert "platform=baremetal-no-agent (okd-hcp), platform=none (hypershift-hcp)" in gives


def test_an_address_of_the_inventory_gets_the_role(desk: Desk) -> None:
    """A host that has the address becomes what the manifest says, and no second one is made."""
    desk.sample(AGENT)
    inventory = WORKERS + "  lb: {address: 10.1.0.7, roles: [dns], vantage: none}\n"
    loaded = desk.load(HYPERSHIFT, AGENT, inventory=inventory)

    assert loaded.host("lb").roles == ("dns", "hcp-apiserver", "hcp-ignition")
    assert set(loaded.addresses()) == {"lb", "hc1-hcp-konnectivity"}
    assert "host lb of the inventory is hcp-apiserver too" in loaded.gives
    assert "host lb of the inventory is hcp-ignition too" in loaded.gives


def test_a_host_that_serves_it_already(desk: Desk) -> None:
    """A host of role hcp serves every service: nothing is added, nothing is noted."""
    desk.sample(AGENT, ("10.1.0.8", "10.1.0.7"))
    inventory = WORKERS + "  lb: {address: 10.1.0.7, roles: [hcp], vantage: none}\n"
    loaded = desk.load(HYPERSHIFT, AGENT, inventory=inventory)

    assert loaded.host("lb").roles == ("hcp",)
    assert "host lb, as in the inventory" in loaded.gives
    assert not [note for note in loaded.notes if "10.1.0.7" in note]


def test_the_inventorys_host_counts(desk: Desk) -> None:
    """An hcp host at another address is probed instead, and a note tells both."""
    desk.sample(AGENT)
    inventory = WORKERS + "  lb: {address: 10.1.0.99, roles: [hcp], vantage: none}\n"
    loaded = desk.load(HYPERSHIFT, AGENT, inventory=inventory)

    assert set(loaded.addresses()) == {"lb"}
    notes = [note for note in loaded.notes if "which counts, has another" in note]
    assert notes[0] == (
        "hosted-cluster-agent.yaml:32:18: 10.1.0.7 is hcp-apiserver here, and lb of the inventory, "
        "which counts, has another address"
    )
    assert notes[1].startswith("hosted-cluster-agent.yaml:44:18: 10.1.0.7 is hcp-ignition here")
    assert "10.1.0.8 is hcp-konnectivity" in notes[2]
    assert {one.place: one.gives for one in loaded.inventory.taken if "not used" in one.gives} == {
        f"{AGENT}:32:18": "not used: the inventory has lb for hcp-apiserver",
        f"{AGENT}:44:18": "not used: the inventory has lb for hcp-ignition",
        f"{AGENT}:38:18": "not used: the inventory has lb for hcp-konnectivity",
    }


def test_one_service_of_the_inventory(desk: Desk) -> None:
    """A host of the inventory for one service counts for that service only."""
    desk.sample(AGENT)
    inventory = WORKERS + "  ign: {address: 10.1.0.99, roles: [hcp-ignition], vantage: none}\n"
    loaded = desk.load(HYPERSHIFT, AGENT, inventory=inventory)

    assert loaded.addresses() == {
        "ign": (["10.1.0.99"], ("hcp-ignition",)),
        "hc1-hcp": (["10.1.0.7"], ("hcp-apiserver",)),
        "hc1-hcp-konnectivity": (["10.1.0.8"], ("hcp-konnectivity",)),
    }
    assert "host hc1-hcp (hcp-apiserver)" in loaded.gives
    assert "not used: the inventory has ign for hcp-ignition" in loaded.gives


def test_roles_that_share_one_row_only(desk: Desk) -> None:
    """A site's row to two roles makes neither serve what the other does."""
    site = (
        "schema: netprobe.matrix/1\nname: site\ntitle: Site\nextends: okd-hcp\nrequirements:\n"
        "- {id: site, from: worker, to: [ldap, dns], tcp: [1], purpose: p, row: r}\n"
    )
    desk.sample("hosted-cluster-proxy.yaml")
    inventory = WORKERS + "  dns: {address: 10.1.0.53, roles: [dns], vantage: none}\n"
    desk.write("site.yaml", site)
    loaded = desk.load("./site.yaml", "hosted-cluster-proxy.yaml", inventory=inventory)
    assert loaded.addresses()["hc1-ldap"] == (["ldap.example.org"], ("ldap",))


def test_a_routers_address_and_the_names_of_its_routes(desk: Desk) -> None:
    """A name may be that of the address in the inventory: that is no contradiction."""
    desk.sample("hosted-cluster-aws-list.yaml")
    inventory = WORKERS + "  router: {address: 10.1.0.9, roles: [ocp-router], vantage: none}\n"
    loaded = desk.load(HYPERSHIFT, "hosted-cluster-aws-list.yaml", inventory=inventory)

    assert set(loaded.addresses()) == {"router", "prod-hcp-apiserver"}
    assert "not used: the inventory has router for konnectivity-route" in loaded.gives
    assert not [note for note in loaded.notes if "has another address" in note]
    assert loaded.settings["konnectivity-hostname"] == "konnectivity-prod.apps.mgmt.example.com"


def test_a_host_of_one_name_and_two_addresses(desk: Desk) -> None:
    """The inventory's address counts, a missing role is added, and a note tells the other."""
    desk.sample("agent-config.yaml")
    inventory = NODES.replace("  n: {address: 10.9.9.2", "  master-0: {address: 10.9.9.2")
    loaded = desk.load("openshift-host-ports", "agent-config.yaml", inventory=inventory)

    master = loaded.host("master-0")
    assert [one.text for one in master.addresses] == ["10.9.9.2"]
    assert master.roles == ("node", "control-plane")
    assert (
        "agent-config.yaml:21:15: master-0 is at 10.0.0.10, fd00::10 here and at 10.9.9.2 in the "
        "inventory, which counts"
    ) in loaded.notes


def test_a_name_that_the_inventory_has(desk: Desk) -> None:
    """A host of the inventory is never replaced by one that happens to have its name."""
    desk.sample(AGENT)
    inventory = WORKERS + "  hc1-hcp: {address: 10.5.0.1, roles: [dns], vantage: none}\n"
    loaded = desk.load(HYPERSHIFT, AGENT, inventory=inventory)

    assert loaded.addresses()["hc1-hcp"] == (["10.5.0.1"], ("dns",))
    assert loaded.addresses()["hc1-hcp-2"][0] == ["10.1.0.7"]


def test_hosts_that_no_matrix_has_a_role_for(desk: Desk) -> None:
    """A HostedCluster beside a matrix without its roles adds no host, and is no mistake."""
    desk.sample(AGENT)
    loaded = desk.load("dce", AGENT, inventory=NODES)

    assert loaded.addresses() == {}
    assert loaded.inventory.taken == ()
