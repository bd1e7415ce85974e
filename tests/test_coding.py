"""Whatever set of answers decodes gives the gradients back bit for bit; whatever cannot is told, and why."""

import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.coding import STEP, Code, Decoder, Outcome, encode, to_grid, tolerance, work_per_learner
from marlctl.coding.tolerance import Tolerance
from marlctl.errors import LearnersError, PluginError
from marlctl.plugins import scheme

CODES = [
    ("uncoded", {}, 5, 5),
    ("replication", {}, 11, 5),
    ("mds", {}, 9, 5),
    ("mds", {"form": "systematic"}, 9, 5),
    ("mds-vandermonde", {}, 9, 5),
    ("random-sparse", {}, 9, 5),
    ("ldpc", {}, 8, 5),
]
IDS = [f"{name}-{'-'.join(options.values())}".rstrip("-") for name, options, _, _ in CODES]


def make(name, options, n_learners, n_units, seed=3):
    return Code.build(scheme(name)(**options), n_learners, n_units, np.random.default_rng(seed))


BUILT = {label: make(*code) for label, code in zip(IDS, CODES, strict=True)}


def gradients(rng, lengths, size=0.5):
    """Clipped gradients as they are in life: mostly small, some 0, some tiny, some as large as can be."""
    found = []
    for length in lengths:
        vector = rng.standard_normal(length) * rng.choice([1e-9, 1e-4, 0.1, 10.0], length) * size
        vector[rng.random(length) < 0.2] = 0.0
        vector[rng.random(length) < 0.1] = rng.choice([STEP, -STEP, STEP / 2, 1e-300, size, -size])
        found.append(np.clip(vector, -size, size).astype(np.float32))
    return found


def feed(code, answers, learners, lengths):
    decoder = Decoder(code, lengths)
    for learner in learners:
        assert decoder.add(int(learner), answers[learner]) is None
    return decoder


def same_bits(decoded, original):
    return [d.tobytes() for d in decoded] == [to_grid(o).tobytes() for o in original]


# -- the grid -----------------------------------------------------------------------------------


@given(st.floats(-(2.0**80), 2.0**80))
def test_the_grid_moves_a_number_by_at_most_half_a_step_and_only_once(number):
    once = to_grid(np.array([number]))
    assert abs(once[0] - number) <= STEP / 2
    assert once[0] % STEP == 0
    assert to_grid(once).tobytes() == once.tobytes()


def test_equal_values_on_the_grid_have_equal_bits():
    assert to_grid(np.array([-0.0, -STEP / 4, 0.0])).tobytes() == np.zeros(3).tobytes()


def test_the_grid_takes_single_precision_and_leaves_what_it_was_given():
    given_ = np.array([0.1, 3.4e38, -0.0], np.float32)
    kept = given_.copy()
    assert to_grid(given_).dtype == np.float64
    assert given_.tobytes() == kept.tobytes()


def test_what_is_not_finite_stays_so_on_the_grid():
    assert np.array_equal(to_grid(np.array([np.nan, np.inf, -np.inf])), [np.nan, np.inf, -np.inf], equal_nan=True)


def test_an_answer_needs_only_its_own_units_and_is_as_long_as_the_longest_of_them():
    answer = encode(np.array([0.0, 2.0, -1.0, 0.0]), {1: np.array([1.0, 2.0]), 2: np.array([1.0, 1.0, 4.0])})
    assert answer.tolist() == [1.0, 3.0, -4.0]
    assert len(encode(np.zeros(2), {})) == 0


# -- exact, bit for bit -------------------------------------------------------------------------


@settings(max_examples=150)
@given(label=st.sampled_from(IDS), seed=st.integers(0, 2**32), size=st.sampled_from([1e-6, 0.5, 1.0, 5.0]))
def test_the_first_answers_that_are_enough_give_every_gradient_bit_for_bit(label, seed, size):
    code, rng = BUILT[label], np.random.default_rng(seed)
    lengths = rng.integers(1, 40, code.n_units)
    given_ = gradients(rng, lengths, size)
    decoder = Decoder(code, lengths)
    for learner in rng.permutation(code.n_learners):
        assert decoder.add(int(learner), encode(code.matrix[learner], given_)) is None
        if decoder.ready:
            break
    assert decoder.decodable
    assert decoder.wrong == ()
    assert same_bits(decoder.decode(), given_)


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32), n_units=st.integers(1, 6), spare=st.integers(0, 3), bits=st.sampled_from([None, 0, 8])
)
def test_whatever_the_matrix_gradients_up_to_its_limit_come_back_exactly(seed, n_units, spare, bits):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((n_units + spare, n_units)) * 10.0 ** rng.integers(-3, 3, (n_units + spare, 1))
    matrix[-1] = matrix[0] * (1 + 10.0 ** -rng.integers(1, 7)) + matrix[-1] * 1e-4  # often poorly conditioned
    if bits is not None:
        matrix = np.rint(matrix * 2.0**bits) / 2.0**bits
    code = Code(matrix)
    everyone = tuple(range(code.n_learners))
    solution = code.solution(everyone)
    if solution is None or solution.limit == 0:
        return
    largest = min(solution.limit, 1e6)
    given_ = [np.append(rng.uniform(-largest, largest, 30), [largest, -largest]) for _ in range(n_units)]
    answers = [encode(row, given_) for row in code.matrix]
    decoder = feed(code, answers, everyone, [32] * n_units)
    size = max(np.abs(to_grid(vector)).max() for vector in given_)
    if size <= solution.limit:
        assert decoder.outcome is Outcome.READY
    if decoder.ready:
        assert same_bits(decoder.decode(), given_)


