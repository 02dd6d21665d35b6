"""The reference page, made from the models: what it says is what the loader does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from icestream.config.environment import FLAGS, VARIABLES, WITHOUT_EFFECT
from icestream.config.keys import POSTGRES, file_key
from icestream.config.scalars import Named
from icestream.config.section import annotations_in, dotted, facts_of, is_secret, walk
from icestream.config.settings import Settings
from icestream.config.units import format_duration, format_size

_INTRODUCTION = """\
# Settings

This page is printed by `icestream config reference`.

A settings file is YAML with `tables`, `source` and `sink` at its top level, and optionally `types`, `schema`,
`state`, `spark`, `metrics_addr` and `snapshot_only`. A key that is not on this page is refused. All mistakes are
reported at once, each with its path, its line, the value, the reason and the nearest valid key.

**pg2iceberg.** Files written for it, in either of its dialects, are taken, except for what is refused: polling
(`source.mode: query`), which is not part of this version; keys that it ignored because it does not know them; and
texts with `$$` or `${…}`, which mean something here (see below) and nothing there. What is taken and has no effect is
listed at the end of this page.

**Precedence.** Defaults, then the file, then environment variables, then flags. An empty variable counts as not set.
Without a file, `icestream run` works from the environment alone: `POSTGRES_URL`, `TABLES` and `WAREHOUSE` are enough.

**Values.** The type of the key decides what a text means, not YAML: a password of digits needs no quotes, and numbers
may come from variables. A key without a value (`state:`) counts as not set, and so does an empty text, except where
text is the type.

**Variables in the file.** `${NAME}` stands for a variable, `${NAME:-default}` has a default for when it is not set or
empty, `$$` is a plain `$`. They are replaced in values after the YAML is read, so a variable can't add keys.

**Secrets.** Every key whose type is *secret* can be given as `<key>_file`: the name of a file that holds it (line ends
at the end are dropped), and every variable of such a key as `<VARIABLE>_FILE`. Secrets are never printed.

**Durations** are numbers with units: `500ms`, `10s`, `5m`, `1h30m`, `7d`, also `90 sec`; or ISO 8601: `PT5M`.

**Sizes** are bytes, or numbers with a unit: `64mb`, `64MiB`, `1.5gb`. `kb`, `mb`, `gb` count by 1024, exactly as `kib`,
`mib`, `gib` do.

**Relative paths** start at the working directory.

**The cache** of Java packages is no setting of a pipeline but of a machine: the variable `ICESTREAM_CACHE` names its
folder, which is `~/.cache/icestream` otherwise.
"""

_URL_ROW = (
    "`url`",
    "text, secret",
    "",
    "`POSTGRES_URL`",
    "All of the connection as a URL (`postgresql://user:password@host:5432/database?sslmode=require`) or as libpq's "
    "`key=value` text. A key given beside it wins; a URL in a variable wins over keys in the file. Also as `url_file`.",
)


def render_reference() -> str:
    parts = [_INTRODUCTION, *_sections(), _without_effect(), _flags()]
    return "\n".join(parts)


def _sections() -> Iterator[str]:
    active = sorted(_active_keys(), key=lambda item: len(item[0]) > 1)  # the top level first
    for above, keys in groupby(active, key=lambda item: item[0][:-1]):
        rows = [_row(path, field) for path, field in keys]
        if above == POSTGRES:
            rows.insert(0, _URL_ROW)
        title = f"`{dotted(above)}`" if above else "Top level"
        yield f"## {title}\n\n" + _table(("key", "type", "default", "variable", "meaning"), rows)


def _active_keys() -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for path, field in walk(Settings):
        if not facts_of(field).notice:
            yield path, field


def _row(path: tuple[str, ...], field: FieldInfo) -> tuple[str, ...]:
    return f"`{path[-1]}`", _type(field), _default(field), _variable(path), _meaning(path, field)


def _meaning(path: tuple[str, ...], field: FieldInfo) -> str:
    text = field.description or ""
    if upstream := facts_of(field).upstream:
        text += f" (pg2iceberg: {upstream}.)"
    if is_secret(field):
        text += f" Also as `{file_key(path)[-1]}`."
    return text


def _variable(path: tuple[str, ...]) -> str:
    # TABLES is the only variable of a list; its names are shown at the key they set.
    wanted = ("tables",) if path == ("tables[]", "name") else path
    return ", ".join(f"`{name}`" for name, known in VARIABLES.items() if known == wanted)


def _type(field: FieldInfo) -> str:
    names = [item.name for item in _marks(field) if isinstance(item, Named)]
    if names:
        return names[-1]
    choices = [choice for part in annotations_in(field.annotation) for choice in _literals(part)]
    return ", ".join(f"`{choice}`" for choice in choices)


def _marks(field: FieldInfo) -> Iterator[Any]:
    for part in annotations_in(field.annotation):
        if get_origin(part) is Annotated:
            yield from part.__metadata__
    yield from field.metadata


def _literals(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _default(field: FieldInfo) -> str:
    if text := facts_of(field).default_text:
        return text
    value = field.default
    if value in (None, (), "") or isinstance(value, dict):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if _type(field).startswith("duration"):
        return f"`{format_duration(value)}`"
    return f"`{format_size(value) if _type(field) == 'size' else value}`"


def _without_effect() -> str:
    rows = []
    for path, field in walk(Settings):
        if notice := facts_of(field).notice:
            rows.append((f"`{dotted(path)}`", _type(field), _default(field), _variable(path), _reason(field, notice)))
    rows += [("", "", "", f"`{name}`", f"It {why}.") for name, why in WITHOUT_EFFECT.items()]
    return (
        "## Checked, but without effect\n\n"
        "These are checked for validity. When one is set, a notice at the start says why it does nothing.\n\n"
        + _table(("key", "type", "default", "variable", "meaning"), rows)
    )


def _reason(field: FieldInfo, notice: str) -> str:
    upstream = facts_of(field).upstream
    return f"{field.description} It {notice}." + (f" (pg2iceberg: {upstream}.)" if upstream else "")


def _flags() -> str:
    rows = [(f"`{flag}`", f"`{dotted(path)}`") for flag, path in FLAGS.items()]
    return (
        "## Flags\n\n"
        "Every command that reads settings takes these; `icestream run --help` describes them. `icestream"
        " materializer-only` also takes\n"
        "`--worker-id` (or `--materializer-worker-id`), which is stronger than `sink.materializer_worker_id`.\n\n"
        + _table(("flag", "key"), rows)
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
