"""`audit`: one's own models judged by their outputs, as the command of this name does it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, overload

from forgetgauge.auditing.one_model import audit_one_model
from forgetgauge.auditing.swap_pairs import audit_file
from forgetgauge.errors import UserError
from forgetgauge.files import refuse_no_folder
from forgetgauge.plan.spec import GameSpec, RunSpec, StatisticsSpec
from forgetgauge.progress import Watch
from forgetgauge.report.interactive import Evidence, Result
from forgetgauge.report.watching import refuse_no_watch, watched


@overload
def audit(
    path: str | Path,
    draw: None = None,
    *,
    requests: Literal[False] = False,
    out: str | Path | None = None,
    adversaries: Sequence[str] | None = None,
    level: float = GameSpec.level,
    delta: float = GameSpec.delta,
    interval: str | None = None,
    seed: int | None = None,
    progress: Watch | bool = True,
) -> Result: ...


@overload
def audit(
    path: str | Path,
    draw: str | Path | None = None,
    *,
    requests: bool = False,
    points: str | Path | None = None,
    out: str | Path | None = None,
    adversaries: Sequence[str] | None = None,
    level: float = GameSpec.level,
    delta: float = GameSpec.delta,
    states: Sequence[str] | None = (),
    progress: Watch | bool = True,
) -> Evidence: ...


def audit(
    path: str | Path,
    draw: str | Path | None = None,
    *,
    requests: bool = False,
    points: str | Path | None = None,
    out: str | Path | None = None,
    adversaries: Sequence[str] | None = None,
    level: float = GameSpec.level,
    delta: float = GameSpec.delta,
    interval: str | None = None,
    seed: int | None = None,
    states: Sequence[str] | None = (),
    progress: Watch | bool = True,
) -> Result | Evidence:
    """Judge your own models by their outputs, without torch: those of swap pairs or, with a draw, the one you have.

    Args:
        path: A `.npz` or `.csv` file of outputs; what it holds is in docs/audit.md, and for one model in
            docs/deletion-request.md.
        draw: Tests one model: the `draw.json` by which F and T were drawn before it was trained.
        requests: Tests one model whose F was asked for and not drawn; the file says which points are F and T.
        points: Of one model: the list that was drawn from, which F and T are then held to.
        out: A folder to keep it in.
        adversaries: Names of those who attack; without it all that can be fitted on what the file has.
        level: Confidence level of all intervals.
        delta: δ of the certified removal whose smallest possible ε is given.
        interval: Of swap pairs: `"student"` (pairs are roughly normal), or `"bounded"` (any distribution, much wider).
        seed: Of swap pairs: names the relabellings of the noise floor; a run's own seed gives its own p-values.
        states: Of one model: what you state to be true, so that the test may rest on it, or `all`.
        progress: A bar on a terminal and in a notebook unless False; or a function, called with where it stands.

    Returns:
        A `Result` of swap pairs, with Q of each method; `Evidence` of one model, which has no Q.

    Examples:
        >>> result = forgetgauge.audit("scores.npz")
        >>> result.methods["model"].verdict
        'still visible'
        >>> evidence = forgetgauge.audit("outputs.csv", "draw.json", states=["all"])
        >>> evidence.verdict
        'still visible'
    """
    refuse_no_folder(out)
    refuse_no_watch(progress)
    if draw is None and not requests:
        if states or points is not None:
            what = "states belong" if states else "points belong"
            raise UserError(f"{what} to the test of one model, which needs a draw or requests=True")
        with watched(progress) as watch:
            return audit_file(
                path,
                out,
                adversaries=adversaries,
                level=level,
                delta=delta,
                seed=RunSpec.seed if seed is None else seed,
                interval=StatisticsSpec.interval if interval is None else interval,
                progress=watch,
            )
    odd = [name for name, value in {"interval": interval, "seed": seed}.items() if value is not None]
    if odd:
        raise UserError(f"{odd[0]} belongs to an audit of swap pairs: the test of one model has none")
    with watched(progress) as watch:
        found = audit_one_model(
            path,
            draw,
            requests=requests,
            points=points,
            adversaries=adversaries,
            level=level,
            delta=delta,
            states=states,
            progress=watch,
        )
    if out is not None:
        found.save(out)
    return found
