"""`marlctl train`: from flags to a trained run."""

from __future__ import annotations

import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from marlctl.cli import show
from marlctl.cli import train_flags as flags
from marlctl.cli.flags import RUNS, SaveDir, parse_policies, run_path

if TYPE_CHECKING:
    from marlctl.config import Config, Values
    from marlctl.rundir import RunFolder


MOST_SEEDS = 1000


def train(
    algo: flags.Algo = None,
    scenario: flags.Scenario = None,
    num_episodes: flags.NumEpisodes = None,
    steps: flags.Steps = None,
    max_episode_len: flags.MaxEpisodeLen = None,
    num_envs: flags.NumEnvs = None,
    num_adversaries: flags.NumAdversaries = None,
    policy: flags.Policy = None,
    good_policy: flags.GoodPolicy = None,
    adv_policy: flags.AdvPolicy = None,
    lr: flags.Lr = None,
    gamma: flags.Gamma = None,
    batch_size: flags.BatchSize = None,
    num_units: flags.NumUnits = None,
    seed: flags.Seed = None,
    seeds: flags.Seeds = None,
    init_from: flags.InitFrom = None,
    device: flags.Device = None,
    threads: flags.Threads = None,
    config: flags.Config = None,
    set_: flags.Set = None,
    exp_name: flags.ExpName = None,
    save_dir: SaveDir = RUNS,
    save_rate: flags.SaveRate = None,
    keep: flags.Keep = None,
    save_replay: flags.SaveReplay = None,
    eval_every: flags.EvalEvery = None,
    eval_episodes: flags.EvalEpisodes = None,
    best_by: flags.BestBy = None,
    restore: flags.Restore = False,
    load_dir: flags.LoadDir = None,
    force: flags.Force = False,
    dry_run: flags.DryRun = False,
    quiet: flags.Quiet = False,
    json: flags.Json = False,
) -> None:
    """Train agents and keep everything under runs/.

    For example: marlctl train --algo maddpg --scenario simple_tag
    """
    run = {
        "algo": algo, "scenario": scenario, "num_episodes": num_episodes, "steps": steps,
        "max_episode_len": max_episode_len, "num_envs": num_envs, "num_adversaries": num_adversaries,
        "seed": seed, "device": device, "threads": threads, "save_rate": save_rate, "keep": keep,
        "save_replay": save_replay, "eval_every": eval_every, "eval_episodes": eval_episodes, "best_by": best_by,
        "init_from": run_path(init_from, save_dir, "--init-from"),
    }  # fmt: skip
    shortcuts = {
        "good_policy": good_policy, "adv_policy": adv_policy, "lr": lr, "gamma": gamma,
        "batch_size": batch_size, "num_units": num_units,
    }  # fmt: skip
    _refuse_together({"--restore": restore, "--seeds": seeds, "--force": force, "--seed": seed, "--load-dir": load_dir})
    given: Values = {
        "run": _given(run),
        "algo": _given(shortcuts),
        "policy": parse_policies(policy or [], save_dir, "--policy"),
    }
    if restore:
        folder, resolved = _continued(given, set_ or [], config, save_dir=save_dir, load_dir=load_dir, name=exp_name)
        runs: list[tuple[Config, RunFolder | None]] = [(resolved, folder)]
    else:
        runs = [(each, None) for each in _resolved(given, set_ or [], config, seeds)]
    if dry_run:
        for each, _ in runs:
            _show_plan(each)
        return
    several = seeds is not None
    results = []
    for number, (each, existing) in enumerate(runs):
        name = f"{exp_name}-s{each.run.seed}" if several and exp_name else exp_name
        try:
            results.append(_run(each, existing, save_dir=save_dir, name=name, force=force, quiet=quiet or json))
        except typer.Exit:
            if rest := [str(later.run.seed) for later, _ in runs[number + 1 :]]:
                show.say(f"not begun: seeds {', '.join(rest)}")
            raise
    if json:
        show.as_json(results if several else results[0])


def _refuse_together(flags: dict[str, Any]) -> None:
    from marlctl.errors import ConfigError

    for one, other in (("--restore", "--seeds"), ("--restore", "--force"), ("--seed", "--seeds")):
        if flags[one] and flags[other]:
            raise ConfigError(f"{one} and {other} contradict each other; give one of them")
    if flags["--load-dir"] and not flags["--restore"]:
        raise ConfigError("--load-dir goes with --restore; --init-from starts anew from a run's weights")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _layers(given: Values, sets: list[str], config: Path | None, base: Values) -> Values:
    """Run file, then flags, then --set; the last one wins."""
    from marlctl.config import merge, parse_set, read_file

    below = merge(base, read_file(config) if config else {}, given)
    run = below.get("run", {})
    return merge(below, parse_set(sets, str(run.get("scenario", "")), str(run.get("algo", ""))))


