"""n copies of a PettingZoo environment, stepped in one call as one batched environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pettingzoo import ParallelEnv

from marlctl.contracts import BatchedEnv, Environment
from marlctl.episodes import Copy, Env, Moved, Scenario, Seen, guarded
from marlctl.errors import ConfigError, PluginError
from marlctl.finite import check_joint
from marlctl.records import AgentSpec, Array, EnvSpec, Joint, State, Step
from marlctl.spaces import moves, sight

PLAIN = re.compile(r"(?!\.{1,2}$)[^/\0]{1,200}")  # a name that a checkpoint can hold
Diagnose = Callable[[str, Mapping[str, Any]], Mapping[str, float]]


def make_batch(
    environment: Environment,
    n: int,
    *,
    length: int | None = None,
    num_adversaries: int | None = None,
    diagnostics: bool = False,
) -> BatchedEnv:
    """n copies of a scenario: its own batched form where it has one, else `Copies`."""
    if n < 1:
        raise ConfigError(f"{n} copies of an environment cannot be; there must be at least 1")
    if length is not None and length < 1:
        raise ConfigError(f"an episode cannot have {length} steps; there must be at least 1")
    if length is not None and hasattr(environment, "with_length"):
        environment, length = environment.with_length(length), None
    if diagnostics and hasattr(environment, "diagnostic"):
        environment = environment.diagnostic()
    make_own = getattr(environment, "make_batch", None) if length is None else None
    batch: BatchedEnv | None = make_own(n) if make_own else None  # None: not with these options
    if batch is not None:
        batch.spec = _with_adversaries(batch.spec, num_adversaries)
        return batch
    return Copies(environment, n, length=length, num_adversaries=num_adversaries, diagnostics=diagnostics)


def spec_of(environment: Environment, env: Env, num_adversaries: int | None = None) -> EnvSpec:
    """The agents of an open environment. Resets it: some hand out action masks only with their infos."""
    scenario = Scenario(type(environment))
    if not isinstance(env, ParallelEnv):
        raise PluginError(f"{scenario} made a {type(env).__name__}, which is not a PettingZoo ParallelEnv")
    spec = guarded(scenario, "spaces", lambda: _agents(environment, env))
    masked = spec.masked or guarded(scenario, "reset", lambda: _shows_masks(env))
    bad = [name for name in spec.names if not PLAIN.fullmatch(name)]
    if bad or not spec.agents or len(set(env.possible_agents)) < len(env.possible_agents):
        what = f"cannot be called {bad[0]!r}" if bad else "must be there, each with a name of its own"
        raise PluginError(f"{scenario}: agents {what}")
    return _with_adversaries(replace(spec, masked=masked), num_adversaries)


def _shows_masks(env: Env) -> bool:
    _, infos = env.reset(seed=0)
    return any("action_mask" in info for info in infos.values())


def _agents(environment: Environment, env: Env) -> EnvSpec:
    divide = getattr(environment, "action_parts", None)
    parts = divide(env) if divide else {}
    team = getattr(environment, "team", _name_without_number)
    eyes = {agent: sight(agent, env.observation_space(agent)) for agent in env.possible_agents}
    agents = tuple(
        AgentSpec(agent, team(agent), eye.size, moves(agent, env.action_space(agent), parts.get(agent)).spec)
        for agent, eye in eyes.items()
    )
    return EnvSpec(agents, masked=any(eye.masked for eye in eyes.values()))


def _name_without_number(agent: str) -> str:
    return re.sub(r"_\d+$", "", agent)


def _with_adversaries(spec: EnvSpec, first: int | None) -> EnvSpec:
    """The same agents, of whom the `first` so many are the adversaries."""
    if first is None:
        return spec
    if not 0 <= first <= len(spec.agents):
        raise ConfigError(f"{first} adversaries cannot be; the scenario has {len(spec.agents)} agents")
    rest = ("agent" if agent.team == "adversary" else agent.team for agent in spec.agents[first:])
    teams = ["adversary"] * first + list(rest)
    agents = tuple(replace(agent, team=team) for agent, team in zip(spec.agents, teams, strict=True))
    return replace(spec, agents=agents)


class Copies:
    """n environments in this process, as one `BatchedEnv`."""

    def __init__(
        self,
        environment: Environment,
        n: int,
        *,
        length: int | None = None,
        num_adversaries: int | None = None,
        diagnostics: bool = False,
    ) -> None:
        self.n = n
        self._scenario = Scenario(type(environment))
        envs: list[Env] = [guarded(self._scenario, "make", environment.make) for _ in range(n)]
        self.spec = spec_of(environment, envs[0], num_adversaries)
        self._copies = [Copy(env, self._scenario, length) for env in envs]
        self._eyes = {agent: sight(agent, envs[0].observation_space(agent)) for agent in self.spec.names}
        self._hands = {agent: moves(agent, envs[0].action_space(agent)) for agent in self.spec.names}
        self._diagnose: Diagnose | None = getattr(environment, "diagnose", None) if diagnostics else None

    def reset(self, seeds: Sequence[int]) -> tuple[Joint, Joint | None]:
        return self._stack([self._read(copy.reset(seed)) for copy, seed in zip(self._copies, seeds, strict=True)])

    def step(self, action: Joint, seeds: Sequence[int]) -> Step:
        joint = np.array(action.array, np.float32)  # a copy: the histories keep its rows
        check_joint("action", self.spec.action.joint(joint))
        moved = [copy.step(*taken) for copy, taken in zip(self._copies, self._decode(joint), strict=True)]
        rows = [self._read(m.seen) for m in moved]
        final = current = self._stack(rows)
        ended = np.array([not copy.alive for copy in self._copies])
        changed = [i for i, m in enumerate(moved) if m.terminated or m.truncated]
        for i in changed:
            seen = self._copies[i].reset(seeds[i]) if ended[i] else moved[i].seen
            rows[i] = self._read(seen._replace(agents=self._copies[i].alive))
        if changed:
            current = self._stack(rows)
        return Step(
            current[0],
            self._reward(moved),
            terminated=self._flags([m.terminated for m in moved]),
            truncated=self._flags([m.truncated for m in moved]),
            alive=self._flags([m.reward for m in moved]),
            final_obs=final[0],
            ended=ended,
            mask=current[1],
            final_mask=final[1],
            diagnostics=guarded(self._scenario, "diagnose", lambda: self._measure(moved)),
        )

    def state(self) -> State:
        """The seed of every open episode and the actions since: who steps them again is where we are."""
        lengths = np.array([len(copy.history) for copy in self._copies])
        actions = np.zeros((self.n, lengths.max(), self.spec.action.width), np.float32)
        for row, copy in zip(actions, self._copies, strict=True):
            row[: len(copy.history)] = copy.history or 0
        return {"seeds": np.array([copy.seed for copy in self._copies]), "lengths": lengths, "actions": actions}

    def load(self, state: State) -> tuple[Joint, Joint | None]:
        seeds, lengths, actions = (np.asarray(state[name]) for name in ("seeds", "lengths", "actions"))
        if (len(seeds), actions.shape[-1]) != (self.n, self.spec.action.width):
            raise ConfigError(f"this state is of {len(seeds)} other copies; here are {self.n} of {self._scenario}")
        return self._stack(
            [
                self._read(self._replay(copy, seed, taken[:length]))
                for copy, seed, length, taken in zip(self._copies, seeds, lengths, actions, strict=True)
            ]
        )

    def close(self) -> None:
        for copy in self._copies:
            copy.close()

    def _replay(self, copy: Copy, seed: int, joint: Array) -> Seen:
        seen = copy.reset(seed)
        for taken in self._decode(np.array(joint, np.float32)):
            seen = copy.step(*taken).seen
            if not copy.alive:  # it went another way this time; whoever compares observations will see
                return copy.reset(seed)
        return seen._replace(agents=copy.alive)

    def _decode(self, joint: Array) -> Iterator[tuple[Array, dict[str, Any]]]:
        """Every row, and the actions it stands for."""
        columns = self.spec.action.columns
        chosen = [hand.decode(joint[:, columns[agent]]) for agent, hand in self._hands.items()]
        for row, *actions in zip(joint, *chosen, strict=True):
            yield row, dict(zip(self._hands, actions, strict=True))

    def _read(self, seen: Seen) -> tuple[Array, Array]:
        return guarded(self._scenario, "observation", lambda: self._read_row(seen))

    def _read_row(self, seen: Seen) -> tuple[Array, Array]:
        """What the agents see, side by side, and what they may do; zeros and everything for who is not there."""
        row = np.zeros(self.spec.obs.width, np.float32)
        mask = np.ones(self.spec.action.width, bool)
        for agent, eye in self._eyes.items():
            shown = seen.obs.get(agent) if agent in seen.agents else None
            if shown is None:
                continue
            flat = eye.encode(shown)
            if flat.size != eye.size:
                raise PluginError(
                    f"{self._scenario} shows {agent} {flat.size} numbers; its observation space has {eye.size}"
                )
            row[self.spec.obs.columns[agent]] = flat
            if self.spec.masked:
                given = (shown if eye.masked else seen.infos.get(agent, {})).get("action_mask")
                allowed = np.hstack(given).astype(bool) if given is not None else np.True_
                # An agent that may do nothing now is waiting: whatever it does is ignored.
                mask[self.spec.action.columns[agent]] = allowed if allowed.any() else True
        return row, mask

    def _stack(self, rows: Sequence[tuple[Array, Array]]) -> tuple[Joint, Joint | None]:
        obs = self.spec.obs.joint(np.stack([row for row, _ in rows]))
        check_joint("observation", obs)
        return obs, self.spec.action.joint(np.stack([mask for _, mask in rows])) if self.spec.masked else None

    def _reward(self, moved: Sequence[Moved]) -> Joint:
        rows = [[m.reward.get(agent, 0.0) for agent in self.spec.names] for m in moved]
        reward = self.spec.scalar.joint(np.array(rows, np.float32))
        check_joint("reward", reward)
        return reward

    def _flags(self, who: Sequence[Container[str]]) -> Joint:
        return self.spec.scalar.joint(np.array([[agent in some for agent in self.spec.names] for some in who]))

    def _measure(self, moved: Sequence[Moved]) -> dict[str, Joint]:
        found: dict[str, Joint] = {}
        if self._diagnose is None:
            return found
        for i, m in enumerate(moved):
            for agent in m.reward:
                for name, value in self._diagnose(agent, m.seen.infos.get(agent, {})).items():
                    if name not in found:
                        found[name] = self.spec.scalar.joint(np.full((self.n, self.spec.scalar.width), np.nan))
                    found[name][agent][i] = value
        return found
