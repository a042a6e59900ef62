"""The verbs, end to end on loopback: real agents, real listeners, real files."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from netprobe.load.matrix.bundled import bundled_names
from netprobe.load.matrix.file import load_matrices
from netprobe.model.matrix import choose_settings
from netprobe.report.verbs.matrix import write_matrix_yaml
from tests.cli.command import COMMAND, environment, netprobe
from tests.cli.conftest import FIRST, LAST, WEB
from tests.patience import PATIENCE_S

# They start whole commands.
pytestmark = pytest.mark.slow

TINY = ("-m", "./tiny.yaml")
HERE = (*TINY, "--limit", "here", "--from", "here")


def test_run(folder: Path) -> None:
    """One host that cannot be used makes its own flows not tested, and nothing else."""
    done = netprobe("run", *TINY, "-o", "text", "-o", "json=run.json", cwd=folder)
    run = json.loads((folder / "run.json").read_text())

    assert done.returncode == 3
    assert done.stdout.startswith("UNKNOWN: nothing is blocked, but 46 of 92 required flows could")
    assert run["summary"]["pass"] == 46
    assert {one["source"] for one in run["results"] if one["verdict"] == "not-tested"} == {"gone"}
    assert run["complete"] is True
    ranged = [one for one in run["results"] if one["port"] == FIRST and one["source"] == "here"]
    assert [one["end_port"] for one in ranged] == [LAST, LAST]


def test_run_passes(folder: Path) -> None:
    """A run of one good host is exit 0, and has no progress among its lines."""
    done = netprobe("run", *TINY, "--from", "here", "--to", "here", cwd=folder)

    assert done.returncode == 0
    assert "PASS: all 23 required flows are as they should be\n" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("23 flows: 23 pass (0 on a refusal)")
    assert "flows (" not in done.stdout


def test_jobs_are_ignored_with_a_note(folder: Path) -> None:
    """A script that still gives ``--jobs`` gets the same run, and one note that it does nothing."""
    done = netprobe("run", *TINY, "--from", "here", "--to", "here", "--jobs", "4", cwd=folder)

    assert done.returncode == 0
    assert "PASS: all 23 required flows are as they should be\n" in done.stdout
    note = "netprobe: note: --jobs is ignored: one process an agent is enough"
    assert done.stderr.splitlines().count(note) == 1


def test_nothing_to_do(folder: Path) -> None:
    """A run without any flow says so first and is never exit 0."""
    done = netprobe("run", *TINY, "--protocol", "icmp", cwd=folder)

    assert done.returncode == 3
    assert done.stdout.startswith("NOTHING WAS TESTED: the filters left no flow to probe")


@pytest.mark.slow
def test_filters_are_named(folder: Path) -> None:
    """A part of a plan is called one: by run, in JSON, in a record that broke off, by plan."""
    words = ("--only", "web", "--from", "here", "--to", "here")
    done = netprobe("run", *TINY, *words, "--record", "r", "-o", "text", "-o", "json=j", cwd=folder)
    selection = "--from here --to here --only web: 22 of 92 flows"
    (folder / "torn").write_text((folder / "r").read_text().splitlines(keepends=True)[0])
    again = netprobe("report", "torn", "-o", "json", cwd=folder)

    assert done.stdout.splitlines()[0] == f"SELECTION: {selection}"
    assert json.loads((folder / "j").read_text())["selection"] == selection
    assert json.loads(again.stdout)["selection"] == selection
    assert f"selection: {selection}\n" in netprobe("plan", *TINY, *words, cwd=folder).stdout


def test_a_record_that_broke_off_is_no_pass(folder: Path) -> None:
    """All that it holds passes, and most of the plan has no result: never exit 0."""
    whole = netprobe("run", *TINY, "--from", "here", "--to", "here", "--record", "r", cwd=folder)
    lines = (folder / "r").read_text().splitlines(keepends=True)
    (folder / "torn").write_text("".join(lines[:2]))
    done = netprobe("report", "torn", cwd=folder)

    assert whole.returncode == 0
    assert done.returncode == 3
    assert "UNKNOWN: nothing is blocked, but " in done.stdout.splitlines()[2]
    assert "PASS" not in done.stdout


@pytest.mark.slow
def test_filters_that_leave_nothing(folder: Path) -> None:
    """The filters are named, and a plan of nothing takes no time."""
    words = ("--only", "web", "--protocol", "udp")
    done = netprobe("run", *TINY, *words, cwd=folder)
    plan = netprobe("plan", *TINY, *words, cwd=folder)

    assert done.returncode == 3
    assert done.stdout.startswith(
        "NOTHING WAS TESTED: the filters left no flow to probe "
        "(--only web --protocol udp: 0 of 92 flows)\n"
    )
    assert "0 flows, about 0 packets, 0 listeners, about 0" in plan.stdout


def _count_flows(record: Path) -> int:
    """How many flows the lines of a record tell of."""
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    return sum(line["end_port"] - line["port"] + 1 for line in lines if "verdict" in line)


@pytest.mark.slow
def test_record_resume_report_diff(folder: Path) -> None:
    """A record is taken up again: only what was not final is probed; report and diff read it."""
    first = netprobe("run", *TINY, "--record", "r", cwd=folder)
    inventory = folder / "inventory.yaml"
    inventory.write_text(inventory.read_text().replace("/no/such/program", "env"))
    second = netprobe("run", *TINY, "--resume", "r", "--record", "s", cwd=folder)
    again = netprobe("report", "s", "-o", "json", cwd=folder)
    whole = netprobe("run", *TINY, "--resume", "s", "--record", "s", cwd=folder)
    diff = netprobe("diff", "r", "s", cwd=folder)

    assert (first.returncode, second.returncode, whole.returncode) == (3, 0, 0)
    assert second.stdout.startswith("RESUMED: 46 pass of r (begun 20")
    assert json.loads(again.stdout)["summary"]["pass"] == 92
    assert [_count_flows(folder / name) for name in ("r", "s")] == [92, 92]
    assert diff.returncode == 0
    assert "0 newly blocked or exposed" in diff.stdout
    assert "46 unchanged; 46 probed by the later run only, 0 probed by" in diff.stdout


@pytest.mark.slow
def test_resume_with_other_settings(folder: Path) -> None:
    """A record of other settings is refused with both named."""
    netprobe("run", *HERE, "--record", "r", cwd=folder)
    done = netprobe("run", *HERE, "--set", f"web-port={WEB + 1}", "--resume", "r", cwd=folder)

    assert done.returncode == 2
    assert f"that run is of tiny (web-port={WEB}), this one is of tiny (web-port={WEB + 1})" in (
        done.stderr
    )


@pytest.mark.slow
def test_resume_from_json(folder: Path) -> None:
    """A JSON report is taken up as a record is: its passes are kept, at their place in the plan."""
    before = netprobe("run", *TINY, "--from", "here", "-o", "json=a.json", cwd=folder)
    report = (folder / "a.json").read_bytes()
    inventory = folder / "inventory.yaml"
    inventory.write_text(inventory.read_text().replace("/no/such/program", "env"))
    words = ("--resume", "a.json", "--record", "r", "-o", "text", "-o", "json=b.json")
    done = netprobe("run", *TINY, *words, cwd=folder)
    fresh = netprobe("run", *TINY, "-o", "json", cwd=folder)

    assert (before.returncode, done.returncode) == (0, 0), done.stderr
    assert done.stdout.startswith("RESUMED: 46 pass of a.json (begun 20")
    assert (folder / "a.json").read_bytes() == report
    assert (folder / "r").read_text().startswith('{"schema":"netprobe.record/1"')
    assert _flows(json.loads((folder / "b.json").read_text())) == _flows(json.loads(fresh.stdout))


def _flows(run: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What was probed, in the order of the report."""
    keys = ("requirement", "source", "destination", "port", "end_port", "verdict")
    return [tuple(result[key] for key in keys) for result in run["results"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--record", "r"), "r: the file exists; go on from it with --resume r, or choose another"),
        (("--resume", "a.json", "--record", "r"), "--record r: the file exists; go on from it"),
        (
            ("--resume", "a.json", "--record", "./a.json"),
            "--record ./a.json: that is the JSON report of --resume; choose another name",
        ),
    ],
)
def test_record_over_an_earlier_run(folder: Path, words: tuple[str, ...], problem: str) -> None:
    """What was measured is never overwritten without a word."""
    netprobe("run", *HERE, "--record", "r", "-o", "json=a.json", cwd=folder)
    before = [(folder / name).read_bytes() for name in ("r", "a.json")]
    done = netprobe("run", *HERE, *words, cwd=folder)

    assert done.returncode == 2
    assert problem in done.stderr
    assert [(folder / name).read_bytes() for name in ("r", "a.json")] == before


