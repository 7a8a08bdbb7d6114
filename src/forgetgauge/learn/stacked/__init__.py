"""Stacks: many models of one architecture, trained and asked as one.

`members` says what can be a stack, `engines` which engine trains it. `vmap` stacks any architecture. `traced` reads a
model's graph (`reader`) into `steps`, of which `convolution` is the large one, and `trainer` moves its members; plain
torch does the work (`ops`, `patches`, `group_norm`), and on a GPU `kernels/`. `ghost` is DP-SGD's stack.
"""
