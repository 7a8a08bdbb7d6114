"""Assignments that wait, against the plain rule: the first whose inputs are there and somebody has room for."""

from __future__ import annotations

import random

from forgetgauge.run.assignments import Assignment, Waiting
from tests.made_up import MadeUp

KINDS = ("train", "signals", "decide")


def drawn(rng: random.Random, number: int) -> Assignment:
    inputs = {f"{i}": f"artefact {rng.randrange(12)}" for i in range(rng.randrange(4))}
    job = MadeUp(rng.choice(KINDS), {"number": number}, inputs=inputs, label=str(number))
    return Assignment((job,), frozenset({job.key}))


def test_it_takes_what_going_through_all_of_them_would_take():
    for seed in range(200):
        rng = random.Random(seed)
        there: set[str] = set()
        expected = [drawn(rng, number) for number in range(20)]
        waiting = Waiting(expected, there.__contains__)
        for number in range(20, 80):
            match rng.randrange(5):
                case 0:
                    new = {f"artefact {rng.randrange(12)}" for _ in range(3)}
                    there |= new
                    waiting.arrived(new)
                case 1 if there:
                    there.discard(rng.choice(sorted(there)))  # lost
                case 2:
                    again = [drawn(rng, number), drawn(rng, number + 1000)]
                    expected = again + expected
                    waiting.put_first(again)
                case _:
                    room = set(rng.sample(KINDS, rng.randrange(4)))
                    late = rng.choice(KINDS)
                    fitting = [
                        one
                        for one in expected
                        if one.jobs[0].kind in room and one.inputs <= there and one.jobs[0].kind != late
                    ]
                    taken = waiting.take(
                        lambda one, room=room: one.jobs[0].kind in room, lambda one, late=late: one.jobs[0].kind != late
                    )
                    assert taken is (fitting[0] if fitting else None)
                    expected = [one for one in expected if one is not taken]
            assert list(waiting) == expected
            assert len(waiting) == len(expected)
        waiting.replace(expected[::2])
        assert list(waiting) == expected[::2]
