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
