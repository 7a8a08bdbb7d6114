import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgetgauge.streams import Streams, canonical_json, identity_key

QUICK = settings(max_examples=50, deadline=None)
NAMES = st.text('ab:/ é"', min_size=1, max_size=6)
NUMBERS = st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def reordered(value):
    """The same JSON value with every object's keys the other way round."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


def first_draws(streams, purpose):
    return streams.generator(purpose).integers(0, 2**62, size=4).tolist()


@QUICK
@given(value=JSON)
def test_the_spelling_of_a_value_does_not_depend_on_the_order_of_its_keys(value):
    assert canonical_json(reordered(value)) == canonical_json(value)


@QUICK
@given(value=JSON)
def test_the_spelling_of_a_value_reads_back_as_that_value(value):
    assert json.loads(canonical_json(value)) == value


def test_the_order_of_a_list_counts():
    assert canonical_json([1, 2]) != canonical_json([2, 1])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_refused(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"alpha": [value]})


@QUICK
@given(identity=st.dictionaries(NAMES, JSON, max_size=4))
def test_a_key_is_64_hexadecimal_digits_whatever_the_order_of_the_identity(identity):
    key = identity_key(identity)
    assert len(key) == 64
    assert set(key) <= set("0123456789abcdef")
    assert identity_key(reordered(identity)) == key


def test_a_key_is_the_sha256_of_the_spelling():
    assert identity_key({"b": 1, "a": "é"}) == hashlib.sha256('{"a":"é","b":1}'.encode()).hexdigest()


@QUICK
@given(one=st.dictionaries(NAMES, JSON, max_size=3), other=st.dictionaries(NAMES, JSON, max_size=3))
def test_identities_that_differ_have_keys_that_differ(one, other):
    assert (identity_key(one) == identity_key(other)) == (canonical_json(one) == canonical_json(other))


@QUICK
@given(key=NAMES, purpose=NAMES)
def test_the_same_names_give_the_same_stream(key, purpose):
    assert first_draws(Streams(key), purpose) == first_draws(Streams(key), purpose)
    assert Streams(key).seed(purpose) == Streams(key).seed(purpose)
    assert Streams(key).child(purpose) == Streams(key).child(purpose)


@QUICK
@given(one=st.tuples(NAMES, NAMES), other=st.tuples(NAMES, NAMES))
def test_different_names_give_different_streams(one, other):
    # ":" joins key and purpose, so only keys with a colon of their own could collide; real keys are hexadecimal.
    if one == other or ":" in one[0] + other[0]:
        return
    assert first_draws(Streams(one[0]), one[1]) != first_draws(Streams(other[0]), other[1])
    assert Streams(one[0]).seed(one[1]) != Streams(other[0]).seed(other[1])


def test_asking_for_a_stream_again_begins_it_again_and_uses_up_no_other():
    streams = Streams(identity_key({"job": 1}))
    before = first_draws(streams, "order")
    streams.generator("noise").random(100)
    assert first_draws(streams, "order") == before


def test_a_child_shares_no_stream_with_its_parent_or_its_siblings():
    parent = Streams(identity_key({"job": 1}))
    family = [parent, parent.child("a"), parent.child("b"), parent.child("a").child("b"), parent.child("b").child("a")]
    assert len({member.key for member in family}) == len(family)
    assert len({tuple(first_draws(member, "order")) for member in family}) == len(family)


@QUICK
@given(key=NAMES, purpose=NAMES)
def test_a_seed_fits_into_63_bits(key, purpose):
    assert 0 <= Streams(key).seed(purpose) < 2**63


def test_streams_of_neighbouring_jobs_are_uncorrelated():
    draws = np.stack([Streams(identity_key({"seed": s})).generator("order").standard_normal(2000) for s in range(6)])
    off_diagonal = np.corrcoef(draws)[np.triu_indices(6, 1)]
    assert np.abs(off_diagonal).max() < 5 / math.sqrt(2000)
