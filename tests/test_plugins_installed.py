"""Every entry point of the installed distribution loads, describes itself, and fits its contract."""

import json

import numpy as np
import pytest

from marlctl.contracts import Algorithm, CodingScheme, Environment
from marlctl.copies import make_batch
from marlctl.options import build, describe
from marlctl.plugins import Kind, algorithm, environment, installed, load, scheme
from marlctl.policies import Random
from marlctl.records import Replay, Rollout
from marlctl.rollout import Player
from marlctl.storage.hdf5 import pack

CONTRACTS = {
    Kind.ALGORITHM: (algorithm, Algorithm),
    Kind.ENVIRONMENT: (environment, Environment),
    Kind.SCHEME: (scheme, CodingScheme),
}
OURS = {kind: [p.name for p in installed(kind) if p.package == "marlctl"] for kind in Kind}
EVERY = [(kind, name) for kind in CONTRACTS for name in OURS[kind]]


def test_the_distribution_brings_what_it_promises():
    assert {"coma", "maddpg", "ddpg", "toy"} <= set(OURS[Kind.ALGORITHM])
    assert {"simple_tag", "simple_spread", "simple_adversary", "toy_grid"} <= set(OURS[Kind.ENVIRONMENT])
    assert {"Switch2-v0", "Switch4-v3", "tennis"} <= set(OURS[Kind.ENVIRONMENT])
    assert {"mpe", "sisl", "probe", "ma-gym"} <= set(OURS[Kind.FAMILY])


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_plugin_fits_its_contract_with_its_defaults(kind, name):
    door, contract = CONTRACTS[kind]
    assert isinstance(build(door(name), {}, owner="x"), contract)


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_plugin_explains_itself_and_every_option(kind, name):
    plugin = CONTRACTS[kind][0](name)
    assert plugin.__doc__
    assert not plugin.__doc__.startswith(f"{plugin.__name__}("), "a dataclass writes this when its author does not"
    for option in describe(plugin):
        assert option.help, f"{name}: {option.name} has no help"
        assert option.allowed


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_default_is_one_that_a_user_could_have_given(kind, name):
    plugin = CONTRACTS[kind][0](name)
    defaults = {o.name: o.default for o in describe(plugin)}
    as_text = {n: ",".join(map(str, v)) if isinstance(v, tuple) else str(v) for n, v in defaults.items()}
    as_toml = {n: list(v) if isinstance(v, tuple) else v for n, v in defaults.items()}
    assert build(plugin, as_text, owner="x") == build(plugin, as_toml, owner="x") == plugin()


@pytest.mark.parametrize("name", OURS[Kind.FAMILY])
def test_every_family_loads_and_refuses_a_name_it_does_not_know(name):
    assert callable(load(next(p for p in installed(Kind.FAMILY) if p.name == name)))
    with pytest.raises(Exception, match="no_such_game") as caught:
        environment(f"{name}/no_such_game")
    assert type(caught.value).__name__ == "ConfigError"


@pytest.mark.parametrize("name", OURS[Kind.ENVIRONMENT])
def test_every_scenario_can_be_played_at_random(name):
    env = make_batch(environment(name)(), 2)
    player = Player(env, Random(env.spec), seed=1, mode="explore")
    ended = sum(len(player.step()[1].lengths) for _ in range(60))
    env.close()
    assert ended >= 2
    assert np.isfinite(player.obs.array).all()


@pytest.mark.parametrize("name", OURS[Kind.ALGORITHM])
def test_every_algorithm_builds_a_learner_that_acts_learns_and_can_be_saved(name, rng):
    env = make_batch(environment("toy_grid")(), 2)
    algo = algorithm(name)()
    assert isinstance(algo.memory, Replay | Rollout)
    learner = algo.build(env.spec, seed=1, device="cpu")
    assert learner.plays in ("sample", "greedy")
    assert learner.units
    obs, mask = env.reset([1, 2])
    for mode in ("explore", "sample", "greedy"):
        acts = learner.act(obs, {}, rng=rng, mode=mode, mask=mask)
        for agent in env.spec.names:
            assert (acts.action[agent].sum(1) == 1).all()
            assert (mask[agent][acts.action[agent].astype(bool)]).all(), "a masked action was taken"
    assert all(len(rows) == 2 for rows in acts.carry.values())
    twin = algo.build(env.spec, seed=2, device="cpu")
    twin.load(learner.state())
    assert pack(twin.state()) == pack(learner.state())
    assert pack(twin.weights()) == pack(learner.weights())
    env.close()


def test_what_plugins_list_shows_is_plain_text():
    for kind in Kind:
        for plugin in installed(kind):
            json.dumps([plugin.name, plugin.package, plugin.version, plugin.origin])
            assert plugin.name.isprintable()
