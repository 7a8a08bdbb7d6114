"""What is shipped for language models, by name: entries of the catalogues in `shipped.py`."""

from __future__ import annotations

from forgetgauge.plugins.catalogue import Entry

TASKS: dict[str, Entry] = {
    "causal-lm": Entry(
        "forgetgauge.tasks.causal_lm:CAUSAL_LM",
        "a point is a record of text; mean token loss, geometric mean of token probabilities",
    ),
}


ADVERSARIES: dict[str, Entry] = {
    "calibrated-loss": Entry(
        "forgetgauge.attack.threshold:CALIBRATED_LOSS",
        "of a language model: how much the loss of a record's tokens fell below that of the untouched base model",
        needs="token losses under the model and under the base (black box), shadow models",
        cost="one pass of the base model, one sort",
        cites="Carlini et al. 2021; Mireshghallah et al. 2022; Watson et al. 2022",
    ),
    "zlib-ratio": Entry(
        "forgetgauge.attack.threshold:ZLIB_RATIO",
        "of a language model: loss of a record per byte that zlib makes of its text",
        needs="token losses (black box), shadow models",
        cost="one sort",
        cites="Carlini et al. 2021",
    ),
    "min-k": Entry(
        "forgetgauge.attack.lowest_tokens:MIN_K",
        "of a language model: mean log-probability of the k % least probable tokens of a record (Min-K %)",
        needs="token log-probabilities (black box), shadow models, which choose k",
        cost="one sort for each k",
        cites="Shi et al. 2024",
    ),
    "min-k-plus-plus": Entry(
        "forgetgauge.attack.lowest_tokens:MIN_K_PLUS_PLUS",
        "of a language model: the same of log-probabilities standardised by what it expects of each token (Min-K++)",
        needs="the distribution of each token (black box), shadow models, which choose k",
        cost="one sort for each k",
        cites="Zhang J. et al. 2024",
    ),
    "all-signals": Entry(
        "forgetgauge.attack.shadow_model:ALL_SIGNALS",
        "of a language model: a classifier of all that is kept of a record, taught by shadow models",
        needs="token log-probabilities, under the base as well (black box), shadow models",
        cost="one logistic regression",
        cites="Shokri et al. 2017",
    ),
    "all-signals-aware": Entry(
        "forgetgauge.attack.shadow_model:ALL_SIGNALS_AWARE",
        "the same, with shadow models that were unlearned by the method under test",
        needs="token log-probabilities, under the base as well (black box), shadow models unlearned by each method",
        cost="each method on each shadow model; one logistic regression",
        cites="Shokri et al. 2017",
    ),
    "loss-paraphrased": Entry(
        "forgetgauge.attack.threshold:PARAPHRASED_LOSS",
        "of a language model: the attack `loss` on answers to prompts in other words than those it was trained on",
        needs="token losses (black box), data with paraphrased prompts, shadow models",
        cost="one pass over the paraphrases, one mean",
        cites="Yeom et al. 2018; Patil et al. 2024 (rephrased prompts)",
    ),
    "loss-8-bit": Entry(
        "forgetgauge.attack.threshold:EIGHT_BIT_LOSS",
        "of a language model: the attack `loss` on the model with its weights rounded to 8 bits",
        needs="token losses of the rounded model (black box), shadow models",
        cost="one more pass of each model, one mean",
        cites="Yeom et al. 2018; Zhang Z. et al. 2024 (unlearning undone by quantisation)",
    ),
}
"""Who looks for what a language model did not forget, by signals that the task causal-lm alone has."""
