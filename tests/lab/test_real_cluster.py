"""A run through a real API server: real probes and a real firewall, kubelets that report as their
own nodes, and an account that has the rights of docs/cluster.md and no other."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from netprobe.cluster.run import FURTHER_S, MOST_FURTHER
from tests.cluster.real import RealCluster, require_programs, start_plugin, starting
from tests.cluster.real_kubelets import MERGE, RealKubelets, find_path
from tests.lab.cli import ROOT, environment
from tests.lab.netlab import Lab
from tests.lab.printed import check_output, read_commands
from tests.lab.test_in_cluster import DROPPED, MATRIX, SERVER, build_nodes, flows, list_nodes
from tests.patience import PATIENCE_S, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.full]

Json = dict[str, Any]
Flow = tuple[str, str, str, int]
NODES = ("cp", "w1", "w2")
SPACES = "/api/v1/namespaces"
MOST_CALLS = 12
WAITING_S = 1.0
# Who asks the API: with the rights of the page, and with none.
TOOL, NOBODY = "netprobe", "nobody"
GROUPS = {"daemonsets": "apps"}
PAGE, KILLED = ROOT / "docs" / "cluster.md", "Killed"


def read_rights() -> list[Json]:
    """The rules that the page lists: verbs, then kinds, with semicolons between."""
    found = re.search(r"Rights: ([^.]*)\.", PAGE.read_text())
    assert found is not None
    rules = []
    for part in found[1].split(";"):
        words = [word.lower() for word in re.findall(r"\w+", part) if word != "and"]
        kinds = [word for word in words if word.endswith("s")]
        verbs = [word for word in words if word not in kinds]
        groups = sorted({GROUPS.get(kind, "") for kind in kinds})
        rules.append({"apiGroups": groups, "resources": kinds, "verbs": verbs})
    return rules


@dataclass
class Place:
    """A cluster of three nodes and one that is not ready, and the folder from which it is asked."""

    lab: Lab
    real: RealCluster
    folder: Path

    def start(self, *words: str, user: str = TOOL) -> subprocess.Popen[str]:
        """Begin ``kubectl netprobe WORDS``."""
        kubeconfig = str(self.real.folder / f"{user}.kubeconfig")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return start_plugin(words, self.folder, environment() | {"KUBECONFIG": kubeconfig}, **pipes)

    def ask(self, *words: str, status: int, user: str = TOOL) -> tuple[str, list[str]]:
        """Carry it out; give what it printed, and the lines beside it."""
        running = self.start(*words, user=user)
        out, err = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == status, err
        lines = [line for line in err.splitlines() if "minor versions apart" not in line]
        return out, lines

    def list_spaces(self) -> list[str]:
        """The namespaces of runs that are there."""
        found = self.real.ask("GET", SPACES, labelSelector="netprobe.run")
        return [one["metadata"]["name"] for one in found["items"]]

    def list_pods(self) -> list[Json]:
        """The pods of runs that are there."""
        found: list[Json] = self.real.ask("GET", "/api/v1/pods")["items"]
        return found

    def list_running(self) -> list[int]:
        """The processes on all nodes."""
        return [pid for name in NODES for pid in self.lab[name].pids()]

    def wait_until_empty(self) -> None:
        """Wait until nothing is left of any run, neither in the cluster nor on a node."""
        wait_until(lambda: not self.list_spaces(), "the namespace to go")
        for kind in ("pods", "configmaps", "events"):
            found = self.real.ask("GET", f"/api/v1/{kind}")["items"]
            assert [one for one in found if "netprobe" in one["metadata"]["namespace"]] == []
        assert self.real.ask("GET", "/apis/apps/v1/daemonsets")["items"] == []
        wait_until(lambda: not self.list_running(), "the containers to end")


RUN = ("run", "-m", "./small.yaml", "--image", "python:3")
SHORT = ("--start", "+20s", "--window", "12s", "--margin", "10s")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The nodes, the API server, and the two accounts."""
    require_programs()
    folder = tmp_path_factory.mktemp("real")
    (folder / "small.yaml").write_text(MATRIX)
    with Lab() as lab:
        build_nodes(lab)
        with starting(folder / "cluster", list_nodes(lab)["items"]) as real:
            real.add_account(TOOL, read_rights())
            real.add_account(NOBODY, [])
            yield Place(lab, real, folder)


