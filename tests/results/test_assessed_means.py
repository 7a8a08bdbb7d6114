"""Means over a method's models."""

from forgetgauge.results.assessed import mean_of_all


def test_a_figure_that_one_model_has_not_has_no_mean():
    """Three of four models blew up: the perplexity of the fourth is not what the method costs."""
    healthy = {"perplexity, unseen": 3.0, "seconds": 1.0}
    assert mean_of_all([healthy, {"seconds": 2.0}, {"seconds": 3.0}, {"seconds": 4.0}]) == {"seconds": 2.5}
    assert mean_of_all([healthy, {**healthy, "perplexity, unseen": 5.0}])["perplexity, unseen"] == 4.0
    assert mean_of_all([]) == {}
