"""Each scheme builds the code its paper describes, and what it says of its sizes is true."""

import os
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest

from marlctl.coding import Code, Decoder, encode, to_grid, tolerance, work_per_learner
from marlctl.errors import ConfigError
from marlctl_codes import LDPC, MDS, RandomSparse, Replication, Uncoded, Vandermonde
from marlctl_codes.ldpc import checks, generator, reduced, shape
from marlctl_codes.mds import powers, worst_condition

EXHAUSTIVE = bool(os.environ.get("MARLCTL_EXHAUSTIVE"))  # several seeds, and all sets for 15 learners: minutes
SCHEMES = {
    "uncoded": Uncoded(),
    "replication": Replication(),
    "mds": MDS(),
    "mds-systematic": MDS(form="systematic"),
    "mds-vandermonde": Vandermonde(),
    "random-sparse": RandomSparse(),
    "ldpc": LDPC(),
}


def build(scheme, n_learners, n_units, seed=0):
    return Code.build(scheme, n_learners, n_units, np.random.default_rng(seed))


def sizes(scheme, learners, units):
    """Every (N, M) up to these that the scheme builds, with its code."""
    for n in range(1, learners + 1):
        for m in range(1, min(n, units) + 1):
            try:
                yield n, m, build(scheme, n, m)
            except ConfigError:
                continue


# -- who can be decoded -------------------------------------------------------------------------

# The share of sets of k = 0, 1, ... stragglers of 15 that leave enough; three digits, some from samples of 1500.
TABLE = {
    ("mds", 8): [1, 1, 1, 1, 1, 1, 1, 1],
    ("mds", 10): [1, 1, 1, 1, 1, 1],
    ("mds-systematic", 8): [1, 1, 1, 1, 1, 1, 1, 1],
    ("mds-systematic", 10): [1, 1, 1, 1, 1, 1],
    ("random-sparse", 8): [1, 1, 1, 1, 1, 1, 1, 1],
    ("random-sparse", 10): [1, 1, 1, 1, 1, 1],
    ("replication", 8): [1, 0.933, 0.800, 0.615, 0.410, 0.232, 0.094, 0.023],
    ("replication", 10): [1, 0.667, 0.381, 0.176, 0.059, 0.011],
    ("ldpc", 8): [1, 1, 0.943, 0.829, 0.668, 0.491, 0.295, 0.111],
    ("ldpc", 10): [1, 1, 0.943, 0.829, 0.624, 0.327],
}
GUARANTEED = {"mds": (7, 5), "mds-systematic": (7, 5), "random-sparse": (7, 5), "replication": (0, 0), "ldpc": (1, 1)}


@pytest.mark.parametrize(("name", "n_units"), TABLE)
def test_as_many_sets_of_15_learners_decode_as_the_table_says(name, n_units, rng):
    borne = tolerance(build(SCHEMES[name], 15, n_units), rng)
    assert all(borne.counted)
    assert borne.shares == pytest.approx(TABLE[name, n_units], abs=0.01)
    assert borne.exact == borne.shares
    assert borne.guaranteed == GUARANTEED[name][n_units == 10]


def test_peeling_alone_decodes_as_many_sets_as_the_table_says():
    matrix = LDPC().matrix(15, 10, np.random.default_rng(0))
    for k, share in ((3, 0.824), (4, 0.605), (5, 0.298)):
        peeled = [LDPC().left_inverse(matrix[list(rows)]) is not None for rows in combinations(range(15), 15 - k)]
        assert np.mean(peeled) == pytest.approx(share, abs=0.02)


