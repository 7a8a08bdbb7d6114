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
