"""Tables of the keys of files that people write, printed from the models that read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from netprobe.load.accepted import AcceptanceFile
from netprobe.load.inventory.models import HostFile, InventoryFile
from netprobe.load.matrix.models import (
    DocumentedPortsFile,
    DocumentFile,
    MatrixFile,
    RequirementFile,
    RoleFile,
    SettingFile,
    SourceFile,
)
from netprobe.load.matrix.probe_models import HttpFile, Probe
from netprobe.load.yaml.validation import FileModel
from netprobe.model.matrix import COMMON_WORDS
from netprobe.report.run.key_words import FINDING_KEYS, OVERVIEW_KEYS, RESULT_KEYS, RUN_KEYS


def print_keys(model: type[FileModel], title: str = "key") -> str:
    """A line for each key of a model, with what its schema says of it."""
    lines = [f"| {title} | meaning |", "|---|---|"]
    # A model's own keys stand before those of the model that it adds to.
    inherited = model.model_fields.keys() - model.__annotations__.keys()
    for name, field in sorted(model.model_fields.items(), key=lambda one: one[0] in inherited):
        required = " Required." if field.is_required() else ""
        words = (field.description or "").replace("|", "\\|")
        lines.append(f"| `{field.alias or name}` | {words}{required} |")
    return "\n".join(lines)


def print_matrix_keys() -> str:
    """The keys of a matrix file."""
    return print_keys(MatrixFile)


def print_requirement_keys() -> str:
    """The keys of a requirement, and the names that ``probe`` knows."""
    probes = ", ".join(f"`{name}`" for name in get_args(Probe))
    return f"{print_keys(RequirementFile)}\n\nNames for `probe`: {probes}."


def print_parts_of_a_matrix() -> str:
    """The keys of what stands in a matrix file beside requirements."""
    models: dict[str, type[FileModel]] = {
        "roles": RoleFile,
        "document": DocumentFile,
        "document.sources": SourceFile,
        "ranges, retired": DocumentedPortsFile,
    }
    return "\n\n".join(print_keys(model, f"key of `{key}`") for key, model in models.items())


def print_setting_keys() -> str:
    """The keys of a setting."""
    return print_keys(SettingFile)


def print_http_keys() -> str:
    """The keys of a request of one's own."""
    return print_keys(HttpFile, "key of `http`")


def print_inventory_keys() -> str:
    """The keys of an inventory."""
    return print_keys(InventoryFile)


def print_host_keys() -> str:
    """The keys of a host in an inventory."""
    return print_keys(HostFile)


def print_acceptance_keys() -> str:
    """The keys of an entry of a file of accepted flows."""
    return print_keys(AcceptanceFile)


def print_common_words() -> str:
    """What inventories of many tools call each part of a platform."""
    lines: Iterable[str] = (
        f"| `{part}` | {', '.join(words)} |" for part, words in COMMON_WORDS.items()
    )
    return "\n".join(["| `common` | words (`_` is `-`) |", "|---|---|", *lines])


def print_words(words: Mapping[str, str]) -> str:
    """A line for each key of what a run leaves."""
    lines = (f"| `{key}` | {text} |" for key, text in words.items())
    return "\n".join(["| key | what it is |", "|---|---|", *lines])


def print_run_keys() -> str:
    """The keys of a run."""
    return print_words(RUN_KEYS)


def print_result_keys() -> str:
    """The keys of a result."""
    return print_words(RESULT_KEYS)


def print_finding_keys() -> str:
    """The keys of a finding."""
    return print_words(FINDING_KEYS)


def print_overview_keys() -> str:
    """The keys of the summary for people."""
    return print_words(OVERVIEW_KEYS)
