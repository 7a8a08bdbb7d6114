import pytest

from .group_norms import SHAPES, check


@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_group_norms_and_each_examples_gradients_are_autograds(shape, permuted):
    check(shape, permuted=permuted)
