"""Workers that resolve the server's name differently are told so."""

from __future__ import annotations

from netprobe.konnectivity.combining import compare_names
from netprobe.model.konnectivity import Diagnosis, ResolvedName, TunnelOutcome

HOST = "k.example.com"


def worker(name: str, *addresses: str, outcome: TunnelOutcome = "ok") -> Diagnosis:
    """A worker that got these addresses."""
    return Diagnosis(
        worker=name,
        code="TCP_REFUSED",
        outcome=outcome,
        kind="none",
        stage=None,
        title="",
        because="",
        remedy="start it",
        resolved=ResolvedName(HOST, addresses),
    )


def warned(*workers: Diagnosis) -> dict[str, str]:
    """The workers that are warned, with the words."""
    return {one.worker: one.warnings[0] for one in compare_names(HOST, workers) if one.warnings}


def test_the_one_that_differs_is_told() -> None:
    """Its own addresses, those of the others, and how many they are."""
    found = warned(worker("a", "10.0.0.1"), worker("b", "10.0.0.1"), worker("c", "10.0.0.9"))
    assert found == {"c": f"{HOST} is 10.0.0.9 here, and 10.0.0.1 for 2 other workers"}


def test_a_name_that_one_worker_does_not_find() -> None:
    """No address at all differs too."""
    found = warned(worker("a", "10.0.0.1"), worker("b", outcome="fault"))
    assert found == {"b": f"{HOST} is not found here, and 10.0.0.1 for 1 other worker"}


def test_of_two_nobody_knows_who_is_wrong() -> None:
    """Both are told."""
    assert set(warned(worker("a", "10.0.0.1"), worker("b", "10.0.0.9"))) == {"a", "b"}


def test_a_part_of_a_pool_is_no_difference() -> None:
    """Answers with an address in common are one service."""
    assert not warned(
        worker("a", "10.0.0.1", "10.0.0.2"), worker("b", "10.0.0.2", "10.0.0.3"), worker("c")
    ).keys() & {"a", "b"}


def test_the_remedy_of_a_fault_begins_with_the_name() -> None:
    """What is refused at a wrong address needs no server to be started."""
    right, wrong = worker("a", "10.0.0.1"), worker("b", "10.0.0.9", outcome="fault")
    found = compare_names(HOST, (right, right, wrong))[2]
    assert found.remedy.startswith(f"correct the name first ({HOST} is 10.0.0.9 here")
    assert found.remedy.endswith("then start it")
    assert compare_names(HOST, (right, right, right))[2].remedy == "start it"
