import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from forgetgauge.errors import UserError
from forgetgauge.learn.stacked.engines import check_vmap
from forgetgauge.learn.stacked.members import reason_against
from forgetgauge.models import bert as bert_file
from forgetgauge.models.building import build_model
from tests.models.zoo import PARAMS, TOKENS, points_for

SMALL = {**PARAMS["bert"], "dropout": 0.0}


def test_transformers_is_not_imported_before_a_bert_is_built():
    code = "import sys, forgetgauge.models.bert, forgetgauge.data.text; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_transformers_has_its_one_file():
    source = Path(bert_file.__file__).parents[1]
    importing = [path for path in source.rglob("*.py") if re.search(r"(import|from) transformers", path.read_text())]
    assert importing == [source / "data" / "hugging_face.py"]


def test_without_transformers_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"^model 'bert' needs transformers: pip install 'forgetgauge\[text\]'$"):
        build_model("bert", SMALL, TOKENS, 3, 0)


def test_points_that_are_no_tokens_are_refused():
    with pytest.raises(UserError, match=r"^model 'bert': wants token ids \(length,\), the data has .*\(1, 8, 8"):
        build_model("bert", SMALL, (1, 8, 8), 3, 0)


transformers = pytest.importorskip("transformers", reason="transformers is not installed (the extra [text])")


def save(folder, model, **config):
    model.save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return str(folder)


def tiny_config():
    return transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )


@pytest.fixture
def checkpoint(tmp_path):
    bert_file._pretrained.cache_clear()
    torch.manual_seed(99)
    yield save(tmp_path / "tiny", transformers.BertModel(tiny_config()))
    bert_file._pretrained.cache_clear()


def body_and_head(model):
    head = {name: tensor for name, tensor in model.state_dict().items() if name.startswith("head.")}
    return {name: tensor for name, tensor in model.state_dict().items() if name not in head}, head


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_logits_are_those_of_transformers_own_classifier_with_the_same_weights():
    model = build_model("bert", SMALL, TOKENS, 3, 0).eval()
    config = model.body.config
    config.num_labels = 3
    reference = transformers.BertForSequenceClassification(config).eval()
    reference.bert.load_state_dict(model.body.state_dict())
    reference.classifier.load_state_dict(model.head.state_dict())
    tokens = points_for("bert")
    with torch.no_grad():
        wanted = reference(input_ids=tokens, attention_mask=(tokens != 0).long()).logits
        torch.testing.assert_close(model(tokens), wanted, rtol=1e-5, atol=1e-6)


def test_padding_changes_nothing():
    model = build_model("bert", SMALL, TOKENS, 3, 0).eval()
    tokens = points_for("bert")
    with torch.no_grad():
        torch.testing.assert_close(model(F.pad(tokens, (0, 9))), model(tokens), rtol=1e-5, atol=1e-6)
        alone = model(tokens[:1, : int((tokens[0] != 0).sum())])
        torch.testing.assert_close(alone, model(tokens)[:1], rtol=1e-5, atol=1e-6)


def test_without_dropout_models_train_as_a_stack_and_with_it_alone():
    x, y = points_for("bert", 4), torch.arange(4) % 3
    check_vmap(build_model("bert", SMALL, TOKENS, 3, 0).train(), x, y, F.cross_entropy)
    model = build_model("bert", {**SMALL, "dropout": 0.1}, TOKENS, 3, 0).train()
    assert "draws random numbers of its own" in reason_against(check_vmap, model, x, y, F.cross_entropy)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_the_dropout_asked_for_is_everywhere(checkpoint, rate):
    for params in (PARAMS["bert"], {"checkpoint": checkpoint}):
        model = build_model("bert", {**params, "dropout": rate}, TOKENS, 3, 0)
        assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {rate}


def test_of_a_checkpoint_the_body_is_the_checkpoints_and_the_head_is_the_seeds(checkpoint):
    first, again, other = (build_model("bert", {"checkpoint": checkpoint}, TOKENS, 5, seed) for seed in (1, 1, 2))
    body, head = body_and_head(first)
    stored = transformers.BertModel.from_pretrained(checkpoint).state_dict()
    assert equal({name.removeprefix("body."): tensor for name, tensor in body.items()}, stored)
    assert equal(body_and_head(other)[0], body)
    assert equal(body_and_head(again)[1], head)
    assert not equal(body_and_head(other)[1], head)