def exact_rank(rows):
    """The rank, in fractions: the coefficients are what they are, without rounding."""
    rows, rank = [[Fraction(float(x)) for x in row] for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            if factor:
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


@pytest.mark.parametrize("name", SCHEMES)
def test_every_set_of_answers_decodes_exactly_when_its_rank_says_so_and_never_wrongly(name):
    """Every (N <= 9, M <= 6) that the scheme builds, every set of at least M answers; fewer never have the rank."""
    rng = np.random.default_rng(5)
    for n, m, code in sizes(SCHEMES[name], 9, 6):
        lengths = rng.integers(1, 5, m)
        given = [to_grid(rng.choice([0.0, 2.0**-32, 0.5, -0.5, rng.normal()], size)) for size in lengths]
        bits = [vector.tobytes() for vector in given]
        answers = [encode(row, given) for row in code.matrix]
        for size in range(m, n + 1):
            sets = np.array(list(combinations(range(n), size)))
            ranks = np.linalg.matrix_rank(code.matrix[sets])
            for learners, rank in zip(sets.tolist(), ranks, strict=True):
                decoder = Decoder(code, lengths)
                for learner in learners:
                    decoder.add(learner, answers[learner])
                if decoder.decodable != (rank == m):  # numpy's rank is of rounded numbers too
                    assert decoder.decodable == (exact_rank(code.matrix[learners]) == m)
                assert decoder.ready == decoder.decodable or (name == "mds-vandermonde" and size < n)
                if decoder.ready:
                    assert [vector.tobytes() for vector in decoder.decode()] == bits
        assert not any(code.solution(learners) for learners in combinations(range(n), m - 1))


@pytest.mark.slow
@pytest.mark.skipif(not EXHAUSTIVE, reason="takes minutes; set MARLCTL_EXHAUSTIVE=1")
@pytest.mark.parametrize("name", ["mds", "mds-systematic", "random-sparse", "replication", "ldpc"])
@pytest.mark.parametrize("n_units", [8, 10])
def test_every_set_of_15_learners_decodes_bit_for_bit_or_not_at_all(name, n_units):
    rng = np.random.default_rng(5)
    for seed in range(3):
        code = build(SCHEMES[name], 15, n_units, seed)
        given = [to_grid(rng.choice([0.0, 2.0**-32, 5.0, -5.0, rng.normal()], 50)) for _ in range(n_units)]
        answers = [encode(row, given) for row in code.matrix]
        for size in range(n_units, 16):
            for learners in combinations(range(15), size):
                decoder = Decoder(code, [50] * n_units)
                for learner in learners:
                    decoder.add(learner, answers[learner])
                assert decoder.ready == decoder.decodable
                if decoder.ready:
                    assert [v.tobytes() for v in decoder.decode()] == [v.tobytes() for v in given]


# -- constructions ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEMES)
def test_a_matrix_follows_from_the_random_numbers_alone(name):
    n_learners = {"uncoded": 4, "ldpc": 6}.get(name, 7)
    one, same = (build(SCHEMES[name], n_learners, 4, seed=1).matrix for _ in range(2))
    assert one.tobytes() == same.tobytes()
    if name in ("mds", "mds-systematic", "random-sparse"):
        assert (build(SCHEMES[name], n_learners, 4, seed=2).matrix != one).any()


def test_replication_is_the_papers_up_to_two_copies_and_balanced_beyond(rng):
    assert (Replication().matrix(15, 8, rng) == np.vstack([np.eye(8), np.eye(8)[:7]])).all()
    for n in range(3, 20):
        copies = Replication().matrix(n, 3, rng).sum(0)
        assert copies.max() - copies.min() <= 1


def test_of_the_codes_drawn_the_best_conditioned_is_taken():
    sets = np.array(list(combinations(range(9), 5)))
    one, many = (worst_condition(build(MDS(draws=draws), 9, 5).matrix[sets]) for draws in (1, 64))
    assert many < one
    assert many < 300


def test_the_dense_code_is_nearly_orthonormal_and_every_learner_computes_all():
    code = build(MDS(), 15, 8)
    assert work_per_learner(code).tolist() == [8] * 15
    assert code.matrix.T @ code.matrix == pytest.approx(np.eye(8), abs=0.03)


def test_the_systematic_code_begins_with_one_unit_a_learner():
    code = build(MDS(form="systematic"), 15, 8)
    assert (code.matrix[:8] == np.eye(8)).all()
    assert work_per_learner(code).tolist() == [1] * 8 + [8] * 7


def test_a_large_code_is_judged_by_a_sample_and_still_decodes(rng):
    borne = tolerance(build(MDS(draws=4), 40, 20), rng, most=300)
    assert borne.exact == (1.0,) * 21
    assert borne.guaranteed == 1


def test_the_papers_mds_code_is_a_vandermonde_matrix():
    assert powers(15, 8) == pytest.approx(np.vander(np.linspace(0.1, 0.5, 8), 15).T)


@pytest.mark.parametrize("n_units", [8, 10])
def test_the_papers_mds_code_is_refused_at_the_papers_sizes_with_the_reason(n_units, rng):
    with pytest.raises(
        ConfigError, match=r"condition number is .* take mds; the nearest it can: 7 units over 15 learners"
    ):
        Vandermonde().matrix(15, n_units, rng)
    assert Vandermonde().matrix(15, 7, rng).shape == (15, 7)


def test_the_random_code_is_as_dense_as_it_says():
    for density in (0.3, 0.8):
        kept = np.mean([RandomSparse(density).matrix(15, 8, np.random.default_rng(seed)) != 0 for seed in range(100)])
        assert kept == pytest.approx(density, abs=0.02)


def test_a_random_code_too_sparse_to_decode_is_refused(rng):
    with pytest.raises(ConfigError, match="higher density"):
        RandomSparse(0.01).matrix(6, 6, rng)


def test_the_ldpc_codes_for_15_learners_are_the_papers():
    assert shape(15, 8, None) == (3, 5, 3)
    assert shape(15, 10, None) == (3, 5, 2)
    for n_units, work, most in ((8, 28, 4), (10, 34, 6)):
        code = build(LDPC(), 15, n_units)
        assert work_per_learner(code).sum() == work
        assert work_per_learner(code).max() == most
        assert (code.matrix[:n_units] == np.eye(n_units)).all()


@pytest.mark.parametrize(("p", "rho", "gamma"), [(3, 5, 3), (3, 5, 2), (5, 4, 3), (2, 3, 1), (1, 4, 1)])
def test_the_checks_are_regular_and_the_code_keeps_them(p, rho, gamma):
    check = checks(p, rho, gamma)
    assert (check.sum(0) == gamma).all()
    assert (check.sum(1) == rho).all()
    shift = np.roll(np.eye(p, dtype=int), 1, axis=1)
    for a in range(gamma):
        for b in range(rho):
            block = check[a * p : (a + 1) * p, b * p : (b + 1) * p]
            assert (block == np.linalg.matrix_power(shift, a * b)).all()
    _, leading = reduced(check)
    order = [column for column in range(p * rho) if column not in leading] + leading
    assert not (check[:, order] @ generator(p, rho, gamma) % 2).any()


def test_peeling_takes_whole_numbers_only_and_is_the_way_back(rng):
    matrix = LDPC().matrix(15, 8, rng)
    stuck = 0
    for _ in range(200):
        rows = matrix[np.sort(rng.choice(15, rng.integers(9, 16), replace=False))]
        inverse = LDPC().left_inverse(rows)
        if inverse is None:
            stuck += 1
            continue
        assert (inverse % 1 == 0).all()
        assert (inverse @ rows == np.eye(8)).all()
    assert 0 < stuck < 200


def test_where_peeling_is_stuck_but_the_rank_is_there_least_squares_decodes():
    code = build(LDPC(), 15, 10)
    stuck = [
        rows
        for rows in combinations(range(15), 11)
        if code.solution(rows) and LDPC().left_inverse(code.matrix[list(rows)]) is None
    ]
    assert stuck
    assert len(stuck) < comb(15, 4) * 0.05
    given = [to_grid(np.random.default_rng(unit).normal(size=20)) for unit in range(10)]
    decoder = Decoder(code, [20] * 10)
    for learner in stuck[0]:
        decoder.add(learner, encode(code.matrix[learner], given))
    assert [v.tobytes() for v in decoder.decode()] == [v.tobytes() for v in given]


# -- sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n_learners", "n_units", "nearest"),
    [
        ("uncoded", 3, 4, "4 units over 4 learners"),
        ("uncoded", 15, 8, "8 units over 8 learners"),
        ("replication", 3, 4, "4 units over 4 learners"),
        ("mds", 1, 2, "2 units over 2 learners"),
        ("mds-systematic", 7, 8, "8 units over 8 learners"),
        ("random-sparse", 2, 3, "3 units over 3 learners"),
        ("mds-vandermonde", 5, 6, "6 units over 6 learners"),
        ("ldpc", 14, 8, "8 units over 15 learners"),
        ("ldpc", 4, 4, "4 units over 5 learners"),
        ("ldpc", 7, 4, "4 units over 8 learners"),
    ],
)
def test_a_refusal_names_the_nearest_size_and_that_one_can_be_built(name, n_learners, n_units, nearest, rng):
    with pytest.raises(ConfigError, match=f"the nearest it can: {nearest}$"):
        SCHEMES[name].matrix(n_learners, n_units, rng)
    units, _, _, learners, _ = nearest.split()
    assert SCHEMES[name].matrix(int(learners), int(units), rng).shape == (int(learners), int(units))


@pytest.mark.parametrize("name", ["replication", "mds", "mds-systematic", "random-sparse"])
def test_most_schemes_take_any_number_of_learners_from_the_number_of_units_on(name):
    built = {(n, m) for n, m, _ in sizes(SCHEMES[name], 9, 6)}
    assert built == {(n, m) for n in range(1, 10) for m in range(1, min(n, 6) + 1)}


def test_an_ldpc_code_can_be_had_for_every_number_of_units():
    built = {(n, m) for n, m, _ in sizes(LDPC(), 9, 6)}
    assert {m for _, m in built} == {1, 2, 3, 4, 5, 6}
    assert {(6, 4), (6, 3), (8, 5), (9, 6)} <= built
