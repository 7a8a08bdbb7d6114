from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from forgetgauge.attack.adversary import Need
from forgetgauge.errors import UserError
from forgetgauge.game.adversary import Access
from forgetgauge.plan.runfile import apply_settings, complete_params, parse_spec, read_run_file, set_key, sweep_games
from forgetgauge.plan.spec import DEFAULT_ADVERSARIES

if TYPE_CHECKING:
    from decimal import Decimal


def test_the_embedded_default_is_valid_and_its_seed_is_zero():
    raw, source = read_run_file(None)
    spec = parse_spec(raw, source)
    assert (spec.seed, spec.game.alpha, spec.game.pairs) == (0, 0.5, 8)
    assert list(spec.adversaries) == list(DEFAULT_ADVERSARIES)


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan, np.float32(np.inf), 2**64, -(2**63) - 1])
@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("limits.job_seconds", ""),
        ("until.half_width", ""),
        ("unlearners.mine.clip", ""),
        ("unlearners.mine.way", ".a.1"),
        ("adversaries.mine.x", ""),
        ("learner.lr", ""),
        ("data.params.scale", ""),
        ("game.sensitivity.by_class.3", ""),
        ("sweep.values", ".0"),
    ],
)
def test_a_number_that_could_not_be_read_again_is_one_line_wherever_it_stands(key, shown, odd):
    raw = {"sweep": {"key": "seed"}} if key == "sweep.values" else {}
    set_key(raw, key, {"": odd, ".0": [odd], ".a.1": {"a": [1, odd]}}[shown])
    with pytest.raises(UserError, match=rf"x.toml: {key}") as caught:
        parse_spec(raw, "x.toml")
    assert "\n" not in str(caught.value)


@dataclass(frozen=True)
class Endless:
    ways: tuple[float, ...] = (1.0, float("inf"))
    unlearn: None = None


def test_a_default_of_a_users_class_that_could_not_be_read_again_is_one_line():
    with pytest.raises(UserError, match=r"unlearners.mine: ways.1 = inf is not a finite number"):
        complete_params("unlearners.mine", Endless, {})


def test_an_empty_file_is_the_default_of_every_key():
    spec = parse_spec({}, "x.toml")
    assert spec.game.alpha == 0.1
    assert list(spec.adversaries) == list(DEFAULT_ADVERSARIES)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"sede": 1}, "x.toml: unknown key 'sede'; did you mean 'seed'?"),
        ({"game": {"alhpa": 1}}, "x.toml: game: unknown key 'alhpa'; did you mean 'alpha'?"),
        ({"game": {"sensitivity": {"classes": {}}}}, "game.sensitivity: unknown key 'classes'"),
        ({"sweep": {"kye": ""}}, "sweep: unknown key 'kye'; did you mean 'key'?"),
        ({"game": {"alpha": 1.5}}, "game.alpha = 1.5 is not between 0 and 1"),
        ({"game": {"alpha": 0}}, "game.alpha = 0.0 is not between"),
        ({"game": {"pairs": 0}}, "game.pairs = 0 is not at least 1"),
        ({"game": {"pairs": "8"}}, "game.pairs = '8': input should be a valid integer"),
        ({"game": {"pairs": 2.5}}, "game.pairs = 2.5"),
        ({"game": {"share_retrain": 1}}, "game.share_retrain = 1: input should be a valid boolean"),
        ({"game": 3}, "game = 3"),
        ({"game": {"level": 0.2}}, "game.level = 0.2 is not at least 0.5 and below 1"),
        ({"data": {"fraction": 0}}, "data.fraction = 0"),
        ({"seed": -1}, "seed = -1 is not at least 0"),
        ({"tuning": {"shadows": 2}}, "tuning.shadows = 2 is not "),
        ({"keep": "everything"}, "keep = 'everything'"),
        ({"unlearners": []}, "unlearners is empty"),
        ({"adversaries": []}, "adversaries is empty"),
        ({"adversaries": ["confidence", "confidence"]}, "adversaries names 'confidence' twice"),
        ({"unlearners": ["none", "none"]}, "unlearners names 'none' twice"),
        ({"game": {"delta": 0.5}}, "game.delta = 0.5"),
        ({"strong": {"queries": [4, 0]}}, "strong.queries = [4, 0]: 0 is not at least 1"),
        ({"until": {"half_width": 0.0}}, "until.half_width = 0.0 is not greater than 0"),
        ({"until": {"max_pairs": 3}}, "until.max_pairs = 3 is not at least game.pairs = 8"),
        ({"until": {}, "game": {"pairs": 3}}, "pilot of at least 5 pairs"),
        ({"until": {}, "statistics": {"interval": "bounded"}}, "until is a rule for Student's interval"),
        ({"statistics": {"interval": "normal"}}, "statistics.interval = 'normal'"),
        ({"statistics": {"intervall": "bounded"}}, "statistics: unknown key 'intervall'; did you mean 'interval'?"),
        ({"shadows": {"references": 0}}, "shadows.references = 0"),
        ({"game": {"sensitivity": {"by_class": {"1": 1.0}, "file": "w.npy"}}}, "give one"),
        ({"sweep": {"key": "game.alpha", "values": []}}, "sweep.values is empty"),
        ({"learner": {"name": 3}}, "learner.name = 3"),
        ({"unlearners": {"none": 3}}, "unlearners.none = 3"),
    ],
)
def test_every_mistake_is_one_line_with_file_key_and_what_is_wrong(raw, words):
    with pytest.raises(UserError) as caught:
        parse_spec(raw, "x.toml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("x.toml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "no such file"), (b"a = ", "not valid TOML"), (b"\xff\xfe", "cannot be read")]
)
def test_a_file_that_cannot_be_read_is_one_line(tmp_path, content, words):
    path = tmp_path / "x.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=words):
        read_run_file(path)
    with pytest.raises(UserError, match="cannot be read"):
        read_run_file(tmp_path)


