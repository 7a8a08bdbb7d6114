"""SISA's unlearning: retrain, from scratch and on what they retain, the shards that hold a forgotten point.

Exact for models of the learner `sisa` (Bourtoule et al. 2021): every shard's model, retrained or not, has seen that
shard's retained points and nothing else, so the result is distributed like that learner's on R. Once F has a few points
per shard nearly all shards are hit, and it costs what retraining costs.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.sisa import Shards, Sisa, shard_of, shard_streams
from forgetgauge.unlearn.unlearner import Context, Request


@dataclass(frozen=True)
class RetrainShards:
    """Nothing to set: the recipe and the number of shards are the learner's."""

    learner: ClassVar[str] = "sisa"
    """The learner whose models it unlearns."""

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """A copy with the shards that were hit retrained, each under a stream of its own."""
        return self.unlearn_many([Request(model, retain, forget, context)])[0]

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All shards that were hit in one go."""
        learner = requests[0].context.learner
        if not isinstance(learner, Sisa):
            raise UserError(f"sisa unlearns models of the learner 'sisa', not of {type(learner).__name__}")
        places, parts, streams = [], [], []
        results = [copy.deepcopy(_checked(request.model)) for request in requests]
        for result, request in zip(results, requests, strict=True):
            retained = learner.shards_of(request.retain)
            for shard in np.unique(shard_of(request.forget.index, learner.n_shards)).tolist():
                places.append((result, shard))
                parts.append(retained[shard])
                streams.append(shard_streams(request.context.streams, shard))
                request.context.n_gradients += learner.n_gradients(len(retained[shard]))
        for (result, shard), model in zip(places, learner.fit_shards(parts, streams), strict=True):
            result.shards[shard] = model
        return [result.eval() for result in results]


def _checked(model: nn.Module) -> Shards:
    if not isinstance(model, Shards):
        raise UserError(f"sisa unlearns models that are made of shards, not a {type(model).__name__}")
    return model
