"""The pages of the site: ``python -m pages.site FOLDER`` writes them, with mkdocs' settings.

The site is the project's own pages in the order in which people need them, and a page with the help
of every command. Links that leave these become words, since the site is read without the rest: so
do those to decisions, which are a record for whoever changes netprobe.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml
from click.testing import CliRunner

from netprobe.cli.main import cli

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# The first heading of a page is its title, where none stands here.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Start": ("index.md", "first-day.md", "install.md"),
    "How to": (
        "running.md",
        "fix-ask-retest.md",
        "explain.md",
        "rehearsal.md",
        "reach.md",
        "cluster.md",
        "ci.md",
        "history.md",
        "watch.md",
        "konnectivity.md",
        "dns-and-time.md",
        "services.md",
        "http-services.md",
        "hcp-proxies.md",
        "manifests.md",
        "subnets.md",
        "port-audit.md",
        "compose.md",
    ),
    "Reference": (
        "commands.md",
        "inventory-format.md",
        "matrices.md",
        "matrix-format.md",
        "write-a-matrix.md",
        "accepted-format.md",
        "verdicts.md",
        "konnectivity-verdicts.md",
        "result-json.md",
        "page.md",
        "changelog.md",
    ),
    "Why it says so": (
        "design.md",
        "checks.md",
        "network-facts.md",
        "accuracy.md",
        "performance.md",
        "security.md",
        "pipeline.md",
        "release.md",
        "wire.md",
    ),
}
# Pages of the project's own folder, by their names in the site.
OUTER = {"index.md": "README.md", "changelog.md": "CHANGELOG.md"}
PICTURES = tuple(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.png"))
# Outputs have 120 columns: they fit into a window of 1280 pixels, and are text, not comments. Names
# in a table are broken in the last column alone, on a small screen in none: there it scrolls.
STYLE = "assets/site.css"
STYLES = """\
.md-grid { max-width: 76rem; }
.md-typeset pre > code { font-size: .62rem; }
.highlight .go { color: inherit; }
td:not(:last-child) > code { white-space: nowrap; }
@media (max-width: 60em) { td code { white-space: nowrap; } }
"""
# iframe-worker 1.0.4 (MIT), where the site finds it.
SHIM = "assets/iframe-worker.js"
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def site_pages() -> dict[str, str]:
    """The text of each page by its path in the site."""
    pages = {path.name: path.read_text("utf-8") for path in DOCS.glob("*.md")}
    pages |= {name: (ROOT / file).read_text("utf-8") for name, file in OUTER.items()}
    placed = {name: _place_links(name, text, pages) for name, text in pages.items()}
    return placed | {"commands.md": commands_page()}


def settings() -> dict[str, Any]:
    """What mkdocs is to do: no font and no script comes from a network."""
    return {
        "site_name": "netprobe",
        "docs_dir": "pages",
        "site_dir": "site",
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.tabs", "navigation.top", "content.code.copy", "toc.integrate"],
            "palette": [
                {"media": f"(prefers-color-scheme: {scheme})", "scheme": name, "primary": "indigo"}
                for scheme, name in (("light", "default"), ("dark", "slate"))
            ],
        },
        "plugins": ["search", "offline"],
        # Browsers start no worker from a file; the search is one.
        "extra": {"polyfills": [SHIM]},
        "extra_css": [STYLE],
        "markdown_extensions": ["tables", "pymdownx.superfences", {"toc": {"permalink": True}}],
        "validation": {"anchors": "warn", "unrecognized_links": "warn"},
        "nav": [{title: list(pages)} for title, pages in SECTIONS.items()],
    }


def commands_page() -> str:
    """The help of every command, with all its options."""
    return "# Every command\n\n" + "".join(_describe_commands(cli, []))


def _describe_commands(command: click.Command, words: list[str]) -> Iterator[str]:
    wanted = "--help" if isinstance(command, click.Group) else "--help-all"
    text = CliRunner().invoke(cli, [*words, wanted], prog_name="netprobe").output
    yield f"## {' '.join(['netprobe', *words])}\n\n```\n{text}```\n\n"
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            if not inner.hidden:
                yield from _describe_commands(inner, [*words, name])


def _place_links(name: str, text: str, pages: dict[str, str]) -> str:
    """Make links to other pages links of the site, and other files' links their names."""
    folder = (ROOT / OUTER[name]).parent if name in OUTER else (DOCS / name).parent
    names = {(DOCS / page).resolve(): page for page in [*pages, *PICTURES]}
    names |= {ROOT / file: page for page, file in OUTER.items()}

    def place(match: re.Match[str]) -> str:
        words, target = match.groups()
        file, hash_mark, anchor = target.partition("#")
        if "://" in target or not file:
            return match[0]
        path = (folder / file).resolve()
        if path in names:
            steps = "../" * name.count("/")
            return f"[{words}]({steps}{names[path]}{hash_mark}{anchor})"
        return f"{words} (`{path.relative_to(ROOT)}`)"

    return LINK.sub(place, text)


def write_site(folder: Path) -> None:
    """Write the pages and the settings into a folder."""
    for name, text in site_pages().items():
        path = folder / "pages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in PICTURES:
        shutil.copyfile(DOCS / name, folder / "pages" / name)
    (folder / "pages" / SHIM).parent.mkdir(exist_ok=True)
    shutil.copyfile(Path(__file__).with_name("iframe-worker") / "shim.js", folder / "pages" / SHIM)
    (folder / "pages" / STYLE).write_text(STYLES, "utf-8")
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings(), sort_keys=False), "utf-8")


if __name__ == "__main__":
    write_site(Path(sys.argv[1]))