def test_settings_change_keys_and_leave_the_file_as_it_was():
    raw = {"game": {"alpha": 0.1}, "unlearners": ["none"]}
    changed = apply_settings(
        raw,
        ["game.alpha=0.25", "data.name=digits", 'adversaries=["confidence"]', "unlearners.neg-grad.lr=0.1", "seed=3"],
    )
    spec = parse_spec(changed, "x")
    assert (spec.game.alpha, spec.data.name, spec.adversaries, spec.seed) == (0.25, "digits", {"confidence": {}}, 3)
    assert spec.unlearners == {"none": {}, "neg-grad": {"lr": 0.1}}
    assert raw == {"game": {"alpha": 0.1}, "unlearners": ["none"]}


@pytest.mark.parametrize(
    ("setting", "games"),
    [
        ("game.alpha=0.2", [(None, 0.2)]),
        ("game.alpha = 0.3", [(None, 0.3)]),  # also a value that is not among them
        ("game.pairs=2", [(0.1, 0.1), (0.2, 0.2)]),
        ("sweep.values=[0.2]", [(0.2, 0.2)]),
    ],
)
def test_a_swept_key_that_is_set_is_swept_no_more(setting, games):
    raw = apply_settings({"sweep": {"key": "game.alpha", "values": [0.1, 0.2]}}, [setting])
    assert [(value, spec.game.alpha) for value, spec in sweep_games(raw, "x")] == games


@pytest.mark.parametrize(
    ("swept", "settings"),
    [
        ("game.alpha", ["game={alpha = 0.3}"]),
        ("unlearners.neg-grad.lr", ["unlearners.neg-grad={lr = 0.7}"]),
        ("unlearners.neg-grad.lr", ['unlearners=["none", "retrain"]']),
    ],
)
def test_a_key_of_a_table_that_is_set_is_swept_no_more(swept, settings):
    assert "sweep" not in apply_settings({"sweep": {"key": swept, "values": [0.1, 0.2]}}, settings)


@pytest.mark.parametrize(
    ("swept", "settings"),
    [
        ("seed", ["game.alpha=0.3", "sweep.key=game.alpha", "sweep.values=[0.4, 0.5]"]),
        ("seed", ["game.alpha=0.3", "sweep={key = 'game.alpha', values = [0.4, 0.5]}"]),
        ("unlearners.neg-grad", ["unlearners.neg-grad.lr=0.7"]),
    ],
)
def test_what_is_set_and_swept_at_once_is_refused(swept, settings):
    with pytest.raises(UserError, match=r"is swept, so that it would have no effect; set one of the two"):
        apply_settings({"sweep": {"key": swept, "values": [{"lr": 0.1}]}}, settings)


