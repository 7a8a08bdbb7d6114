"""Adapters on one base: alone, all at once, and exchanged with peft."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch

from forgetgauge.errors import UserError
from forgetgauge.learn.lora import Lora
from forgetgauge.learn.predict import outputs_of
from forgetgauge.learn.stacked import records
from forgetgauge.models import llama
from forgetgauge.models.causal_lm import Base, base_of
from forgetgauge.models.llama import Llama, sizes_in
from forgetgauge.models.lora import LoraModel, load_adapters, save_adapters
from forgetgauge.streams import Streams
from forgetgauge.tasks.causal_lm import AT

from .world import LORA, MODEL, WHOLE, people

LLAMA = {
    "vocab_size": 192,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}


def all_logits(model, points):
    ids = torch.where(points.x[:, 0] < -1, -2 - points.x[:, 0], points.x[:, 0].clamp(min=0)).long()
    return model.logits_at(ids, torch.arange(ids.shape[1]).expand(ids.shape))


def members():
    points = people().points
    parts = [points.subset(np.arange(a, b)) for a, b in ((0, 30), (10, 47), (20, 41))]
    return parts, [Streams(f"member {k}") for k in range(3)]


@torch.no_grad()
@pytest.mark.parametrize("learner", [LORA, WHOLE], ids=["adapters", "whole models"])
def test_members_of_a_stack_are_the_models_that_each_would_be_alone(learner):
    """Own data of different sizes, own order, own rate; one epoch in float32: logits within 1e-4, decisions equal."""
    parts, streams = members()
    with torch.enable_grad():
        together = learner.fit_many(parts, streams)
        alone = [learner.fit(part, own) for part, own in zip(parts, streams, strict=True)]
    points = people().points
    untrained = learner.build(points, 0)
    for one, other in zip(together, alone, strict=True):
        found, wanted = all_logits(one, points), all_logits(other, points)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-4)
        assert (wanted - all_logits(untrained, points)).abs().max() > 0.05  # they did learn
        loss, other_loss = (outputs_of(model, points)[:, AT["loss-sum"]] for model in (one, other))
        assert np.array_equal(loss > np.median(loss), other_loss > np.median(other_loss))


@pytest.mark.parametrize(("has_it", "precision"), [(True, "bfloat16"), (True, "float32"), (False, "bfloat16")])
def test_on_a_processor_with_bfloat16_a_stack_computes_in_it_where_that_is_asked(monkeypatch, has_it, precision):
    monkeypatch.setattr(records, "multiplies_bfloat16", lambda device: has_it)
    points = people().points
    models = [LORA.fit(points.subset(np.arange(8)), Streams("m")), LORA.build(points, 1)]
    stack, exact = (records.LoraStack(models, points, own) for own in (precision, "float32"))
    is_low = has_it and precision == "bfloat16"
    assert stack.body.head_weight.dtype == (torch.bfloat16 if is_low else torch.float32)
    found = []
    for one in (stack, exact):
        outputs, tape = one.forward(points.x[:12].expand(2, -1, -1, -1), keep=True)
        one.backward(tape, torch.ones_like(outputs))
        found.append((outputs[..., 0], one.gradient))
    (loss, gradient), (wanted, wanted_gradient) = found
    assert gradient.dtype == loss.dtype == torch.float32
    torch.testing.assert_close(loss, wanted, rtol=2e-2 if is_low else 1e-6, atol=0)
    assert bool((loss != wanted).any()) == is_low
    for mine, theirs in zip(gradient, wanted_gradient, strict=True):
        assert torch.cosine_similarity(mine, theirs, dim=0) > (0.99 if is_low else 0.999999)


def test_of_an_adapted_model_the_adapters_alone_are_stored_and_the_base_is_shared():
    model = LORA.build(people().points, 1)
    other = copy.deepcopy(model)
    assert other.base is model.base
    assert {name.partition(".")[0] for name in model.state_dict()} == {"down", "up"}
    sizes = [
        layer.weight.shape for layer in model.base.on(torch.device("cpu")).modules() if hasattr(layer, "in_features")
    ]
    assert sum(t.numel() for t in model.state_dict().values()) == sum(4 * (m + n) for m, n in sizes)


def test_a_fresh_adapted_model_answers_as_its_base():
    model, points = LORA.build(people().points, 1), people().points
    outputs = outputs_of(model, points)
    np.testing.assert_allclose(outputs[:, AT["loss-sum"]], outputs[:, AT["base-loss-sum"]], rtol=1e-5)


def test_adapted_logits_are_those_of_merged_weights_and_eight_bits_are_their_rounding():
    model = LORA.fit(people().points.subset(np.arange(20)), Streams("a"))
    whole = copy.deepcopy(model.base.on(torch.device("cpu")))
    with torch.no_grad():
        for name, weight in model.merged().items():
            whole.get_parameter(name).copy_(weight)
        ids = torch.arange(12).view(2, 6)
        at = torch.arange(6).expand(2, 6)
        torch.testing.assert_close(model.logits_at(ids, at), whole(ids, at), atol=1e-5, rtol=1e-4)
        for name, weight in model.merged().items():
            step = weight.abs().amax(1, keepdim=True) / 127
            whole.get_parameter(name).copy_(torch.round(weight / step) * step)
        torch.testing.assert_close(model.rounded(model.merged())(ids, at), whole(ids, at), atol=1e-5, rtol=1e-4)


@pytest.fixture
def checkpoint(tmp_path):
    """A Llama of two layers with random weights, as transformers saves it, and the same as our base."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).eval()
    theirs.save_pretrained(tmp_path / "base")
    return theirs, base_of(checkpoint=str(tmp_path / "base")), tmp_path


