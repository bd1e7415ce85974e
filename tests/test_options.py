"""Options: every type from text and from TOML, bounds, what is refused and how that is said, and suggestions."""

import datetime
import random
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Optional

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from marlctl import plugins
from marlctl.config import Run
from marlctl.errors import ConfigError, MarlctlError, PluginError
from marlctl.options import build, changed, describe, literal, option, type_name, unknown


@dataclass(frozen=True)
class Everything:
    """One option of every type."""

    count: int = option(3, "how many", low=1, high=100)
    rate: float = option(0.5, "how fast", above=0)
    on: bool = option(False, "whether")
    word: str = option("a", "a name")
    sizes: tuple[int, ...] = option((64, 64), "layers", low=1)
    shares: tuple[float, ...] = option((), "shares")
    kind: Literal["ou", "normal", 3] = option("ou", "noise")
    limit: int | None = option(None, "at most", low=1)
    old_style: Optional[float] = option(None, "written the old way")  # noqa: UP045
    either: int | str = option(1, "a number or a word")
    anything: Any = option(None, "whatever")
    plain: int = 7


@dataclass(frozen=True)
class Open:
    """Takes what it does not know."""

    open_options: ClassVar[str] = "kwargs"
    size: int = option(1, "a size", low=1)
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Choosy:
    """Has a rule of its own."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError("low must be below high")


def built(name: str, value: Any) -> Any:
    return getattr(build(Everything, {name: value}, owner="algo"), name)


def refusal(name: str, value: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        build(Everything, {name: value}, owner="algo")
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("count", "7", 7),
        ("count", 7, 7),
        ("count", 7.0, 7),
        ("count", "1e2", 100),
        ("count", "1_0", 10),
        ("rate", "1e-3", 1e-3),
        ("rate", 2, 2.0),
        ("rate", "2", 2.0),
        ("on", True, True),
        ("on", "yes", True),
        ("on", "TRUE", True),
        ("on", "off", False),
        ("on", "0", False),
        ("word", "b c", "b c"),
        ("word", "12", "12"),
        ("word", "", ""),
        ("sizes", "32,16", (32, 16)),
        ("sizes", "[32, 16]", (32, 16)),
        ("sizes", "(32,)", (32,)),
        ("sizes", [32, 16], (32, 16)),
        ("sizes", [], ()),
        ("shares", "0.5", (0.5,)),
        ("kind", "normal", "normal"),
        ("kind", "3", 3),
        ("kind", 3, 3),
        ("limit", "none", None),
        ("limit", "", None),
        ("limit", "5", 5),
        ("limit", None, None),
        ("old_style", "0.25", 0.25),
        ("either", "5", 5),
        ("either", "five", "five"),
        ("anything", "5", 5),
        ("anything", "[1, 2]", [1, 2]),
        ("anything", {"a": [1.5]}, {"a": [1.5]}),
        ("anything", datetime.date(2020, 1, 2), datetime.date(2020, 1, 2)),
    ],
)
def test_text_and_toml_values_become_the_declared_type(name, value, expected):
    found = built(name, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("count", "many", "a whole number at least 1 and at most 100"),
        ("count", 0, "at least 1"),
        ("count", "101", "at most 100"),
        ("count", 1.5, "a whole number"),
        ("count", True, "a whole number"),
        ("count", None, "a whole number"),
        ("count", [1], "a whole number"),
        ("rate", 0, "a number above 0"),
        ("rate", "-1", "above 0"),
        ("rate", "fast", "a number"),
        ("on", "maybe", "true or false"),
        ("on", 1, "true or false"),
        ("word", 5, "text"),
        ("sizes", "32,x", "a list, each a whole number, at least 1"),
        ("sizes", [32, 0], "at least 1"),
        ("sizes", 32, "a list"),
        ("sizes", True, "a list"),
        ("sizes", {"a": 1}, "a list"),
        ("kind", "gauss", "one of ou, normal, 3"),
        ("limit", 0, "a whole number or none at least 1"),
        ("limit", "x", "a whole number or none"),
        ("anything", object(), "a value"),
        ("anything", [None], "a value"),
        ("count", datetime.date(2020, 1, 1), "a whole number"),
    ],
)
def test_a_wrong_value_is_refused_with_the_options_name_and_what_is_allowed(name, value, allowed):
    said = refusal(name, value)
    assert f"algo.{name} is " in said
    assert allowed in said


@pytest.mark.parametrize("name", ["count", "rate", "limit", "old_style", "sizes", "anything", "plain"])
@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        float("-inf"),
        "nan",
        "inf",
        "-inf",
        "1e999",
        pytest.param(10**400, id="401 digits"),
        pytest.param("9" * 400, id="400 nines"),
        pytest.param(10**5000, id="5001 digits"),
    ],
)
def test_numbers_that_are_not_finite_or_huge_are_refused_everywhere(name, value):
    values = [value] if name == "sizes" else value
    said = refusal(name, values)
    assert f"algo.{name} is" in said
    assert len(said) < 250


@given(
    st.dictionaries(
        st.sampled_from([o.name for o in describe(Everything)]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.binary(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        ),
    )
)
def test_any_value_is_taken_or_refused_with_one_of_our_errors(values):
    try:
        made = build(Everything, values, owner="algo")
    except MarlctlError as error:
        event(str(error).partition(" ")[0])
    else:
        assert 1 <= made.count <= 100
        assert made.rate > 0
        assert all(size >= 1 for size in made.sizes)


@given(st.integers(1, 100), st.floats(1e-300, 1e300), st.lists(st.integers(1, 10**6)), st.booleans())
def test_what_is_written_as_text_comes_back_equal(count, rate, sizes, on):
    written = {"count": str(count), "rate": repr(rate), "sizes": str(sizes), "on": str(on)}
    made = build(Everything, written, owner="algo")
    assert (made.count, made.rate, made.sizes, made.on) == (count, rate, tuple(sizes), on)


def test_a_whole_number_beyond_floats_precision_is_not_rounded():
    big = 2**53 + 1
    assert built("plain", str(big)) == built("plain", big) == big


def test_options_are_described_in_the_authors_order_with_help_and_bounds():
    described = {o.name: o for o in describe(Everything)}
    assert list(described)[:4] == ["count", "rate", "on", "word"]
    assert described["count"].help == "how many"
    assert described["count"].allowed == "a whole number at least 1 and at most 100"
    assert described["plain"].help == ""
    assert described["plain"].allowed == "a whole number"
    assert described["shares"].allowed == "a list, each a number"


@pytest.mark.parametrize(
    ("kind", "said"),
    [(int, "a whole number"), (float | None, "a number or none"), (Literal["a", "b"], "one of a, b"), (bytes, "bytes")],
)
def test_types_are_named_as_a_user_would_say_them(kind, said):
    assert type_name(kind) == said


def test_an_unknown_name_is_refused_and_the_near_ones_are_named():
    assert "did you mean algo.count" in refusal("cuont", 3)


def test_where_nothing_is_near_all_names_are_listed():
    said = unknown("zzzzzz", ["beta", "alpha"], what="option")
    assert said == "no option 'zzzzzz'; there is alpha, beta"
    assert unknown("x", [], what="run").endswith("there is none")


def test_open_options_take_unknown_names_as_what_they_look_like():
    made = build(Open, {"size": "2", "n": "5", "rate": "0.5", "name": "x", "list": "[1, a]", "no": "none"}, owner="env")
    assert made.size == 2
    assert made.kwargs == {"n": 5, "rate": 0.5, "name": "x", "list": [1, "a"], "no": None}


def test_the_open_field_itself_is_no_option():
    assert [o.name for o in describe(Open)] == ["size"]
    assert build(Open, {}, owner="env").kwargs == {}


@pytest.mark.parametrize("value", [object(), float("nan"), "inf", [object()]])
def test_open_options_take_only_what_a_run_file_can_hold(value):
    with pytest.raises(ConfigError, match=r"env\.x is "):
        build(Open, {"x": value}, owner="env")


def test_a_plugins_own_rule_speaks_for_its_owner():
    with pytest.raises(ConfigError, match="algo: low must be below high"):
        build(Choosy, {"low": 2}, owner="algo")


def test_an_option_whose_type_nobody_knows_is_the_plugins_fault():
    @dataclass(frozen=True)
    class Odd:
        x: "Nowhere" = 1  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(PluginError, match=r"Odd has an option of unknown type.*Nowhere"):
        describe(Odd)


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("3.5", 3.5), ("1e3", 1000), ("true", True), ("off", False), ("none", None), ("a b", "a b"), ("[]", [])],
)
def test_text_without_a_type_is_read_as_what_it_looks_like(text, value):
    assert literal(text) == value


def misspelt(rng: random.Random, word: str, edits: int) -> str:
    letters = string.ascii_lowercase + "_"
    for _ in range(edits):
        at = rng.randrange(len(word))
        how = rng.choice(["insert", "remove", "change", "swap"])
        if how == "insert":
            word = word[:at] + rng.choice(letters) + word[at:]
        elif how == "remove" and len(word) > 1:
            word = word[:at] + word[at + 1 :]
        elif how == "change":
            word = word[:at] + rng.choice(letters) + word[at + 1 :]
        elif how == "swap" and at + 1 < len(word):
            word = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word


def suggested(name: str, known: list[str]) -> list[str]:
    """The names a user sees at a glance: all of a list of up to five, else the first three."""
    names = re.split("did you mean |there is ", unknown(name, known, what="option"))[-1].rstrip("?").split(", ")
    return names if len(names) <= 5 else names[:3]


def test_a_misspelt_option_finds_the_right_one_among_three_suggestions_in_95_of_100_cases():
    rng = random.Random(1)
    schemas = [("run", Run), *(("algo", plugins.algorithm(p.name)) for p in plugins.installed(plugins.Kind.ALGORITHM))]
    schemas += [("env", plugins.environment(p.name)) for p in plugins.installed(plugins.Kind.ENVIRONMENT)]
    hits = []
    for owner, schema in schemas:
        known = [f"{owner}.{o.name}" for o in describe(schema)]
        for right in known:
            for edits in (1, 2) * 10:
                wrong = f"{owner}.{misspelt(rng, right.partition('.')[2], edits)}"
                if wrong not in known:
                    hits.append(right in suggested(wrong, known))
    assert len(hits) > 1000
    assert sum(hits) / len(hits) >= 0.95


@pytest.mark.parametrize("kind", [plugins.Kind.ENVIRONMENT, plugins.Kind.ALGORITHM])
def test_a_misspelt_plugin_finds_the_right_one_as_often(kind):
    rng = random.Random(2)
    known = sorted({p.name for p in plugins.installed(kind)})
    wrongs = [(misspelt(rng, right, edits), right) for right in known for edits in (1, 2) * 20]
    hits = [right in suggested(wrong, known) for wrong, right in wrongs if wrong not in known]
    assert sum(hits) / len(hits) >= 0.95


def test_a_bare_misspelt_option_of_four_letters_or_more_is_found_too():
    rng = random.Random(3)
    known = sorted({o.name for schema in (Run, plugins.algorithm("maddpg")) for o in describe(schema)})
    wrongs = [(misspelt(rng, right, e), right) for right in known if len(right) >= 4 for e in (1, 2) * 10]
    hits = [right in suggested(wrong, known) for wrong, right in wrongs if wrong not in known]
    assert sum(hits) / len(hits) >= 0.95


def test_a_changed_plugin_keeps_what_is_no_option():
    @dataclass(frozen=True)
    class Marked:
        size: int = option(1, "a size")
        _mark: bool = field(default=False, init=False)

    first = Marked()
    assert changed(changed(first, _mark=True), size=4) == changed(Marked(size=4), _mark=True)
    assert first == Marked()
