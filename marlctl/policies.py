"""Policies beside the one that learns: random play, saved runs, and several of them in one game."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marlctl.contracts import BatchedEnv, Learner, Policy
from marlctl.errors import ConfigError, FileError
from marlctl.records import ActionSpec, Acts, AgentSpec, Array, EnvSpec, Joint, Mode, State, Step
from marlctl.rundir import RUN_FILE, RunFolder, is_run
from marlctl.seeding import load_rng, rng_state, stream
from marlctl.storage.checkpoint import Checkpoints
from marlctl.storage.files import make_folder, write_whole
from marlctl.storage.manifest import Manifest

PLAYERS = "players"  # folder of a run that holds the policies it adopted


class Random:
    """Every allowed action is as likely as any other."""

    plays: Mode = "sample"

    def __init__(self, spec: EnvSpec) -> None:
        self.spec = spec

    def act(
        self,
        obs: Mapping[str, Array],
        carry: Mapping[str, Array],
        *,
        rng: np.random.Generator,
        mode: Mode,
        mask: Mapping[str, Array] | None = None,
    ) -> Acts:
        rows = len(next(iter(obs.values())))
        joint = self.spec.action.zeros(rows)
        for name in obs:
            joint[name][:] = self._draw(self.spec[name].action, rows, rng, None if mask is None else mask[name])
        return Acts(joint)

    @staticmethod
    def _draw(action: ActionSpec, rows: int, rng: np.random.Generator, mask: Array | None) -> Array:
        if action.kind == "box":
            low, high = np.maximum(action.low, -1e6), np.minimum(action.high, 1e6)
            return rng.uniform(low, high, (rows, action.size)).astype(np.float32)
        chance = rng.random((rows, action.size)) * (1 if mask is None else mask)
        ends = np.cumsum(action.parts)
        picks = [
            part.argmax(1) + end - size
            for part, end, size in zip(np.split(chance, ends[:-1], 1), ends, action.parts, strict=True)
        ]
        drawn = np.zeros((rows, action.size), np.float32)
        for pick in picks:
            drawn[np.arange(rows), pick] = 1
        return drawn


class Cast:
    """Several policies in one game, each playing its own agents."""

    plays: Mode = "greedy"

    def __init__(self, spec: EnvSpec, players: Mapping[str, Policy], *, override: Mode | None = None) -> None:
        """Each policy plays the way it is meant to be used, unless `override` says how."""
        self.spec, self._override = spec, override
        groups: dict[int, tuple[Policy, list[str]]] = {}
        for agent, policy in players.items():
            groups.setdefault(id(policy), (policy, []))[1].append(agent)
        self._groups = list(groups.values())

    def act(
        self,
        obs: Mapping[str, Array],
        carry: Mapping[str, Array],
        *,
        rng: np.random.Generator,
        mode: Mode,
        mask: Mapping[str, Array] | None = None,
    ) -> Acts:
        joint = self.spec.action.zeros(len(next(iter(obs.values()))))
        kept: dict[str, Array] = {}
        for number, (policy, agents) in enumerate(self._groups):
            prefix = f"{number}."
            mine = {name.removeprefix(prefix): array for name, array in carry.items() if name.startswith(prefix)}
            own_mask = None if mask is None else {agent: mask[agent] for agent in agents}
            how = self._override or policy.plays
            acts = policy.act({agent: obs[agent] for agent in agents}, mine, rng=rng, mode=how, mask=own_mask)
            for agent in agents:
                joint[agent][:] = acts.action[agent]
            kept |= {f"{prefix}{name}": array for name, array in acts.carry.items()}
        return Acts(joint, kept)


class Hosted:
    """An environment in which some agents do not learn: to the learner they are part of the world."""

    def __init__(self, env: BatchedEnv, players: Mapping[str, Policy], *, seed: int) -> None:
        self._env, self._players, self.n = env, Cast(env.spec, players), env.n
        self.spec = env.spec.only(tuple(name for name in env.spec.names if name not in players))
        if not self.spec.agents:
            raise ConfigError("--policy leaves no agent that learns")
        self._rng = np.random.Generator(np.random.PCG64(stream(seed, "hosted").integers(2**63)))
        self._carry: dict[str, Array] = {}

    def _seen(self, obs: Joint, mask: Joint | None) -> tuple[Joint, Joint | None]:
        self._obs, self._mask = obs, mask
        names = self.spec.names
        return obs.only(names), None if mask is None else mask.only(names)

    def reset(self, seeds: Sequence[int]) -> tuple[Joint, Joint | None]:
        self._carry = {}
        return self._seen(*self._env.reset(seeds))

    def step(self, action: Joint, seeds: Sequence[int]) -> Step:
        acts = self._players.act(self._obs, self._carry, rng=self._rng, mode="explore", mask=self._mask)
        for name in self.spec.names:
            acts.action[name][:] = action[name]
        step = self._env.step(acts.action, seeds)
        self._carry = {
            name: array * ~step.ended.reshape(-1, *[1] * (array.ndim - 1)) for name, array in acts.carry.items()
        }
        obs, mask = self._seen(step.obs, step.mask)
        own: dict[str, Any] = {
            f.name: value.only(self.spec.names)
            for f in dataclasses.fields(step)
            if isinstance(value := getattr(step, f.name), Joint)
        }
        return dataclasses.replace(step, **{**own, "obs": obs, "mask": mask}, diagnostics={}, everyone=step.reward)

    def state(self) -> State:
        return {"env": self._env.state(), "rng": rng_state(self._rng), "carry": self._carry}

    def load(self, state: State) -> tuple[Joint, Joint | None]:
        load_rng(self._rng, state["rng"])
        self._carry = {name: np.array(array) for name, array in state["carry"].items()}
        return self._seen(*self._env.load(state["env"]))

    def close(self) -> None:
        self._env.close()


def spec_note(spec: EnvSpec) -> dict[str, Any]:
    """A spec as plain JSON, for a checkpoint's manifest."""
    note = dataclasses.asdict(spec)
    for agent in note["agents"]:  # JSON has no word for infinity
        agent["action"] |= {side: [repr(bound) for bound in agent["action"][side]] for side in ("low", "high")}
    return note


