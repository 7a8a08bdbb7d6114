"""Kernels for a GPU: in Triton, module by module what is in plain torch beside this folder; in CUDA, folded/."""
