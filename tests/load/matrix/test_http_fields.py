"""Paths that are never asked for, however they are written, and texts that stand as they are."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from netprobe.load.matrix.fields import Pattern, http_path
from netprobe.protocols.services.http_probe import occurs


@pytest.mark.parametrize(
    "path",
    [
        "/config/worker",
        "/config%2Fworker",
        "/config%2fworker",
        "//config/worker",
        "/config//worker/",
        "/config/x/worker",
        "/%63onfig/worker?x=y",
        "/ignition",
        "/ignition/",
        "/%69gnition",
        "/%2569gnition",
        "/x/../ignition",
        "/x/%2e%2E/./ignition?token",
        "/ignition/.",
        "/../ignition",
        "/readyz?verbose",
        "/readyz/?verbose=1",
        "/readyz/etcd?verbose",
        "/readyz?x=y&verbose",
        "/livez?%76erbose",
        "//healthz%3Fverbose",
    ],
)
def test_what_must_not_be_asked_for(path: str) -> None:
    """Servers decode and clean what they are asked for; the error names the text of the file."""
    with pytest.raises(ValueError, match="must not be asked for") as caught:
        http_path(path)

    assert path in str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//",
        "/config",
        "/config.json",
        "/x/config/worker",
        "/ignition.html",
        "/ignitions",
        "/ignition/../x",
        "/readyz",
        "/readyz?x=verbose",
        "/api/health?verbose",
        "/a%20b/",
        "/%",
        "/%zz%ff",
    ],
)
def test_other_paths_stay_as_they_are(path: str) -> None:
    """What is sent is what stands in the file."""
    assert http_path(path) == path


def test_a_text_is_a_regular_expression_too() -> None:
    """As it stands or as an expression it may occur; what is no expression is refused."""
    adapter: TypeAdapter[str] = TypeAdapter(Pattern)
    with pytest.raises(ValidationError, match="no regular expression"):
        adapter.validate_python("[")

    assert occurs(adapter.validate_python(r"\["), "a [b]")
    assert occurs(adapter.validate_python("[b]"), "a [b]")
