from __future__ import annotations

import hypothesis.extra.numpy as arrays_of
import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from forgetgauge.store.objects import decode, encode

ARRAYS = st.dictionaries(
    st.text("abc.", min_size=1, max_size=5),
    arrays_of.arrays(
        st.sampled_from([np.float32, np.float64, np.int64, np.bool_]), arrays_of.array_shapes(min_dims=0, max_dims=3)
    ),
    max_size=4,
)
FACTS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), max_size=4)


@settings(deadline=None)
@given(ARRAYS, FACTS)
def test_an_artefact_comes_back_as_it_was(arrays, facts):
    artefact = decode(encode(arrays, facts))
    assert artefact.facts == facts
    assert artefact.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert artefact.arrays[name].dtype == array.dtype
        assert artefact.arrays[name].shape == array.shape
        np.testing.assert_array_equal(artefact.arrays[name], array)


@settings(deadline=None)
@given(ARRAYS, FACTS)
def test_equal_content_gives_equal_bytes_whatever_the_order(arrays, facts):
    backwards = {name: np.array(arrays[name], order="F") for name in reversed(arrays)}
    assert encode(arrays, facts) == encode(backwards, dict(reversed(facts.items())))