@pytest.mark.parametrize("label", ["uncoded", "replication"])
def test_gradients_that_come_alone_may_be_of_any_size(label, rng):
    code = BUILT[label]
    given_ = [rng.standard_normal(20) * 1e30 for _ in range(code.n_units)]
    answers = [encode(row, given_) for row in code.matrix]
    decoder = feed(code, answers, range(code.n_learners), [20] * code.n_units)
    assert same_bits(decoder.decode(), given_)


@pytest.mark.parametrize("label", [label for label in IDS if label != "mds-vandermonde"])
def test_the_codes_of_the_house_bear_gradients_of_hundreds(label):
    code = BUILT[label]
    assert (
        tolerance(code, np.random.default_rng(0), size=300.0).exact == tolerance(code, np.random.default_rng(0)).shares
    )


def test_units_of_different_lengths_are_padded_and_cut(rng):
    code = BUILT["mds-systematic"]
    lengths = [3, 50, 1, 7, 20]
    given_ = gradients(rng, lengths)
    answers = [encode(row, given_) for row in code.matrix]
    assert [len(answer) for answer in answers] == [*lengths, 50, 50, 50, 50]
    decoded = feed(code, answers, [8, 2, 7, 5, 0], lengths).decode()
    assert [len(vector) for vector in decoded] == lengths
    assert same_bits(decoded, given_)


def test_what_was_decoded_can_be_changed_without_changing_what_is_decoded_again(rng):
    code = BUILT["mds"]
    given_ = gradients(rng, [4] * 5)
    decoder = feed(code, [encode(row, given_) for row in code.matrix], range(9), [4] * 5)
    decoder.decode()[0][:] = 7
    assert same_bits(decoder.decode(), given_)


# -- answers that are refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "vector", "why"),
    [
        (9, np.zeros(4), "no learner 9"),
        (-1, np.zeros(4), "no learner -1"),
        (1, np.zeros(4), "before"),
        (2, np.zeros(3), "instead of float64"),
        (2, np.zeros(5), "instead of float64"),
        (2, np.zeros((4, 1)), "instead of float64"),
        (2, np.zeros(4, np.float32), "instead of float64"),
        (2, np.array([0, 0, 0, np.nan]), "not finite"),
        (2, np.array([0, 0, 0, np.inf]), "not finite"),
    ],
)
def test_an_answer_that_cannot_be_right_is_refused_with_the_reason(learner, vector, why):
    decoder = Decoder(BUILT["mds"], [4] * 5)
    decoder.add(1, np.ones(4))
    assert why in decoder.add(learner, vector)
    assert decoder.answered == (1,)


@pytest.mark.parametrize("label", IDS)
def test_without_any_answer_nothing_is_decodable(label):
    decoder = Decoder(BUILT[label], [4] * 5)
    assert not decoder.decodable
    assert not decoder.ready


def test_too_few_answers_are_an_error_that_says_how_many():
    decoder = Decoder(BUILT["mds"], [4] * 5)
    for learner in range(4):
        decoder.add(learner, np.zeros(4))
    assert not decoder.decodable
    assert decoder.outcome is Outcome.WAITING
    with pytest.raises(LearnersError, match=r"4 of 9 learners answered.*do not determine") as caught:
        decoder.decode()
    assert caught.value.exit_code == 7


# -- when the condition is poor -----------------------------------------------------------------


NEARLY_PARALLEL = np.array([[np.pi, 1.0], [np.pi, 1.0 + 1e-8], [-1.0, np.pi]])


