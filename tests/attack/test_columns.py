"""What a language model gives for a record, against transformers' Llama of the same weights, record by record."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from forgetgauge.data.people import draw_people, load_people
from forgetgauge.models.causal_lm import Base, CausalLM
from forgetgauge.models.condensed import GIVEN, PARAPHRASED, columns_of
from forgetgauge.models.llama import Llama, sizes_in
from forgetgauge.tasks.causal_lm import AT, LOWEST_PERCENT

from . import token_scores as oracle

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

N = 24


@pytest.fixture(scope="module")
def theirs():
    """(the model, the base) two random Llamas of transformers'."""
    config = transformers.LlamaConfig(
        vocab_size=512, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=48, tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(0)
    models = [transformers.LlamaForCausalLM(config).eval() for _ in range(2)]
    for model in models:
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.3) if weight.ndim == 2 else None  # so that tokens differ much
    return models


@pytest.fixture(scope="module")
def points(theirs):
    """Records of people, in which most tokens of the answer are those that the model would have written."""
    found = load_people(people=8, vocab=512).points.x[:N].long().clone()
    rng = np.random.default_rng(0)
    for codes in found[:, GIVEN]:
        for place in np.flatnonzero(codes.numpy() >= 0):
            if rng.random() < 0.7:
                ids = torch.where(codes < -1, -2 - codes, codes)[:place]
                with torch.no_grad():
                    codes[place] = theirs[0](ids[None]).logits[0, -1].argmax()
    return found


def ours(model) -> Llama:
    body = Llama(sizes_in(model.config.to_dict()))
    body.load_state_dict({name: weight for name, weight in model.state_dict().items() if "rotary" not in name})
    return body


@pytest.fixture(scope="module")
def columns(theirs, points) -> np.ndarray:
    model, base = map(ours, theirs)
    with torch.no_grad():
        return CausalLM(model, Base("base", base)).eval()(points).double().numpy()


@torch.no_grad()
def law_of(model, codes) -> tuple[np.ndarray, np.ndarray]:
    """((n_counted, vocab) log-probabilities, (n_counted,) tokens) of one record without its padding."""
    codes = codes[codes != -1]
    ids = torch.where(codes < -1, -2 - codes, codes)
    log_p = model(ids[None]).logits[0].double().log_softmax(-1).numpy()
    counted = [place for place in range(1, len(ids)) if codes[place] >= 0]
    return log_p[[place - 1 for place in counted]], ids[counted].numpy()


def column(columns, name) -> np.ndarray:
    return columns[:, AT[name]]


def test_losses_and_counts_are_those_of_transformers(theirs, points, columns):
    laws = [law_of(theirs[0], record[GIVEN]) for record in points]
    np.testing.assert_allclose(column(columns, "loss-sum"), [oracle.loss_sum(*law) for law in laws], rtol=1e-4)
    assert column(columns, "tokens").tolist() == [len(tokens) for _, tokens in laws]
    at_base = [oracle.loss_sum(*law_of(theirs[1], record[GIVEN])) for record in points]
    np.testing.assert_allclose(column(columns, "base-loss-sum"), at_base, rtol=1e-4)


def test_the_loss_is_the_one_that_transformers_computes_itself(theirs, points, columns):
    for record, total, n in zip(points, column(columns, "loss-sum"), column(columns, "tokens"), strict=True):
        codes = record[GIVEN][record[GIVEN] != -1]
        ids, labels = torch.where(codes < -1, -2 - codes, codes), torch.where(codes < -1, -100, codes)
        with torch.no_grad():
            loss = theirs[0](ids[None], labels=labels[None]).loss
        assert total / n == pytest.approx(float(loss), rel=1e-4)


@pytest.mark.parametrize("k", LOWEST_PERCENT)
def test_min_k_and_min_k_plus_plus_are_those_of_their_papers(theirs, points, columns, k):
    laws = [law_of(theirs[0], record[GIVEN]) for record in points]
    for name, score in (("min-k", oracle.min_k), ("min-k++", oracle.min_k_plus_plus)):
        expected = [score(*law, k) for law in laws]
        np.testing.assert_allclose(column(columns, f"{name} {k}"), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("spread", [1e-1, 1e-2, 3e-3, 1e-3])
def test_min_k_plus_plus_of_laws_that_are_nearly_uniform_is_that_of_float64(spread):
    torch.manual_seed(0)
    logits, tokens = torch.randn(2, 40, 49_152) * spread, torch.randint(0, 49_152, (2, 40))
    found = columns_of(logits, tokens, torch.ones(2, 40, dtype=torch.bool)).numpy()
    for row, own, told in zip(found, logits.double().log_softmax(-1).numpy(), tokens.tolist(), strict=True):
        assert row[AT["min-k++ 20"]] == pytest.approx(oracle.min_k_plus_plus(own, told, 20), rel=5e-3)


def test_what_greedy_decoding_finds_is_what_generate_writes(theirs, points, columns):
    """Prefix by decoding in earnest; suffix and hits by the likeliest token at each place."""
    n_found = np.zeros(3)
    for record, prefix, suffix, hits in zip(
        points, *(column(columns, name) for name in ("prefix", "suffix", "hits")), strict=True
    ):
        log_p, tokens = law_of(theirs[0], record[GIVEN])
        right = oracle.is_right(log_p, tokens)
        assert hits == sum(right)
        assert suffix == round(oracle.extraction_strength(right) * len(tokens))
        codes = record[GIVEN][record[GIVEN] != -1]
        prompt = (-2 - codes[codes < -1])[None]
        written = theirs[0].generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=len(tokens), do_sample=False,
            eos_token_id=None, pad_token_id=0,
        )[0, prompt.shape[1] :]  # fmt: skip
        assert prefix == next((i for i, t in enumerate(tokens) if written[i] != t), len(tokens))
        n_found += [prefix, suffix, hits]
    assert (n_found > 10).all()


def test_a_prompt_in_other_words_is_asked_in_other_words(theirs, points, columns):
    laws = [law_of(theirs[0], record[PARAPHRASED]) for record in points]
    expected = [oracle.loss_sum(*law) / len(law[1]) for law in laws]
    np.testing.assert_allclose(column(columns, "paraphrased-loss"), expected, rtol=1e-4)
    asked = draw_people(2, np.random.default_rng(0))
    assert all(record.prompt != record.paraphrase for record in asked)


def test_8_bit_weights_are_whole_numbers_from_minus_127_to_127_in_every_row(theirs, points, columns):
    rounded = transformers.LlamaForCausalLM(theirs[0].config).eval()
    state = {name: weight.clone() for name, weight in theirs[0].state_dict().items()}
    for name, weight in state.items():
        if name.endswith("proj.weight"):
            for row in weight:
                unit = row.abs().max() / 127
                row.copy_(torch.round(row / unit) * unit)
    rounded.load_state_dict(state)
    expected = [oracle.loss_sum(*law_of(rounded, record[GIVEN])) for record in points]
    np.testing.assert_allclose(column(columns, "8-bit-loss-sum"), expected, rtol=1e-3)
    assert np.abs(column(columns, "8-bit-loss-sum") - column(columns, "loss-sum")).max() > 1e-3


def test_the_label_of_a_record_is_the_length_of_the_text_whose_loss_counts_compressed_by_zlib():
    import zlib

    records = draw_people(8, np.random.default_rng(0))
    labels = load_people(people=8).points.whole_labels
    texts = [record.answer for record in records]
    assert labels.tolist() == [len(zlib.compress(text.encode())) for text in texts]
