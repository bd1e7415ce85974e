"""From flags and run files to one checked configuration, and what a continued run may change."""

import sys
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from marlctl import config as configs
from marlctl.config import FREE, Run, continued, match_agents, merge, parse_set, read_file, resolve
from marlctl.errors import ConfigError, MarlctlError

TOY = {"run": {"algo": "toy", "scenario": "toy_grid"}}


def toy(run=None, **owners):
    return resolve(merge(TOY, {"run": run or {}}, owners))


# -- layers -----------------------------------------------------------------------------------------


def test_later_layers_win_value_by_value():
    file = {"run": {"seed": 1, "algo": "toy"}, "algo": {"lr": 0.1, "momentum": 0.2}}
    flags = {"run": {"seed": 2}, "algo": {"lr": 0.3}}
    assert merge(file, flags) == {"run": {"seed": 2, "algo": "toy"}, "algo": {"lr": 0.3, "momentum": 0.2}}


def test_merging_changes_no_layer():
    file, flags = {"run": {"seed": 1}}, {"run": {"seed": 2}}
    merge(file, flags)
    assert file == {"run": {"seed": 1}}


def test_a_value_can_be_set_by_its_owner():
    values = parse_set(["algo.lr=0.5", "env.size=9", "run.seed=4", "algo.on_policy=yes"], "toy_grid", "toy")
    assert values == {"algo": {"lr": "0.5", "on_policy": "yes"}, "env": {"size": "9"}, "run": {"seed": "4"}}
    config = resolve(merge(TOY, values))
    assert (config.algo.lr, config.algo.on_policy, config.env.size, config.run.seed) == (0.5, True, 9, 4)


def test_a_value_may_hold_an_equals_sign_or_nothing():
    assert parse_set(["run.best_by=a=b", "run.device="], "toy_grid", "toy") == {"run": {"best_by": "a=b", "device": ""}}


def test_a_bare_name_goes_to_the_one_owner_that_has_it():
    found = parse_set(["lr=0.5", "size=9", "seed=4"], "toy_grid", "toy")
    assert found == {"algo": {"lr": "0.5"}, "env": {"size": "9"}, "run": {"seed": "4"}}


def test_a_bare_name_of_two_owners_is_asked_about(tmp_path, monkeypatch):
    (tmp_path / "twofold.py").write_text(
        "from marlctl.testing.toy import Grid\ndef make(lr: int = 3): return Grid(2, lr, 4)\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"'lr' could be env\.lr or algo\.lr; say which"):
        parse_set(["lr=1"], "twofold:make", "toy")
    assert parse_set(["env.lr=1"], "twofold:make", "toy") == {"env": {"lr": "1"}}


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("learning=1", "no option 'learning'"),
        ("momentun=1", "did you mean momentum"),
        ("alg.lr=1", "no owner of options 'alg'; did you mean algo"),
        ("policy.x=1", "no owner of options 'policy'"),
        ("lr", "must look like owner.name=value"),
        ("=1", "must look like owner.name=value"),
        ("", "must look like owner.name=value"),
    ],
)
def test_what_cannot_be_set_is_explained(pair, says):
    with pytest.raises(ConfigError) as caught:
        parse_set([pair], "toy_grid", "toy")
    assert says in str(caught.value)


# -- run files --------------------------------------------------------------------------------------


def test_a_run_file_is_its_sections(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[run]\nalgo = "toy"\nscenario = "toy_grid"\n[algo]\nlr = 0.5\n[about]\nnote = "mine"\n')
    config = resolve(read_file(path))
    assert config.algo.lr == 0.5
    assert "about" not in config.values


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"not toml at all", "is not TOML"),
        (b"\xff\xfe", "is not TOML"),
        (b"a = " + b"[" * 50_000, "is not TOML"),
        (b"[run]\nseed = " + b"9" * 5000, "is not TOML"),
        (b"seed = 3", "'seed' stands outside a section; there are run, env, algo, policy"),
        (b"[[run]]\nseed = 3", "'run' stands outside a section"),
        (b"#" * 1_000_001, "too large to be a run file"),
    ],
)
def test_a_file_that_is_no_run_file_is_named_and_explained(tmp_path, content, says):
    path = tmp_path / "odd.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_file(path)
    assert says in str(caught.value)
    assert "odd.toml" in str(caught.value)


@pytest.mark.parametrize("name", ["missing.toml", ".", "a\0b", "x" * 300])
def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path, name):
    with pytest.raises(ConfigError):
        read_file(tmp_path / name)


def test_every_resolved_configuration_can_be_written_and_read_back_the_same(tmp_path):
    config = toy({"seed": 3, "steps": 500}, algo={"lr": 0.25}, policy={"agent_*": "random"})
    path = tmp_path / "run.toml"
    path.write_text(tomli_w.dumps(config.values))
    again = resolve(read_file(path))
    assert again == config
    assert again.digest == config.digest


