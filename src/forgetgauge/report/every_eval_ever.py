"""Evidence from one model in the JSON of Every Eval Ever (schema 0.2.2), where its required fields can be stated.

That schema is of an evaluation of one named model. What a run measures is a method over many models that nobody names,
so there is none of a run; and whose model it is, who tested it and how the two are related, the tester alone knows.
"""

from __future__ import annotations

from typing import Any

from forgetgauge.report.erasure_test import Tested
from forgetgauge.report.meaning import meaning

SCHEMA_VERSION = "0.2.2"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
"""What the tester may be to whoever made the model."""


def why_not(test: Tested, model_id: str | None, by: str | None, relationship: str | None) -> str | None:
    """Why there is none; None where there is."""
    if test.kind != "one model":
        return "it is of one named model, and this is a method over many"
    if not any(metric.key == "attack-advantage" for metric in test.metrics):
        return "it needs a number, and no attacker's answers were judged"
    missing = [
        option
        for option, given in (("--model-id", model_id), ("--by", by), ("--relationship", relationship))
        if given is None
    ]
    return f"it must state {' and '.join(missing)}" if missing else None


def every_eval_ever(
    test: Tested, *, model_id: str, by: str, relationship: str, sha256: str, made_at: float
) -> dict[str, Any]:
    """The record; `made_at` is now, in seconds since 1970."""
    advantage = next(metric for metric in test.metrics if metric.key == "attack-advantage")
    other = {metric.key: repr(metric.value) for metric in test.metrics if metric is not advantage}
    when = {"evaluation_timestamp": test.environment["date"]} if "date" in test.environment else {}
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"forgetgauge-erasure-test/{model_id}/{made_at}",
        "retrieved_timestamp": str(made_at),
        **when,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": by,
            "evaluator_relationship": relationship,
        },
        "model_info": {"name": test.name, "id": model_id},
        "eval_library": {"name": "forgetgauge", "version": test.environment.get("forgetgauge", "unknown")},
        "evaluation_results": [
            {
                "evaluation_name": "erasure test of one model",
                "source_data": {"dataset_name": test.data, "source_type": "other", "source_id": f"sha256:{sha256}"},
                "metric_config": {
                    "evaluation_description": "How much better than chance an attacker tells forgotten points from "
                    "points that were never trained on: |advantage| of the attacker whose answers are least like "
                    "chance.",
                    "metric_id": "forgetgauge.attack_advantage",
                    "metric_name": "|advantage|",
                    "lower_is_better": True,
                    "score_type": "continuous",
                    "min_score": 0,
                    "max_score": 1,
                },
                "score_details": {
                    "score": abs(advantage.value),
                    "details": {
                        "verdict": test.verdict,
                        "meaning": meaning(test.verdict, test.resolution),
                        "signed_advantage": repr(advantage.value),
                        **{key: str(value) for key, value in advantage.details.items()},
                        **other,
                    },
                },
            }
        ],
    }
