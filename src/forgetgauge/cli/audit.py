"""The commands `audit`, which judges outputs of one's own models, `draw`, which draws what one of them forgets, and
`import-evals`, which makes an audit file of another project's evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetgauge.cli.options import Json, Quiet, one_by_one, say
from forgetgauge.cli.printing import TABLE, Form, asked_for, say_set_aside, show, show_evidence
from forgetgauge.errors import UserError
from forgetgauge.wording import counted


def audit(
    file: Annotated[Path, typer.Argument(help="Outputs of your own models: .npz or .csv.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the result; audits/NAME without it.")] = None,
    adversary: Annotated[
        list[str] | None,
        typer.Option("--adversary", callback=one_by_one, help="Adversary that attacks the logits; may be repeated."),
    ] = None,
    level: Annotated[
        float, typer.Option(help="Confidence level of all intervals; of one model, p up to 1 − level is visible.")
    ] = 0.95,
    interval: Annotated[
        str | None,
        typer.Option(help="Of swap pairs: student (pairs roughly normal; without it), or bounded (any distribution)."),
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(help="Test one model: the draw.json by which F and T were drawn before training.")
    ] = None,
    points: Annotated[
        Path | None, typer.Option(help="With --draw: the list that was drawn from, which F and T are held to.")
    ] = None,
    requests: Annotated[
        bool,
        typer.Option("--requests", help="Test one model: F is what was asked for, and not drawn; the file says it."),
    ] = False,
    delta: Annotated[float, typer.Option(help="δ of the certified removal whose smallest possible ε is given.")] = 1e-5,
    states: Annotated[
        list[str] | None,
        typer.Option(
            callback=one_by_one,
            help="Of one model, what you state to be true: training, shadows, settings, validation (with --requests "
            "also exchangeable), or all.",
        ),
    ] = None,
    quiet: Quiet = False,
    form: Form = TABLE,
    as_json: Json = False,
) -> None:
    """Judge your own models by their outputs: those of swap pairs or, with --draw or --requests, the one you have."""
    from forgetgauge import auditing
    from forgetgauge.auditing.swap_pairs import keep_audit
    from forgetgauge.store.runfolder import RunFolder

    form = asked_for(form, as_json)
    target = out or Path("audits") / file.stem
    if interval is not None and (draw is not None or requests):
        raise UserError("--interval belongs to an audit of swap pairs: the test of one model has none")
    if draw is None and not requests:
        for name, given, needs in (("--states", states, "--draw or --requests"), ("--points", points, "--draw")):
            if given:
                raise UserError(f"{name} belongs to the test of one model, which needs {needs}")
        judged = auditing.audit(
            file,
            adversaries=adversary,
            level=level,
            delta=delta,
            interval=interval,
            progress=not quiet,
        )
        earlier = keep_audit(judged, target)
        show(RunFolder(target), form)
        say_set_aside(earlier)
        return
    found = auditing.audit(
        file,
        draw,
        requests=requests,
        points=points,
        adversaries=adversary,
        level=level,
        delta=delta,
        states=states or (),
        progress=not quiet,
    )
    show_evidence(found, target, form)


def draw(
    points: Annotated[
        Path, typer.Argument(help="The points: a .csv with a header, or a text file with one id a line.")
    ],
    forget: Annotated[
        int, typer.Option(help="How many points (with --by, groups) to forget; as many stay unseen.")
    ] = 0,
    by: Annotated[str | None, typer.Option(help="Column that keeps points together, as a person's records.")] = None,
    pairs: Annotated[str | None, typer.Option(help="Column of matched pairs: one point of each is forgotten.")] = None,
    commit: Annotated[bool, typer.Option("--commit", help="Only commit to the list; the seed comes later.")] = False,
    seed: Annotated[
        str | None, typer.Option(help="Any text that you could not choose: a public beacon's value.")
    ] = None,
    seed_from: Annotated[str | None, typer.Option(help="In words, who or what the seed is from.")] = None,
    out: Annotated[Path, typer.Option(help="Where the draw is kept.")] = Path("draw.json"),
) -> None:
    """Draw at random which points will be forgotten, before training, so that one model can be tested exactly."""
    from forgetgauge.auditing import make_draw
    from forgetgauge.auditing.draw import listed_points, spelled_twice

    made = make_draw(points, forget, out, by=by, pairs=pairs, commit=commit, seed=seed, seed_from=seed_from)
    where, listed = listed_points(points, by or pairs)
    if twice := spelled_twice(listed):
        say(f"'{twice[0]}' and '{twice[1]}' are two {made.kind} here: if they are one, write both alike", err=True)
    say(f"{made.n_units} {made.kind} in the list; SHA-256 of what is committed to: {made.commitment}")
    some = ", ".join([*list(listed)[:3], *(["…"] if len(listed) > 3 else [])])
    say(f"The points are named by the {where} of {points}: {some}")
    if made.forget is None or made.unseen is None:
        say(f"Publish it ({out}); then draw with --seed in place of --commit, a text that nobody could know before")
        return
    say(f"{counted(len(made.forget), 'point')} to forget, {len(made.unseen)} to keep unseen: {out}")
    if made.is_own:
        whose = "this computer's own" if seed is None else "nobody's who is named (--seed-from)"
        say(f"The seed is {whose}: others have to take your word that the draw was not repeated.")
    elif not made.committed_first:
        say("No commitment was made before (--commit): others have to take your word that the list was not changed.")


def import_evals(
    evaluation: Annotated[Path, typer.Argument(help="TOFU_EVAL.json or MUSE_EVAL.json of the unlearned model.")],
    retrained: Annotated[
        list[Path] | None,
        typer.Option(help="The same of a model that was trained without the forget and holdout sets; may be repeated."),
    ] = None,
    metric: Annotated[str, typer.Option(help="The attack whose scores are taken, as the file names it.")] = "mia_loss",
    per_person: Annotated[
        int | None, typer.Option(help="So many samples that follow each other are of one person; of TOFU, 20.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the audit file is kept: .csv or .npz.")] = Path("outputs.csv"),
) -> None:
    """Make an audit file of the scores of each sample that an evaluation by open-unlearning leaves."""
    from forgetgauge.auditing import write_from_evals

    n = write_from_evals(evaluation, out, metric=metric, retrained=retrained or (), per_person=per_person)
    say(f"{counted(n, 'sample')}: {out}; next: forgetgauge audit {out} --requests")