def test_a_poorly_conditioned_set_of_answers_waits_for_one_more(rng):
    code = Code(NEARLY_PARALLEL)
    given_ = gradients(rng, [50, 50])
    answers = [encode(row, given_) for row in code.matrix]
    decoder = feed(code, answers, [0, 1], [50, 50])
    assert decoder.decodable
    assert decoder.outcome is Outcome.POOR
    assert decoder.condition > 1e8
    decoder.add(2, answers[2])
    assert decoder.condition < 10
    assert same_bits(decoder.decode(), given_)


def test_all_answers_in_and_still_poor_is_an_error_of_its_own(rng):
    code = Code(NEARLY_PARALLEL[:2])
    given_ = gradients(rng, [50, 50])
    decoder = feed(code, [encode(row, given_) for row in code.matrix], [0, 1], [50, 50])
    with pytest.raises(LearnersError, match=r"2 of 2 learners answered.*but not exactly.*clip the gradients") as caught:
        decoder.decode()
    assert caught.value.exit_code == 7


def test_gradients_too_large_for_a_code_are_poor_and_not_wrong(rng):
    code = BUILT["mds"]
    for size in 10.0 ** np.arange(3, 20):
        given_ = [rng.uniform(-size, size, 50) for _ in range(5)]
        decoder = feed(code, [encode(row, given_) for row in code.matrix], [1, 3, 4, 6, 7, 8], [50] * 5)
        assert decoder.outcome in (Outcome.READY, Outcome.POOR)
        if decoder.ready:
            assert same_bits(decoder.decode(), given_)
    assert decoder.outcome is Outcome.POOR


# -- wrong answers ------------------------------------------------------------------------------


def spoilt(answers, learner, rng, by):
    wrong = [answer.copy() for answer in answers]
    wrong[learner][rng.integers(len(wrong[learner]))] += by
    return wrong


@pytest.mark.parametrize("label", ["mds", "mds-systematic", "random-sparse", "mds-vandermonde"])
@pytest.mark.parametrize("by", [2.0**-10, -1e-3, 1.0, 1e6, 1e30, 1e300])
def test_one_wrong_number_is_noticed_and_with_two_answers_to_spare_its_learner_named(label, by, rng):
    code = BUILT[label]
    for _ in range(10):
        given_ = gradients(rng, [12] * 5)
        answers = [encode(row, given_) for row in code.matrix]
        learners = rng.permutation(9)
        wrong = spoilt(answers, guilty := int(learners[0]), rng, by)
        one_spare = feed(code, wrong, learners[:6], [12] * 5)
        assert not one_spare.ready or one_spare.wrong == (guilty,)
        two_spare = feed(code, wrong, learners[:7], [12] * 5)
        assert two_spare.wrong == (guilty,)
        assert same_bits(two_spare.decode(), given_)


def test_right_answers_are_never_called_wrong(rng):
    for label in IDS:
        code = BUILT[label]
        for _ in range(40):
            given_ = gradients(rng, [12] * 5, size=float(rng.choice([1e-8, 0.5, 5.0])))
            answers = [encode(row, given_) for row in code.matrix]
            decoder = feed(code, answers, rng.permutation(code.n_learners), [12] * 5)
            assert decoder.ready
            assert decoder.wrong == ()


def test_a_dense_code_notices_a_wrong_answer_even_without_one_to_spare(rng):
    """What is decoded with it does not lie on the grid."""
    code = BUILT["mds"]
    given_ = gradients(rng, [12] * 5)
    answers = [encode(row, given_) for row in code.matrix]
    for learner in range(5):
        wrong = spoilt(answers, learner, rng, 1e-3)
        decoder = feed(code, wrong, range(5), [12] * 5)
        assert decoder.outcome is Outcome.WRONG
        assert decoder.residual > 0


def test_of_two_copies_that_differ_none_is_believed_and_of_three_the_majority(rng):
    code = BUILT["replication"]  # units 0 to 4 twice, and unit 0 once more
    given_ = gradients(rng, [12] * 5)
    answers = spoilt([encode(row, given_) for row in code.matrix], 5, rng, 2.0**-10)
    decoder = feed(code, answers, range(10), [12] * 5)
    assert decoder.outcome is Outcome.WRONG
    with pytest.raises(LearnersError, match=r"contradict one another.*cannot be told whose"):
        decoder.decode()
    decoder.add(10, answers[10])
    assert decoder.wrong == (5,)
    assert same_bits(decoder.decode(), given_)


def test_a_wrong_number_in_the_padding_is_noticed(rng):
    code, lengths = BUILT["mds"], [3, 3, 3, 3, 9]
    given_ = gradients(rng, lengths)
    answers = [encode(row, given_) for row in code.matrix]
    answers[2][8] += STEP
    decoder = feed(code, answers, range(7), lengths)
    assert decoder.wrong == (2,)
    assert same_bits(decoder.decode(), given_)


# -- schemes of strangers -----------------------------------------------------------------------


