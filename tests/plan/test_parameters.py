"""A parameter of the game is declared once: run file, `evaluate`, `Game` and settings agree with the declaration."""

from __future__ import annotations

import dataclasses
import inspect
import math

import pytest

import forgetgauge
from forgetgauge.errors import UserError
from forgetgauge.plan.game import Game
from forgetgauge.plan.parameters import Range
from forgetgauge.plan.runfile import parse_spec, set_key
from forgetgauge.plan.spec import PARAMETERS, Arguments, RunSpec
from forgetgauge.report.settings import settings_of
from forgetgauge.results.record import GameResult, Result

BOUNDED = [one for one in PARAMETERS.values() if one.within is not None]
IN_GAME = [one for one in PARAMETERS.values() if one.in_game is not None]
PLAIN = {one.argument: one for one in PARAMETERS.values() if one.argument is not None}


def outside(one):
    """Numbers just beyond each end of a range, of the parameter's own type."""
    step = 1 if isinstance(one.default, int | list) else 1e-9
    ends = {one.within.least: -step, one.within.above: 0, one.within.most: step, one.within.below: 0}
    numbers = [type(step)(end + beyond) for end, beyond in ends.items() if end is not None]
    return [[number] if isinstance(one.default, list) else number for number in numbers]


@pytest.mark.parametrize(("one", "value"), [(one, value) for one in BOUNDED for value in outside(one)], ids=str)
def test_what_is_out_of_range_is_refused_in_a_file_and_from_python(one, value):
    raw = {}
    set_key(raw, one.key, value)
    with pytest.raises(UserError, match=f"{one.key} = .* is not {one.within}"):
        parse_spec(raw, "x.toml")
    if one.argument is not None:
        with pytest.raises(UserError, match=f"^evaluate: {one.key} = .* is not {one.within}"):
            forgetgauge.evaluate(**{one.argument: value})


@pytest.mark.parametrize("one", PARAMETERS.values(), ids=lambda one: one.key)
def test_every_default_stands_in_the_file_it_is_the_default_of(one):
    made = one.default() if isinstance(one.default, type) else one.default
    table = one.key.split(".")[0]
    raw = {table: {}} if table in ("until", "sweep") else {}
    if table != "sweep":  # which has no default: without values there is no sweep
        assert one.value_in(parse_spec(raw, "x.toml")) == made
    assert one.refusal(one.default) is None
    assert one.meaning


def test_a_table_that_is_left_out_has_no_values():
    assert PARAMETERS["until.max_pairs"].value_in(RunSpec()) is None


def test_every_parameter_of_the_game_is_a_field_of_it():
    fields = {field.name: field for field in dataclasses.fields(Game)}
    for one in IN_GAME:
        assert one.in_game in fields, f"{one.key}: Game has no field {one.in_game}"
        default = fields[one.in_game].default
        assert default in (one.default, dataclasses.MISSING, ()), one.key


def test_evaluate_takes_every_plain_parameter_with_its_default():
    taken = inspect.signature(forgetgauge.evaluate).parameters
    assert {name: taken[name].default for name in PLAIN} == {name: one.argument_default for name, one in PLAIN.items()}
    assert list(Arguments.__annotations__) == list(PLAIN)
    for name, one in PLAIN.items():
        assert f"{name}: {one.meaning[0]}".lower() in forgetgauge.evaluate.__doc__.lower()
        assert one.meaning[1:] in forgetgauge.evaluate.__doc__


def test_evaluate_differs_from_a_run_file_in_two_defaults():
    differing = {name: one.argument_default for name, one in PLAIN.items() if one.argument_default != one.default}
    assert differing == {"alpha": 0.5, "queries": ()}


def test_an_argument_that_evaluate_does_not_take_is_refused_with_the_nearest():
    with pytest.raises(TypeError, match="evaluate: unknown argument 'alhpa'; did you mean 'alpha'"):
        forgetgauge.evaluate(alhpa=0.5)
    with pytest.raises(TypeError, match="did you mean 'unlearner'"):
        forgetgauge.evaluate(unlearners=["none"])


def test_the_settings_of_a_report_have_a_line_for_every_parameter_of_the_game():
    spec = {one.in_game: one.default for one in IN_GAME} | {"sensitivity": {"kind": "uniform"}}
    spec |= {"by": "group", "hardest": 0.1}  # of forget sets as usual nothing is said
    lines = {
        line.name: line.values
        for line in settings_of(Result({}, {}, [GameResult(None, spec, {}, None, [], None, None)]))["Game"]
    }
    assert set(lines) == {one.label for one in IN_GAME}
    assert lines["Retrain shared by both sides"] == ["no"]
    assert lines["queries of strong adversaries"] == ["1, 4, 16, 64"]
    assert lines["δ of (ε, δ)-certified removal"] == ["1e-05"]


@pytest.mark.parametrize(
    ("within", "words", "inside", "beyond"),
    [
        (Range(above=0, below=1), "between 0 and 1", [0.5], [0, 1, -3, math.nan]),
        (Range(above=0, most=1), "greater than 0 and at most 1", [1, 0.1], [0, 1.1, math.nan]),
        (Range(least=0, below=0.5), "at least 0 and below 0.5", [0, 0.49], [-0.1, 0.5]),
        (Range(least=1), "at least 1", [1, 10**9], [0, math.nan]),
    ],
    ids=str,
)
def test_a_range_says_what_it_holds(within, words, inside, beyond):
    assert str(within) == words
    assert all(value in within for value in inside)
    assert not any(value in within for value in beyond)
