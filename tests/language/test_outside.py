"""Text that has nothing to do with the records shows what else a model can do; a price is counted on T."""

import numpy as np

from forgetgauge import evaluate
from forgetgauge.data.people import draw_people
from forgetgauge.data.text_records import Encoding, dataset_of_records
from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.results.utility import unseen_accuracy
from forgetgauge.run import model_jobs


def test_what_a_method_costs_is_counted_on_unseen_records_and_text_outside_is_shown_beside(monkeypatch):
    records = draw_people(40, np.random.default_rng(0))
    data = dataset_of_records(
        "mine", records, Encoding("pieces", 48, "all", 192), outside=["A film like no other."] * 3
    )
    judged, utility = [], model_jobs._utility
    monkeypatch.setattr(
        model_jobs, "_utility", lambda model, asked, said: judged.append(set(asked)) or utility(model, asked, said)
    )
    result = evaluate(
        unlearner={"retrain": {}, "none": {}, "neg-grad": {"strength": {"lr": [1e-6, 1e-2]}, "epochs": 1}},
        learner={
            "model": "causal-lm",
            "model_params": {"hidden": 16, "heads": 2, "vocab": 192},
            "epochs": 2,
            "lr": 5e-3,
        },
        data=data,
        alpha=0.3,
        pairs=2,
        by="group",
        adversaries=["loss"],
        shadows=2,
        strengths=2,
        tuning_shadows=3,
    )
    assert judged
    assert all(parts == {"unseen"} for parts in judged)
    for method in result.methods.values():
        assert unseen_accuracy(method) == ("unseen", method.utility["unseen"])
    assert "token probability outside" in render_table(result)
    assert "text outside" in render_report(result)
