"""What is shipped for models of text, by name: entries of the catalogues in `shipped.py`."""

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
        "of a language model: mean token loss of a record per byte that zlib makes of the text whose loss it is",
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


MODELS: dict[str, Entry] = {
    "bert": Entry(
        "forgetgauge.models.bert:bert",
        "transformer encoder for token ids, pretrained (a local or hub checkpoint) or random",
        needs="the extra [text]",
        cites="Devlin et al. 2019",
    ),
    "causal-lm": Entry(
        "forgetgauge.models.causal_lm:causal_lm",
        "language model for records of text, pretrained (a local or hub checkpoint, or a GGUF file) or a random Llama",
        needs="the extra [text] for GGUF files and architectures other than Llama",
        cites="Touvron et al. 2023",
    ),
}

LEARNERS: dict[str, Entry] = {
    "lora": Entry(
        "forgetgauge.learn.lora:Lora",
        "adapters on one frozen language model, many at once",
        needs="a data set of the task causal-lm",
        cost="epochs × n gradients",
        cites="Hu et al. 2022",
    ),
}

DATA: dict[str, Entry] = {
    "people": Entry(
        "forgetgauge.data.people:load_people",
        "480 short records of 120 fictitious people, by a seeded generator: language models",
        embedded=True,
    ),
    "lume": Entry(
        "forgetgauge.data.lume:load_lume",
        "5,466 records of 500 synthetic people, 489 stories and 744 biographies: language models",
        needs="a download of 2 MiB, once; the extra [text] for a checkpoint's tokenizer",
        cites="Ramakrishna et al. 2025 (LUME, SemEval-2025 Task 4)",
    ),
}

_NEEDS = "original model of the task causal-lm, retain set, forget set"
_PAIRED = "epochs × |F| gradients, and a batch of R for each batch of F"

UNLEARNERS: dict[str, Entry] = {
    "npo": Entry(
        "forgetgauge.unlearn.npo:NPO",
        "push the probability of the forget set down, less where it is far below the original's already",
        needs=_NEEDS,
        cost=f"{_PAIRED}; as many predictions of the original",
        cites="Zhang et al. 2024",
        differs_in="lr",
    ),
    "sim-npo": Entry(
        "forgetgauge.unlearn.sim_npo:SimNPO",
        "push the mean token probability of the forget set down, less where it is low already",
        needs=_NEEDS,
        cost=_PAIRED,
        cites="Fan et al. 2024 (SimNPO)",
        differs_in="lr",
    ),
    "i-dont-know": Entry(
        "forgetgauge.unlearn.i_dont_know:IDontKnow",
        "teach “I don't know” as the answer to the prompts of the forget set",
        needs=_NEEDS,
        cost=_PAIRED,
        cites="Maini et al. 2024 (TOFU)",
        differs_in="lr",
    ),
    "rmu": Entry(
        "forgetgauge.unlearn.rmu:RMU",
        "steer what a middle block says of the forget set to a random direction",
        needs=_NEEDS,
        cost=f"{_PAIRED}, of the first blocks; as many predictions of the original",
        cites="Li et al. 2024 (WMDP)",
        differs_in="lr",
    ),
    "task-vector": Entry(
        "forgetgauge.unlearn.task_vector:TaskVector",
        "learn the forget set once more and subtract what that changed",
        needs="original model of the task causal-lm, forget set",
        cost="epochs × |F| gradients",
        cites="Ilharco et al. 2023",
        differs_in="scale",
    ),
}
