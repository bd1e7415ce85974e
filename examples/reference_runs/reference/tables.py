"""The tables: ours beside the plain loop's, beside one copy's, and beside published numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reference import published
from reference.bounds import listener
from reference.games import OLD_REWARDS, Side
from reference.intervals import Estimate, crossed, difference, estimate, verdict
from reference.plan import ALGOS, ONE_COPY
from reference.published import Published
from reference.results import Curve, Results, teams_of

MODES = ("greedy", "sampled")
UNJUDGED = ""  # a return that depends on opponents who differ


@dataclass(frozen=True)
class Compared:
    """Two ways to the same task, and whether the first is better."""

    scenario: str
    algo: str
    who: str  # "total" or a team
    mode: str
    ours: Estimate
    theirs: Estimate | None
    gap: Estimate | None
    verdict: str


@dataclass(frozen=True)
class Meeting:
    """Who played the first team and who the others, and what came of it over all pairs of seeds."""

    scenario: str
    mode: str
    first: str
    others: str
    found: dict[str, Estimate]
    published: dict[str, float]


@dataclass(frozen=True)
class Beside:
    """A published number, and ours counted the same way."""

    number: Published
    ours: dict[str, Estimate]  # by mode
    plain: Estimate | None  # the plain loop's, sampled
    soft: Estimate | None  # ours with soft actions, sampled
    below: bool | None  # whether ours, sampled as theirs was, is worse


@dataclass(frozen=True)
class Rise:
    """How much the training return still grew: the last tenth of the episodes less the tenth before."""

    name: str
    gain: Estimate


@dataclass(frozen=True)
class Tables:
    own_games: list[Compared]
    algorithms: list[Compared]
    against_plain: list[Compared]
    meetings: list[Meeting]
    copies: list[Compared]
    predator_prey: list[Meeting]
    deception: list[Meeting]
    published: list[Beside]
    rises: list[Rise]
    listeners: dict[str, float]  # what hand-written ones earn in simple_speaker_listener


def make(results: Results, curves: Sequence[Curve]) -> Tables:
    """All tables, as far as there are results."""
    return Tables(
        own_games=list(_own_games(results)),
        algorithms=list(_algorithms(results)),
        against_plain=list(_against_plain(results)),
        meetings=list(_meetings(results)),
        copies=list(_copies(results)),
        predator_prey=list(_predator_prey(results)),
        deception=list(_deception(results)),
        published=list(_published(results)),
        rises=list(_rises(results, curves)),
        listeners={name: listener(told=told, episodes=1000) for name, told in (("told", True), ("not told", False))},
    )


def _compare(where: tuple[str, str, str, str], ours: list[float], theirs: list[float]) -> Compared:
    if not theirs:
        return Compared(*where, estimate(ours), None, None, "nothing to compare with")
    gap = difference(ours, theirs)
    return Compared(*where, estimate(ours), estimate(theirs), gap, verdict(gap))


def _everybody(name: str) -> list[str]:
    teams = teams_of(name)
    return ["total", *(teams if len(teams) > 1 else [])]


def _own_games(results: Results) -> Iterator[Compared]:
    """Everybody with those it learnt with."""
    for scenario in results.scenarios:
        for algo in ALGOS:
            name = f"{scenario}-{algo}"
            for who in _everybody(name):
                for mode in MODES:
                    if ours := results.returns(name, who, mode):
                        plain = results.plain_returns(scenario, algo, who, mode)
                        row = _compare((scenario, algo, who, mode), ours, plain)
                        yield row if len(teams_of(name)) == 1 else replace(row, verdict=UNJUDGED)


def _algorithms(results: Results) -> Iterator[Compared]:
    """MADDPG less DDPG, where all play together."""
    for scenario in results.scenarios:
        if scenario == "simple" or len(teams_of(f"{scenario}-maddpg")) > 1:
            continue
        for mode in MODES:
            maddpg, ddpg = (results.returns(f"{scenario}-{algo}", "total", mode) for algo in ALGOS)
            if maddpg and ddpg:
                yield _compare((scenario, "maddpg less ddpg", "total", mode), maddpg, ddpg)


# -- games between runs -------------------------------------------------------------------------


def _played(results: Results, firsts: list[Side], others: list[Side], mode: str, what: str) -> list[list[float]]:
    return [[results.games.meet(first, other, mode)[what] for other in others] for first in firsts]


def _judge(results: Results, where: tuple[str, str], ours: list[Side], theirs: list[Side]) -> Iterator[Compared]:
    """Team by team, each side's score against the same opponents: all of both sides."""
    if not (ours and theirs):
        return
    first, second = teams_of(ours[0].run)
    for team in (first, second):
        for mode in MODES:
            scores = []
            for side in (ours, theirs):
                if team == first:
                    table = np.array(_played(results, side, [*ours, *theirs], mode, team))
                else:
                    table = np.array(_played(results, [*ours, *theirs], side, mode, team)).T
                scores.append(table.mean(1).tolist())  # one number a seed
            yield _compare((*where, team, mode), *scores)


