"""Whether two ways of playing gave the same: copies together and apart, a game played through and one resumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from marlctl.records import Array, Joint, Step


def assert_same_step(one: Step, other: Step) -> None:
    """Both are the same bit for bit, in every field."""
    ours, theirs = dict(_arrays(one)), dict(_arrays(other))
    assert ours.keys() == theirs.keys(), f"{sorted(ours)} and {sorted(theirs)}"
    for name, array in ours.items():
        assert (array.dtype, array.shape) == (theirs[name].dtype, theirs[name].shape), name
        assert array.tobytes() == theirs[name].tobytes(), f"{name}: {array} and {theirs[name]}"


def _arrays(step: Step) -> Iterator[tuple[str, Array]]:
    yield "ended", step.ended
    for name, joint in step.diagnostics.items():
        yield f"diagnostics {name}", joint.array
    for field in fields(step):
        value = getattr(step, field.name)
        if isinstance(value, Joint):
            yield field.name, value.array
