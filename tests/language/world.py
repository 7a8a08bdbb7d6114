"""A tiny world of language models: a few fictitious people, and random models of two layers that have read of some."""

from __future__ import annotations

import functools

import numpy as np
import torch

from forgetgauge.data.dataset import Dataset
from forgetgauge.data.people import load_people
from forgetgauge.learn.lora import Lora
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.streams import Streams
from forgetgauge.unlearn.unlearner import Context, Request

MODEL = {"hidden": 16, "heads": 2, "vocab": 192}
LORA = Lora(model_params=MODEL, rank=4, alpha=8.0, lr=5e-3, epochs=1, batch_size=8)
WHOLE = Minibatch(model="causal-lm", model_params=MODEL, optimiser="adamw", lr=5e-3, epochs=1, batch_size=8)


@functools.cache
def people() -> Dataset:
    return load_people(people=16)


_TRAINED = {}


def original(learner=LORA, key="original"):
    """A model that has read the first 32 records, trained once."""
    where = type(learner).__name__, key
    if where not in _TRAINED:
        _TRAINED[where] = learner.fit(people().points.subset(np.arange(32)), Streams(key))
    return _TRAINED[where]


def request(learner=LORA, key="a job", n_retain=20, model="original") -> Request:
    """The first twelve of 32 records are to be forgotten."""
    points = people().points
    retain, forget = points.subset(np.arange(12, 12 + n_retain)), points.subset(np.arange(12))
    return Request(original(learner, model), retain, forget, Context(learner, Streams(key)))


def losses(model, codes):
    """(n,) summed loss and (n,) number of counted tokens, token by token from the logits: the definition."""
    totals, counts = [], []
    for row in codes:
        ids = torch.where(row < -1, -2 - row, row.clamp(min=0)).long()
        logits = model.logits_at(ids[None], torch.arange(len(ids))[None])[0].double()
        log_p = logits - logits.logsumexp(-1, keepdim=True)
        terms = [-log_p[t - 1, ids[t]] for t in range(1, len(ids)) if row[t] >= 0]
        totals.append(torch.stack(terms).sum())
        counts.append(len(terms))
    return torch.stack(totals), torch.tensor(counts, dtype=torch.float64)