def _resolved(given: Values, sets: list[str], config: Path | None, seeds: str | None) -> list[Config]:
    from marlctl.config import merge, resolve
    from marlctl.errors import ConfigError

    values = _layers(given, sets, config, {})
    if seeds is None:
        return [resolve(values)]
    try:
        numbers = [int(part) for part in seeds.split(",")]
    except ValueError:
        raise ConfigError(f"--seeds {seeds!r} must be a number of seeds, such as 5, or a list, such as 0,3,7") from None
    if "," not in seeds:
        numbers = list(range(min(numbers[0], MOST_SEEDS + 1)))
    if len(numbers) > MOST_SEEDS:
        raise ConfigError(f"--seeds {seeds} are more than {MOST_SEEDS} runs")
    if not numbers or len(set(numbers)) < len(numbers):
        raise ConfigError(f"--seeds {seeds!r} must name at least one seed, and each once")
    return [resolve(merge(values, {"run": {"seed": number}})) for number in numbers]


def _continued(
    given: Values, sets: list[str], config: Path | None, *, save_dir: Path, load_dir: Path | None, name: str | None
) -> tuple[RunFolder, Config]:
    """The run to continue, with nothing changed but what may change."""
    from marlctl.config import continued, read_file
    from marlctl.errors import ConfigError
    from marlctl.rundir import RUN_FILE, as_folder, find, find_all

    if load_dir is not None:
        if not (load_dir / RUN_FILE).is_file():
            inside = find_all(load_dir)
            if not inside:
                raise ConfigError(f"--load-dir {load_dir} is no run folder and holds none")
            folder = inside[-1]
        else:
            folder = find(save_dir, str(load_dir))
    else:
        named = {**(read_file(config).get("run", {}) if config else {}), **given["run"]}
        among = "/".join(as_folder(str(named[part])) if part in named else "*" for part in ("scenario", "algo"))
        folder = find(save_dir, name, among=among)
    saved = folder.values()
    adopted = saved.get("policy", {})
    given["policy"] = {agents: adopted.get(agents, who) for agents, who in given["policy"].items()}
    return folder, continued(
        saved, _layers(given, sets, config, {"run": {k: saved["run"][k] for k in ("scenario", "algo")}})
    )


def _show_plan(config: Config) -> None:
    import tomli_w

    from marlctl.memory import row_bytes
    from marlctl.opening import memory_kind, rehearse
    from marlctl.records import Replay

    whole, own = rehearse(config)
    kind = memory_kind(config)
    typer.echo(tomli_w.dumps(config.values))
    for team, agents in whole.teams.items():
        show.say(f"team {team}: {', '.join(agents)}")
    if isinstance(kind, Replay):
        show.say(f"replay memory: {kind.capacity * row_bytes(own) / 1e6:,.0f} MB")
    show.say("all checks passed; nothing was started")


def _run(
    config: Config, existing: RunFolder | None, *, save_dir: Path, name: str | None, force: bool, quiet: bool
) -> dict[str, Any]:
    from marlctl.cli.live import make_watch
    from marlctl.metrics import read
    from marlctl.opening import start
    from marlctl.training import Stopped, train

    if existing is None:
        command = shlex.join(["marlctl", *sys.argv[1:]])
        with redirect_stdout(sys.stderr):
            config, folder = start(config, save_dir, name, force=force, command=command)
    else:
        folder = existing
    with make_watch(folder.path, quiet=quiet) as watch:
        try:
            with redirect_stdout(sys.stderr):  # what a scenario prints is talk
                train(config, folder, watch, restore=existing is not None)
        except Stopped as stopped:
            watch.stopped(str(stopped), f"marlctl train --restore --load-dir {shlex.quote(str(folder.path))}")
            raise typer.Exit(stopped.exit_code) from stopped
    rows = list(read(folder.metrics))
    last = {kind: next((r for r in reversed(rows) if r["kind"] == kind), None) for kind in ("train", "eval")}
    result = {"run": str(folder.path), "seed": config.run.seed, **last}
    solved = [row for row in rows if row["kind"] == "solved"]  # one at most
    return {**result, "solved": solved[0]} if solved else result
