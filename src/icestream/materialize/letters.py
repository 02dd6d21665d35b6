"""Noting what a table can't hold, on either road, and stopping the table where the settings ask for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icestream.errors import TableParked
from icestream.materialize.shape import Shape
from icestream.model.type_rules import Unfit
from icestream.state.dead_letters import DeadLetter, DeadLetters


def note_letters(store: DeadLetters, letters: Iterable[DeadLetter], shape: Shape, table: str) -> int:
    """Stores the letters that are not there yet and gives their number.

    Raises TableParked, once all are stored, if one is of a column whose values must fit.
    """
    strict = {column.name for column in shape.columns if column.unfit is Unfit.FAIL}
    broken: list[DeadLetter] = []

    def watched() -> Iterator[DeadLetter]:
        for letter in letters:
            if letter.column in strict and not broken:
                broken.append(letter)
            yield letter

    added = store.add(watched())
    if broken:
        raise TableParked(
            f"{table}: column {broken[0].column!r} can't hold a value of the source (committed at "
            f"{broken[0].position}), and its policy is `fail`",
            hint=f"correct the row, or choose another policy in `types.unfit`, then run `icestream resync {table}`; "
            "the value is among the dead letters",
        )
    return added