def spec_from_note(note: Any) -> EnvSpec:
    """The spec a manifest holds."""
    try:
        agents = tuple(
            AgentSpec(
                str(a["name"]),
                str(a["team"]),
                int(a["obs_size"]),
                ActionSpec(
                    a["action"]["kind"],
                    tuple(int(part) for part in a["action"]["parts"]),
                    tuple(float(bound) for bound in a["action"]["low"]),
                    tuple(float(bound) for bound in a["action"]["high"]),
                    tuple(int(number) for number in a["action"]["first"]),
                ),
            )
            for a in note["agents"]
        )
        sizes = [size for agent in agents for size in (agent.obs_size, *agent.action.parts)]
        if (
            not agents
            or len({agent.name for agent in agents}) < len(agents)
            or not 0 < min(sizes) <= max(sizes) < 10**7
        ):
            raise ValueError("no agents, two of one name, or sizes that cannot be")
        return EnvSpec(agents, bool(note["masked"]))
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"the manifest does not say who its agents are: {error!r}") from error


@dataclass(frozen=True)
class Saved:
    """A policy read back from a run."""

    learner: Learner
    spec: EnvSpec
    manifest: Manifest


def load_saved(folder: RunFolder, which: str = "last") -> Saved:
    """The policy of a run: its `last`, its `best`, or the one saved at a step."""
    checkpoints = Checkpoints(folder.path)
    if which == "last":
        manifest, skipped = checkpoints.newest(replay=False)
        if skipped:  # whoever plays must not take an older policy for the last one
            raise FileError("\n".join((*skipped, f"--which {manifest.step} plays the checkpoint before it")))
    elif which == "best":
        best = checkpoints.best()
        if best is None:
            raise ConfigError(f"{folder.path} has no best policy yet, as it was never evaluated; use --which last")
        manifest = best
    elif re.fullmatch(r"[0-9]{1,12}", which):
        manifest = checkpoints.at(int(which), replay=False)
    else:
        raise ConfigError(f"--which {which!r} must be best, last or the step of a checkpoint")
    config = folder.config()
    spec = spec_from_note(manifest.note.get("spec"))
    learner: Learner = config.algo.build(spec, seed=config.run.seed, device="cpu")
    load_into(learner, checkpoints.read_state(manifest), manifest)
    return Saved(learner, spec, manifest)


def load_into(learner: Learner, state: State, manifest: Manifest) -> None:
    """Give a learner a checkpoint's weights; a state of another shape is a bad file, not a crash."""
    try:
        if manifest.kind == "policy":
            learner.load_weights(state["weights"])
        else:
            learner.load(state["learner"])
    except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
        raise FileError(f"the checkpoint of step {manifest.step} does not fit this algorithm: {error}") from error


def adopt(policy: Mapping[str, str], folder: RunFolder) -> dict[str, str]:
    """Keep the policies of other runs in this run's own folder: it stands alone, and they cannot change."""
    places: dict[str, str] = {"random": "random"}
    for source in policy.values():
        if source not in places:
            places[source] = f"{PLAYERS}/{len(places) - 1}"
            saved, own = load_saved(RunFolder(Path(source))), folder.path / places[source]
            make_folder(folder.path / PLAYERS)
            make_folder(own)
            write_whole(own / RUN_FILE, (Path(source) / RUN_FILE).read_bytes())
            Checkpoints(own).save_best(saved.manifest.step, {"weights": saved.learner.weights()}, saved.manifest.note)
    return {pattern: places[source] for pattern, source in policy.items()}


def players(
    sources: Mapping[str, str], spec: EnvSpec, folder: RunFolder | None = None, which: str = "last"
) -> dict[str, Policy]:
    """Agent to policy, from agent to "random", a run folder, or what `folder` has adopted.

    Agents of one source share one policy.
    """
    loaded: dict[str, tuple[Policy, EnvSpec]] = {"random": (Random(spec), spec)}
    chosen: dict[str, Policy] = {}
    for agent, source in sources.items():
        if source not in loaded:
            adopted = folder is not None and source.startswith(f"{PLAYERS}/")
            path = folder.path / source if folder and adopted else Path(source)
            if not is_run(path):
                raise ConfigError(f"{agent}={source}: neither `random` nor a run folder")
            saved = load_saved(RunFolder(path), "best" if adopted else which)
            loaded[source] = (saved.learner, saved.spec)
        policy, theirs = loaded[source]
        if agent not in theirs.names:
            raise ConfigError(f"{source} never learnt to play {agent}; it plays {', '.join(theirs.names)}")
        mine, saved_agent = spec[agent], theirs[agent]
        if (mine.obs_size, mine.action) != (saved_agent.obs_size, saved_agent.action):
            raise ConfigError(f"{agent} sees or does something else here than in {source}")
        chosen[agent] = policy
    return chosen
