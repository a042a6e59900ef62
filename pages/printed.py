"""Parts of pages that are printed from code: what stands between ``printed: NAME`` and ``end``.

``python -m pages.printed`` prints how much of each page is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pages import keys, matrices, rules, tables

ROOT = Path(__file__).parents[1]
# Pages that are printed as a whole say so in their third line.
WHOLE = "<!-- Printed from "
PART = re.compile(r"(<!-- printed: ([a-z -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
# Commands whose output a test compares with the page.
CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```)", re.DOTALL | re.MULTILINE)
# Numbers of programs that measure for an hour.
MEASURED = re.compile(r"(<!-- measured by [^>]+ -->\n).*?(<!-- end -->)", re.DOTALL)
PARTS: Mapping[str, Callable[[], str]] = {
    "list of matrices": matrices.print_list,
    "platforms": matrices.print_platforms,
    "matrices": matrices.print_sections,
    "names in settings": matrices.print_names_in_settings,
    "keys of a matrix": keys.print_matrix_keys,
    "keys of a requirement": keys.print_requirement_keys,
    "keys of parts": keys.print_parts_of_a_matrix,
    "keys of a setting": keys.print_setting_keys,
    "keys of http": keys.print_http_keys,
    "common words": keys.print_common_words,
    "keys of an inventory": keys.print_inventory_keys,
    "keys of a host": keys.print_host_keys,
    "keys of an acceptance": keys.print_acceptance_keys,
    "keys of a run": keys.print_run_keys,
    "keys of a result": keys.print_result_keys,
    "keys of a finding": keys.print_finding_keys,
    "keys of the overview": keys.print_overview_keys,
    "rules of the audit": rules.print_audit_rules,
    "troubles with names": rules.print_name_rows,
    "checks": rules.print_checks,
    "packages": rules.print_packages,
    "keys of an engine": tables.print_engine_keys,
    "live services": tables.print_services,
    "kinds of manifests": tables.print_manifest_kinds,
    "facts of tunnels": tables.print_facts_of_tunnels,
    "signs of answers": tables.print_signs,
    "demo": tables.print_demo,
    "kinds of pods": tables.print_pod_kinds,
    "refusals": tables.print_refusals,
    "manifest": tables.print_manifest,
    "rules of subnets": tables.print_subnet_rules,
    "stages": tables.print_stages,
    "syntaxes": rules.print_syntaxes,
}
# Bytes that all pages written by hand may have together.
LIMIT = 250 * 1024


def list_pages() -> list[Path]:
    """The pages for people. A changelog and decisions are a record, and stay as they are."""
    outer = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*outer, *sorted((ROOT / "docs").glob("*.md"))]


def print_parts(text: str) -> str:
    """The page with all of its printed parts made new."""
    return PART.sub(lambda match: f"{match[1]}{PARTS[match[2]]()}\n{match[3]}", text)


def count_by_hand(text: str) -> int:
    """How many bytes of a page are printed by no program."""
    if WHOLE in text[:200]:
        return 0
    return len(CONSOLE.sub("", MEASURED.sub(r"\1\2", PART.sub(r"\1\3", text))).encode())


def list_sizes() -> Iterator[tuple[str, int, int]]:
    """Each page with its bytes by hand and its printed bytes."""
    for path in list_pages():
        text = path.read_text(encoding="utf-8")
        by_hand = count_by_hand(text)
        yield str(path.relative_to(ROOT)), by_hand, len(text.encode()) - by_hand


def print_sizes() -> str:
    """The table of sizes, largest first, and what all of them have."""
    sizes = sorted(list_sizes(), key=lambda one: -one[1])
    total = ("all", sum(one[1] for one in sizes), sum(one[2] for one in sizes))
    lines = [f"{name:31} {by_hand:>9,} {printed:>9,}" for name, by_hand, printed in [*sizes, total]]
    head = f"{'page':31} {'by hand':>9} {'printed':>9}"
    return "\n".join([head, *lines, f"{LIMIT:,} bytes by hand at most"]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(print_sizes())
