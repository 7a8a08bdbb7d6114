"""What is shipped for models of text, by name: entries of the catalogues in `shipped.py`."""

from __future__ import annotations

from forgetgauge.plugins.catalogue import Entry

TASKS: dict[str, Entry] = {
    "causal-lm": Entry(
        "forgetgauge.tasks.causal_lm:CAUSAL_LM",
        "a point is a record of text; mean token loss, geometric mean of token probabilities",
    ),
}

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
    ),
    "sim-npo": Entry(
        "forgetgauge.unlearn.sim_npo:SimNPO",
        "push the mean token probability of the forget set down, less where it is low already",
        needs=_NEEDS,
        cost=_PAIRED,
        cites="Fan et al. 2024 (SimNPO)",
    ),
    "i-dont-know": Entry(
        "forgetgauge.unlearn.i_dont_know:IDontKnow",
        "teach “I don't know” as the answer to the prompts of the forget set",
        needs=_NEEDS,
        cost=_PAIRED,
        cites="Maini et al. 2024 (TOFU)",
    ),
    "rmu": Entry(
        "forgetgauge.unlearn.rmu:RMU",
        "steer what a middle block says of the forget set to a random direction",
        needs=_NEEDS,
        cost=f"{_PAIRED}, of the first blocks; as many predictions of the original",
        cites="Li et al. 2024 (WMDP)",
    ),
    "task-vector": Entry(
        "forgetgauge.unlearn.task_vector:TaskVector",
        "learn the forget set once more and subtract what that changed",
        needs="original model of the task causal-lm, forget set",
        cost="epochs × |F| gradients",
        cites="Ilharco et al. 2023",
    ),
}
