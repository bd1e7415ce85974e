"""What a run remembers: a ring of joint transitions to draw from, or a rollout to learn from and forget.

Both hold one array a field with the agents side by side, so adding is one write a field and drawing a
batch one gather a field.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from marlctl.records import Acts, Array, Batch, EnvSpec, Joint, Layout, Replay, Rollout, State, Step
from marlctl.seeding import stream


def make_memory(kind: Replay | Rollout, spec: EnvSpec, n: int, seed: int) -> Ring | Recent:
    """The memory an algorithm asked for."""
    return Ring(kind, spec, seed) if isinstance(kind, Replay) else Recent(kind, spec, n)


def fields(spec: EnvSpec) -> dict[str, tuple[Layout, type]]:
    """Field name to its layout and type; masks only where the scenario has them."""
    masks = {"mask": (spec.action, np.bool_), "next_mask": (spec.action, np.bool_)} if spec.masked else {}
    return {
        "obs": (spec.obs, np.float32),
        "action": (spec.action, np.float32),
        "reward": (spec.scalar, np.float32),
        "next_obs": (spec.obs, np.float32),
        "terminated": (spec.scalar, np.bool_),
        "truncated": (spec.scalar, np.bool_),
        "alive": (spec.scalar, np.bool_),
        **masks,
    }


def row_bytes(spec: EnvSpec) -> int:
    """Bytes one joint transition takes."""
    return sum(layout.width * np.dtype(dtype).itemsize for layout, dtype in fields(spec).values())


def _values(obs: Joint, mask: Joint | None, acts: Acts, step: Step) -> dict[str, Array]:
    values = {
        "obs": obs.array,
        "action": acts.action.array,
        "reward": step.reward.array,
        "next_obs": step.final_obs.array,
        "terminated": step.terminated.array,
        "truncated": step.truncated.array,
        "alive": step.alive.array,
    }
    if mask is not None and step.final_mask is not None:
        values |= {"mask": mask.array, "next_mask": step.final_mask.array}
    return values


class Ring:
    """Replay: the last `capacity` joint transitions, numbered for ever by when they were added."""

    def __init__(self, kind: Replay, spec: EnvSpec, seed: int) -> None:
        self.kind, self.spec, self.seed = kind, spec, seed
        self.total = 0
        self._first = 0  # number of the first transition this ring was ever given
        self._layouts = {name: layout for name, (layout, _) in fields(spec).items()}
        self._arrays: dict[str, Array] = {
            name: np.zeros((kind.capacity, layout.width), dtype) for name, (layout, dtype) in fields(spec).items()
        }

    def __len__(self) -> int:
        return min(self.total - self._first, self.kind.capacity)

    @property
    def oldest(self) -> int:
        """The number of the oldest transition still held."""
        return self.total - len(self)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())

    def add(self, obs: Joint, mask: Joint | None, acts: Acts, step: Step) -> None:
        self._write(_values(obs, mask, acts, step))

    def _write(self, rows: Mapping[str, Array]) -> None:
        n = len(rows["obs"])
        start = self.total % self.kind.capacity
        fits = min(n, self.kind.capacity - start)
        for name, array in self._arrays.items():
            array[start : start + fits] = rows[name][:fits]
            if fits < n:  # round the corner, perhaps more than once
                self._wrap(array, rows[name][fits:])
        self.total += n

    def _wrap(self, array: Array, rows: Array) -> None:
        while len(rows):
            piece, rows = rows[: self.kind.capacity], rows[self.kind.capacity :]
            array[: len(piece)] = piece

    def due(self, before: int, after: int) -> int:
        """Updates to make after the step count went from `before` to `after`: the ratio is exact for any n."""
        if self.total < self.kind.warmup:
            return 0
        return after // self.kind.update_every - before // self.kind.update_every

    def batch(self, round: int) -> Batch:
        """A uniform draw with replacement; the same for the same run seed and round."""
        rows = stream(self.seed, "sample", round).integers(self.oldest, self.total, size=self.kind.batch_size)
        rows %= self.kind.capacity
        return Batch(**{n: self._layouts[n].joint(a.take(rows, axis=0)) for n, a in self._arrays.items()})

    def rows(self, start: int, stop: int) -> dict[str, Array]:
        """Transitions numbered start to stop - 1, all of them still held."""
        slots = np.arange(start, stop) % self.kind.capacity
        return {name: array.take(slots, axis=0) for name, array in self._arrays.items()}

    def fill(self, start: int, rows: Mapping[str, Array]) -> None:
        """Put back transitions numbered from `start` on; pieces come in order."""
        if start != self.total:
            self.total = self._first = start
        self._write(rows)

    def state(self) -> State:
        return {}  # the rows and their numbers are kept in segments

    def load(self, state: State) -> None:
        """Nothing here: `fill` brings the rows back."""


class Recent:
    """Rollout: the newest steps of every copy in time order, learnt from and forgotten."""

    def __init__(self, kind: Rollout, spec: EnvSpec, n: int) -> None:
        self.kind, self.n = kind, n
        self._layouts = {name: layout for name, (layout, _) in fields(spec).items()}
        self._arrays: dict[str, Array] = {
            name: np.zeros((kind.steps, n, layout.width), dtype) for name, (layout, dtype) in fields(spec).items()
        }
        self._extras: dict[str, Array] = {}
        self._time = 0

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())

    def add(self, obs: Joint, mask: Joint | None, acts: Acts, step: Step) -> None:
        t = self._time % self.kind.steps
        for name, value in _values(obs, mask, acts, step).items():
            self._arrays[name][t] = value
        for name, extra in acts.extras.items():
            self._extras.setdefault(name, np.zeros((self.kind.steps, *extra.shape), extra.dtype))[t] = extra
        self._time = t + 1

    def due(self, before: int, after: int) -> int:
        return self.kind.updates if self._time == self.kind.steps else 0

    def batch(self, round: int) -> Batch:
        """Everything gathered; where the gathering cuts an episode, that is a truncation."""
        arrays = {name: array.copy() for name, array in self._arrays.items()}
        arrays["truncated"][-1] |= ~arrays["terminated"][-1]
        extras = {name: extra.copy() for name, extra in self._extras.items()}
        return Batch(**{n: self._layouts[n].joint(a) for n, a in arrays.items()}, extras=extras)

    def state(self) -> State:
        kept = {"fields": self._arrays, "extras": self._extras}
        copies = {part: {name: array.copy() for name, array in arrays.items()} for part, arrays in kept.items()}
        return {"time": self._time, **copies}

    def load(self, state: State) -> None:
        self._time = int(state["time"])
        for name, array in self._arrays.items():
            array[:] = state["fields"][name]
        self._extras = {name: np.array(extra) for name, extra in state["extras"].items()}
