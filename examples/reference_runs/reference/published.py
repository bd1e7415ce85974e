"""Numbers that others published, what exactly they counted, and how ours are counted the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Summary = Mapping[str, Any]  # what `marlctl eval --benchmark --json` says

LENGTH = 25  # steps of an episode
PAPER = "paper (Lowe et al. 2017)"
LOGS = "logs of openai/maddpg, 20 000 episodes, one run"
README = "README of RL_Testing_Noise_ASRN, one run of openai/maddpg"

SOFT = "openai/maddpg executes the soft action vector, forces and messages of any size; MPE2 takes one choice a step"
SLOWER = "MPE2 moves first and then changes the velocity, so that every action comes into effect one step later"
OTHER_WORLD = (
    "MPE2's physics are not openai's, our notes of the paper do not say how exactly it counts, and its authors say "
    "that their released code gives other results"
)


def _diagnostic(name: str, how: str, summary: Summary) -> float:
    """The sum over agents of a measure."""
    return float(sum(values[how] for values in summary["diagnostics"][name].values()))


def _total(summary: Summary) -> float:
    return float(summary["total"]["mean"])


def _spread(summary: Summary) -> float:
    """Every agent got the sum of all rewards in full, with a collision of each agent with itself."""
    agents = len(summary["agents"])
    return agents * (_diagnostic("reward", "per_episode", summary) - agents * LENGTH)


MEASURES: Mapping[str, Callable[[Summary], float]] = {
    "total": _total,
    "twice the total": lambda summary: 2 * _total(summary),
    "spread as printed": _spread,
    "nearest distances": lambda summary: _diagnostic("min_distance", "per_step", summary) / len(summary["agents"]),
    "collisions": lambda summary: _diagnostic("collisions", "per_step", summary) / 2,
    "reached": lambda summary: 100 * _diagnostic("target_reached", "final", summary),
    "distance": lambda summary: _diagnostic("goal_distance", "final", summary),
}
OLD_TOTAL = "old total"  # played again, with the rewards of openai's environment
OF_TOTALS = {"total": 1.0, "twice the total": 2.0}  # what the plain loop's totals can be turned into


@dataclass(frozen=True)
class Published:
    """One number and what it means."""

    run: str  # our run file
    what: str
    value: float
    source: str
    convention: str
    measure: str
    more_is_better: bool | None = None  # None: a sum over opponents, which says how a game went and not who is good
    why: str = ""  # what is different here, where ours is worse


def _log(
    scenario: str, value: float, convention: str, measure: str, *, better: bool | None, why: str = SOFT
) -> Published:
    return Published(f"{scenario}-maddpg", "return", value, LOGS, convention, measure, better, why)


def _paper(run: str, what: str, value: float, convention: str, measure: str, *, better: bool) -> Published:
    return Published(run, what, value, PAPER, convention, measure, better, OTHER_WORLD)


NAVIGATION = "sum over landmarks of the distance to the nearest agent, mean over steps"
COLLISIONS = "pairs of agents that touch, mean over steps; how the paper counts is not in our notes"
TALK = "at the last step, within 0.1 of the landmark; how near the paper means is not in our notes"
ZERO_SUM = "sum over agents that play against each other: not a measure of skill"

PUBLISHED = (
    _log("simple", -6.44, "-distance² of one agent; the same in MPE2", "total", better=True, why=f"{SOFT}; {SLOWER}"),
    Published(
        "simple_spread-maddpg",
        "return",
        -416,
        README,
        "every agent gets the sum of all agents' rewards, and those are summed again; an agent collides with itself. "
        "MPE2 weighs shared and own reward by local_ratio. Ours counted the old way, from the diagnostics",
        "spread as printed",
        True,
        f"{SOFT}; {SLOWER}; with local_ratio 0.5 our agents learn another trade between distances and collisions",
    ),
    _log(
        "simple_speaker_listener",
        -39.5,
        "-distance², each agent gets the sum of both and those are summed: twice MPE2's total",
        "twice the total",
        better=True,
        why=f"{SOFT}, so the message is one of three words; {SLOWER}",
    ),
    _log(
        "simple_reference",
        -46.5,
        "-distance² of both, each agent gets the sum and those are summed; MPE2 pays distances. Ours played again and "
        "counted the old way",
        OLD_TOTAL,
        better=True,
        why=f"{SOFT}; ours learnt from distances, not from their squares; {SLOWER}",
    ),
    _log(
        "simple_adversary",
        2.02,
        f"{ZERO_SUM}; the adversary pays its squared distance, in MPE2 the distance. Ours counted the old way",
        OLD_TOTAL,
        better=None,
    ),
    _log("simple_push", -8.62, f"{ZERO_SUM}; the same in MPE2", "total", better=None),
    _log(
        "simple_crypto",
        15.4,
        f"{ZERO_SUM}; squared errors of soft messages, in MPE2 of one choice",
        "total",
        better=None,
    ),
    _paper("simple_speaker_listener-maddpg", "target reached, %", 84.0, TALK, "reached", better=True),
    _paper("simple_speaker_listener-maddpg", "distance", 0.133, TALK, "distance", better=False),
    _paper("simple_speaker_listener-ddpg", "target reached, %", 32.0, TALK, "reached", better=True),
    _paper("simple_speaker_listener-ddpg", "distance", 0.456, TALK, "distance", better=False),
    _paper("simple_spread-maddpg", "distances", 1.767, NAVIGATION, "nearest distances", better=False),
    _paper("simple_spread-maddpg", "collisions", 0.209, COLLISIONS, "collisions", better=False),
    _paper("simple_spread-ddpg", "distances", 1.858, NAVIGATION, "nearest distances", better=False),
    _paper("simple_spread-ddpg", "collisions", 0.375, COLLISIONS, "collisions", better=False),
    _paper("simple_spread-maddpg-six", "distances, N = 6", 3.345, NAVIGATION, "nearest distances", better=False),
    _paper("simple_spread-maddpg-six", "collisions, N = 6", 1.366, COLLISIONS, "collisions", better=False),
    _paper("simple_spread-ddpg-six", "distances, N = 6", 3.350, NAVIGATION, "nearest distances", better=False),
    _paper("simple_spread-ddpg-six", "collisions, N = 6", 1.585, COLLISIONS, "collisions", better=False),
)

# Why other numbers that one meets are not in the table.
NOT_COMPARED = (
    "simple_tag, 20.7 in the logs: that run's reward may have been altered, and a sum over opponents is no measure",
    "simple_world_comm: we know of no published number",
    "EPyMARL's numbers: rewards divided by the number of agents, and 2 to 20 million steps",
    "predator and prey with a prey 100 % faster (0.2 to 0.4 touches in the paper): MPE2 has no option for the prey's "
    "speed. The stock prey, with 1.3 against 1.0, is the paper's prey that is 30 % faster",
)

# (first team's algorithm, the others') to the paper's numbers
TOUCHES = {  # predators, prey: touches an episode, the prey 30 % faster
    ("maddpg", "maddpg"): 11.0,
    ("maddpg", "ddpg"): 16.1,
    ("ddpg", "maddpg"): 10.3,
    ("ddpg", "ddpg"): 9.4,
}
# adversary, agents: success of agents and of the adversary, %. The paper names the agents first.
DECEPTION = {
    "simple_adversary": {
        ("maddpg", "maddpg"): (94.4, 39.2),
        ("ddpg", "maddpg"): (92.2, 16.4),
        ("maddpg", "ddpg"): (68.9, 59.0),
        ("ddpg", "ddpg"): (74.7, 38.6),
    },
    "simple_adversary-four": {
        ("maddpg", "maddpg"): (81.5, 28.3),
        ("ddpg", "maddpg"): (69.6, 19.8),
        ("maddpg", "ddpg"): (35.7, 32.1),
    },
}