def test_settings_may_name_a_sweep_of_their_own():
    raw = {"sweep": {"key": "game.alpha", "values": [0.1, 0.2]}}
    changed = apply_settings(raw, ["game.alpha=0.2", "sweep.key=seed", "sweep.values=[1, 2]"])
    assert [(value, spec.game.alpha) for value, spec in sweep_games(changed, "x")] == [(1, 0.2), (2, 0.2)]
    for odd in ("sweep=3", "sweep.key=3"):
        with pytest.raises(UserError):
            sweep_games(apply_settings(raw, ["game.alpha=0.2", odd]), "x")


@pytest.mark.parametrize("setting", ["game.alpha", "=3", "seed.x=1"])
def test_a_setting_that_says_nothing_is_one_line(setting):
    with pytest.raises(UserError):
        apply_settings({"seed": 1}, [setting])


def test_uniform_sensitivity_may_be_said_in_a_word():
    assert parse_spec({"game": {"sensitivity": "uniform"}}, "x").game.sensitivity.by_class is None


def test_a_sweep_gives_one_game_per_value():
    raw = {"sweep": {"key": "game.alpha", "values": [0.1, 0.2]}}
    assert [(value, spec.game.alpha) for value, spec in sweep_games(raw, "x")] == [(0.1, 0.1), (0.2, 0.2)]


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        ({"key": "game.alpha", "values": [2.0]}, "sweep value 2.0: game.alpha"),
        ({"key": "game.alfa", "values": [0.1]}, "did you mean 'alpha'"),
        ({"key": "keep", "values": ["weights"]}, "cannot be swept"),
        ({"values": [1]}, "cannot be swept"),
    ],
)
def test_a_bad_sweep_is_one_line(sweep, words):
    with pytest.raises(UserError, match=words):
        sweep_games({"sweep": sweep}, "x")


@dataclass(frozen=True)
class Options:
    lr: float = 0.1
    steps: int = 3
    mode: Literal["a", "b"] = "a"
    milestones: tuple[float, ...] = ()
    extra: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.lr < 0:
            raise ValueError("lr must not be negative")


def test_parameters_are_completed_with_every_default_as_plain_json():
    assert complete_params("x", Options, {"lr": 1, "milestones": [0.5]}) == {
        "lr": 1.0,
        "steps": 3,
        "mode": "a",
        "milestones": [0.5],
        "extra": {},
    }
    assert complete_params("x", lambda: None, {"anything": 1}) == {"anything": 1}


@dataclass(frozen=True)
class Asking:
    """Written as the adversaries of this package are."""

    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset({Need.REFERENCES, Need.UNLEARNED})
    untyped: frozenset = frozenset({"references"})  # type: ignore[type-arg]
    nested: tuple[frozenset[int], ...] = (frozenset({1}),)
    cut: float = 0.5


def test_defaults_that_no_run_file_can_hold_are_left_to_the_class():
    found = complete_params("adversaries.mine", Asking, {"cut": 0.25})
    assert json.loads(json.dumps(found)) == {"access": "black-box", "cut": 0.25}
    assert Asking(**found) == Asking(cut=0.25)
    with pytest.raises(UserError, match=r"^adversaries.mine: needs is a frozenset, which a run file cannot hold"):
        complete_params("adversaries.mine", Asking, {"needs": ["references"]})


@dataclass
class Drawing:
    rng: np.random.Generator | None = None


@dataclass
class Unresolved:
    path: Decimal | None = None


@pytest.mark.parametrize("kind", [Drawing, Unresolved])
def test_a_field_of_a_type_that_cannot_be_checked_is_one_line(kind):
    with pytest.raises(
        UserError, match=f"^unlearners.x: a field of {kind.__name__} has a type that cannot be"
    ) as caught:
        complete_params("unlearners.x", kind, {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"rl": 1}, "unlearners.x: unknown key 'rl'; did you mean 'lr'?"),
        ({"lr": "fast"}, "lr = 'fast'"),
        ({"steps": 1.5}, "steps = 1.5"),
        ({"mode": "c"}, "mode = 'c'"),
        ({"lr": -1.0}, "lr must not be negative"),
    ],
)
def test_bad_parameters_are_one_line(params, words):
    with pytest.raises(UserError) as caught:
        complete_params("unlearners.x", Options, params)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
