"""The flags of `marlctl train`. Values are text here; they are read and checked with the options they set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from marlctl.cli import complete

GAME, LEARNING, KEEPING, SHOWING = "The game", "Learning", "Keeping", "Showing"


def _flag(*names: str, help: str, panel: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, **more)


Algo = Annotated[
    str | None,
    _flag("--algo", "-a", help="Algorithm, for example maddpg.", panel=GAME, autocompletion=complete.algorithms),
]
Scenario = Annotated[
    str | None,
    _flag(
        "--scenario",
        "-s",
        help="Scenario: simple_tag, sisl/pursuit_v5 or package.module:factory.",
        panel=GAME,
        autocompletion=complete.scenarios,
    ),
]
NumEpisodes = Annotated[str | None, _flag("--num-episodes", help="Episodes to train for (default 60000).", panel=GAME)]
Steps = Annotated[
    str | None, _flag("--steps", "-n", help="Environment steps to train for, instead of episodes.", panel=GAME)
]
MaxEpisodeLen = Annotated[
    str | None,
    _flag("--max-episode-len", help="Steps an episode has at most (default: the scenario's own).", panel=GAME),
]
NumEnvs = Annotated[
    str | None,
    _flag("--num-envs", help="Copies of the environment stepped together (default 32 in arrays, else 1).", panel=GAME),
]
NumAdversaries = Annotated[
    str | None,
    _flag(
        "--num-adversaries",
        help="How many of the first agents are adversaries (default: the scenario's own).",
        panel=GAME,
    ),
]
Policy = Annotated[
    list[str] | None,
    _flag(
        "--policy", help="Agents that do not learn: 'agent*=random' or 'agent*=RUN'.", panel=GAME, metavar="AGENTS=WHO"
    ),
]
GoodPolicy = Annotated[
    str | None,
    _flag("--good-policy", help="Critics of the agents that are no adversaries: maddpg or ddpg.", panel=LEARNING),
]
AdvPolicy = Annotated[
    str | None, _flag("--adv-policy", help="Critics of the adversaries: maddpg or ddpg.", panel=LEARNING)
]
Lr = Annotated[str | None, _flag("--lr", help="Learning rate.", panel=LEARNING)]
Gamma = Annotated[str | None, _flag("--gamma", help="Discount of future rewards.", panel=LEARNING)]
BatchSize = Annotated[str | None, _flag("--batch-size", help="Transitions an update.", panel=LEARNING)]
NumUnits = Annotated[str | None, _flag("--num-units", help="Width of the hidden layers.", panel=LEARNING)]
Seed = Annotated[str | None, _flag("--seed", help="Every random number follows from it (default 0).", panel=LEARNING)]
Seeds = Annotated[
    str | None, _flag("--seeds", help="Several runs: 5 for seeds 0 to 4, or a list such as 0,3,7.", panel=LEARNING)
]
InitFrom = Annotated[
    str | None,
    _flag("--init-from", autocompletion=complete.runs, help="Start from the weights of this run.", panel=LEARNING),
]
Device = Annotated[str | None, _flag("--device", help="Torch device (default cpu).", panel=LEARNING)]
Threads = Annotated[
    str | None, _flag("--threads", help="Threads torch may use (default: as suits the algorithm).", panel=LEARNING)
]
Config = Annotated[Path | None, _flag("--config", help="Run file in TOML; flags win over it.", panel=LEARNING)]
Set = Annotated[
    list[str] | None,
    _flag(
        "--set",
        help="Any option: env.N=6, algo.tau=0.02, run.log_every=10.",
        panel=LEARNING,
        metavar="OWNER.NAME=VALUE",
    ),
]
ExpName = Annotated[
    str | None,
    _flag(
        "--exp-name",
        autocompletion=complete.runs,
        help="Name of the run (default: date, time and seed).",
        panel=KEEPING,
    ),
]
SaveRate = Annotated[
    str | None, _flag("--save-rate", help="Episodes between checkpoints (default 1000).", panel=KEEPING)
]
Keep = Annotated[
    str | None, _flag("--keep", help="Newest checkpoints to keep beside the best (default 2).", panel=KEEPING)
]
SaveReplay = Annotated[
    bool | None, _flag("--save-replay/--no-save-replay", help="Keep the replay buffer in checkpoints.", panel=KEEPING)
]
EvalEvery = Annotated[
    str | None, _flag("--eval-every", help="Episodes between evaluations (default 1000; 0 never).", panel=KEEPING)
]
EvalEpisodes = Annotated[
    str | None, _flag("--eval-episodes", help="Episodes of an evaluation (default 20).", panel=KEEPING)
]
BestBy = Annotated[
    str | None,
    _flag(
        "--best-by",
        help="What makes a policy the best in evaluation: score, total or a team (default: score, else total).",
        panel=KEEPING,
    ),
]
Restore = Annotated[bool, _flag("--restore", help="Continue a run in place, exactly.", panel=KEEPING)]
LoadDir = Annotated[Path | None, _flag("--load-dir", help="Run folder that --restore continues.", panel=KEEPING)]
Force = Annotated[
    bool, _flag("--force", help="Start anew where a run of that name is; the old one is moved aside.", panel=KEEPING)
]
DryRun = Annotated[bool, _flag("--dry-run", help="Check everything, show the resolved run, and stop.", panel=SHOWING)]
Quiet = Annotated[bool, _flag("--quiet", "-q", help="Say nothing but errors.", panel=SHOWING)]
Json = Annotated[bool, _flag("--json", help="End with one JSON object on stdout.", panel=SHOWING)]
