"""A replicated table has one owner, a pipeline and a group, and is a mirror or a changelog for good."""

from __future__ import annotations

from icestream.errors import TableParked
from icestream.lake.history import OWNER, Owner
from icestream.lake.layout import stored_layout
from icestream.lake.table import IcebergTable
from icestream.model.table import Target, WriteMode


def owner_property(owner: Owner) -> dict[str, str]:
    return {OWNER: str(owner)}


def require_owner(table: IcebergTable, owner: Owner) -> None:
    found = table.properties().get(OWNER)
    if found != str(owner):
        raise TableParked(
            f"{table.key}: the Iceberg table belongs to {found or 'nobody we know'}, not to {owner}",
            hint="give the table another name with `iceberg.name`, or another `sink.namespace`",
        )


def require_kind(table: IcebergTable, target: Target) -> None:
    """Mirrors change their write mode among themselves; a changelog is another table."""
    layout = stored_layout(table)
    is_changelog = layout is not None and layout.write_mode == WriteMode.APPEND
    if is_changelog != target.is_changelog:
        what = "a changelog (`write_mode: append`)" if is_changelog else "no changelog"
        raise TableParked(
            f"{table.key}: the Iceberg table is {what}, and `write_mode` is now {target.write_mode}",
            hint=f"set `write_mode` back and run `icestream resume {table.key}`; or drop the Iceberg table and run"
            f" `icestream resync {table.key}`",
        )