def test_training_one_model_does_not_touch_the_next_of_the_same_checkpoint(checkpoint):
    first = build_model("bert", {"checkpoint": checkpoint}, TOKENS, 5, 1)
    with torch.no_grad():
        for parameter in first.parameters():
            parameter.add_(1.0)
    second = build_model("bert", {"checkpoint": checkpoint}, TOKENS, 5, 1)
    assert not any(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_a_pooler_the_checkpoint_lacks_is_the_same_in_every_process(tmp_path):
    folder = save(tmp_path / "bare", transformers.BertModel(tiny_config(), add_pooling_layer=False))
    models = []
    for noise in (1, 2):
        bert_file._pretrained.cache_clear()
        torch.manual_seed(noise)
        models.append(build_model("bert", {"checkpoint": folder}, TOKENS, 5, 0))
    assert equal(models[0].state_dict(), models[1].state_dict())


def test_a_checkpoint_of_a_classifier_gives_its_body(tmp_path):
    classifier = transformers.BertForSequenceClassification(tiny_config())
    model = build_model("bert", {"checkpoint": save(tmp_path / "full", classifier)}, TOKENS, 5, 0)
    assert equal(model.body.state_dict(), classifier.bert.state_dict())


def test_a_checkpoint_in_an_installed_package_is_found_without_importing_it(tmp_path, monkeypatch):
    package = tmp_path / "packed_bert"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    save(package / "model", transformers.BertModel(tiny_config()))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert build_model("bert", {"checkpoint": "packed_bert:model"}, TOKENS, 5, 0).head.in_features == 16


@pytest.mark.parametrize(
    ("params", "length", "line"),
    [
        ({"layers": 3}, 12, "layers, hidden, heads and vocab are those of the checkpoint: leave them out"),
        ({"dropout": 1.0}, 12, "dropout = 1.0 is not at least 0 and below 1"),
        ({}, 513, "sequences of 513 tokens, but the checkpoint takes 512 at most"),
    ],
)
def test_what_a_checkpoint_cannot_do_is_one_line(checkpoint, params, length, line):
    with pytest.raises(UserError, match=f"^model 'bert': {line}$"):
        build_model("bert", {"checkpoint": checkpoint, **params}, (length,), 5, 0)


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(UserError, match=r"^model 'bert': hidden = 16 is not a multiple of heads = 3$"):
        build_model("bert", {**SMALL, "heads": 3}, TOKENS, 5, 0)


def test_another_architecture_a_pickle_and_broken_files_are_refused_in_one_line(tmp_path):
    other = save(tmp_path / "other", transformers.BertModel(tiny_config()), model_type="roberta")
    with pytest.raises(UserError, match=r"is a roberta, not a bert$"):
        build_model("bert", {"checkpoint": other}, TOKENS, 5, 0)
    broken = save(tmp_path / "broken", transformers.BertModel(tiny_config()))
    (tmp_path / "broken/model.safetensors").write_bytes(b"not tensors")
    with pytest.raises(UserError, match=r"cannot be loaded: [^\n]*$"):
        build_model("bert", {"checkpoint": broken}, TOKENS, 5, 0)
    (tmp_path / "broken/model.safetensors").rename(tmp_path / "broken/pytorch_model.bin")
    with pytest.raises(UserError, match=r"has no model\.safetensors$"):
        build_model("bert", {"checkpoint": broken}, TOKENS, 5, 0)
    (tmp_path / "broken/config.json").write_text("{}")
    (tmp_path / "broken/pytorch_model.bin").rename(tmp_path / "broken/model.safetensors")
    with pytest.raises(UserError, match=r"names no model_type$"):
        build_model("bert", {"checkpoint": broken}, TOKENS, 5, 0)


def test_a_checkpoint_may_lack_a_pooler_and_nothing_else(tmp_path):
    load_file, save_file = (
        getattr(pytest.importorskip("safetensors.torch"), name) for name in ("load_file", "save_file")
    )
    folder = save(tmp_path / "part", transformers.BertModel(tiny_config()))
    for lacking, is_read in (("pooler.", True), ("layer.1.output.", False)):
        weights = load_file(tmp_path / "part/model.safetensors")
        save_file({name: w for name, w in weights.items() if lacking not in name}, tmp_path / "part/model.safetensors")
        if is_read:
            build_model("bert", {"checkpoint": folder}, TOKENS, 5, 0)
            continue
        with pytest.raises(UserError, match=r"cannot be loaded: .*it lacks 4 weights of the model, such as .*layer\.1"):
            build_model("bert", {"checkpoint": folder}, TOKENS, 5, 0)


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "no_such_package:model"])
def test_a_local_checkpoint_that_is_not_there_never_asks_the_hub(name, monkeypatch):
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: pytest.fail("asked the hub"))
    with pytest.raises(UserError, match=r"no such folder$|no package 'no_such_package' is installed$"):
        build_model("bert", {"checkpoint": name}, TOKENS, 5, 0)


def test_the_hub_is_asked_only_after_its_cache_and_its_silence_is_one_line(monkeypatch):
    from huggingface_hub.errors import LocalEntryNotFoundError

    asked = []

    def download(name, file, *, local_files_only=False):
        asked.append(local_files_only)
        if local_files_only:
            raise LocalEntryNotFoundError("not cached")
        raise OSError("no network\nand more lines")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    with pytest.raises(UserError, match=r"no such folder, and not to be had from the hub: no network$"):
        build_model("bert", {"checkpoint": "some/bert"}, TOKENS, 5, 0)
    assert asked == [True, False]


def test_a_cached_checkpoint_of_the_hub_is_used_without_a_download(checkpoint, monkeypatch):
    def download(name, file, *, local_files_only=False):
        assert local_files_only
        return f"{checkpoint}/{file}"

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    assert build_model("bert", {"checkpoint": "some/bert"}, TOKENS, 5, 0).head.in_features == 16
