"""A key that stands twice in a table of JSON: the last one would win without a word."""

import pytest

from forgetgauge.errors import UserError
from forgetgauge.files import parse_json, read_json


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '{"b": {"a": 1, "c": 2, "a": 3}}', '[{"a": {}, "a": []}]'])
def test_it_is_no_json_of_ours(text, tmp_path):
    with pytest.raises(ValueError, match="the key 'a' stands twice in one table"):
        parse_json(text)
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match="not valid JSON: the key 'a' stands twice"):
        read_json(tmp_path / "x.json")


def test_keys_of_other_tables_may_be_the_same():
    assert parse_json('{"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}') == {"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}


def test_beside_another_fault_it_is_not_given_that_ones_place_and_large_tables_are_read_at_once():
    with pytest.raises(ValueError, match=r"^the key 'a' stands twice"):
        parse_json('{"t": {"a": 1, "a": 2}, "n": NaN}')
    many = ", ".join(f'"{k}": 1' for k in range(200_000))
    with pytest.raises(ValueError, match="the key '7' stands twice"):
        parse_json(f'{{{many}, "7": 2}}')  # minutes, were every key looked for among those before it