@pytest.fixture
def place(built: Place) -> Iterator[Place]:
    """All of it, with kubelets that run."""
    with RealKubelets(built.real, built.folder / "pods", lambda node: built.lab[node].enter):
        yield built


def is_open(lab: Lab, flow: Flow) -> bool:
    """Whether a flow is open: asked by sockets of our own, or by ping."""
    requirement, source, destination, port = flow
    there = lab[destination].addresses[0]
    if requirement == "ping":
        sent = ("ping", "-c", "1", "-W", str(WAITING_S), there)
        return "1 received" in lab[source].run(*sent, check=False)
    kind = socket.SOCK_DGRAM if requirement == "overlay" else socket.SOCK_STREAM
    listening, asking = (lab[name].socket(socket.AF_INET, kind) for name in (destination, source))
    with listening, asking:
        listening.bind((there, port))
        listening.settimeout(WAITING_S)
        asking.settimeout(WAITING_S)
        try:
            if kind == socket.SOCK_DGRAM:
                asking.sendto(b"x", (there, port))
                listening.sendto(b"y", listening.recvfrom(1)[1])
                return asking.recv(1) == b"y"
            listening.listen()
            asking.connect((there, port))
        except TimeoutError:
            return False
        return True


def find_open(lab: Lab) -> tuple[set[Flow], set[Flow]]:
    """The flows between the nodes that take part: all of them, and those that are open."""
    workers = ("w1", "w2")
    wanted = {("api", one, "cp", 6443) for one in workers}
    wanted |= {("kubelet", "cp", one, port) for one in workers for port in (10250, 10256)}
    for one, other in (workers, workers[::-1]):
        wanted |= {("overlay", one, other, port) for port in (8472, 51820)}
        wanted |= {("ping", one, other, 0)}
    return wanted, {flow for flow in wanted if is_open(lab, flow)}


def test_a_run_through_a_real_api_server(place: Place) -> None:
    """Its verdicts are what sockets say; calls are counted by the server; nothing is left."""
    wanted, opened = find_open(place.lab)
    assert wanted - opened == DROPPED
    place.real.count_calls(TOOL)
    out, lines = place.ask(*RUN, *SHORT, "-o", "json", status=1)
    document = json.loads(out)
    assert flows(document, "pass") & wanted == opened
    assert flows(document, "blocked") == wanted - opened
    untested = [one for one in document["results"] if one["source"] == "old"]
    assert {one["verdict"] for one in untested} == {"not-tested"}
    assert "3 of 3 pods are there" in "".join(lines)
    calls = place.real.count_calls(TOOL)
    assert calls["list pods"] == 1, calls
    assert calls.total() - calls["list pods"] <= MOST_CALLS, calls
    place.wait_until_empty()
    assert place.ask("clean", status=0) == ("", ["netprobe: no run is in the cluster"])


def mask(text: str) -> str:
    """What a session says without what differs from run to run: names, times, waits."""
    for form, word in (
        (r"[0-9a-f]{16}", "RUN"), (r"\d{4}-\d\d-\d\dT[\d:]{8}Z", "TIME"), (r"[\d.]+ s\b", "TIME"),
    ):  # fmt: skip
        text = re.sub(form, word, text)
    return text


