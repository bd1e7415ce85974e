"""What is run, and in which order: what matters most comes first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from marlctl.config import read_file
from marlctl.rundir import RunFolder, as_folder

HOME = Path(__file__).parents[1]
ALGOS = ("maddpg", "ddpg")
FIRST_SEEDS = 3  # of every run before the others of any
SCENARIOS = (
    "simple_spread",
    "simple_tag",
    "simple_adversary",
    "simple_push",
    "simple_speaker_listener",
    "simple_reference",
    "simple_crypto",
    "simple_world_comm",
    "simple",
)
ONE_COPY = ("simple_spread", "simple_tag")  # also trained in one copy of the environment
# What explains published numbers: soft actions as openai/maddpg played, and more agents.
EXTRAS = (
    "simple_speaker_listener-maddpg-soft",
    "simple_reference-maddpg-soft",
    "simple_spread-maddpg-soft",
    "simple-maddpg-soft",
    "simple_push-maddpg-soft",
    "simple_adversary-maddpg-soft",
    "simple_crypto-maddpg-soft",
    "simple_adversary-maddpg-four",
    "simple_adversary-ddpg-four",
    "simple_spread-maddpg-six",
    "simple_spread-ddpg-six",
)

SWITCH = tuple(f"Switch{n}-v{version}" for n in (2, 4) for version in range(4))
# Beside MPE: COMA in a corridor, also with the settings it set out from, and tennis.
SYSTEMS = (*(f"{scenario}-coma" for scenario in SWITCH), "Switch2-v0-coma-seed", "tennis-maddpg")


@dataclass(frozen=True)
class Job:
    """One run file with one seed."""

    name: str  # of the run file
    scenario: str
    algo: str
    episodes: int
    seed: int

    @property
    def file(self) -> Path:
        return run_file(self.name)

    @property
    def exp_name(self) -> str:
        return f"{self.name}-s{self.seed}"

    def folder(self, out: Path) -> RunFolder:
        return RunFolder(out / as_folder(self.scenario) / self.algo / self.exp_name)


def run_file(name: str) -> Path:
    """Where a run file lies."""
    return HOME / "runs" / f"{name}.toml"


def names() -> tuple[list[str], ...]:
    """The runs of the nine scenarios, the other systems, and what explains published numbers."""
    main = []
    for scenario in SCENARIOS:
        main += [f"{scenario}-{algo}" for algo in ALGOS]
        main += [f"{scenario}-maddpg-one"] if scenario in ONE_COPY else []
    return main, list(SYSTEMS), list(EXTRAS)


def jobs(only: str = "*", seeds: int = 5, episodes: int | None = None) -> Iterator[Job]:
    """Everything there is to run; `only` is a pattern of run files or a scenario's name."""
    for group in names():
        for part in (range(min(seeds, FIRST_SEEDS)), range(FIRST_SEEDS, seeds)):
            for name in group:
                run = read_file(run_file(name))["run"]
                if fnmatch(name, only) or run["scenario"] == only:
                    for seed in part:
                        yield Job(name, run["scenario"], run["algo"], episodes or run["num_episodes"], seed)