def test_a_value_set_to_none_stays_none_when_it_is_read_back(tmp_path, monkeypatch):
    """TOML has no none: left out of run.toml, the option would come back as its default."""
    (tmp_path / "unset.py").write_text(
        "from marlctl.testing.toy import Grid\n"
        "def helper(): ...\n"
        "def make(size: int | None = 5, how=helper, **rest): return Grid(2, size or 3, 4)\n"
    )
    monkeypatch.chdir(tmp_path)
    values = {"run": {"algo": "toy", "scenario": "unset:make"}, "env": {"size": "none", "other": "none"}}
    config = resolve(values)
    assert config.env.size is None
    again = resolve(configs.merge(config.values))
    assert again.env.size is None
    assert again.env.rest == {"other": None}
    assert tomli_w.dumps(config.values)
    assert again.digest == config.digest
    sys.modules.pop("unset")


# -- resolving --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "which algo?"),
        ({"run": {"algo": "toy"}}, "which scenario?"),
        ({"rnu": {}}, "no section 'rnu'; did you mean run"),
        ({"run": {"sead": 1}}, "did you mean run.seed"),
        ({"run": {"algo": "nope", "scenario": "nope", "seed": -1}}, "run.seed is -1"),
        ({"run": {"algo": "nope", "scenario": "toy_grid"}}, "no algorithm 'nope'"),
        ({"run": {"algo": "toy", "scenario": "nope"}, "algo": {"lr": -1}}, "no environment 'nope'"),
        (merge(TOY, {"algo": {"lr": -1}, "env": {"size": 0}}), "env.size is 0"),
        (merge(TOY, {"algo": {"lr": -1}}), "algo.lr is -1; it must be a number above 0"),
        (merge(TOY, {"run": {"steps": 5, "num_episodes": 5}}), "a run has one budget"),
        (merge(TOY, {"run": {"num_envs": -1}}), "run.num_envs is -1"),
        (merge(TOY, {"run": {"seed": 2**63}}), "run.seed is"),
    ],
)
def test_the_cheapest_mistake_is_told_first(values, says):
    with pytest.raises(ConfigError) as caught:
        resolve(values)
    assert says in str(caught.value)


def test_without_a_budget_a_run_has_sixty_thousand_episodes():
    assert toy().run.num_episodes == 60_000
    assert toy({"steps": 9}).run.num_episodes is None


def test_the_budget_in_steps_is_known_where_the_length_is():
    assert toy({"num_episodes": 10}).budget_steps == 120
    assert toy({"num_episodes": 10, "max_episode_len": 5}).budget_steps == 50
    assert toy({"steps": 7}).budget_steps == 7


@given(
    st.dictionaries(
        st.sampled_from(["run", "env", "algo", "policy", "about", "odd"]),
        st.dictionaries(
            st.sampled_from(["seed", "steps", "lr", "size", "algo", "scenario", "agent_0", "x"]),
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
        ),
    )
)
def test_any_run_file_resolves_or_is_refused_with_one_of_our_errors(values):
    try:
        config = resolve(merge(TOY, values))
    except MarlctlError:
        return
    assert resolve(config.values).digest == config.digest


# -- the digest, and going on -----------------------------------------------------------------------


def saved(**run):
    return toy({"num_episodes": 100, "log_every": 1, **run}).values


@pytest.mark.parametrize("change", [{"num_episodes": 200}, {"save_rate": 7}, {"keep": 9}])
def test_the_digest_is_the_same_for_what_changes_no_number(change):
    (name,) = change
    assert name in FREE
    assert resolve(merge(saved(), {"run": change})).digest == resolve(saved()).digest


@pytest.mark.parametrize(
    "change",
    [
        {"run": {"seed": 1}},
        {"run": {"num_envs": 2}},
        {"run": {"eval_every": 7}},
        {"run": {"log_every": 2}},
        {"run": {"max_episode_len": 3}},
        {"env": {"size": 8}},
        {"algo": {"lr": 0.11}},
        {"policy": {"agent_0": "random"}},
    ],
)
def test_the_digest_differs_for_everything_else(change):
    assert resolve(merge(saved(), change)).digest != resolve(saved()).digest


def test_the_digest_does_not_depend_on_how_a_value_was_written_or_in_which_order():
    one = resolve({"run": {"algo": "toy", "scenario": "toy_grid"}, "algo": {"lr": "0.2", "capacity": "1e3"}})
    other = resolve({"algo": {"capacity": 1000, "lr": 0.2}, "run": {"scenario": "toy_grid", "algo": "toy"}})
    assert one.digest == other.digest


