"""The verbs that only read or print files: ``init``, ``check``, ``matrix``, ``schema``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import click

from netprobe.cli.asked import CheckOptions, ShowOptions, SourceOptions
from netprobe.cli.given import read_days, read_outputs
from netprobe.cli.options import MATRIX_FORMATS, require_matrix
from netprobe.cli.streams import tell
from netprobe.errors import NetprobeError, RequestError
from netprobe.load.matrix.bundled import MatrixTitle, bundled_titles
from netprobe.model.printable import clean, word_note


def matrix_list_verb() -> int:
    """Print names and titles; this must be quick, so nothing heavy is imported."""
    for line in list_titles(bundled_titles()):
        click.echo(line)
    return 0


def list_titles(titles: Mapping[str, MatrixTitle]) -> Iterator[str]:
    """Give the lines: first the platforms, then the layers."""
    width = max(map(len, titles), default=0)
    for layer, heading in ((False, "platforms:"), (True, "layers, each beside a platform:")):
        some = {name: one.title for name, one in titles.items() if one.layer == layer}
        if some:
            yield heading
        for name, title in some.items():
            yield f"  {name:<{width}}  {title}".rstrip()


def matrix_show_verb(options: ShowOptions) -> int:
    """Print one matrix with these settings."""
    from netprobe.load.matrix.chosen_settings import choose
    from netprobe.load.matrix.file import load_matrices
    from netprobe.model.inventory import Inventory
    from netprobe.plan.conditions import why_not
    from netprobe.report.outputs import write_outputs
    from netprobe.report.verbs.matrix import (
        write_matrix_json,
        write_matrix_text,
        write_matrix_yaml,
    )

    wanted = read_outputs(options.outputs, MATRIX_FORMATS, options)
    (chosen,), notes = choose(load_matrices([options.name]), Inventory(()), options.sets)
    writers = {
        "text": partial(write_matrix_text, chosen, lambda item: why_not(item, chosen)),
        "json": partial(write_matrix_json, chosen),
        "yaml": partial(write_matrix_yaml, chosen),
    }
    problems = write_outputs(wanted, writers)
    for note in notes:
        tell(f"netprobe: {note}")
    if problems:
        raise NetprobeError("\n".join(problems))
    return 0


def matrix_source_verb(options: SourceOptions) -> int:
    """Print where the rows of one matrix come from."""
    from netprobe.load.matrix.file import load_matrices
    from netprobe.report.outputs import write_outputs
    from netprobe.report.verbs.matrix_source import write_matrix_source

    (matrix,) = load_matrices([options.name])
    problems = write_outputs(
        read_outputs((), ("text",), options), {"text": partial(write_matrix_source, matrix)}
    )
    if problems:
        raise NetprobeError("\n".join(problems))
    return 0


def init_verb(matrices: Sequence[str]) -> int:
    """Print an inventory to start from."""
    from netprobe.load.matrix.file import load_matrices
    from netprobe.load.starter import starter_inventory

    require_matrix(matrices)
    click.echo(starter_inventory(load_matrices(matrices)), nl=False)
    return 0


def schema_verb(kind: str) -> int:
    """Print a JSON Schema."""
    if kind == "run":
        from netprobe.report.run.schema import run_schema_text

        text = run_schema_text()
    elif kind == "audit":
        from netprobe.report.verbs.audit import audit_schema_text

        text = audit_schema_text()
    elif kind == "history":
        from netprobe.report.verbs.history_schema import history_schema_text

        text = history_schema_text()
    else:
        from netprobe.load.schema import schema_text

        text = schema_text(kind)
    click.echo(text, nl=False)
    return 0


def check_registry_verb(options: CheckOptions) -> int:
    """Check matrices as registries of ports. Raises FileErrors with every mistake of all."""
    from netprobe.audit.lint import lint_registry
    from netprobe.errors import FileErrors
    from netprobe.load.matrix.file import load_matrices

    matrices = (*options.matrices, *options.files)
    require_matrix(matrices)
    lints = [lint_registry(one) for one in load_matrices(matrices)]
    for note in (note for lint in lints for note in lint.notes):
        click.echo(clean(note))
    problems = [problem for lint in lints for problem in lint.problems]
    if problems:
        raise FileErrors(problems)
    return 0


def check_files_verb(options: CheckOptions) -> int:
    """Check files, all problems at once; matrices and inventories together as a run would."""
    from netprobe.load.check import (
        GivenBeside,
        check_accepted_names,
        check_files,
        is_manifest,
        list_inventories,
    )
    from netprobe.load.inventory.discover import NO_INVENTORY, find_inventories
    from netprobe.load.manifest.manifests import GivenManifests
    from netprobe.load.request import load_request

    matrices, inventories = options.matrices, options.inventories
    found = tuple(filter(is_manifest, options.files))
    files = tuple(path for path in options.files if path not in found)
    manifests = GivenManifests((*options.manifests, *found), options.networks)
    if not options.files:
        inventories = inventories or find_inventories()
    paths = (*files, *matrices, *inventories, *options.accepted)
    if not paths and not manifests.files:
        raise RequestError(f"nothing to check: give FILES; or for an inventory {NO_INVENTORY}")
    sets, roles = options.sets, options.roles
    beside = GivenBeside(manifests, matrices, sets) if manifests else None
    lines = check_files(paths, read_days(options.max_acceptance), beside).splitlines()
    inventories = inventories or list_inventories(files)
    if matrices and inventories:
        request = load_request(matrices, inventories, sets, roles, manifests=manifests)
        chosen, inventory, notes = request
        check_accepted_names((*files, *options.accepted), chosen, inventory)
        told = {line.strip() for line in lines}
        lines += [line for line in map(word_note, notes) if line not in told]
    for line in lines:
        click.echo(clean(line))
    return 0
