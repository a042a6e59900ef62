"""What several workers have in common, and how a report says it."""

from __future__ import annotations

import io
import json

from netprobe.konnectivity.combining import causes
from netprobe.model.konnectivity import STAGES, Diagnosis, TunnelReport
from netprobe.model.story import Step
from netprobe.report.verbs.konnectivity import (
    KONNECTIVITY_WRITERS,
    write_konnectivity_json,
)


def diagnosis(worker: str, code: str = "KONN_REACHED_MTLS", title: str = "fine") -> Diagnosis:
    """A worker's verdict; its stages fail at TLS where it is not fine."""
    good = code.startswith("KONN")
    stages = tuple(
        Step(name, "ok" if good or name != "tls-small" else "bad", (f"{name} said",))
        for name in STAGES
    )
    return Diagnosis(
        worker=worker,
        code=code,
        outcome="ok" if good else "fault",
        kind="none" if good else "mtu",
        stage=None if good else "tls-small",
        title=title,
        because=f"as {worker} saw it",
        remedy="do this",
        stages=stages,
    )


def report(*diagnoses: Diagnosis) -> TunnelReport:
    """A run with these verdicts."""
    return TunnelReport(
        server="k.example.com",
        port=443,
        publishing="route",
        flavour=None,
        hostname="k.example.com",
        started_at="2026-11-20T10:00:00Z",
        elapsed_s=1.0,
        diagnoses=diagnoses,
        causes=causes(diagnoses),
    )


def text(*diagnoses: Diagnosis, form: str = "text") -> str:
    """The page as a pipe gets it."""
    stream = io.StringIO()
    KONNECTIVITY_WRITERS[form](report(*diagnoses), stream)
    return stream.getvalue()


def test_workers_with_one_title_are_one_cause() -> None:
    """The same code for two addresses is two causes; the most widespread is first."""
    found = causes(
        [
            diagnosis("a", "PMTU_BLACKHOLE_OUT", "towards x"),
            diagnosis("b", "PMTU_BLACKHOLE_OUT", "towards y"),
            diagnosis("c"),
            diagnosis("d", "PMTU_BLACKHOLE_OUT", "towards y"),
        ]
    )
    assert [(one.title, one.workers, one.total) for one in found] == [
        ("towards y", ("b", "d"), 4),
        ("towards x", ("a",), 4),
    ]


def test_the_table_has_a_row_for_every_worker() -> None:
    """Workers side by side; what failed stands out."""
    page = text(diagnosis("w1"), diagnosis("w2", "TCP_FILTERED", "dropped"))
    assert "1. 1 of 2 workers: dropped (TCP_FILTERED)" in page
    rows = {line.split()[0]: line.split() for line in page.splitlines() if line[:1] == "w"}
    assert rows["w1"][1:-1] == ["ok"] * len(STAGES)
    assert rows["w2"].count("FAIL") == 1
    assert page.rstrip().endswith("2 workers: 1 ok, 1 with a fault")


def test_one_worker_gets_every_stage_with_its_sentence() -> None:
    """Alone there is room for all that was seen."""
    page = text(diagnosis("w1", "TCP_FILTERED", "dropped"))
    assert "FAULT TCP_FILTERED: dropped" in page
    for name in STAGES:
        assert f"{name} said" in page


def test_what_a_server_said_cannot_move_the_cursor() -> None:
    """Control characters of a certificate or a page never reach the terminal."""
    evil = diagnosis("w1", "TCP_FILTERED", "a\x1b[2Jb\nFAULT c")
    assert "\x1b" not in text(evil)
    assert "\nFAULT c" not in text(evil)


def test_markdown_has_the_causes_as_headings_and_the_table_in_columns() -> None:
    """For tickets: each cause with its fields, then the table as it stands in the text."""
    some = (diagnosis("w1"), diagnosis("w2", "TCP_FILTERED", "dropped <b>"))
    page = text(*some, form="markdown")

    assert page.startswith("# Konnectivity tunnel to ")
    assert "\n## 1. 1 of 2 workers: dropped &lt;b&gt; (TCP\\_FILTERED)\n" in page
    assert "\n- **to do**: do this\n" in page
    table = page.partition("```text\n")[2].partition("```")[0].splitlines()
    assert table == [line for line in text(*some).splitlines() if line[:1] == "w"]
    assert page.rstrip().endswith("2 workers: 1 ok, 1 with a fault")


def test_markdown_of_one_worker_has_every_stage() -> None:
    """Alone its verdict is the heading, and each stage has its line."""
    page = text(diagnosis("w1", "TCP_FILTERED", "dropped"), form="markdown")

    assert "\n## FAULT TCP\\_FILTERED: dropped\n" in page
    assert page.partition("```text\n")[2].count(" said\n") == len(STAGES)


def test_json_has_its_schema_and_every_stage() -> None:
    """For programs: keys in a fixed order, all workers, all stages."""
    stream = io.StringIO()
    write_konnectivity_json(report(diagnosis("w1")), stream)
    document = json.loads(stream.getvalue())
    assert document["schema"] == "netprobe.konnectivity/1"
    (worker,) = document["workers"]
    assert [stage["name"] for stage in worker["stages"]] == list(STAGES)
    assert worker["first_failing_stage"] is None
