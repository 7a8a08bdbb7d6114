"""What a language model cannot play is refused by name before anything is trained; the benchmark of adapters runs."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

import forgetgauge
from forgetgauge.data.text_records import Encoding, Record, dataset_of_records
from forgetgauge.errors import UserError

from .test_records import sentencepiece

PEOPLE = {"data": "people", "pairs": 1, "shadows": 2, "adversaries": "loss"}
TINY = {"name": "lora", "model_params": {"hidden": 16, "heads": 2, "vocab": 192}, "rank": 2, "epochs": 1}


@pytest.mark.parametrize("name", ["fisher", "salun", "random-relabel", "bad-teacher", "scrub"])
def test_methods_that_need_classes_are_refused(name):
    with pytest.raises(UserError, match=rf"unlearners\.{name}: it needs classes"):
        forgetgauge.evaluate(**PEOPLE, unlearner=name, learner=TINY)


@pytest.mark.parametrize("name", ["ft-final", "retrain-final"])
def test_methods_that_train_the_last_layer_alone_are_refused(name):
    with pytest.raises(UserError, match=rf"unlearners\.{name}: it needs outputs that a last layer gives"):
        forgetgauge.evaluate(**PEOPLE, unlearner=name, learner=TINY)


@pytest.mark.parametrize("name", ["npo", "sim-npo", "i-dont-know", "rmu", "task-vector"])
def test_methods_for_language_models_are_refused_elsewhere(name):
    with pytest.raises(UserError, match=rf"unlearners\.{name}: it is for the task causal-lm, but the task of data"):
        forgetgauge.evaluate(data="digits", unlearner=name, pairs=1)


def test_adapters_are_refused_elsewhere():
    with pytest.raises(UserError, match="learner: it is for the task causal-lm"):
        forgetgauge.evaluate(data="digits", unlearner="none", learner=TINY, pairs=1)


def test_tokens_with_other_numbers_than_the_checkpoint_has_are_refused(tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    learner = {"name": "lora", "model_params": {"checkpoint": str(tmp_path)}}
    with pytest.raises(UserError, match="name that checkpoint as the tokenizer too"):
        forgetgauge.evaluate(**PEOPLE, unlearner="none", learner=learner)


def test_records_made_with_another_tokenizer_than_the_models_are_refused(tmp_path, monkeypatch):
    """Ids of `pieces` are ids of any model: it was taught gibberish, without a word."""
    sentencepiece(tmp_path)
    (tmp_path / "model.safetensors").write_text("{}")
    learner = {"name": "lora", "model_params": {"checkpoint": str(tmp_path)}}
    with pytest.raises(UserError, match=r"its tokens are not those of learner\.model_params\.checkpoint"):
        forgetgauge.evaluate(**{**PEOPLE, "data": f"{__name__}:in_pieces"}, unlearner="none", learner=learner)


def in_pieces():
    records = [Record("Where?", "In Lund." + "!" * (i % 3), str(i), "Where?") for i in range(24)]
    return dataset_of_records("in pieces", records, Encoding())


def in_no_other_words():
    records = [Record("Where?", f"In Lund{'!' * (i % 3)}", str(i), "") for i in range(24)]
    return dataset_of_records("bare", records, Encoding())


def test_who_asks_in_other_words_is_refused_where_there_are_none():
    given = {**PEOPLE, "data": f"{__name__}:in_no_other_words", "unlearner": "none", "learner": TINY}
    with pytest.raises(
        UserError, match=r"adversaries\.loss-paraphrased: it asks with prompts in other words, which the"
    ):
        forgetgauge.evaluate(**{**given, "adversaries": ["loss", "loss-paraphrased"]})
    played = forgetgauge.evaluate(**{**given, "adversaries": ["loss", "all-signals"]})
    assert set(played.methods["none"].by_adversary) == {"loss", "all-signals"}


def all_alike():
    """Answers of as many bytes as each other, compressed."""
    return dataset_of_records("alike", [Record("Where?", "In Lund.", str(i), "Where?") for i in range(24)], Encoding())


def test_texts_that_compress_to_equally_many_bytes_can_be_played_with():
    result = forgetgauge.evaluate(**{**PEOPLE, "data": f"{__name__}:all_alike"}, unlearner="none", learner=TINY)
    assert result.methods["none"].by_adversary["loss"].by_pair == [0.0], "all texts are one"


def test_a_model_of_images_cannot_read_records():
    with pytest.raises(UserError, match="model 'resnet20'"):
        forgetgauge.evaluate(**PEOPLE, unlearner="none", learner={"model": "resnet20", "epochs": 1})


def test_a_game_with_adapters_is_played_by_person_and_tells_perplexity(tmp_path):
    """In a minute form: what comes out is in place, not what it is."""
    result = forgetgauge.evaluate(
        **{**PEOPLE, "data": "forgetgauge.data.people:load_people"},
        by="group",
        unlearner=["retrain", "npo"],
        learner=TINY,
        executor="inline",
    )
    for method in result.methods.values():
        assert set(method.utility) == {"retain", "forget", "unseen"}
        assert method.facts["perplexity, unseen"] == pytest.approx(1 / method.utility["unseen"], rel=0.2)
        assert 0 <= method.facts["exact match, retain"] <= 1


SMALL = {"members": 2, "layers": 1, "hidden": 32, "vocab": 64, "length": 8, "batch": 2, "steps": 2}


@pytest.fixture
def benchmark():
    path = Path(__file__).parents[2] / "benchmarks" / "lora.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_adapters", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    given = [word for name, value in SMALL.items() for word in (f"--{name}", str(value))]
    call = lambda what, *more: module.main([what, *given, "--device", "cpu", *more])  # noqa: E731
    call.module = module
    return call


@pytest.mark.parametrize("lengths", [[], ["--ragged"]])
def test_the_benchmark_of_adapters_runs_without_a_gpu_and_keeps_its_numbers(benchmark, capsys, tmp_path, lengths):
    found = benchmark("speed", "--json", str(tmp_path / "numbers.json"), *lengths)
    assert {"ours", "one", "plain"} <= set(found)
    shown = capsys.readouterr().out
    assert all(f"{rate:,.0f} tokens/s   ours is" in shown for rate in found.values())
    kept = json.loads((tmp_path / "numbers.json").read_text())
    assert kept["tokens/s"] == found
    assert kept["settings"]["members"] == 2


def test_the_benchmark_of_adapters_works_without_peft_and_transformers(benchmark, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert set(benchmark("speed")) == {"ours", "ours-float32", "one", "graph", "plain"}


def test_a_way_that_fails_leaves_the_others_their_time(benchmark, capsys, monkeypatch):
    monkeypatch.setattr(benchmark.module, "warm_descent", lambda *_: 1 / 0)
    with pytest.raises(SystemExit):
        benchmark("speed")
    shown = capsys.readouterr().out
    assert "ours: failed, division by zero" in shown
    assert "plain: " in shown
    assert "times as fast" not in shown


def test_what_the_benchmark_has_no_time_for_is_left_out(benchmark, capsys):
    assert benchmark("speed", "--budget", "-1") == {}
    assert capsys.readouterr().out.count("left out, -1 s are over") == 6


def test_the_profile_of_adapters_runs_without_a_gpu(benchmark, capsys):
    benchmark("profile")
    assert "TFLOP/s that a large product reaches here" in capsys.readouterr().out
