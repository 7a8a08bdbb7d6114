"""None: the request is ignored. The baseline that every method must beat."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.unlearn.unlearner import Context


@dataclass(frozen=True)
class Nothing:
    """A copy of the model, bit for bit, buffers included."""

    needs_gradients: ClassVar[bool] = False

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """The identity."""
        return copy.deepcopy(model).eval()
