"""Files by pydantic: the base of all models, shared types of fields, and errors as sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from netprobe.load.yaml.document import Document, YamlPath
from netprobe.load.yaml.wording import instead_of, listed, quoted, what_it_is

# Nobody reads more, and looking for the nearest known names takes its time.
MAX_PROBLEMS = 1000

# No "=" and ":" (--set MATRIX:KEY=VALUE), no "," (lists), nothing that a shell would take apart.
_NAME = "[A-Za-z0-9_][A-Za-z0-9_.-]*"


class FileModel(BaseModel):
    """A mapping in a file that people write: no coercion, no unknown keys, keys by their alias.

    ``EXAMPLE`` is one, for whoever wrote something else there.
    """

    EXAMPLE: ClassVar[str] = ""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


Model = TypeVar("Model", bound=FileModel)


def check_name(text: str) -> str:
    """Check a name that can be given on the command line as it is."""
    if not re.fullmatch(_NAME, text):
        expected = 'expected letters, digits, "-", "_" and "."'
        raise ValueError(f"{quoted(text)} is no name, {expected}")
    return text


def fit(fits: Callable[[str], object], words: str) -> AfterValidator:
    """Give the check that a text fits; ``words`` follow the text in a problem."""

    def check(text: str) -> str:
        if not fits(text):
            raise ValueError(f"{quoted(text)} {words}")
        return text

    return AfterValidator(check)


def list_scalar(value: object) -> object:
    """A single number or text stands for a list of one."""
    return [value] if isinstance(value, int | str) else value


def list_one(value: object) -> object:
    """A single text stands for a list of one."""
    return [value] if isinstance(value, str) else value


NameField = Annotated[
    str, AfterValidator(check_name), Field(json_schema_extra={"pattern": f"^{_NAME}$"})
]
NameList = Annotated[
    list[NameField],
    BeforeValidator(list_one, json_schema_input_type=NameField | list[NameField]),
]

# The value of a setting, or of a condition on one: typed by the setting.
SCALAR_SCHEMA = {"type": ["string", "number", "boolean"]}
_VALUE_SCHEMA = {"anyOf": [SCALAR_SCHEMA, {"type": "array", "items": SCALAR_SCHEMA}]}
Value = Annotated[Any, WithJsonSchema(_VALUE_SCHEMA)]
REFERENCE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"setting": {"type": "string"}},
    "required": ["setting"],
    "additionalProperties": False,
}
DefaultValue = Annotated[
    Any, WithJsonSchema({"anyOf": [*_VALUE_SCHEMA["anyOf"], REFERENCE_SCHEMA]})
]


def validate(model: type[Model], document: Document) -> Model | None:
    """Give the document as a model, or None and a problem for everything that does not fit.

    ``check_header`` judges the ``schema:`` line.
    """
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        for detail in details[:MAX_PROBLEMS]:
            if detail["loc"] != ("schema",):
                _add_problem(document, model, detail)
        if len(details) > MAX_PROBLEMS:
            document.add_problem(
                (), f"{len(details) - MAX_PROBLEMS:,} more problems are not listed"
            )
        return None


def _add_problem(document: Document, model: type[FileModel], detail: ErrorDetails) -> None:
    path = detail["loc"]
    if detail["type"] == "missing":
        document.add_key_problem(path[:-1], _word_missing_key(model, path))
    elif detail["type"] == "extra_forbidden":
        name = str(path[-1])
        known = list(_fields_of(_model_at(model, path[:-1])))
        document.add_key_problem(path, f"unknown key {quoted(name)}, {instead_of(name, known)}")
    elif path and path[-1] == "[key]":
        document.add_key_problem(path[:-1], _word_error(detail))
    else:
        document.add_problem(path, _word_error(detail) + _word_example(model, detail))


def _word_missing_key(model: type[FileModel], path: YamlPath) -> str:
    """The sentence repeats the field's description, without its stop and its capital letter."""
    name = str(path[-1])
    description = _fields_of(_model_at(model, path[:-1]))[name].description or name
    first = description.partition(". ")[0].rstrip(".")
    return f"the key {quoted(name)} is missing, expected {first[:1].lower() + first[1:]}"


def _word_example(model: type[FileModel], detail: ErrorDetails) -> str:
    """Show the mapping that a place lacks, as people write it."""
    if detail["type"] != "model_type":
        return ""
    found = _model_at(model, detail["loc"])
    example = found.EXAMPLE if issubclass(found, FileModel) else ""
    return f", such as {example}" if example else ""


def _fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Give the fields by the keys that a file has."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_at(model: type[BaseModel], path: YamlPath) -> type[BaseModel]:
    """Give the model of the mapping at a place.

    A step into a list or a free mapping is an index or a name, never a key of a model: a host may
    be called ``address``.
    """
    found, is_free = model, False
    for step in path:
        if is_free:
            is_free = False
            continue
        field = _fields_of(found).get(str(step))
        if field is not None:
            types = list(_types_in(field.annotation))
            is_free = any(get_origin(one) in (dict, list) for one in types)
            models = (one for one in types if isinstance(one, type) and issubclass(one, BaseModel))
            found = next(models, found)
    return found


def _types_in(annotation: Any) -> Iterator[Any]:  # Any: whatever typing makes of it
    yield annotation
    for part in get_args(annotation):
        yield from _types_in(part)


def _word_error(detail: ErrorDetails) -> str:
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
    # A validator of ours raises ValueError with the sentence that the user reads.
    "value_error": lambda value, ctx: str(ctx["error"]),
    "string_type": _text_expected,
    "literal_error": _one_of,
}

_EXPECTED = {
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping (keys and values)",
    "model_type": "a mapping (keys and values)",
}
