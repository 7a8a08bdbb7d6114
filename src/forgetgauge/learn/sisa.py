"""SISA (sharded, isolated, sliced, aggregated; Bourtoule et al. 2021): one model per shard, their posteriors averaged.

A point belongs to one shard for ever, by a keyed hash of its index in the whole data set: not by its label, nor by who
is a member, nor by any stored state. So a shard's model depends on that shard's points and streams alone, and a
forgotten point concerns one shard only. The price is accuracy: each model sees one n_shards-th of the data. No slices.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.augment import Augment
from forgetgauge.learn.descent import Idle, Optimiser, Schedule
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.stacked.traced import Precision
from forgetgauge.streams import Streams

_HASH_KEY = b"forgetgauge sisa shard"


def shard_of(index: npt.NDArray[np.int64], n_shards: int) -> npt.NDArray[np.int64]:
    """(n,) the shard of each point, given its index in the whole data set."""

    def one(point: int) -> int:
        digest = hashlib.blake2b(point.to_bytes(8, "big"), key=_HASH_KEY, digest_size=8).digest()
        return int.from_bytes(digest, "big") % n_shards

    return np.array([one(point) for point in index.tolist()], dtype=np.int64)


class Shards(nn.Module):
    """The shards' models as one."""

    def __init__(self, models: Iterable[nn.Module]) -> None:
        super().__init__()
        self.shards = nn.ModuleList(models)

    def forward(self, x: Tensor) -> Tensor:
        """(n, …) -> (n, n_classes) log of the mean posterior: logits whose softmax is that mean."""
        each = torch.stack([shard(x).log_softmax(1) for shard in self.shards])
        return each.logsumexp(0) - math.log(len(self.shards))


@dataclass(frozen=True)
class Sisa:
    """The recipe of Minibatch, for each shard; `n_shards = 1` is that recipe under another stream."""

    idle: ClassVar[Idle] = Minibatch.idle
    needs_classes: ClassVar[bool] = True
    n_shards: int = 5
    model: str = Minibatch.model
    model_params: Mapping[str, Any] = field(default_factory=dict)
    optimiser: Optimiser = Minibatch.optimiser
    lr: float = Minibatch.lr
    momentum: float = Minibatch.momentum
    weight_decay: float = Minibatch.weight_decay
    schedule: Schedule = Minibatch.schedule
    milestones: tuple[float, ...] = Minibatch.milestones
    warmup: float = Minibatch.warmup
    epochs: int = Minibatch.epochs
    batch_size: int = Minibatch.batch_size
    augment: Augment = Minibatch.augment
    precision: Precision = Minibatch.precision

    def __post_init__(self) -> None:
        if self.n_shards < 1:
            raise ValueError("n_shards must be at least 1")
        _ = self.recipe  # refuses what Minibatch refuses

    @property
    def recipe(self) -> Minibatch:
        """How a shard is trained."""
        return Minibatch(**{part.name: getattr(self, part.name) for part in dataclasses.fields(Minibatch)})

    def build(self, points: Points, seed: int) -> nn.Module:
        """Untrained models, one per shard, each with a seed of its own."""
        streams = Streams(f"sisa {seed}")
        return Shards(self.recipe.build(points, shard_streams(streams, s).seed("init")) for s in range(self.n_shards))

    def n_gradients(self, n_points: int) -> int:
        """Per-example gradients of one fit: the shards are disjoint, so what one model on all points takes."""
        return self.recipe.n_gradients(n_points)

    def fit(self, points: Points, streams: Streams) -> nn.Module:
        """One trained model."""
        return self.fit_many([points], [streams])[0]

    def fit_many(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        """All shards of all models in one go: those of one size train as one stack."""
        parts = [part for p in points for part in self.shards_of(p)]
        theirs = [shard_streams(s, shard) for s in streams for shard in range(self.n_shards)]
        models = self.fit_shards(parts, theirs)
        return [Shards(models[at : at + self.n_shards]).eval() for at in range(0, len(models), self.n_shards)]

    def shards_of(self, points: Points) -> list[Points]:
        """The points by shard, in the order they came in."""
        shard = shard_of(points.index, self.n_shards)
        return [points.subset(points.index[shard == number]) for number in range(self.n_shards)]

    def fit_shards(self, parts: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        """A model for each shard's points; an empty shard's is untrained."""
        filled = [i for i, part in enumerate(parts) if len(part)]
        fitted = self.recipe.fit_many([parts[i] for i in filled], [streams[i] for i in filled])
        trained = dict(zip(filled, fitted, strict=True))
        return [
            trained[i] if i in trained else self.recipe.build(part, streams[i].seed("init")).eval()
            for i, part in enumerate(parts)
        ]


def shard_streams(streams: Streams, shard: int) -> Streams:
    """The randomness of one shard of a model."""
    return streams.child(f"shard {shard}")
