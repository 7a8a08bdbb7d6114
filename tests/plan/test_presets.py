import pytest

from forgetgauge import plugins
from forgetgauge.errors import UserError
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.plan.runfile import PRESETS, complete_params, expand_preset
from forgetgauge.run.resolve import resolve


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_recipe_of_a_shipped_model(name):
    made = complete_params("learner", Minibatch, PRESETS[name])
    assert {key: made[key] for key in PRESETS[name]} == PRESETS[name]
    assert made["model"] in plugins.models.entries


def test_the_papers_recipe_is_the_papers():
    recipe = PRESETS["cifar-resnet"]
    assert (recipe["optimiser"], recipe["lr"], recipe["momentum"], recipe["weight_decay"]) == ("sgd", 0.1, 0.9, 1e-5)
    assert [share * recipe["epochs"] for share in recipe["milestones"]] == [100, 150]
    assert (recipe["epochs"], recipe["batch_size"], recipe["augment"]) == (200, 128, "none")


def test_keys_beside_a_preset_win_and_the_preset_itself_is_gone():
    table = expand_preset({"preset": "cifar-resnet", "epochs": 3, "model": "resnet56"})
    assert table == {**PRESETS["cifar-resnet"], "epochs": 3, "model": "resnet56"}


def test_a_table_without_a_preset_is_as_it_was():
    assert expand_preset({"epochs": 3}) == {"epochs": 3}


def test_expanding_changes_neither_the_table_nor_the_presets():
    table = {"preset": "fast"}
    expand_preset(table)["milestones"] = [0.1]
    assert table == {"preset": "fast"}
    assert "milestones" not in PRESETS["fast"]


@pytest.mark.parametrize(
    ("preset", "hint"), [("cifar-resnt", r"did you mean 'cifar-resnet'\?"), (3, "valid: bert, cifar-resnet, fast")]
)
def test_an_unknown_preset_is_one_line_with_the_nearest(preset, hint):
    with pytest.raises(UserError, match=f"^learner.preset: unknown preset '{preset}'; {hint}$"):
        expand_preset({"preset": preset})


def test_a_run_file_with_a_preset_is_the_run_file_with_its_keys_written_out():
    by_name = resolve({"learner": {"preset": "fast", "model": "linear"}}, "test").games[0]
    written = resolve({"learner": {**PRESETS["fast"], "model": "linear"}}, "test").games[0]
    assert by_name == written
    assert by_name.learner.params["epochs"] == PRESETS["fast"]["epochs"]


def test_a_run_file_with_an_unknown_preset_is_refused_with_its_name():
    with pytest.raises(UserError, match=r"^test: learner\.preset: unknown preset 'fats'; did you mean 'fast'\?$"):
        resolve({"learner": {"preset": "fats"}}, "test")
