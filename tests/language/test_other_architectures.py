"""Models that transformers computes: GPT-2, whose layers are stored by inputs, Qwen2 with a tied last layer, NeoX."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from forgetgauge import plugins
from forgetgauge.data.checkpoints import checkpoint_files
from forgetgauge.data.dataset import Dataset
from forgetgauge.errors import UserError
from forgetgauge.models.causal_lm import Base, base_of, causal_lm, linear_weights, to_8_bits
from forgetgauge.models.condensed import token_losses
from forgetgauge.models.llama import Llama
from forgetgauge.models.lora import LoraModel, load_adapters, save_adapters
from forgetgauge.streams import Streams
from forgetgauge.tasks.causal_lm import AT, CAUSAL_LM
from forgetgauge.unlearn.unlearner import Context, Request
from tests.methods import FOR_RECORDS

from .world import LORA, WHOLE

transformers = pytest.importorskip("transformers", reason="transformers is not installed (the extra [text])")

SIZES = {"vocab_size": 96, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
MADE = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=96, n_embd=16, n_layer=2, n_head=2, n_positions=32)
    ),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(
            **SIZES,
            intermediate_size=24,
            num_key_value_heads=2,
            max_position_embeddings=32,
            tie_word_embeddings=True,
            pad_token_id=7,
        )
    ),
    "neox": lambda: transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(**SIZES, intermediate_size=24, max_position_embeddings=32)
    ),
    "llama with scaled positions": lambda: transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            **SIZES,
            intermediate_size=24,
            max_position_embeddings=32,
            rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 10_000.0},
        )
    ),
}
TARGETS = {"gpt2": "c_attn", "qwen2": "q_proj", "neox": "dense", "llama with scaled positions": "v_proj"}
IDS, AT_ALL = torch.arange(20).view(2, 10) * 4 % 96, torch.arange(10).expand(2, 10)


@pytest.fixture(params=MADE)
def kind(request, tmp_path):
    """(its name, transformers' model, our base, the folder)."""
    torch.manual_seed(0)
    theirs = MADE[request.param]().eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    theirs.save_pretrained(tmp_path / "base")
    return request.param, theirs, base_of(checkpoint=str(tmp_path / "base")), tmp_path


def adapted(base, target, spread=0.3):
    torch.manual_seed(1)
    model = LoraModel(base, (target,), rank=4, alpha=8.0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(spread * torch.randn_like(parameter))
    return model.eval()


@torch.no_grad()
def test_8_bits_round_the_matrices_of_all_blocks(kind):
    name, theirs, base, _ = kind
    whole = causal_lm((3, 10), 1, checkpoint=base.name)
    weights = whole.merged()
    assert len(weights) >= 2 * 4, "both blocks, of attention and of the rest"
    by_hand = copy.deepcopy(theirs)
    for own, parameter in by_hand.named_parameters():
        if f"inner.{own}" not in weights:
            continue
        rows = parameter.T if name == "gpt2" else parameter
        step = rows.abs().amax(1, keepdim=True) / 127
        rows.copy_(torch.round(rows / step) * step)
    rounded = whole.rounded(weights)(IDS, AT_ALL)
    torch.testing.assert_close(rounded, by_hand(IDS).logits, atol=1e-5, rtol=0)
    assert (rounded - theirs(IDS).logits).abs().max() > 1e-4


def test_a_model_without_matrices_to_round_is_told_so():
    body = torch.nn.Embedding(8, 4)
    body.sizes = None
    model = causal_lm((3, 10), 1)
    model.body, model.base = body, Base("nothing", body)
    assert linear_weights(body) == {}
    with pytest.raises(UserError, match="model 'nothing' has no linear layers whose weights could be rounded"):
        model.rounded(model.merged())


@torch.no_grad()
def test_experts_that_are_one_array_are_rounded_row_by_row():
    experts = torch.randn(3, 5, 7)
    for one, alone in zip(to_8_bits(experts), experts, strict=True):
        torch.testing.assert_close(one, to_8_bits(alone))


@torch.no_grad()
def test_adapters_go_to_peft_and_come_back_with_equal_logits(kind):
    peft = pytest.importorskip("peft", reason="peft is not installed (the extra [text])")
    name, theirs, base, folder = kind
    ours = adapted(base, TARGETS[name])
    save_adapters(ours, folder / "ours")
    there = peft.PeftModel.from_pretrained(copy.deepcopy(theirs), folder / "ours").eval()
    found, plain = there(IDS).logits, theirs(IDS).logits
    torch.testing.assert_close(ours.logits_at(IDS, AT_ALL), found, atol=1e-5, rtol=0)
    assert (found - plain).abs().max() > 1e-2
    some = {"layers_to_transform": [1]} if name != "gpt2" else {}
    config = peft.LoraConfig(r=3, lora_alpha=6, target_modules=[TARGETS[name]], task_type="CAUSAL_LM", **some)
    config.fan_in_fan_out = name == "gpt2"
    made = peft.get_peft_model(copy.deepcopy(theirs), config).eval()
    for own, parameter in made.named_parameters():
        if "lora_" in own:
            parameter.copy_(0.3 * torch.randn_like(parameter))
    made.save_pretrained(folder / "theirs")
    back = load_adapters(base, folder / "theirs")
    assert len(back.layers) < len(ours.layers) or not some
    torch.testing.assert_close(back.logits_at(IDS, AT_ALL), made(IDS).logits, atol=1e-5, rtol=0)
    other = base_of(hidden=8, heads=2, vocab=96)
    with pytest.raises(UserError, match="of another base"):
        load_adapters(other, folder / "theirs")


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")
@torch.no_grad()
def test_adapters_of_the_last_layer_come_with_the_bases_own_weight(kind):
    peft = pytest.importorskip("peft", reason="peft is not installed (the extra [text])")
    _, theirs, base, folder = kind
    config = peft.LoraConfig(r=3, lora_alpha=6, target_modules=["lm_head"], task_type="CAUSAL_LM")
    made = peft.get_peft_model(copy.deepcopy(theirs), config).eval()
    made.get_submodule("base_model.model.lm_head.lora_B.default").weight.copy_(torch.randn(96, 3))
    made.save_pretrained(folder / "theirs", save_embedding_layers=True)
    back = load_adapters(base, folder / "theirs")
    torch.testing.assert_close(back.logits_at(IDS, AT_ALL), made(IDS).logits, atol=1e-5, rtol=1e-5)
    weights = load_file(folder / "theirs/adapter_model.safetensors")
    weights["base_model.model.lm_head.base_layer.weight"].add_(1)
    save_file(weights, folder / "theirs/adapter_model.safetensors")
    with pytest.raises(UserError, match=r"of another base: .*base_layer"):
        load_adapters(base, folder / "theirs")


@torch.no_grad()
def test_a_merged_model_is_the_adapted_one_where_the_last_layer_is_the_embedding_too(kind):
    name, _, base, _ = kind
    for target in (TARGETS[name], "lm_head"):
        model = adapted(base, target)
        codes = IDS.to(torch.int32)[:, None].expand(-1, 3, -1)
        wanted, _ = token_losses(model.logits_at, codes[:, 0], 9)
        torch.testing.assert_close(model(codes)[:, AT["loss-sum"]], wanted, atol=1e-3, rtol=1e-4)


@torch.no_grad()
def test_states_after_the_last_block_are_not_normalised(kind):
    name, theirs, base, _ = kind
    body = base.on(torch.device("cpu"))
    states = theirs(IDS, output_hidden_states=True).hidden_states
    torch.testing.assert_close(body(IDS, None, 1), states[1], atol=1e-5, rtol=1e-5)
    last = {"gpt2": "transformer.ln_f", "neox": "gpt_neox.final_layer_norm"}.get(name, "model.norm")
    torch.testing.assert_close(theirs.get_submodule(last)(body(IDS, None, 2)), states[2], atol=1e-5, rtol=1e-5)
    assert (body(IDS, None, 2) - states[2]).abs().max() > 1e-2


def test_a_record_longer_than_the_model_reads_is_refused(kind):
    model = causal_lm((3, 40), 1, checkpoint=kind[2].name)
    with pytest.raises(UserError, match="the data have records of 40 tokens, but the model reads 32"):
        model.refuse(torch.ones((1, 3, 40), dtype=torch.int32))
    model.refuse(torch.ones((1, 3, 32), dtype=torch.int32))


def test_the_layers_that_there_are_are_named(kind):
    with pytest.raises(UserError, match=f"no linear layer called 'query'; its targets can be .*{TARGETS[kind[0]]}"):
        LoraModel(kind[2], ("query",), 2, 4.0)


def test_a_tied_llama_whose_file_has_the_last_layer_as_well_is_read(tmp_path):
    config = transformers.LlamaConfig(**SIZES, intermediate_size=24, tie_word_embeddings=True)
    theirs = transformers.LlamaForCausalLM(config).eval()
    theirs.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    again = {**weights, "lm_head.weight": weights["model.embed_tokens.weight"].clone()}
    save_file(again, tmp_path / "model.safetensors")
    body = base_of(checkpoint=str(tmp_path)).on(torch.device("cpu"))
    torch.testing.assert_close(body(IDS, AT_ALL), theirs(IDS).logits, atol=1e-5, rtol=1e-5)
    save_file({"model.norm.weight": weights["model.norm.weight"]}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"cannot be loaded: .*Missing key"):
        base_of(checkpoint=str(tmp_path))


@pytest.fixture
def records():
    torch.manual_seed(2)
    codes = torch.randint(0, 96, (12, 3, 9), dtype=torch.int32)
    codes[..., :4] = -2 - codes[..., :4]
    codes[::2, :, 7:] = -1
    codes[::3, :, 6] = 7
    return Dataset.of("records", codes, torch.full((12,), 20), task=CAUSAL_LM).points


@pytest.mark.parametrize("whole", [False, True], ids=["adapters", "whole models"])
@pytest.mark.parametrize("name", sorted(FOR_RECORDS))
def test_methods_treat_many_models_as_each_alone(kind, records, name, whole):
    """Three, which are as many as no probe of a model's blocks has rows."""
    base, method = kind[2], plugins.unlearners.load(name)(lr=1e-2, epochs=1, batch_size=4, optimiser="sgd")
    learner = WHOLE if whole else LORA
    models = [causal_lm((3, 9), 1, checkpoint=base.name) if whole else adapted(base, TARGETS[kind[0]])] * 3
    requests = [
        Request(
            model, records.subset(np.arange(4, 12)), records.subset(np.arange(k, 4)), Context(learner, Streams("a"))
        )
        for k, model in enumerate(models)
    ]
    together = method.unlearn_many(requests)
    for request, made in zip(requests, together, strict=True):
        (alone,) = method.unlearn_many([request])
        before, one, other = (
            torch.cat([p.detach().flatten() for p in model.parameters()]) for model in (request.model, alone, made)
        )
        assert (one - other).norm() < 1e-3 * (one - before).norm()


@torch.no_grad()
def test_weights_in_several_files_are_read(kind):
    _, theirs, base, folder = kind
    in_parts(theirs, folder / "parts")
    found = base_of(checkpoint=str(folder / "parts")).on(torch.device("cpu"))
    torch.testing.assert_close(found(IDS, AT_ALL), base.on(torch.device("cpu"))(IDS, AT_ALL), atol=0, rtol=0)


def in_parts(theirs, folder):
    theirs.save_pretrained(folder, max_shard_size="8KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1


def test_our_own_llama_reads_several_files_and_says_which_is_missing(tmp_path):
    config = transformers.LlamaConfig(**SIZES, intermediate_size=24)
    theirs, named = transformers.LlamaForCausalLM(config).eval(), {"checkpoint": str(tmp_path)}
    in_parts(theirs, tmp_path)
    body = base_of(**named).on(torch.device("cpu"))
    assert isinstance(body, Llama)
    torch.testing.assert_close(body(IDS, AT_ALL), theirs(IDS).logits, atol=1e-5, rtol=1e-5)
    _, second, *_ = files = checkpoint_files({"model_params": named})[2:]
    assert all(file.suffix == ".safetensors" for file in files), "they are all in the keys of jobs"
    second.rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=f"has no {second.name}"):
        base_of(**named)
    index = tmp_path / "model.safetensors.index.json"
    for wrong in ("[]", "{", '{"weight_map": {"a": "../a.safetensors"}}', '{"weight_map": {"a": 1}}'):
        index.write_text(wrong)
        with pytest.raises(UserError, match=r"index\.json names no files of weights beside it"):
            base_of(**named)
    index.unlink()
    with pytest.raises(UserError, match=r"has no model\.safetensors$"):
        base_of(**named)


def without(folder, part):
    weights = load_file(folder / "model.safetensors")
    there = {name: tensor for name, tensor in weights.items() if part not in name}
    assert len(there) < len(weights)
    save_file(there, folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)


def test_a_checkpoint_without_all_of_its_weights_is_refused(kind, capfd):
    """They would be random, and in each process others."""
    capfd.readouterr()
    with pytest.raises(UserError, match=r"cannot be loaded: it lacks \d+ weights of the model, such as .*1\.mlp"):
        base_of(checkpoint=without(kind[3] / "base", "1.mlp."))
    assert capfd.readouterr().err == ""


def test_a_model_that_looks_ahead_is_no_causal_one(tmp_path):
    config = transformers.BertConfig(**SIZES, intermediate_size=24, max_position_embeddings=32)
    transformers.BertLMHeadModel(config).save_pretrained(tmp_path / "ahead")
    with pytest.raises(UserError, match=r"what it expects of a token changes with later ones"):
        base_of(checkpoint=str(tmp_path / "ahead"))
    config.is_decoder = True
    transformers.BertLMHeadModel(config).save_pretrained(tmp_path / "back")
    assert base_of(checkpoint=str(tmp_path / "back")).name.endswith("back")