def test_a_llama_checkpoint_gives_the_logits_of_transformers(checkpoint):
    theirs, base, _ = checkpoint
    ids, body = torch.randint(0, 192, (3, 20)), base.on(torch.device("cpu"))
    assert isinstance(body, Llama)
    wanted = theirs(ids).logits.detach()
    torch.testing.assert_close(body(ids, torch.arange(20).expand(3, 20)), wanted, atol=1e-5, rtol=1e-5)
    states = theirs(ids, output_hidden_states=True).hidden_states[1].detach()
    torch.testing.assert_close(body(ids, None, 1), states, atol=1e-5, rtol=1e-5)


def test_attention_in_one_kernel_is_that_of_plain_products():
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 9, 8), torch.randn(2, 2, 9, 8), torch.randn(2, 2, 9, 8)
    torch.testing.assert_close(llama.fused_attention(q, k, v), llama._attended(q, k, v))


def test_a_frozen_norm_is_the_one_that_can_be_trained():
    norm, x = llama._Norm(16, 1e-5), torch.randn(3, 16)
    trained = norm(x)
    torch.testing.assert_close(norm.requires_grad_(False)(x), trained)


@pytest.mark.parametrize("kept", [2**28, 192 * 7])
def test_losses_under_a_frozen_head_and_their_gradient_are_those_of_autograd(kept, monkeypatch):
    """Also where not all logits are there at once."""
    monkeypatch.setattr(records, "LOGITS_KEPT", kept)
    torch.manual_seed(0)
    states, head, targets = torch.randn(40, 16, requires_grad=True), torch.randn(192, 16), torch.randint(0, 192, (40,))
    plain = torch.nn.functional.cross_entropy(states @ head.T, targets, reduction="none")
    found = records.losses_under_frozen_head(states, head, targets)
    weight = torch.linspace(-2, 1, 40)
    (wanted,) = torch.autograd.grad((plain * weight).sum(), states)
    (gradient,) = torch.autograd.grad((found * weight).sum(), states)
    torch.testing.assert_close(found, plain)
    torch.testing.assert_close(gradient, wanted)


def test_another_architecture_is_asked_through_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=192, n_embd=16, n_layer=2, n_head=2, n_positions=64)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path / "gpt2")
    body = base_of(checkpoint=str(tmp_path / "gpt2")).on(torch.device("cpu"))
    ids = torch.randint(0, 192, (3, 20))
    wanted = theirs(ids).logits.detach()
    torch.testing.assert_close(body(ids, torch.arange(20).expand(3, 20)), wanted, atol=1e-5, rtol=1e-5)