def test_a_run_goes_on_as_it_was_with_a_longer_budget_and_other_saving():
    after = continued(saved(), {"run": {"num_episodes": "150", "save_rate": 3, "keep": 5}})
    assert (after.run.num_episodes, after.run.save_rate, after.run.keep) == (150, 3, 5)
    assert after.digest == resolve(saved()).digest
    assert continued(saved(), {}) == resolve(saved())


def test_saying_the_same_again_is_no_change():
    assert continued(saved(seed=3), {"run": {"seed": "3", "algo": "toy"}, "algo": {"lr": "0.1"}}).run.seed == 3


def test_every_difference_of_a_continued_run_is_shown_with_what_may_change():
    with pytest.raises(ConfigError) as caught:
        continued(saved(), {"run": {"seed": 5, "num_episodes": 200}, "algo": {"lr": 0.7}, "env": {"size": 9}})
    said = str(caught.value)
    for part in ("run.seed: the run has 0, you gave 5", "algo.lr: the run has 0.1, you gave 0.7", "env.size", "--keep"):
        assert part in said
    assert "num_episodes: the run has" not in said


def test_another_algorithm_or_policy_is_a_difference():
    with pytest.raises(ConfigError, match=r"policy\.agent_0"):
        continued(saved(), {"policy": {"agent_0": "random"}})
    with pytest.raises(ConfigError, match=r"run\.max_episode_len: the run has None, you gave 5"):
        continued(saved(), {"run": {"max_episode_len": 5}})


def test_a_budget_in_another_unit_is_refused():
    with pytest.raises(ConfigError, match="counts its budget in num_episodes"):
        continued(saved(), {"run": {"steps": 10_000}})
    steps = toy({"steps": 100}).values
    with pytest.raises(ConfigError, match="counts its budget in steps"):
        continued(steps, {"run": {"num_episodes": 10_000}})
    assert continued(steps, {"run": {"steps": 200}}).run.steps == 200


def test_only_what_is_free_may_change():
    assert set(FREE) <= {f for f in Run.__dataclass_fields__}


# -- who plays --------------------------------------------------------------------------------------

NAMES = ("adversary_0", "adversary_1", "agent_0")


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        ({}, {}),
        ({"agent_0": "random"}, {"agent_0": "random"}),
        ({"adversary_*": "random"}, {"adversary_0": "random", "adversary_1": "random"}),
        ({"*": "random", "agent_0": "there"}, {"adversary_0": "random", "adversary_1": "random", "agent_0": "there"}),
        ({"agent_0": "there", "*": "random"}, dict.fromkeys(NAMES, "random")),
        ({"*_0": "random"}, {"adversary_0": "random", "agent_0": "random"}),
    ],
)
def test_patterns_choose_agents_and_the_last_one_wins(policy, chosen):
    assert match_agents(policy, NAMES) == chosen


@pytest.mark.parametrize("pattern", ["agent_9", "Agent_0", "", "adversary"])
def test_a_pattern_that_names_nobody_is_refused_and_the_agents_are_listed(pattern):
    with pytest.raises(ConfigError, match=r"no agent is called so; there is adversary_0, adversary_1, agent_0"):
        match_agents({pattern: "random"}, NAMES)


def test_the_example_run_files_resolve():
    for path in (Path(__file__).parents[1] / "examples" / "runs").glob("*.toml"):
        assert resolve(read_file(path)).run.algo


@pytest.mark.parametrize(
    ("values", "copies"),
    [
        ({"run": {"scenario": "simple_tag"}}, 32),
        ({"run": {"scenario": "simple_tag", "num_envs": 7}}, 7),
        ({"run": {"scenario": "simple_tag", "num_episodes": 5}}, 5),
        ({"run": {"scenario": "simple_tag"}, "env": {"backend": "mpe2"}}, 1),
        ({"run": {"scenario": "toy_grid"}}, 1),
    ],
)
def test_scenarios_in_arrays_are_played_in_many_copies_and_others_in_one(values, copies):
    assert resolve(merge({"run": {"algo": "toy"}}, values)).run.num_envs == copies


def test_an_algorithm_of_small_updates_gets_one_thread(monkeypatch):
    monkeypatch.setattr(configs, "_cores", lambda: 64)
    assert resolve({"run": {"algo": "coma", "scenario": "toy_grid"}}).run.threads == 1


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 2), (64, 2)])
def test_torch_gets_two_threads_where_there_are_two_cores(cores, threads, monkeypatch):
    monkeypatch.setattr(configs, "_cores", lambda: cores)
    assert resolve(TOY).run.threads == threads
    assert resolve(merge(TOY, {"run": {"threads": 5}})).run.threads == 5
