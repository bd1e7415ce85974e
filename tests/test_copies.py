"""Copies of an environment: spaces, deaths, masks, ends, seeds, measures, and going on from a state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo import ParallelEnv

from marlctl.copies import Copies, make_batch, spec_of
from marlctl.errors import ConfigError, DivergedError, PluginError
from marlctl.plugins import environment
from marlctl.records import ActionSpec
from marlctl.testing.steps import assert_same_step

LINE = spaces.Box(-np.inf, np.inf, (2,))


class Little(ParallelEnv):
    """Agents that see how far they are and what they did, and live for as long as they are told."""

    metadata: ClassVar[dict[str, Any]] = {"name": "little"}

    def __init__(self, sees=None, does=None, lives=None, ends="terminated", show=None, masks=None):
        self.sees = sees or {"a_0": LINE, "b_0": LINE}
        self.does = does or dict.fromkeys(self.sees, spaces.Discrete(3))
        self.lives, self.ends, self.show, self.masks = lives or {}, ends, show or {}, masks or {}
        self.possible_agents = list(self.sees)

    def observation_space(self, agent):
        return self.sees[agent]

    def action_space(self, agent):
        return self.does[agent]

    def reset(self, seed=None, options=None):
        self.rng, self.time, self.taken = np.random.default_rng(seed), 0, []
        self.place = {agent: self.rng.normal() for agent in self.possible_agents}
        self.agents = self.possible_agents[:]
        return self._look(), self._infos()

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.time += 1
        self.taken.append(actions)
        for agent, action in actions.items():
            self.place[agent] += float(np.sum(action)) + self.rng.normal()
        out = {agent: self.time >= self.lives.get(agent, 5) for agent in self.agents}
        no = dict.fromkeys(out, False)
        obs, infos, reward = self._look(), self._infos(), {agent: self.place[agent] for agent in self.agents}
        self.agents = [agent for agent in self.agents if not out[agent]]
        return (obs, reward, out, no, infos) if self.ends == "terminated" else (obs, reward, no, out, infos)

    def _look(self):
        return {a: self.show.get(a, np.array([self.place[a], self.time], np.float32)) for a in self.agents}

    def _infos(self):
        return {agent: {"action_mask": self.masks[agent]} if agent in self.masks else {} for agent in self.agents}


@dataclass(frozen=True)
class Opens:
    """A scenario that hands out `Little` environments and keeps them for inspection."""

    kwargs: Mapping[str, Any] = field(default_factory=dict)
    kind: Callable[..., Any] = Little
    opened: list[Any] = field(default_factory=list)

    def make(self, *, render_mode=None):
        self.opened.append(self.kind(**self.kwargs))
        return self.opened[-1]


def little(n=1, *, length=None, **kwargs):
    return Copies(Opens(kwargs), n, length=length)


def chosen(batch, rng):
    """Random actions for every copy."""
    return batch.spec.action.joint(rng.random((batch.n, batch.spec.action.width), np.float32))


def played(batch, steps, rng, first=0):
    """The steps of `batch` under random actions; ended episodes get new seeds."""
    return [batch.step(chosen(batch, rng), [1000 * (first + t) + i for i in range(batch.n)]) for t in range(steps)]


SCENARIOS = {
    "mpe": lambda: environment("simple_tag")(max_cycles=6),
    "treasure": lambda: environment("collect_treasure")(max_cycles=6, num_collectors=2),
    "continuous": lambda: environment("simple_reference")(max_cycles=6, continuous_actions=True),
    "factored": lambda: environment("simple_world_comm")(max_cycles=6, factored_actions=True),
    "pursuit": lambda: environment("sisl/pursuit")({"max_cycles": 6, "n_pursuers": 2, "n_evaders": 2}),
    "dying": lambda: Opens({"lives": {"a_0": 2, "b_0": 5}}),
}
ANY_SCENARIO = pytest.mark.parametrize("scenario", SCENARIOS)


@ANY_SCENARIO
@settings(max_examples=12, deadline=None)
@given(before=st.integers(0, 14), seed=st.integers(0, 2**31 - 1))
def test_a_loaded_state_goes_on_bit_for_bit(scenario, before, seed):
    whole, resumed = (make_batch(SCENARIOS[scenario](), 2) for _ in range(2))
    whole.reset([seed, seed // 2])
    rng = np.random.default_rng(seed)
    steps = played(whole, before, rng)
    state, later = whole.state(), np.random.default_rng(1)
    resumed.reset([5, 6])
    obs, _ = resumed.load(state)
    if steps:
        assert obs.array.tobytes() == steps[-1].obs.array.tobytes()
    ahead = played(whole, 4, later, before)
    for one, other in zip(ahead, played(resumed, 4, np.random.default_rng(1), before), strict=True):
        assert_same_step(one, other)
    again = resumed.state()
    assert all((again[name] == value).all() for name, value in whole.state().items())


def test_a_caller_may_use_its_action_array_again():
    batch = make_reset(Opens())
    action = chosen(batch, np.random.default_rng(0))
    before = action.array.copy()
    batch.step(action, [1])
    action.array[:] = 0
    assert (batch.state()["actions"][0] == before).all()


def test_an_environment_that_goes_another_way_begins_its_episode_afresh():
    batch = little()
    batch.reset([0])
    played(batch, 4, np.random.default_rng(0))
    state = batch.state()
    batch._copies[0]._env.lives = {"a_0": 2, "b_0": 2}
    obs, _ = batch.load(state)
    assert obs["a_0"][0, 1] == 0
    assert batch.state()["lengths"].tolist() == [0]


@ANY_SCENARIO
def test_n_copies_are_n_environments_of_the_same_seeds(scenario):
    together = make_batch(SCENARIOS[scenario](), 3)
    obs, _ = together.reset([7, 8, 9])
    steps = played(together, 13, np.random.default_rng(0))
    for i in range(3):
        alone = make_batch(SCENARIOS[scenario](), 1)
        rng = np.random.default_rng(0)
        assert (alone.reset([7 + i])[0].array[0] == obs.array[i]).all()
        for t, step in enumerate(steps):
            joint = rng.random((3, together.spec.action.width), np.float32)[i : i + 1]
            single = alone.step(alone.spec.action.joint(joint), [1000 * t + i])
            assert single.obs.array[0].tobytes() == step.obs.array[i].tobytes()
            assert single.final_obs.array[0].tobytes() == step.final_obs.array[i].tobytes()
            assert (single.reward.array[0] == step.reward.array[i]).all()
            assert single.ended[0] == step.ended[i]


def test_a_copy_shows_what_its_environment_shows():
    scenario = environment("simple_spread")(max_cycles=4)
    env, batch = scenario.make(), make_batch(scenario, 1)
    env.reset(seed=3)
    batch.reset([3])
    for t in range(4):
        action = {agent: (t + i) % 5 for i, agent in enumerate(env.possible_agents)}
        obs, reward, terminated, truncated, _ = env.step(action)
        one_hot = {agent: np.eye(5, dtype=np.float32)[[choice]] for agent, choice in action.items()}
        step = batch.step(batch.spec.action.join(one_hot), [4])
        for agent in env.possible_agents:
            assert (step.final_obs[agent][0] == obs[agent]).all()
            assert step.reward[agent][0] == np.float32(reward[agent])
            assert step.terminated[agent][0] == terminated[agent]
            assert step.truncated[agent][0] == truncated[agent]
    env.reset(seed=4)
    assert step.ended.all()
    assert (step.obs["agent_0"][0] == env.unwrapped.observe("agent_0")).all()


def test_an_agent_that_dies_is_silent_until_the_next_episode():
    batch = little(lives={"a_0": 2, "b_0": 4})
    batch.reset([0])
    steps = played(batch, 5, np.random.default_rng(0))
    assert [s.alive["a_0"][0] for s in steps] == [True, True, False, False, True]
    assert [s.terminated["a_0"][0] for s in steps] == [False, True, False, False, False]
    assert [bool(s.reward["a_0"][0]) for s in steps] == [True, True, False, False, True]
    assert [s.ended[0] for s in steps] == [False, False, False, True, False]
    assert steps[1].final_obs["a_0"][0, 1] == 2  # the last it sees
    assert not steps[1].obs["a_0"].any()
    assert not steps[2].final_obs["a_0"].any()
    assert steps[2].obs["b_0"][0, 1] == 3
    assert steps[3].final_obs["b_0"][0, 1] == 4
    assert steps[3].obs["a_0"][0, 1] == 0  # the next episode has begun
    assert steps[3].obs["a_0"][0, 0] != 0


class Late(Little):
    """Agent b joins with the second step."""

    def reset(self, seed=None, options=None):
        super().reset(seed)
        self.agents = ["a_0"]
        return self._look(), self._infos()

    def step(self, actions):
        moved = super().step(actions)
        self.agents = ["a_0", "b_0"] if self.time == 2 else self.agents
        return {**self._look(), **moved[0]}, *moved[1:]


def test_an_agent_may_join_later():
    batch = Copies(Opens(kind=Late), 1)
    batch.reset([0])
    steps = played(batch, 3, np.random.default_rng(0))
    assert [s.alive["b_0"][0] for s in steps] == [False, False, True]
    assert steps[1].obs["b_0"][0, 1] == steps[1].final_obs["b_0"][0, 1] == 2
    cut = make_batch(Opens(kind=Late), 1, length=2)
    cut.reset([0])
    assert played(cut, 2, np.random.default_rng(0))[1].ended[0]


def test_an_agent_that_is_still_listed_after_its_end_stays_dead():
    class Lists(Little):
        def step(self, actions):
            self.agents = [agent for agent in self.agents if agent in actions]
            moved = super().step(actions)
            self.agents = self.possible_agents[:]
            return moved

    batch = Copies(Opens({"lives": {"a_0": 1, "b_0": 3}}, Lists), 1)
    batch.reset([0])
    steps = played(batch, 3, np.random.default_rng(0))
    assert [s.alive["a_0"][0] for s in steps] == [True, False, False]
    assert [s.ended[0] for s in steps] == [False, False, True]


@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_an_end_and_a_cut_are_kept_apart(ends):
    batch = little(n=2, ends=ends)
    batch.reset([0, 1])
    last = played(batch, 5, np.random.default_rng(0))[-1]
    assert last.terminated.array.all() == (ends == "terminated")
    assert last.truncated.array.all() == (ends == "truncated")
    assert last.terminated.array.dtype == last.truncated.array.dtype == last.alive.array.dtype == bool
    assert last.reward.array.dtype == last.obs.array.dtype == np.float32


def test_an_agent_that_leaves_without_a_word_has_ended():
    class Ghost(Little):
        def step(self, actions):
            obs, reward, ends, cuts, infos = super().step(actions)
            return obs, reward, dict.fromkeys(ends, False), cuts, infos

    batch = Copies(Opens({"lives": {"a_0": 1}}, Ghost), 1)
    batch.reset([0])
    assert played(batch, 1, np.random.default_rng(0))[0].terminated.array.tolist() == [[True, False]]


def test_an_environment_without_a_length_of_its_own_is_cut():
    batch = make_batch(Opens({"lives": {"a_0": 2}}), 1, length=3)
    batch.reset([0])
    steps = played(batch, 3, np.random.default_rng(0))
    assert [s.ended[0] for s in steps] == [False, False, True]
    assert steps[2].truncated.array.tolist() == [[False, True]]
    assert not steps[2].terminated.array.any()
    assert steps[2].final_obs["b_0"][0, 1] == 3


def test_an_environment_with_a_length_of_its_own_is_given_it():
    batch = make_batch(environment("simple_spread")(), 1, length=2)
    batch.reset([0])
    assert [s.ended[0] for s in played(batch, 4, np.random.default_rng(0))] == [False, True, False, True]


@pytest.mark.parametrize(
    ("space", "vector", "action"),
    [
        (spaces.Discrete(3), [0, 1, 0], 1),
        (spaces.Discrete(3, start=4), [0, 0, 1], 6),
        (spaces.MultiDiscrete([3, 2]), [0, 0, 1, 1, 0], [2, 0]),
        (spaces.MultiDiscrete([2, 2], start=[1, 5]), [0, 1, 1, 0], [2, 5]),
        (spaces.MultiBinary(2), [1, 0, 0, 1], [0, 1]),
        (spaces.Box(-1, 1, (3,)), [-3, 0.5, 9], [-1, 0.5, 1]),
        (spaces.Box(-np.inf, np.inf, (1, 2)), [-3, 9], [[-3, 9]]),
        (spaces.Box(0, 9, (2,), np.int64), [3.7, 30], [4, 9]),
    ],
)
def test_every_kind_of_action_reaches_the_environment(space, vector, action):
    scenario = Opens({"sees": {"a": LINE}, "does": {"a": space}})
    batch = Copies(scenario, 1)
    batch.reset([0])
    given = batch.spec.action.joint(np.array([vector], np.float32))
    before = given.array.copy()
    batch.step(given, [1])
    taken = scenario.opened[0].taken[0]["a"]
    assert np.asarray(taken).tolist() == action
    assert space.contains(taken)
    assert (given.array == before).all()


def test_a_spec_tells_every_agents_own_spaces():
    does = {
        "a_0": spaces.Discrete(3),
        "a_1": spaces.MultiDiscrete([3, 2]),
        "b": spaces.Box(-2, np.inf, (2,)),
        "c": spaces.MultiBinary(2),
    }
    sees = {
        "a_0": LINE,
        "a_1": spaces.Box(0, 255, (2, 3), np.uint8),
        "b": spaces.Discrete(4, start=1),
        "c": spaces.MultiDiscrete([2, 3]),
    }
    show = {"a_1": np.arange(6, dtype=np.uint8).reshape(2, 3), "b": 3, "c": np.array([1, 0])}
    batch = little(sees=sees, does=does, show=show)
    assert [agent.team for agent in batch.spec.agents] == ["a", "a", "b", "c"]
    assert [agent.obs_size for agent in batch.spec.agents] == [2, 6, 4, 5]
    assert [agent.action for agent in batch.spec.agents] == [
        ActionSpec("discrete", (3,)),
        ActionSpec("discrete", (3, 2)),
        ActionSpec("box", (2,), (-2, -2), (np.inf, np.inf)),
        ActionSpec("discrete", (2, 2)),
    ]
    obs, mask = batch.reset([0])
    assert mask is None
    assert obs["a_1"].tolist() == [[0, 1, 2, 3, 4, 5]]
    assert obs["b"].tolist() == [[0, 0, 1, 0]]
    assert obs["c"].tolist() == [[0, 1, 1, 0, 0]]


def test_a_box_action_is_divided_as_the_scenario_says():
    batch = make_batch(environment("simple_reference")(continuous_actions=True), 1)
    assert batch.spec["agent_0"].action.parts == (5, 10)


@pytest.mark.parametrize(
    ("sees", "does"),
    [({"a_0": spaces.Text(3)}, None), ({"a_0": LINE}, {"a_0": spaces.Text(3)}), ({"a_0": spaces.Dict(x=LINE)}, None)],
)
def test_a_space_that_cannot_be_learnt_from_is_refused_by_name(sees, does):
    with pytest.raises(ConfigError, match=r"a_0 .*(Text|Dict)"):
        little(sees=sees, does=does)


MASKED = spaces.Dict(observation=LINE, action_mask=spaces.MultiBinary(3))


def shown(*mask):
    return {"observation": np.zeros(2, np.float32), "action_mask": np.array(mask, np.int8)}


def test_masks_come_from_observations_and_from_infos():
    batch = little(
        sees={"a": MASKED, "b": LINE, "c": LINE, "d": MASKED},
        show={"a": shown(1, 0, 1), "d": shown(0, 0, 0)},
        masks={"b": np.array([0, 1, 0])},
        lives={"a": 1},
    )
    assert batch.spec.masked
    _, mask = batch.reset([0])
    assert mask["a"].tolist() == [[True, False, True]]
    assert mask["b"].tolist() == [[False, True, False]]
    assert mask["c"].all()  # an agent without one may do anything
    assert mask["d"].all()  # so may one that waits
    step = played(batch, 1, np.random.default_rng(0))[0]
    assert step.final_mask["a"].tolist() == [[True, False, True]]
    assert step.mask["a"].all()  # dead
    assert step.mask["b"].tolist() == [[False, True, False]]


@pytest.mark.parametrize("masks", [{"a_0": np.array([1, 0, 1])}, {}])
def test_a_spec_is_masked_where_an_agent_is(masks):
    batch = little(masks=masks)
    assert batch.spec.masked == bool(masks)
    assert (batch.reset([0])[1] is not None) == bool(masks)


@pytest.mark.parametrize(
    ("first", "teams"),
    [
        (None, ["adversary", "adversary", "adversary", "agent"]),
        (0, ["agent"] * 4),
        (2, ["adversary", "adversary", "agent", "agent"]),
        (4, ["adversary"] * 4),
    ],
)
def test_the_first_so_many_agents_are_the_adversaries(first, teams):
    spec = make_batch(environment("simple_tag")(), 1, num_adversaries=first).spec
    assert [agent.team for agent in spec.agents] == teams


@pytest.mark.parametrize("first", [-1, 5])
def test_there_are_no_more_adversaries_than_agents(first):
    scenario = environment("simple_tag")()
    with pytest.raises(ConfigError, match="has 4 agents"):
        spec_of(scenario, scenario.make(), first)


@pytest.mark.parametrize(("n", "length"), [(0, None), (1, 0)])
def test_there_is_at_least_one_copy_and_one_step(n, length):
    with pytest.raises(ConfigError, match="at least 1"):
        make_batch(Opens(), n, length=length)


def test_measures_are_by_agent_and_nan_where_there_are_none():
    batch = make_batch(environment("simple_tag")(), 2, diagnostics=True)
    batch.reset([0, 1])
    step = played(batch, 1, np.random.default_rng(0))[0]
    assert set(step.diagnostics) == {"touches"}
    assert np.isfinite(step.diagnostics["touches"]["adversary_0"]).all()
    assert np.isnan(step.diagnostics["touches"]["agent_0"]).all()
    assert not played(make_reset(environment("simple_tag")()), 1, np.random.default_rng(0))[0].diagnostics


def make_reset(scenario):
    batch = make_batch(scenario, 1)
    batch.reset([0])
    return batch


def test_a_scenario_with_a_batched_form_of_its_own_is_asked_for_it():
    class Own(Opens):
        def make_batch(self, n):
            return Copies(self, n)

    batch = make_batch(Own(), 3, num_adversaries=1)
    assert batch.n == 3
    assert [agent.team for agent in batch.spec.agents] == ["adversary", "b"]


@pytest.mark.parametrize("where", ["reset", "step"])
def test_an_environment_that_breaks_is_named(where):
    class Broken(Little):
        pass

    def breaks(self, *args, **kwargs):
        raise KeyError("oops")

    batch = Copies(Opens(kind=Broken), 1)
    batch.reset([0])
    setattr(Broken, where, breaks)
    with pytest.raises(PluginError, match=rf"Opens of module .* failed in its {where}: KeyError: 'oops'"):
        batch.reset([0]) if where == "reset" else played(batch, 1, np.random.default_rng(0))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused_with_their_agent(bad):
    batch = little(show={"b_0": np.array([0, bad], np.float32)})
    with pytest.raises(DivergedError, match="observation of b_0 is not finite"):
        batch.reset([0])
    batch = make_reset(Opens())
    batch._copies[0]._env.place["a_0"] = bad
    batch._copies[0]._env.show = dict.fromkeys(["a_0", "b_0"], np.zeros(2, np.float32))
    with pytest.raises(DivergedError, match="reward of a_0 is not finite"):
        played(batch, 1, np.random.default_rng(0))
    with pytest.raises(DivergedError, match="action of a_0 is not finite"):
        batch.step(batch.spec.action.joint(np.full((1, 6), bad, np.float32)), [0])


def test_an_observation_of_the_wrong_size_is_refused():
    with pytest.raises(PluginError, match="shows a_0 3 numbers; its observation space has 2"):
        little(show={"a_0": np.zeros(3, np.float32)}).reset([0])


def test_what_is_no_parallel_environment_is_refused():
    with pytest.raises(PluginError, match=r"Opens of module .* made a dict"):
        Copies(Opens(kind=dict), 1)


def test_a_state_of_other_copies_is_refused():
    two, three = little(2), little(3)
    two.reset([0, 1])
    with pytest.raises(ConfigError, match="2 other copies; here are 3"):
        three.load(two.state())