def test_the_session_of_the_page(place: Place) -> None:
    """Each command prints what the page shows, up to names and times; one of them is killed."""
    commands = read_commands(PAGE, "$ kubectl netprobe ")
    assert [line.split()[0] for line, _ in commands] == ["plan", *["run"] * 3, *["clean"] * 2]
    for line, shown in commands:
        running = place.start(*line.split())
        if shown[-1].endswith(KILLED):
            wait_until(lambda: len(place.list_running()) == len(NODES), "the first containers")
            running.send_signal(signal.SIGKILL)
        out, err = running.communicate(timeout=PATIENCE_S)
        printed = err + out + KILLED * (running.returncode < 0)
        check_output(line, [mask(part) for part in shown], mask(printed))
        if "is deleted" in " ".join(shown):
            place.wait_until_empty()


def test_kill_and_clean(place: Place) -> None:
    """A second run says that one is there, and touches nothing; what a killed one left is found."""
    running = place.start(*RUN, "--start", "+1h")
    wait_until(lambda: len(place.list_running()) == len(NODES), "the first containers")
    (name,) = place.list_spaces()
    out, (said,) = place.ask(*RUN, status=4)
    assert out == ""
    assert f"another run is there: {name}, since 20" in said
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=PATIENCE_S)
    assert len(place.list_pods()) == len(NODES)
    out, (said,) = place.ask("clean", status=0)
    assert out == ""
    assert re.fullmatch(rf"netprobe: {name} \(since .*\) is deleted", said)
    place.wait_until_empty()


def test_ctrl_c(place: Place) -> None:
    """The namespace goes, and the containers end."""
    running = place.start(*RUN, "--start", "+1h")
    wait_until(lambda: len(place.list_running()) == len(NODES), "the first containers")
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    assert out.startswith("NOTHING WAS TESTED")
    place.wait_until_empty()


def test_an_account_without_rights(place: Place) -> None:
    """One line in the API's words, whatever is asked; nothing is created."""
    for words in (RUN, ("plan", "-m", "./small.yaml"), ("clean",)):
        out, (said,) = place.ask(*words, status=4, user=NOBODY)
        assert out == ""
        assert 'is forbidden: User "system:serviceaccount:default:nobody" cannot list' in said
        assert said.endswith("docs/cluster.md lists the rights that a run needs")
    assert place.list_spaces() == []


def test_each_right_is_needed(place: Place) -> None:
    """Without one of them a run cannot begin, and says which one is missing; what it has created
    goes, where it may delete it."""
    rules = [
        {**rule, "resources": [kind], "verbs": [verb]}
        for rule in read_rights()
        for kind in rule["resources"]
        for verb in rule["verbs"]
    ]
    for verb, kind in (
        ("list", "namespaces"), ("list", "nodes"), ("create", "namespaces"),
        ("create", "configmaps"), ("create", "daemonsets"),
    ):  # fmt: skip
        user = f"no-{verb}-{kind}"
        rest = [one for one in rules if (one["verbs"], one["resources"]) != ([verb], [kind])]
        assert len(rest) == len(rules) - 1
        place.real.add_account(user, rest)
        _, lines = place.ask(*RUN, "--start", "+1h", status=4, user=user)
        (said,) = [line for line in lines if "is deleted, and all that was in it" not in line]
        assert f'cannot {verb} resource "{kind}"' in said
        place.wait_until_empty()


def test_a_kubelet_reports_on_its_own_pods(place: Place) -> None:
    """The API server lets no node write the results of another one."""
    running = place.start(*RUN, "--start", "+1h")
    wait_until(lambda: len(place.list_running()) == len(NODES), "the first containers")
    by_node = {pod["spec"]["nodeName"]: pod for pod in place.list_pods()}
    status = {"status": {"phase": "Running"}}
    for writer, code in (("w1", httpx.codes.FORBIDDEN), ("w2", httpx.codes.OK)):
        path = f"{find_path(by_node['w2'])}/status"
        answer = place.real.call("PATCH", path, status, user=writer, kind=MERGE)
        assert answer.status_code == code, answer.text
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE_S)
    place.wait_until_empty()


