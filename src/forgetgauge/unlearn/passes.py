"""So many passes over one part of the data: the descent most methods are, of one model or of all members of a stack.

Orders and dropout come from the streams of the request either way, and the gradients are counted in its context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Positions, Steps, batch_positions, batches_per_epoch, descend, own_randomness
from forgetgauge.learn.stacked.trainer import Feed, Stack, batches_of
from forgetgauge.unlearn.stacked import descended
from forgetgauge.unlearn.unlearner import Context, Request


@dataclass(frozen=True)
class Passes:
    """How often, in what batches, and by which steps."""

    epochs: int
    batch_size: int
    steps: Steps

    def alone(
        self, loss: Callable[[Tensor], Tensor], parameters: Iterable[Tensor], part: Points, context: Context
    ) -> None:
        """Minimise `loss(positions in the part)`, changing the parameters in place."""
        with own_randomness(context.streams):
            descend(loss, parameters, self._order(part, context), self.steps, n_steps=self._n_steps(part))
        context.n_gradients += self.epochs * len(part)

    def stacked(
        self,
        stack: Stack,
        requests: Sequence[Request],
        parts: Sequence[Points],
        *,
        train: bool,
        sign: float = 1.0,
        labels: Sequence[Positions] | None = None,
    ) -> list[nn.Module]:
        """Minimise sign · (mean loss of a batch), each member over its own part; the members come back.

        `labels` are (n,) for each part, where others are to be learnt than the part's own.
        """
        feeds = []
        for k, (request, part) in enumerate(zip(requests, parts, strict=True)):
            batches = batches_of(part, self._order(part, request.context), None if labels is None else labels[k])
            feeds.append(Feed(batches, self._n_steps(part)))
            request.context.n_gradients += self.epochs * len(part)
        return descended(stack, parts, feeds, self.steps, batch_size=self.batch_size, train=train, sign=sign)

    def _order(self, part: Points, context: Context) -> Iterator[Positions]:
        return batch_positions(len(part), self.batch_size, self.epochs, context.streams.generator("order"))

    def _n_steps(self, part: Points) -> int:
        return self.epochs * batches_per_epoch(len(part), self.batch_size)
