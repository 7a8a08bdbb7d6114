"""Models a user might bring: each strains another seam of the stack."""

import torch
import torch.nn.functional as F
from torch import nn

N_INPUTS, N_HIDDEN = 6, 8


class Plain(nn.Module):
    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.body = nn.Linear(N_INPUTS, N_HIDDEN)
        self.head = nn.Linear(N_HIDDEN, n_classes)

    def middle(self, x):
        return x

    def forward(self, x):
        return self.head(self.middle(torch.tanh(self.body(x))))


class Dropout(Plain):
    def __init__(self, *args):
        super().__init__(*args)
        self.dropout = nn.Dropout(0.5)

    def middle(self, x):
        return self.dropout(x)


class DropoutByFunction(Plain):
    """Dropout that no search through the modules can find."""

    def middle(self, x):
        return F.dropout(x, 0.5, self.training)


class Noise(Plain):
    def middle(self, x):
        return x + torch.randn_like(x) if self.training else x


class AverageOfAllBatches(Plain):
    """Batch norm whose running statistics are plain averages: they need the count as a Python number."""

    def __init__(self, *args):
        super().__init__(*args)
        self.norm = nn.BatchNorm1d(N_HIDDEN, momentum=None)

    def middle(self, x):
        return self.norm(x)


class BatchNormed(AverageOfAllBatches):
    def __init__(self, *args):
        super().__init__(*args)
        self.norm = nn.BatchNorm1d(N_HIDDEN)


class Tied(Plain):
    """Two layers with one weight."""

    def __init__(self, *args):
        super().__init__(*args)
        self.one = nn.Linear(N_HIDDEN, N_HIDDEN)
        self.other = nn.Linear(N_HIDDEN, N_HIDDEN)
        self.other.weight = self.one.weight

    def middle(self, x):
        return self.other(torch.tanh(self.one(x)))


class FrozenBody(Plain):
    """Features that are given and not learned."""

    def __init__(self, *args):
        super().__init__(*args)
        self.body.requires_grad_(False)


class UnusedLayer(Plain):
    def __init__(self, *args):
        super().__init__(*args)
        self.unused = nn.Linear(2, 2)


class CountsByAssignment(Plain):
    """A buffer that is replaced, not changed in place."""

    def __init__(self, *args):
        super().__init__(*args)
        self.register_buffer("n_steps", torch.zeros(()))

    def middle(self, x):
        if self.training:
            self.n_steps = self.n_steps + 1
        return x


class BranchesOnData(Plain):
    def middle(self, x):
        return x if bool(x.sum() > 0) else -x