def _adversarial(results: Results) -> list[str]:
    return [scenario for scenario in results.scenarios if len(teams_of(f"{scenario}-maddpg")) > 1]


def _against_plain(results: Results) -> Iterator[Compared]:
    for scenario in _adversarial(results):
        for algo in ALGOS:
            name = f"{scenario}-{algo}"
            yield from _judge(results, (scenario, algo), results.sides(name), results.plain_sides(scenario, algo))


def _meetings(results: Results) -> Iterator[Meeting]:
    """Ours and the plain loop's in all four pairs."""
    for scenario in _adversarial(results):
        for algo in ALGOS:
            name = f"{scenario}-{algo}"
            both = {"ours": results.sides(name), "plain loop": results.plain_sides(scenario, algo)}
            if all(both.values()):
                for mode in MODES:
                    for first, sides in both.items():
                        for others, opponents in both.items():
                            found = _all_found(results, sides, opponents, mode, teams_of(name))
                            yield Meeting(scenario, mode, f"{first} {algo}", f"{others} {algo}", found, {})


def _all_found(
    results: Results, firsts: list[Side], others: list[Side], mode: str, what: Sequence[str]
) -> dict[str, Estimate]:
    return {each: crossed(_played(results, firsts, others, mode, each)) for each in what}


def _copies(results: Results) -> Iterator[Compared]:
    """Many copies less one: by return where all play together, else against the same opponents."""
    for scenario in ONE_COPY:
        many, one = f"{scenario}-maddpg", f"{scenario}-maddpg-one"
        if not (results.of(many) and results.of(one)):
            continue
        if len(teams_of(many)) > 1:
            yield from _judge(results, (scenario, "maddpg"), results.sides(many), results.sides(one, "one"))
        for who in _everybody(many):
            for mode in MODES:
                label = who if len(teams_of(many)) == 1 else f"{who}, own games"
                returns = [results.returns(name, who, mode) for name in (many, one)]
                row = _compare((scenario, "maddpg", label, mode), *returns)
                yield row if label == who else replace(row, verdict=UNJUDGED)


def _predator_prey(results: Results) -> Iterator[Meeting]:
    for mode in MODES:
        for (first, others), touches in published.TOUCHES.items():
            firsts, opponents = (results.sides(f"simple_tag-{algo}") for algo in (first, others))
            if firsts and opponents:
                found = _all_found(results, firsts, opponents, mode, ["touches"])
                yield Meeting("simple_tag", mode, first, others, found, {"touches": touches})


def _deception(results: Results) -> Iterator[Meeting]:
    what = ("agent_success", "adversary_success", "agent_ever", "adversary_ever")
    for game in published.DECEPTION:
        variant = game.removeprefix("simple_adversary")
        for mode in MODES:
            for first in ALGOS:
                for others in ALGOS:
                    names = [f"simple_adversary-{algo}{variant}" for algo in (first, others)]
                    firsts, opponents = (results.sides(name) for name in names)
                    if firsts and opponents:
                        numbers = published.DECEPTION[game].get((first, others), ())
                        found = _all_found(results, firsts, opponents, mode, what)
                        yield Meeting(game, mode, first, others, found, dict(zip(what, numbers, strict=False)))


# -- beside published numbers -------------------------------------------------------------------


def _measured(results: Results, name: str, measure: str, mode: str) -> Estimate | None:
    """A run of ours counted as somebody else counted."""
    if measure == published.OLD_TOTAL:
        scenario = name.partition("-")[0]
        if scenario not in OLD_REWARDS:
            return None
        values = [results.games.old_total(side, scenario, mode) for side in results.sides(name)]
    else:
        values = [published.MEASURES[measure](summary) for summary in results.evaluations(name, mode)]
    return estimate(values) if values else None


def _published(results: Results) -> Iterator[Beside]:
    for number in published.PUBLISHED:
        ours = {mode: found for mode in MODES if (found := _measured(results, number.run, number.measure, mode))}
        if not ours:
            continue
        scenario, algo = number.run.split("-")[:2]
        plain = None
        if factor := published.OF_TOTALS.get(number.measure):
            totals = results.plain_returns(scenario, algo, "total", "sampled")
            plain = estimate([factor * total for total in totals]) if totals else None
        soft = _measured(results, f"{number.run}-soft", number.measure, "sampled")
        yield Beside(number, ours, plain, soft, _below(number, ours["sampled"]))


def _below(number: Published, ours: Estimate) -> bool | None:
    if number.more_is_better is None:
        return None
    return ours.mean < number.value if number.more_is_better else ours.mean > number.value


def _rises(results: Results, curves: Sequence[Curve]) -> Iterator[Rise]:
    names = dict.fromkeys(job.name for job in results.finished)
    for name in names:
        if len(teams_of(name)) == 1:
            gains = [_gain(curve) for curve in curves if curve.name == name and len(curve.episodes) >= 10]
            if gains:
                yield Rise(name, estimate(gains))


def _gain(curve: Curve) -> float:
    tenth = max(len(curve.episodes) // 10, 1)
    total = curve.returns["total"]
    return float(np.mean(total[-tenth:]) - np.mean(total[-2 * tenth : -tenth]))
