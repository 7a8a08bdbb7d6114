"""What every learner promises: the same points and the same streams give the same model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.streams import Streams


@runtime_checkable
class Learner(Protocol):
    """Lr of the paper: takes a data set, gives a model.

    A learner may also have `facts_of(model) -> dict[str, float]`: numbers about a model it made (a privacy budget
    spent, say) that should stand in the result; the model must carry them in its buffers.

    Your own learner needs these four methods and no base class::

        class Mine:
            def build(self, points, seed):  # an untrained model, also the mould that stored weights are poured into
                torch.manual_seed(seed)
                return MyNet(points.n_classes)
            def fit(self, points, streams):
                model = self.build(points, streams.seed("init"))
                ...  # train on points.x, points.y; draw from streams.generator("order")
                return model
            def fit_many(self, points, streams):
                return [self.fit(p, s) for p, s in zip(points, streams)]
            def n_gradients(self, n_points):
                return 10 * n_points
    """

    def build(self, points: Points, seed: int) -> nn.Module:
        """An untrained model for such points."""
        ...

    def fit(self, points: Points, streams: Streams) -> nn.Module:
        """One trained model."""
        ...

    def fit_many(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        """One trained model for each set of points, as a stack where that is faster.

        The sets are of one data set, but may differ in size and, in the IC test, in what their points are labelled.
        """
        ...

    def n_gradients(self, n_points: int) -> int:
        """How many per-example gradients a fit on so many points evaluates: its cost."""
        ...