def test_adapters_go_to_peft_and_come_back_with_equal_logits(checkpoint):
    peft = pytest.importorskip("peft")
    theirs, base, folder = checkpoint
    torch.manual_seed(1)
    ours = LoraModel(base, LORA.targets, rank=4, alpha=8.0)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(0.3 * torch.randn_like(parameter))
    save_adapters(ours, folder / "ours")
    ids, at = torch.randint(0, 192, (3, 20)), torch.arange(20).expand(3, 20)
    adapted = peft.PeftModel.from_pretrained(copy.deepcopy(theirs), folder / "ours").eval()
    with torch.no_grad():
        found, plain = adapted(ids).logits, theirs(ids).logits
        torch.testing.assert_close(ours.logits_at(ids, at), found, atol=1e-5, rtol=0)
    assert (found - plain).abs().max() > 1e-2
    config = peft.LoraConfig(r=3, lora_alpha=6, target_modules=["q_proj", "down_proj"], task_type="CAUSAL_LM")
    made = peft.get_peft_model(copy.deepcopy(theirs), config).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "lora_" in name:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    made.save_pretrained(folder / "theirs")
    back = load_adapters(base, folder / "theirs")
    with torch.no_grad():
        torch.testing.assert_close(back.logits_at(ids, at), made(ids).logits, atol=1e-5, rtol=0)


def test_written_adapters_are_read_again_and_what_is_not_plain_lora_is_refused(tmp_path):
    model = LORA.fit(people().points.subset(np.arange(16)), Streams("a"))
    save_adapters(model, tmp_path)
    back = load_adapters(model.base, tmp_path)
    assert all(torch.equal(t, model.state_dict()[name]) for name, t in back.state_dict().items())
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    (tmp_path / "adapter_config.json").write_text(json.dumps({**config, "use_dora": True}))
    with pytest.raises(UserError, match="not plain LoRA adapters"):
        load_adapters(model.base, tmp_path)
    for init in ("pissa", "pissa_niter_4", "olora", "corda", "loftq"):  # these give the base other weights as well
        (tmp_path / "adapter_config.json").write_text(json.dumps({**config, "init_lora_weights": init}))
        with pytest.raises(UserError, match=f"init_lora_weights = '{init}', which changes the base"):
            load_adapters(model.base, tmp_path)
    for wrong in ([], {**config, "r": None}, {name: value for name, value in config.items() if name != "lora_alpha"}):
        (tmp_path / "adapter_config.json").write_text(json.dumps(wrong))
        with pytest.raises(UserError, match="adapters cannot be read"):
            load_adapters(model.base, tmp_path)
    with pytest.raises(UserError, match="adapters cannot be read"):
        load_adapters(model.base, tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rank": 0}, "at least 1"),
        ({"targets": ()}, "targets must name a layer"),
        ({"warmup": 1.0}, "warmup"),
        ({"model": "bert"}, "not on 'bert'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        Lora(**wrong)


def test_layers_that_the_base_does_not_have_and_tokens_that_it_does_not_know_are_refused():
    points = people().points
    with pytest.raises(UserError, match="no linear layer called 'query'"):
        Lora(model_params=MODEL, targets=("query",)).build(points, 0)
    with pytest.raises(UserError, match="the model knows 8: use its own tokenizer"):
        Lora(model_params={**MODEL, "vocab": 8}).build(points, 0)


@pytest.mark.parametrize("learner", [LORA, WHOLE], ids=["adapters", "whole models"])
def test_records_that_a_model_would_misread_are_refused(learner):
    points = people().points
    in_prompt, early = points.copied(), points.copied()
    in_prompt.whole_inputs[3, 0, 0] = -2 - 500
    early.whole_inputs[3, 0] = early.whole_inputs[3, 0].roll(1)  # its last place is padding
    with pytest.raises(UserError, match="the data have token 500, but the model knows 192"):
        learner.build(in_prompt, 0)
    with pytest.raises(UserError, match="padding before a token"):
        learner.build(early, 0)
    learner.build(points, 0)


def test_a_llama_with_parts_that_are_not_built_here_is_left_to_transformers():
    plain = {**LLAMA, "model_type": "llama", "hidden_act": "silu", "rope_theta": 5e5}
    assert sizes_in(plain).theta == 5e5
    for odd in ({"model_type": "gpt2"}, {"attention_bias": True}, {"rope_scaling": {"rope_type": "llama3"}}):
        assert sizes_in({**plain, **odd}) is None


def test_the_loss_under_the_base_is_computed_once_for_a_record(monkeypatch):
    base = Base("a base", copy.deepcopy(base_of(**MODEL).on(torch.device("cpu"))))
    codes = people().points.whole_inputs[:6, 0]
    first = base.losses(codes)
    monkeypatch.setattr(base, "on", lambda *where: pytest.fail("it was asked again"))
    assert torch.equal(base.losses(codes.flip(0)), first.flip(0))