def test_an_api_server_that_goes_and_comes_back(place: Place) -> None:
    """While nodes probe nobody asks it: the report is that of any run."""
    running = place.start(*RUN, *SHORT, "-o", "json")
    wait_until(lambda: len(place.list_running()) == len(NODES), "the first containers")
    place.real.stop_api()
    place.real.start_api()
    out, err = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 1, err
    assert flows(json.loads(out), "blocked") == DROPPED
    place.wait_until_empty()


def test_an_api_server_that_goes(place: Place) -> None:
    """Nothing has arrived, and the report says why; one line says what is left, which ``clean``
    removes when the server is back."""
    running = place.start(*RUN, *SHORT, "-o", "json")
    wait_until(lambda: len(place.list_running()) == len(NODES), "the first containers")
    place.real.stop_api()
    out, err = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 3, err
    results = json.loads(out)["results"]
    assert {one["verdict"] for one in results} == {"not-tested"}
    because = {
        one["because"] for one in results if "old" not in (one["source"], one["destination"])
    }
    assert all("its results have not arrived: cannot get " in words for words in because), because
    assert "may be left (cannot delete " in err
    place.real.start_api()
    (name,) = place.list_spaces()
    _, (said,) = place.ask("clean", status=0)
    assert f"{name} (since " in said
    place.wait_until_empty()


# No two ports are neighbours: what was found of each stands by itself.
APART = ", ".join(map(str, range(20000, 26000, 2)))
WIDE = f"""\
schema: netprobe.matrix/1
name: wide
title: Many ports
roles: {{control-plane: {{common: control-plane}}, worker: {{common: worker}}}}
requirements:
  - {{id: wide, from: worker, to: worker, tcp: [{APART}], purpose: x}}
"""


def test_an_api_server_that_goes_between_two_rounds(place: Place) -> None:
    """What has arrived is reported, what had no room is not tested, and nothing is blocked."""
    (place.folder / "wide.yaml").write_text(WIDE)
    place.real.count_calls(TOOL)
    running = place.start("run", "-m", "./wide.yaml", *RUN[3:], *SHORT, "-o", "json")
    wait_until(lambda: place.real.count_calls(TOOL)["list pods"], "the first list")
    place.real.stop_api()
    out, err = running.communicate(timeout=PATIENCE_S)
    place.real.start_api()
    assert running.returncode == 3, err
    assert f"round 2 of at most {MOST_FURTHER + 1} in {FURTHER_S:.0f} s" in err
    found = {one["verdict"] for one in json.loads(out)["results"] if one["requirement"] == "wide"}
    assert found == {"pass", "not-tested"}
    place.ask("clean", status=0)
    place.wait_until_empty()


def test_the_contrast_where_no_log_can_be_read(place: Place) -> None:
    """All nodes report through the kubelet all the same, and one of them cannot dial."""
    user = "contrast"
    logs = {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}
    place.real.add_account(user, [*read_rights(), logs])
    words = ("diagnose", "konnectivity", "--server", f"{SERVER}:8132", *RUN[3:])
    with place.lab["konnectivity"].socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.bind((SERVER, 8132))
        listening.listen(16)
        when = ("--start", "+20s", "--margin", "10s")
        out, _ = place.ask(*words, *when, "-o", "json", status=1, user=user)
    document = json.loads(out)
    assert {one["node"]: (one["dial"], one["logs"]) for one in document["nodes"]} == {
        "cp": ("opens", "fail"), "w1": ("opens", "fail"), "w2": ("fails", "fail"),
        "old": ("unknown", "not-asked"),
    }  # fmt: skip
    assert "no preferred addresses found" in json.dumps(document)
    calls = place.real.count_calls(user)
    assert calls.pop("get pods/log") == len(NODES)
    assert calls.total() <= MOST_CALLS
    place.wait_until_empty()