@pytest.mark.slow
def test_record_into_an_empty_file(folder: Path) -> None:
    """A file that mktemp made holds nothing to lose."""
    (folder / "r").touch()

    assert netprobe("run", *HERE, "--record", "r", cwd=folder).returncode == 0
    assert (folder / "r").stat().st_size > 0


@pytest.mark.slow
def test_report_gives_the_same_json(folder: Path) -> None:
    """JSON read and written again is the same document."""
    netprobe("run", *TINY, "-o", "json=a.json", cwd=folder)
    netprobe("report", "a.json", "-o", "json=b.json", cwd=folder)

    assert (folder / "a.json").read_text() == (folder / "b.json").read_text()


@pytest.mark.slow
def test_full_disk_costs_one_output_only(folder: Path) -> None:
    """A report that cannot be written is exit 4 and one line; the others come all the same."""
    done = netprobe("run", *HERE, "-o", "text=/dev/full", "-o", "json=ok.json", cwd=folder)

    assert done.returncode == 4
    assert "netprobe: cannot write text to /dev/full: No space left on device" in done.stderr
    assert json.loads((folder / "ok.json").read_text())["schema"] == "netprobe.run/1"


@pytest.mark.usefixtures("heeds_signals")
def test_interrupt(folder: Path) -> None:
    """The first Ctrl-C ends the run in order: partial report, whole record, exit 130."""
    inventory = folder / "inventory.yaml"
    inventory.write_text(inventory.read_text().replace("/no/such/program", "sh, -c, cat"))
    run = subprocess.Popen(
        [*COMMAND, "run", *TINY, "--record", "r"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_for_agents(run)
    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=PATIENCE_S)

    assert run.returncode == 130, stderr
    assert stdout.split(":")[0] in ("PARTIAL RUN", "NOTHING WAS TESTED")
    assert json.loads((folder / "r").read_text().splitlines()[-1])["end"]["interrupted"] is True


def _wait_for_agents(run: subprocess.Popen[str]) -> None:
    """Wait until the run starts its agents; one of them never says hello."""
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    while not children.read_text():
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"the run ended: {run.wait(timeout=0.02)}")


