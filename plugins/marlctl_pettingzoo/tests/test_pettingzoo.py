"""PettingZoo's registry as families of scenarios."""

import pytest

from marlctl.copies import make_batch
from marlctl.errors import ConfigError, PluginError
from marlctl.options import build
from marlctl.plugins import environment
from marlctl_pettingzoo import atari, butterfly, classic, sisl

PURSUIT = {"n_pursuers": 2, "n_evaders": 3, "max_cycles": 10}
# Importing pettingzoo.test itself uses what pettingzoo deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The old environment creation API:DeprecationWarning")


@pytest.mark.parametrize("name", ["pursuit_v5", "pursuit-v5", "pursuit"])
def test_a_name_may_be_written_in_three_ways(name):
    assert environment(f"sisl/{name}") is sisl("pursuit_v5")
    assert sisl(name).id == "sisl/pursuit-v5"


def test_pettingzoo_finds_nothing_wrong_with_pursuit():
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    scenario = sisl("pursuit")(PURSUIT)
    parallel_api_test(scenario.make(), num_cycles=30)
    parallel_seed_test(scenario.make, num_cycles=10)


def test_keywords_reach_the_environment():
    scenario = build(sisl("pursuit"), {"n_pursuers": "3", "shared_reward": "false"}, owner="env")
    env = scenario.make(render_mode="rgb_array")
    assert len(env.possible_agents) == 3
    assert env.unwrapped.env.shared_reward is False
    assert env.unwrapped.render_mode == "rgb_array"


def test_an_episode_has_the_length_it_was_given():
    scenario = sisl("pursuit")(PURSUIT).with_length(4)
    assert scenario.kwargs == {**PURSUIT, "max_cycles": 4}
    batch = make_batch(sisl("pursuit")(PURSUIT), 1, length=4)
    batch.reset([0])
    ended = [batch.step(batch.spec.action.zeros(1), [1]).ended[0] for _ in range(4)]
    assert ended == [False, False, False, True]


def test_images_are_flattened():
    spec = make_batch(sisl("pursuit")(PURSUIT), 1).spec
    assert [agent.obs_size for agent in spec.agents] == [7 * 7 * 3] * 2
    assert [agent.team for agent in spec.agents] == ["pursuer"] * 2


def test_a_keyword_it_does_not_take_gets_a_suggestion():
    with pytest.raises(ConfigError, match="no option of sisl/pursuit-v5 'n_pursuer'; did you mean n_pursuers"):
        build(sisl("pursuit"), {"n_pursuer": 3}, owner="env")


def test_a_keyword_is_named_where_the_signature_is_silent():
    scenario = build(butterfly("cooperative_pong"), {"bal_speed": 3}, owner="env")
    with pytest.raises(ConfigError, match="bal_speed"):
        scenario.make()


def test_a_value_it_refuses_is_the_users_to_mend():
    with pytest.raises(ConfigError, match="num_actions"):
        classic("rps")({"num_actions": 2}).make()


def test_games_in_turns_are_refused():
    with pytest.raises(ConfigError, match="classic/chess-v6 is played in turns"):
        classic("chess")


@pytest.mark.parametrize(
    ("family", "name", "meant"),
    [
        (sisl, "pursuits", "sisl/pursuit_v5"),
        (sisl, "pursuit_v4", "sisl/pursuit_v5"),
        (butterfly, "piston", "pistonball"),
    ],
)
def test_a_name_that_is_not_there_gets_a_suggestion(family, name, meant):
    with pytest.raises(ConfigError, match=meant):
        family(name)


@pytest.mark.parametrize(
    ("family", "name", "module", "remedy"),
    [
        (sisl, "multiwalker", "pettingzoo.sisl.multiwalker.multiwalker", "pip install 'marlctl\\[sisl\\]'"),
        (
            butterfly,
            "pistonball",
            "pettingzoo.butterfly.pistonball.pistonball",
            "pip install 'pettingzoo\\[butterfly\\]'",
        ),
        (atari, "pong", "pettingzoo.atari.pong.pong", "pip install 'pettingzoo\\[atari\\]'"),
    ],
)
def test_a_missing_extra_comes_with_the_command_that_installs_it(monkeypatch, family, name, module, remedy):
    import sys

    from marlctl_pettingzoo import _options_class

    _options_class.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(PluginError, match=remedy):
        family(name)
