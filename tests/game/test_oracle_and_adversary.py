import numpy as np
import pytest
from scipy.stats import chisquare

from forgetgauge.game.adversary import Access, OneQuery
from forgetgauge.game.oracle import Oracle, QueryCapReached, oracle_law
from forgetgauge.game.splits import Split

SPLIT = Split(np.array([0, 1]), np.array([2, 3, 4]), np.array([5, 6, 7]))
WEIGHTS = np.array([9.0, 9.0, 1.0, 2.0, 0.0, 0.0, 3.0, 1.0])


@pytest.mark.parametrize(("bit", "support", "shares"), [(0, [2, 3], [1 / 3, 2 / 3]), (1, [6, 7], [3 / 4, 1 / 4])])
def test_the_oracle_draws_its_set_in_proportion_to_sensitivity(bit, support, shares):
    oracle = Oracle(SPLIT, bit, WEIGHTS, np.random.default_rng(0), max_queries=6_000)
    drawn = np.array([oracle.draw() for _ in range(6_000)])
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == support
    assert chisquare(counts, 6_000 * np.array(shares)).pvalue > 0.01


def test_the_oracle_counts_and_stops_at_its_cap():
    oracle = Oracle(SPLIT, 0, WEIGHTS, np.random.default_rng(0), max_queries=2)
    oracle.draw()
    oracle.draw()
    assert oracle.n_queries == 2
    with pytest.raises(QueryCapReached, match="allows 2 queries"):
        oracle.draw()
    assert oracle.n_queries == 2


def test_the_law_of_the_oracle_sums_to_one_over_its_points():
    points, law = oracle_law(SPLIT, 0, WEIGHTS)
    assert points.tolist() == [2, 3, 4]
    assert law == pytest.approx([1 / 3, 2 / 3, 0])


def test_wrong_oracles_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="not 2"):
        Oracle(SPLIT, 2, WEIGHTS, rng, 1)
    with pytest.raises(ValueError, match="at least one query"):
        Oracle(SPLIT, 0, WEIGHTS, rng, 0)
    with pytest.raises(ValueError, match="unseen set of 3 points no mass"):
        Oracle(SPLIT, 1, np.array([1.0, 1, 1, 1, 1, 0, 0, 0]), rng, 1)


class LikesHighPoints:
    access = Access.WHITE_BOX

    def accepts(self, model: int, point: int) -> float:
        return 1.0 if point > model else 0.25


def test_a_weak_adversary_becomes_a_strong_one_that_asks_once():
    strong = OneQuery(LikesHighPoints())
    oracle = Oracle(SPLIT, 1, WEIGHTS, np.random.default_rng(0), max_queries=5)
    assert strong.accepts(5, oracle) == 1.0
    assert strong.accepts(7, oracle) == 0.25
    assert oracle.n_queries == 2
    assert strong.n_queries == 1
    assert strong.access == "white-box"