@pytest.mark.slow
def test_plan(folder: Path) -> None:
    """The plan lists every flow with its ports and purpose, and its totals; --count only those."""
    plan = netprobe("plan", *TINY, cwd=folder).stdout.splitlines()
    count = netprobe("plan", *TINY, "--count", cwd=folder).stdout
    read = json.loads(netprobe("plan", *TINY, "-o", "json", cwd=folder).stdout)

    assert plan[0].split() == [
        "SOURCE", "DESTINATION", "ADDRESS", "PROTOCOL", "PORTS", "REQUIREMENT", "PURPOSE",
    ]  # fmt: skip
    here = ["here", "here", "127.0.0.1", "tcp", f"{WEB},", f"{FIRST}-{LAST}", "web", "Web"]
    assert plan[1].split() == here
    assert plan[-1] == count.strip()
    assert count.startswith("92 flows, about ")
    assert read["totals"]["flows"] == 92
    assert [flow["ports"] for flow in read["flows"][:2]] == [[[WEB, WEB], [FIRST, LAST]]] * 2


def test_environment_sets_options(folder: Path) -> None:
    """Every option has a variable; the command line wins over it."""
    variables = {"NETPROBE_MATRIX": "./tiny.yaml", "NETPROBE_PROTOCOL": "udp"}

    assert netprobe("plan", "--count", cwd=folder, **variables).stdout.startswith("4 flows")
    done = netprobe("plan", "--count", "--protocol", "tcp", cwd=folder, **variables)
    assert done.stdout.startswith("88 flows")


