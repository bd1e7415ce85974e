"""marlctl from Python: training, evaluating, and using a trained policy anywhere."""

import numpy as np
import pytest

import marlctl
from marlctl.errors import ConfigError, FileError
from marlctl.plugins import environment

TINY = {"num_episodes": 2, "eval_every": 0, "name": "tiny"}


def run_of(algo, scenario, where, **more):
    return marlctl.train(algo, scenario, save_dir=where, **{**TINY, **more})


def test_training_gives_a_run_that_can_be_evaluated_and_loaded(tmp_path):
    options = {"algo.lr": 0.2, "env.size": 5}
    run = marlctl.train("toy", "toy_grid", save_dir=tmp_path, name="mine", num_episodes=30, seed=3, options=options)
    config = run.config()
    assert (config.algo.lr, config.env.size, config.run.seed) == (0.2, 5, 3)
    assert run.path == tmp_path / "toy_grid" / "toy" / "mine"
    scores = marlctl.evaluate(run, episodes=7)
    assert scores.returns.shape == (7, 3)
    assert (
        marlctl.evaluate(str(run.path), episodes=7).total
        == marlctl.evaluate(run.path, episodes=7).total
        == scores.total
    )
    assert set(marlctl.load_policy(run, "best").act({"agent_0": np.zeros(3)})) == {"agent_0"}


def test_a_policy_of_a_run_is_found_by_name_in_the_usual_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    marlctl.train("toy", "toy_grid", **TINY)
    assert marlctl.load_policy("tiny").spec.names == ("agent_0", "agent_1", "agent_2")


def test_training_in_a_notebook_says_nothing(tmp_path, capfd):
    run_of("toy", "toy_grid", tmp_path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"options": {"lr": 0.1}}, "must begin with env. or algo."),
        ({"options": {"run.seed": 1}}, "must begin with env. or algo."),
        ({"options": {"algo.lrr": 0.1}}, "did you mean algo.lr"),
        ({"num_episodess": 3}, "did you mean run.num_episodes"),
        ({"policy": {"nobody": "random"}}, "no agent is called so"),
        ({"policy": {"*": "random"}}, "no agent that learns"),
        ({"options": {"algo.lr": float("nan")}}, "algo.lr is nan"),
        ({"name": "../x"}, "--exp-name"),
        ({"best_by": "wolves"}, "must be total or a team"),
    ],
)
def test_a_mistake_is_told_before_anything_is_made(tmp_path, how, says):
    with pytest.raises(ConfigError) as caught:
        run_of("toy", "toy_grid", tmp_path / "runs", **how)
    assert says in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_a_discrete_action_is_an_index_and_a_mask_is_kept(toy_run):
    policy = marlctl.load_policy(toy_run)
    obs = {"agent_0": np.array([0.5, 1, 0]), "agent_2": [0.5, 0, 0]}
    actions = policy.act(obs)
    assert list(actions) == ["agent_0", "agent_2"]
    assert all(isinstance(action, int) and action in (0, 1, 2) for action in actions.values())
    for only in range(3):
        mask = {name: np.arange(3) == only for name in obs}
        assert policy.act(obs, mask=mask) == dict.fromkeys(obs, only)


@pytest.mark.parametrize(
    ("scenario", "env", "kind"),
    [
        ("simple_world_comm", {"env.factored_actions": True}, "MultiDiscrete"),
        ("simple_tag", {}, "Discrete"),
        ("probe/pointing", {}, "Box"),
    ],
)
def test_actions_are_what_the_environment_takes(tmp_path, scenario, env, kind):
    """MultiDiscrete, Discrete and Box: an array of indices, an index, an array of numbers."""
    small = {"algo.capacity": 100, "algo.num_units": 8}
    run = run_of("maddpg", scenario, tmp_path, options={**env, **small}, num_episodes=1)
    policy = marlctl.load_policy(run)
    game = run.config().env.make()
    obs, _ = game.reset(seed=1)
    kinds = set()
    for _ in range(5):
        actions = policy.act(obs)
        for agent, action in actions.items():
            space = game.action_space(agent)
            kinds.add(type(space).__name__)
            if type(space).__name__ == "Discrete":
                assert type(action) is int
                assert space.contains(action)
            else:
                assert action.shape == space.shape
                assert space.contains(action.astype(space.dtype))
        obs, *_ = game.step(actions)
    game.close()
    assert kind in kinds


@pytest.mark.parametrize(
    ("obs", "says"),
    [
        ({"agent_9": np.zeros(3)}, "no agent 'agent_9'; did you mean agent_"),
        ({"agent_0": np.zeros(4)}, "agent_0 sees 3 numbers, not 4"),
        ({"agent_0": []}, "agent_0 sees 3 numbers, not 0"),
        ({"agent_0": {"observation": np.zeros(3)}}, "must be an array of numbers"),
        ({"agent_0": "abc"}, "must be an array of numbers"),
    ],
)
def test_a_wrong_observation_is_explained(toy_run, obs, says):
    with pytest.raises(ConfigError) as caught:
        marlctl.load_policy(toy_run).act(obs)
    assert says in str(caught.value)


def test_nobody_there_means_nothing_to_do(toy_run):
    assert marlctl.load_policy(toy_run).act({}) == {}


def test_a_reset_policy_begins_anew(toy_run):
    policy = marlctl.load_policy(toy_run)
    game = [{"agent_0": np.array([x / 9, 0.5, x / 9])} for x in range(10)]
    first = [policy.act(obs, mode="sample") for obs in game]
    went_on = [policy.act(obs, mode="sample") for obs in game]
    policy.reset()
    assert [policy.act(obs, mode="sample") for obs in game] == first
    policy.reset(seed=5)
    assert [policy.act(obs, mode="sample") for obs in game] != first
    assert went_on != first


def test_a_loaded_policy_plays_as_it_is_evaluated(toy_run):
    """Stepping the environment by hand gives the returns that `evaluate` reports."""
    from marlctl.seeding import episode_seed

    policy, env = marlctl.load_policy(toy_run), environment("toy_grid")().make()
    expected = marlctl.evaluate(toy_run, episodes=4, seed=6).returns.sum(1)
    for episode in range(4):
        obs, infos = env.reset(seed=episode_seed(6, -2, episode))
        policy.reset()
        total = 0.0
        while env.agents:
            mask = {agent: infos[agent]["action_mask"] for agent in env.agents}
            actions = policy.act({agent: obs[agent] for agent in env.agents}, mask=mask)
            obs, reward, _, _, infos = env.step(actions)
            total += sum(reward.values())
        assert total == pytest.approx(expected[episode], abs=1e-5)


def test_a_folder_without_a_checkpoint_is_a_bad_file(make_run):
    _, folder = make_run("empty")
    with pytest.raises(FileError, match="no checkpoint"):
        marlctl.load_policy(folder)


def test_the_library_offers_no_more_than_twenty_names_and_each_is_there():
    assert len(marlctl.__all__) <= 20
    for name in marlctl.__all__:
        assert getattr(marlctl, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'tarin'"):
        _ = marlctl.tarin
