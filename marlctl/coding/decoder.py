"""One round's answers as they come in, until they give every gradient back exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from marlctl.coding.code import Code, Solution
from marlctl.coding.grid import STEP, UNIT, to_grid
from marlctl.errors import LearnersError
from marlctl.records import Array


class Outcome(Enum):
    """What the answers so far allow."""

    WAITING = "the answers do not determine every gradient"
    POOR = "the answers determine every gradient, but not exactly"
    WRONG = "the answers contradict one another"
    READY = "every gradient can be had, exactly"


@dataclass(frozen=True, eq=False)
class Attempt:
    """What came of decoding one set of answers."""

    outcome: Outcome
    values: Array | None = None  # (n_units, longest)
    residual: float = 0.0  # the largest difference between an answer and what the decoded gradients would have given
    condition: float = float("inf")
    size: float = 0.0  # the largest number among the decoded
    limit: float = 0.0  # the largest that would surely be exact


class Decoder:
    """Takes answers one at a time, uses all that have come, and says when they are enough.

    A wrong answer shows in the residual: the gradients decoded with it do not lie on the grid, or do not give the other
    answers. Where leaving out exactly one answer makes the rest agree, it is left out, and its learner is in `wrong`.
    """

    def __init__(self, code: Code, lengths: Sequence[int]) -> None:
        self.code = code
        self.lengths = tuple(lengths)
        if len(self.lengths) != code.n_units:
            raise ValueError(f"{len(self.lengths)} lengths for {code.n_units} units")
        self.longest = max(self.lengths)
        self._answers = np.zeros((code.n_learners, self.longest))
        self._came: set[int] = set()
        self._wrong: tuple[int, ...] = ()
        self._attempt: Attempt | None = None  # None: something came since
        # Shorter gradients are padded with zeros, and zeros they stay.
        inside = np.arange(self.longest) < np.array(self.lengths)[:, None]
        self._inside = None if inside.all() else inside

    def add(self, learner: int, vector: Array) -> str | None:
        """Take an answer; or why it is refused, and then nothing has changed."""
        if not 0 <= learner < self.code.n_learners:
            return f"there is no learner {learner}"
        if learner in self._came:
            return f"learner {learner} has answered before"
        length = max((self.lengths[unit] for unit in self.code.units_of(learner)), default=0)
        if vector.shape != (length,) or vector.dtype != np.float64:
            return f"learner {learner} sent {vector.dtype} {vector.shape} instead of float64 ({length},)"
        if not np.isfinite(vector).all():
            return f"learner {learner} sent numbers that are not finite"
        self._answers[learner, :length] = vector
        self._came.add(learner)
        self._attempt = None
        return None

    @property
    def answered(self) -> tuple[int, ...]:
        """The learners whose answers were taken."""
        return tuple(sorted(self._came))

    @property
    def decodable(self) -> bool:
        """Whether the answers have full rank."""
        return self.code.solution(self.answered) is not None

    @property
    def outcome(self) -> Outcome:
        return self._best().outcome

    @property
    def ready(self) -> bool:
        """Whether `decode` would give every gradient."""
        return self.outcome is Outcome.READY

    @property
    def wrong(self) -> tuple[int, ...]:
        """The learner whose answer contradicts all others, if there is one."""
        self._best()
        return self._wrong

    @property
    def condition(self) -> float:
        return self._best().condition

    @property
    def residual(self) -> float:
        return self._best().residual

    def decode(self) -> list[Array]:
        """Every unit's gradient, bit for bit as `to_grid` made it; refused with the reason while not `ready`."""
        attempt = self._best()
        if attempt.outcome is not Outcome.READY or attempt.values is None:
            raise LearnersError(self._why(attempt))
        return [values[:length].copy() for values, length in zip(attempt.values, self.lengths, strict=True)]

    def _best(self) -> Attempt:
        if self._attempt is None:
            attempt = self._try(self.answered)
            self._wrong = ()
            if attempt.outcome is Outcome.WRONG:
                attempt = self._without_one(attempt)
            self._attempt = attempt
        return self._attempt

    def _without_one(self, attempt: Attempt) -> Attempt:
        """Decode with the one answer left out that contradicts the others; two such, and it may be either."""
        found = []
        for learner in self.answered:
            rest = self._try(tuple(other for other in self.answered if other != learner))
            if rest.outcome is Outcome.READY:
                found.append((learner, rest))
        if len(found) != 1:
            return attempt
        self._wrong = (found[0][0],)
        return found[0][1]

    def _try(self, learners: tuple[int, ...]) -> Attempt:
        solution = self.code.solution(learners)
        if solution is None:
            return Attempt(Outcome.WAITING)
        with np.errstate(over="ignore", invalid="ignore"):  # a wrong answer can be of any size
            attempt = self._judge(solution, learners, to_grid(solution.inverse @ self._answers))
            if attempt.outcome is not Outcome.READY and attempt.values is not None:  # refine once
                off = np.zeros_like(self._answers)
                off[list(learners)] = self._off(learners, attempt.values)
                attempt = self._judge(solution, learners, attempt.values + to_grid(solution.inverse @ off))
        return attempt

    def _judge(self, solution: Solution, learners: tuple[int, ...], values: Array) -> Attempt:
        """Whether these values explain the answers, and whether no others could."""
        if self._inside is not None:
            values = np.where(self._inside, values, 0.0)
        size = _largest(values)
        off = self._off(learners, values)
        allowed = self._allowed(solution, learners, size)
        outcome = Outcome.READY if size <= solution.limit else Outcome.POOR
        if not (np.abs(off).max(axis=1, initial=0.0) <= allowed).all():
            outcome = Outcome.WRONG
        return Attempt(outcome, values, _largest(off), solution.condition, size, solution.limit)

    def _off(self, learners: tuple[int, ...], values: Array) -> Array:
        rows = list(learners)
        off: Array = self._answers[rows] - self.code.matrix[rows] @ values
        return off

    def _allowed(self, solution: Solution, learners: tuple[int, ...], size: float) -> Array:
        """How far each answer may be from what the values give, if all answers are right."""
        rows = list(learners)
        if size > solution.limit:
            each = 2 * solution.slack * size + STEP  # then the values may be off too
        elif size > self.code.room[rows].min():
            each = 4 * (self.code.n_units + 2) * UNIT * size
        else:
            each = 0.0
        allowed: Array = np.abs(self.code.matrix[rows]).sum(axis=1) * each
        return allowed

    def _why(self, attempt: Attempt) -> str:
        told = f"{len(self._came)} of {self.code.n_learners} learners answered, and {attempt.outcome.value}"
        remedy = {
            Outcome.WAITING: "wait longer, take more learners, or a scheme that bears more stragglers",
            Outcome.POOR: f"they hold numbers up to {attempt.size:.3g}, and up to {attempt.limit:.3g} would be exact; "
            "clip the gradients, or take another scheme",
            Outcome.WRONG: f"they differ by {attempt.residual:.3g}, and it cannot be told whose is wrong; "
            "take more learners, and check the machines",
        }
        return f"{told}: {remedy[attempt.outcome]}"


def _largest(values: Array) -> float:
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))