def test_a_slip_in_an_option_is_offered_no_hidden_one(folder: Path) -> None:
    """Only what the help shows is worth a try."""
    done = netprobe("run", "--bogus", cwd=folder)

    assert done.returncode == 2
    assert "No such option '--bogus'" in done.stderr
    assert "--jobs" not in done.stderr
    assert "'--matrix'" in netprobe("run", "--matrx", cwd=folder).stderr


def test_check(folder: Path) -> None:
    """Good files are named with what is in them; bad ones are exit 2."""
    good = netprobe("check", "tiny.yaml", "inventory.yaml", cwd=folder)
    (folder / "tiny.yaml").write_text("schema: netprobe.matrix/1\nrequirement: []\n")
    bad = netprobe("check", "tiny.yaml", "inventory.yaml", cwd=folder)

    assert (good.returncode, bad.returncode) == (0, 2)
    assert "tiny.yaml: matrix tiny, 2 requirements" in good.stdout
    assert "tiny.yaml:2:" in bad.stderr


@pytest.mark.slow
def test_check_hosts(folder: Path) -> None:
    """Each host's agent is started and stopped; one that cannot be is told with its words."""
    done = netprobe("check", "--hosts", *TINY, cwd=folder)
    hosts = json.loads(netprobe("check", "--hosts", *TINY, "-o", "json", cwd=folder).stdout)

    assert done.returncode == 3
    assert "gone: /no/such/program cannot be run here: No such file or directory" in done.stdout
    assert {one["name"]: one["state"] for one in hosts["hosts"]} == {
        "here": "agent",
        "gone": "failed",
    }
    assert {one["name"]: one["addresses"] for one in hosts["hosts"]} == {
        "here": ["127.0.0.1"],
        "gone": ["127.0.0.9"],
    }


@pytest.mark.needs("other users", "sudo", "runuser")
def test_check_hosts_without_the_sudo_asked_for(folder: Path) -> None:
    """An agent that runs, but not as the inventory says, is no success."""
    inventory = folder / "inventory.yaml"
    text = inventory.read_text().replace("/no/such/program", "runuser, -u, nobody, --")
    inventory.write_text(text.replace("gone: {", "gone: {become: sudo, "))
    done = netprobe("check", "--hosts", *TINY, cwd=folder)

    assert done.returncode == 3, done.stderr
    assert "\ngone: sudo failed (" in done.stdout
    assert "2 hosts: 2 with an agent (1 of them limited: sudo failed), 0 without" in done.stdout


def test_check_hosts_keeps_to_the_limit(folder: Path) -> None:
    """Nobody logs in to the peers of a host that was asked for alone."""
    words = ("--limit", "here", "-o", "json")
    done = netprobe("check", "--hosts", *TINY, *words, cwd=folder)

    assert done.returncode == 0, done.stderr
    assert [one["name"] for one in json.loads(done.stdout)["hosts"]] == ["here"]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("plan", "--count"), ("check", "--hosts", "--limit", "here")])
def test_notes_are_told(folder: Path, words: tuple[str, ...]) -> None:
    """A misspelt setting is said where standard output holds something else."""
    inventory = folder / "inventory.yaml"
    inventory.write_text(inventory.read_text() + "settings: {web-prot: 1}\n")
    done = netprobe(*words, *TINY, cwd=folder)

    assert done.returncode == 0
    assert "netprobe: note: " in done.stderr
    assert "web-prot" in done.stderr
    assert "web-prot" not in done.stdout