@dataclass(frozen=True)
class Stranger:
    """A scheme that a third party could write: pairs of neighbours."""

    def matrix(self, n_learners, n_units, rng):
        return [[int(unit in (j % n_units, (j + 1) % n_units)) for unit in range(n_units)] for j in range(n_learners)]


@dataclass(frozen=True)
class Quick(Stranger):
    """With a way back of its own, which counts its calls and may be wrong."""

    factor: float = 1.0
    calls = count()

    def left_inverse(self, rows):
        next(self.calls)
        return self.factor * np.linalg.pinv(rows) if len(rows) > 3 else None


def test_a_scheme_needs_no_more_than_a_matrix(rng):
    code = Code.build(Stranger(), 5, 3, rng)
    given_ = gradients(rng, [6, 6, 6])
    decoder = feed(code, [encode(row, given_) for row in code.matrix], [0, 1, 2], [6] * 3)
    assert same_bits(decoder.decode(), given_)


def test_the_scheme_of_the_page_on_plugins_needs_only_its_entry_point(tmp_path, monkeypatch, rng):
    page = (Path(__file__).parents[1] / "docs" / "plugins.md").read_text()
    (code,) = [
        block for block in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE) if "Pairs" in block
    ]
    (tmp_path / "pairs.py").write_text(f"from dataclasses import dataclass\nimport numpy as np\n{code}")
    info = tmp_path / "marlctl_pairs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: marlctl-pairs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[marlctl.coding_schemes]\npairs = pairs:Pairs\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        for n_units in range(1, 7):
            built = make("pairs", {}, n_units + 2, n_units)
            given_ = gradients(rng, [6] * n_units)
            answers = [encode(row, given_) for row in built.matrix]
            decoder = feed(built, answers, range(n_units), [6] * n_units)
            assert same_bits(decoder.decode(), given_)
    finally:
        sys.modules.pop("pairs", None)


@pytest.mark.parametrize("factor", [1.0, 1.5, np.nan])
def test_a_left_inverse_of_its_own_is_asked_first_and_not_believed_when_it_is_none(factor, rng):
    code = Code.build(plugin := Quick(factor), 5, 3, rng)
    given_ = gradients(rng, [6, 6, 6])
    for learners in ([0, 1, 2], [0, 1, 2, 4]):
        decoder = feed(code, [encode(row, given_) for row in code.matrix], learners, [6] * 3)
        assert same_bits(decoder.decode(), given_)
    assert next(plugin.calls) >= 2


@pytest.mark.parametrize(
    "matrix", [np.eye(2), np.zeros((3, 2)), np.full((3, 2), np.nan), np.full((3, 2), "x"), np.ones((3, 2)), np.ones(3)]
)
def test_a_scheme_whose_matrix_is_of_no_use_is_refused_by_name(matrix, rng):
    class Broken:
        def matrix(self, n_learners, n_units, rng):
            return matrix

    with pytest.raises(PluginError, match=r"Broken.matrix gave"):
        Code.build(Broken(), 3, 2, rng)


# -- what a code costs and bears ----------------------------------------------------------------


def test_work_is_the_number_of_units_of_each_learner():
    assert work_per_learner(BUILT["mds-systematic"]).tolist() == [1, 1, 1, 1, 1, 5, 5, 5, 5]
    assert BUILT["replication"].units_of(7) == (2,)


def test_guaranteed_is_what_every_set_bears_and_effective_what_most_bear():
    borne = Tolerance((1.0, 1.0, 0.9, 0.6, 0.4), (1.0, 1.0, 0.9, 0.6, 0.4), (True,) * 5)
    assert (borne.guaranteed, borne.effective) == (1, 3)
    assert borne.average == pytest.approx(2.9)


def test_a_sample_of_sets_promises_nothing_but_comes_near(rng):
    code = make("ldpc", {}, 15, 8)
    counted, drawn = tolerance(code, rng), tolerance(code, rng, most=400)
    assert all(counted.counted)
    assert drawn.counted == (True, True, True, False, False, False, False, False)
    assert np.abs(np.subtract(counted.shares, drawn.shares)).max() < 0.1
    again = tolerance(code, np.random.default_rng(1), most=400)
    assert again == tolerance(code, np.random.default_rng(1), most=400)


def test_the_tolerance_told_counts_only_sets_that_are_exact():
    code = BUILT["mds-vandermonde"]
    small, large = (tolerance(code, np.random.default_rng(0), size=size) for size in (1.0, 500.0))
    assert small.shares == large.shares
    assert small.guaranteed > large.guaranteed


def test_coding_needs_no_torch():
    code = "import sys, marlctl.coding, marlctl_codes; sys.exit('torch' in sys.modules or 'h5py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
