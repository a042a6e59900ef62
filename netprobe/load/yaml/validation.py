"""pydantic's errors in our own sentences, each at its place in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from netprobe.errors import Problem
from netprobe.load.yaml.document import Document, Path, PathStep
from netprobe.load.yaml.wording import instead_of, listed, quoted, what_it_is


class FileModel(BaseModel):
    """A mapping in a file that people write: no coercion, no unknown keys, keys by their alias."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


Model = TypeVar("Model", bound=FileModel)


def refuse(text: str) -> PydanticCustomError:
    """The error that a validator of ours raises; its text is the sentence that the user reads."""
    return PydanticCustomError("netprobe", "{text}", {"text": text})


def validate(
    model: type[Model], document: Document, problems: list[Problem], path: Path = ()
) -> Model | None:
    """The part of the document at ``path`` as a model; what does not fit goes to ``problems``."""
    try:
        return model.model_validate(document.get(path))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            problems.append(_problem(document, model, tuple(path), detail))
        return None


def _problem(
    document: Document, model: type[FileModel], path: tuple[PathStep, ...], detail: ErrorDetails
) -> Problem:
    inner = tuple(detail["loc"])
    if inner and inner[-1] == "[key]":
        return document.at_key((*path, *inner[:-1]), _sentence(detail))
    where = (*path, *inner)
    if detail["type"] == "missing":
        return document.at_key(where[:-1], _missing(model, inner))
    if detail["type"] == "extra_forbidden":
        name = str(inner[-1])
        known = _keys(_model_at(model, inner[:-1]))
        return document.at_key(where, f"unknown key {quoted(name)}, {instead_of(name, known)}")
    return document.at(where, _sentence(detail))


def _missing(model: type[FileModel], inner: tuple[PathStep, ...]) -> str:
    name = str(inner[-1])
    owner = _model_at(model, inner[:-1])
    fields = owner.model_fields.values()
    field = next(field for key, field in zip(_keys(owner), fields, strict=True) if key == name)
    return f"the key {quoted(name)} is missing, expected {_as_phrase(field.description or name)}"


def _as_phrase(description: str) -> str:
    """A field's description inside a sentence: without its stop and its capital letter."""
    first = description.partition(". ")[0].rstrip(".")
    return first[:1].lower() + first[1:]


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_at(model: type[BaseModel], inner: Path) -> type[BaseModel]:
    """The model of the mapping at a place.

    A step into a list or a free mapping is an index or a name, never a key of a model: a host may
    be called ``address``.
    """
    found, is_free = model, False
    for step in inner:
        if is_free:
            is_free = False
            continue
        field = dict(zip(_keys(found), found.model_fields.values(), strict=True)).get(str(step))
        if field is not None:
            found = next(_models_in(field.annotation), found)
            is_free = _is_collection(field.annotation)
    return found


def _is_collection(annotation: Any) -> bool:  # Any: whatever typing makes of it
    origin = get_origin(annotation)
    if origin in (dict, list):
        return True
    if origin in (Annotated, Union, UnionType):
        return any(_is_collection(part) for part in get_args(annotation))
    return False


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # Any: whatever typing makes of it
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _sentence(detail: ErrorDetails) -> str:
    value = detail["input"]
    make = _SENTENCES.get(detail["type"])
    if make is not None:
        return make(value, detail.get("ctx", {}))
    expected = _EXPECTED.get(detail["type"], detail["msg"])
    return f"{what_it_is(value)}, expected {expected}"


def _text_expected(value: object, ctx: dict[str, Any]) -> str:
    quotes = " in quotes" if isinstance(value, bool | int | float) else ""
    return f"{what_it_is(value)}, expected text{quotes}"


def _one_of(value: object, ctx: dict[str, Any]) -> str:
    names = [name.strip("'") for name in str(ctx["expected"]).replace(" or ", ", ").split(", ")]
    what = f"{quoted(value)} is not known here" if isinstance(value, str) else what_it_is(value)
    return f"{what}, expected {'one of: ' if len(names) > 1 else ''}{listed(names)}"


_SENTENCES: dict[str, Callable[[object, dict[str, Any]], str]] = {
    "netprobe": lambda value, ctx: str(ctx["text"]),
    "string_type": _text_expected,
    "literal_error": _one_of,
}

_EXPECTED = {
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping (keys and values)",
    "model_type": "a mapping (keys and values)",
}
