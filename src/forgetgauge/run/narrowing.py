"""A stack that memory is too small for is done in parts half as wide, and half again, down to single models.

Nobody knows before how much a model of the user's own takes; a failed attempt costs a step, a run that stops costs a
night. The parts that ran are told to the ledger, so that who goes on, or does one of them again, does the same.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeVar

Member = TypeVar("Member")
Made = TypeVar("Made")


def in_parts(
    stack: tuple[Member, ...], do: Callable[[tuple[Member, ...]], Made]
) -> list[tuple[tuple[Member, ...], Made]]:
    """(part, what `do` made of it) one after the other: the whole stack as one part, unless that took too much."""
    done: list[tuple[tuple[Member, ...], Made]] = []
    waiting = [stack]
    while waiting:
        part = waiting.pop(0)
        try:
            done.append((part, do(part)))
            continue
        except Exception as error:
            if len(part) == 1 or not _is_out_of_memory(error):
                raise
        _forget_unused()  # after `except`: the error's frames held on to all they had allocated
        rest = [member for left in (part, *waiting) for member in left]
        waiting = cut(rest, -(-len(part) // 2))
    return done


def cut(members: list[Member], width: int) -> list[tuple[Member, ...]]:
    """Parts of at most so many, in their order."""
    return [tuple(members[start : start + width]) for start in range(0, len(members), width)]


def _is_out_of_memory(error: Exception) -> bool:
    from forgetgauge.learn.device import is_out_of_memory

    return is_out_of_memory(error)


def _forget_unused() -> None:
    """Give cached memory back, so that the next attempt finds it in one piece."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
