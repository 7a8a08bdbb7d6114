"""What `ops.py` beside this folder computes in plain torch, computed by kernels: the same functions."""

from forgetgauge.learn.stacked.kernels.batch_norm import finish_moments, norm_gradient, scale_shift
from forgetgauge.learn.stacked.kernels.convolution import convolve, convolve_back, weight_gradient

__all__ = ["convolve", "convolve_back", "finish_moments", "norm_gradient", "scale_shift", "weight_gradient"]