@pytest.mark.slow
def test_init_plans_as_it_is(tmp_path: Path) -> None:
    """The inventory that init prints can be planned at once; test_starter.py tries all."""
    for name in ("deckhouse-nodes", "kubeadm", "openshift-ipi", "talos"):
        done = netprobe("init", "-m", name, cwd=tmp_path)
        (tmp_path / "inventory.yaml").write_text(done.stdout)
        plan = netprobe("plan", "-m", name, "--count", cwd=tmp_path)

        assert (done.returncode, plan.returncode) == (0, 0), plan.stderr


def test_shown_yaml_loads_again(tmp_path: Path) -> None:
    """``matrix show -o yaml`` gives a file that loads as the very same matrix."""
    netprobe("matrix", "show", "openshift-ipi", "-o", f"yaml={tmp_path}/ipi.yaml", cwd=tmp_path)
    assert load_matrices([f"{tmp_path}/ipi.yaml"]) == load_matrices(["openshift-ipi"])

    for matrix in load_matrices(bundled_names()):
        with (tmp_path / "shown.yaml").open("w") as stream:
            write_matrix_yaml(choose_settings(matrix, {}), stream)
        assert load_matrices([f"{tmp_path}/shown.yaml"]) == (matrix,)


def test_matrix_source(folder: Path) -> None:
    """The files of a document, each with its repository, its commit and the hash of its tables."""
    known = netprobe("matrix", "source", "rke2", cwd=folder)
    noted = netprobe("matrix", "source", "deckhouse-nodes", cwd=folder)
    own = netprobe("matrix", "source", "./tiny.yaml", cwd=folder)
    (source,) = load_matrices(["rke2"])[0].sources

    assert (known.returncode, noted.returncode, own.returncode) == (0, 0, 0)
    assert f"{source.path} in {source.repository}" in known.stdout
    assert source.commit in known.stdout
    assert f"sha256 {source.hash}" in known.stdout
    assert "is known as a page only" in " ".join(noted.stdout.split())
    assert "no file of a repository is named" in own.stdout


def test_shown_settings(folder: Path) -> None:
    """With --set the shown matrix has these values, and says what then does not apply."""
    yaml = netprobe(
        "matrix", "show", "./tiny.yaml", "--set", "web-port=81", "-o", "yaml", cwd=folder
    )
    text = netprobe("matrix", "show", "deckhouse-nodes", "--set", "modules=metallb", cwd=folder)
    json_ = netprobe("matrix", "show", "./tiny.yaml", "-o", "json", cwd=folder)

    assert "default: 81" in yaml.stdout
    assert "(not with these settings: setting modules lacks" in text.stdout
    assert json.loads(json_.stdout)["name"] == "tiny"


def test_matrix_list(tmp_path: Path) -> None:
    """Every bundled matrix is listed with its title."""
    done = netprobe("matrix", "list", cwd=tmp_path)

    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert sorted(listed) == list(bundled_names())
    assert done.stdout.startswith("platforms:\n")


@pytest.mark.parametrize("kind", ["matrix", "inventory"])
def test_schema(kind: str, tmp_path: Path) -> None:
    """The JSON Schema that editors use is printed."""
    printed = json.loads(netprobe("schema", kind, cwd=tmp_path).stdout)

    assert printed["$schema"].startswith("https://json-schema.org/")


def test_sample(folder: Path) -> None:
    """A sample is called one, and counts as the plan."""
    words = ("--only", "web", "--from", "here", "--to", "here", "--sample", "2")
    done = netprobe("run", *TINY, *words, "-o", "json", cwd=folder)
    run = json.loads(done.stdout)

    assert done.returncode == 0
    assert run["sample"].startswith("1 of 1 pairs and 3 of 22 flows (2 peers of each host")
    assert run["planned_flows"] == run["summary"]["pass"] == 3


def test_too_many_results(folder: Path) -> None:
    """A plan over the limit is refused before anything is probed or written."""
    done = netprobe("run", *TINY, "--max-results", "3", "--record", "r", cwd=folder)

    assert done.returncode == 2
    assert done.stderr.startswith("netprobe: the plan has 12 results, more than 3: choose\n")
    assert "netprobe:   --cover zones: " in done.stderr
    assert not (folder / "r").exists()
