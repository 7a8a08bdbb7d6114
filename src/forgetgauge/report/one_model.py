"""Evidence from one model, in a terminal."""

from __future__ import annotations

from forgetgauge.report.table import align
from forgetgauge.results.one_model import OneModelResult, unstated
from forgetgauge.results.verdict import STILL_VISIBLE
from forgetgauge.wording import plain, signed


def render_evidence(found: OneModelResult) -> str:
    """The verdict on each model first, then its numbers, then what they rest on."""
    blocks = []
    for name, model in found.models.items():
        what = f"{name}: {model.verdict}"
        if model.verdict != STILL_VISIBLE:
            what += f" (an advantage of {plain(model.resolution)} would have been seen with a power of 80 %)"
        blocks.append(what)
        tests = sorted(model.tests.items(), key=lambda one: one[1].log10_p)
        rows = [["adversary", "right answers", "advantage", "p"]]
        rows += [[key, f"{t.n_right} of {t.n_asked}", signed(t.advantage), chance(t.log10_p)] for key, t in tests]
        blocks.append(align(rows))
        level = f"{100 * found.level:g} %"
        line = (
            f"Corrected for the choice among {len(tests)} tests: p = {chance(model.log10_p)}. With {level} confidence "
        )
        line += f"a certified removal of all of F together has ε ≥ {model.epsilon:.2f} (δ = {found.delta:g})"
        if model.point_epsilon is not None:
            line += f", of each point alone ε ≥ {model.point_epsilon:.2f}"
        blocks.append(line + ".")
    drawn = {"points": "points", "groups": "groups of points", "pairs": "points, one of each matched pair,"}[found.kind]
    whose = "the tester's own, so that nobody else can know that it was not repeated" if found.own_draw else "from "
    whose += "" if found.own_draw else found.seed_from
    blocks.append(
        f"Evidence from one model, not Q: F is {found.n_forget} {drawn} drawn at random from a list whose SHA-256 is "
        f"{found.commitment[:16]}…; the seed is {whose}. p is exact for a model that knows nothing of the draw."
    )
    lacking = unstated(found.stated)
    if lacking:
        blocks.append("It rests on what nobody has stated yet: " + "; ".join(lacking) + ".")
    return "\n\n".join([*blocks, *(f"warning: {line}" for line in found.warnings)])


def chance(log10_p: float) -> str:
    """`0.042`, `4e-7`: a small p is rounded up, so that what is shown holds too."""
    if log10_p > -3:
        return plain(10**log10_p)
    exponent = int(log10_p // 1)
    digit = -int((1e-9 - 10 ** (log10_p - exponent)) // 1)
    return f"{digit}e{exponent}" if digit < 10 else f"1e{exponent + 1}"
