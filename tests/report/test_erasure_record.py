"""The record of an erasure test: the page, the statements, the model card, Every Eval Ever's JSON."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetgauge.errors import UserError
from forgetgauge.report.erasure_record import (
    MOST_LETTERS,
    OWN_PREDICATE,
    Stated,
    model_card,
    record_files,
    render_record,
    result_statement,
    whole_statement,
    yaml_text,
)
from forgetgauge.report.erasure_test import OUTCOMES, what_was_tested
from forgetgauge.report.every_eval_ever import RELATIONSHIPS
from forgetgauge.results.made import FailureResult
from forgetgauge.results.record import AdversaryResult
from forgetgauge.results.verdict import VERDICTS
from tests.report.evidence import CLEAN, CLEAN_OF_REQUESTS, SEEN, evidence, requested
from tests.report.test_html import NO_PAIR, Page, game, method, result, sweep

SHA = "5d" * 32
EVIL = '"><script>alert(1)</script> a|b_c & 50% {x}: [y] # \\ \x07'
LETTERS = st.text(st.characters(exclude_categories=["Cs"]))


def run_with(verdict: str, **changes: Any):
    """A result whose one method was given this verdict."""
    methods = {"retrain": method(0.995), "none": method(0.85), "mine": method(0.9, verdict=verdict, resolution=0.03)}
    return dataclasses.replace(result(game(methods)), **changes)


def model_with(verdict: str, **changes: Any):
    models = {"before": SEEN, "mine": dataclasses.replace(SEEN, verdict=verdict)}
    return evidence(models, **{"list_shown": True, **changes})


def damaged():
    ruined = method(0.99, verdict=VERDICTS[2], utility={"retain": 0.5, "forget": 0.5, "unseen": 0.5})
    return result(game({"retrain": method(0.995), "mine": ruined}))


TESTS = {
    **{f"run, {verdict}": run_with(verdict) for verdict in VERDICTS},
    **{f"one model, {verdict}": model_with(verdict) for verdict in VERDICTS},
    "no pair": result(game({"mine": NO_PAIR})),
    "an empty spec": result(dataclasses.replace(game({"mine": method(0.9)}), spec={})),
    "no test": evidence({"mine": dataclasses.replace(SEEN, tests={}, best="")}),
    "nothing stated, own draw": evidence(stated={}, own_draw=True),
    "requests": requested(),
    "a failed job and a warning": dataclasses.replace(
        result(dataclasses.replace(game({"mine": method(0.9)}), warnings=["doubtful"])),
        failures=[FailureResult("job", "boom", "")],
    ),
}


@pytest.fixture(params=list(TESTS.values()), ids=list(TESTS))
def any_test(request):
    return what_was_tested(request.param, None, "here")


def files_of(test, **stated):
    return record_files(test, "result.json", SHA, {"model.pt": "ab" * 32}, Stated(**stated), 1763290000.25)[0]


# -- what is asked of a result -----------------------------------------------------------------------------------------


def test_the_one_method_that_is_no_reference_needs_no_name():
    assert what_was_tested(run_with(VERDICTS[0]), None, "here").name == "mine"
    assert what_was_tested(run_with(VERDICTS[0]), "retrain", "here").name == "retrain"


@pytest.mark.parametrize(
    ("found", "named", "why"),
    [
        (result(game({"a": method(0.9), "b": method(0.8)})), None, "here: name the method .* --method: a and b"),
        (result(), "neggrad", "here: unknown method 'neggrad'; did you mean 'neg-grad'"),
        (evidence({"a": SEEN, "b": CLEAN}), None, "here: name the model .* a and b"),
        (evidence(), "modle", "here: unknown model 'modle'; did you mean 'model'"),
        (sweep([0.1, 0.2]), None, "a sweep over game.alpha is several tests"),
    ],
)
def test_what_is_not_one_test_is_refused(found, named, why):
    with pytest.raises(UserError, match=why):
        what_was_tested(found, named, "here")


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("made", [run_with, model_with])
def test_only_what_cannot_be_told_from_retraining_passes(made, verdict):
    test = what_was_tested(made(verdict), None, "here")
    passes = verdict == "not distinguishable from retraining at this resolution"
    fails = verdict in ("still visible", "not shown to be better than doing nothing")
    assert test.outcome == OUTCOMES[verdict] == ("PASSED" if passes else "FAILED" if fails else "WARNED")


@pytest.mark.parametrize(
    ("found", "warned"),
    [
        (model_with(VERDICTS[2], stated={"training": True}), "everything that the test rests on is stated"),
        (model_with(VERDICTS[2], own_draw=True), "the seed of the draw is somebody else's"),
        (model_with(VERDICTS[2], list_shown=False), "the forgotten points are all that the seed draws of the list"),
        (model_with(VERDICTS[2], warnings=["doubtful"]), "the result carries no warning"),
        (evidence({"mine": CLEAN}, list_shown=True), "the model from before the deletion is still visible"),
        (evidence({"none": CLEAN}, list_shown=True), "the model from before the deletion is still visible"),
        (run_with(VERDICTS[2], failures=[FailureResult("job", "boom", "")]), "no job failed"),
        (
            result(
                game(
                    {
                        "retrain": method(0.995),
                        "none": method(0.85),
                        "mine": method(
                            0.99, verdict=VERDICTS[2], utility={"retain": 0.5, "forget": 0.5, "unseen": 0.5}
                        ),
                    }
                )
            ),
            "accuracy is kept",
        ),
    ],
)
def test_what_a_reader_must_know_first_turns_a_pass_into_a_warning(found, warned):
    test = what_was_tested(found, None, "here")
    assert test.outcome == "WARNED"
    assert test.checks_that("WARNED") == [warned]


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_page_is_well_formed_loads_nothing_and_says_what_was_found(any_test):
    html = files_of(any_test)["record.html"]
    page = Page(html)
    assert not page.open
    assert not {"script", "link", "img", "iframe", "object", "a"} & {tag for tag, _ in page.tags}
    assert "url(" not in html
    assert [found["content"] for found in page.all("meta") if "http-equiv" in found] == [
        "default-src 'none'; style-src 'unsafe-inline'"
    ]
    assert page.text.index(f"{any_test.name}: {any_test.verdict}") < page.text.index("What was asked")
    for line in (*any_test.numbers, *any_test.scope.values(), *any_test.limits, SHA, *any_test.digests.values()):
        assert line in page.text
    assert page.text.count("ot stated") >= 2  # what was asked, and by whom


def test_the_numbers_of_a_run_and_of_one_model_are_on_the_page():
    run = Page(files_of(what_was_tested(run_with(VERDICTS[0]), None, "here"))["record.html"]).text
    assert "Q = 0.900, 95 % interval [0.890, 0.910]" in run
    assert "8 swap pairs" in run
    assert "None, which unlearns nothing, has 0.850" in run
    assert "Accuracy on the unseen points: 0.954 (Retrain 0.954, None 0.954)." in run
    assert "299 in each split" in run
    one = Page(files_of(what_was_tested(evidence(), None, "here"))["record.html"]).text
    assert "loss, was right in 71 of 100 answers" in one
    assert "p = 5e-8" in one
    assert "ε ≥ 13.91" in one
    assert "2026-11-16" in one


def test_what_is_stated_is_shown_and_escaped():
    test = what_was_tested(result(game({EVIL: method(0.9), "retrain": method(0.99)})), None, "here")
    html = render_record(test, EVIL, SHA, {EVIL: SHA}, Stated(asked=EVIL, by=EVIL, url=EVIL))
    assert "<script" not in html
    assert Page(html).text.count(EVIL) >= 6
    assert "ot stated" not in Page(html).text.replace("when\nnot stated", "").replace("whennot stated", "")


def test_of_points_that_were_not_drawn_no_file_says_that_they_were():
    files = files_of(what_was_tested(requested(models={"mine": CLEAN_OF_REQUESTS}), None, "here"), **TOLD)
    assert len(files) == 5
    assert not any("ε ≥" in text or "epsilon-lower-bound" in text for text in files.values())
    for name, text in files.items():
        assert "drawn at random before training" not in text
        assert "of the draw" not in text, name


@pytest.mark.parametrize("drawn_seed", ["", "5f3c0a"])
def test_whether_f_was_drawn_is_what_its_origin_says_and_not_its_seed(drawn_seed):
    asked = what_was_tested(requested(seed=drawn_seed), None, "here")
    assert "whose deletion was asked for" in asked.scope["forgotten points"]
    assert asked.checks["the forgotten points were drawn at random"] == "WARNED"
    assert (
        "any other choice of these points" in what_was_tested(requested(stated={}), None, "").scope["what it rests on"]
    )
    assert (
        "drawn at random before training"
        in what_was_tested(evidence(seed=drawn_seed), None, "").scope["forgotten points"]
    )


def test_stored_text_is_no_markup_in_a_model_card():
    """Also a verdict, whoever wrote it, the limits, and the labels."""
    evil = "<img src=x onerror=alert(1)>"
    test = what_was_tested(evidence(), None, "here")
    said = dataclasses.replace(test, verdict=evil, numbers=[evil], scope={evil: evil}, limits=[evil], warnings=[evil])
    words = files_of(said)["model-card.md"].split("---\n\n")[-1]
    assert "<img" not in words
    assert words.count("&lt;img") == 6


def test_a_verdict_that_is_none_is_refused_in_one_line():
    with pytest.raises(UserError, match=r"here: the verdict on mine is one of .*, not evaluable, not 'x'"):
        what_was_tested(run_with("x"), None, "here")
    with pytest.raises(ValueError, match="verdict is one of still visible"):
        dataclasses.replace(SEEN, verdict="x")


def test_the_same_test_gives_the_same_bytes(any_test):
    again = {name: text for name, text in files_of(any_test).items() if name != "every-eval-ever.json"}
    assert again == {name: text for name, text in files_of(any_test).items() if name in again}


@pytest.mark.parametrize("option", MOST_LETTERS)
def test_what_would_not_fit_on_one_page_is_refused(option):
    field = option.removeprefix("--")
    Stated(**{field: "x" * MOST_LETTERS[option]})
    with pytest.raises(UserError, match=f"{option} has {MOST_LETTERS[option] + 1} letters"):
        Stated(**{field: "x" * (MOST_LETTERS[option] + 1)})


def crowded():
    """As much on the page as there can be."""
    words = "every word of it is needed " * 40
    adversaries = {f"adversary-{i:02}": AdversaryResult(0.1, (0.0, 0.2), [0.1]) for i in range(16)}
    methods = {"retrain": method(0.995), "none": method(0.85), words: method(0.9, by_adversary=adversaries)}
    found = dataclasses.replace(
        result(dataclasses.replace(game(methods), warnings=[words] * 9)),
        environment=dict.fromkeys(("date", "command", "commit", "forgetgauge", "cpu", "device", "platform"), words),
        digests={"data": SHA, "decisions": SHA},
    )
    drawn = evidence({words: SEEN}, seed_from=words, stated={}, own_draw=True, warnings=[words] * 9)
    return {"run": found, "one model": dataclasses.replace(drawn, environment=found.environment)}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="platform: Chromium is not installed")
@pytest.mark.parametrize("kind", ["run", "one model"])
@pytest.mark.parametrize("full", [False, True])
def test_it_prints_on_one_page_of_a4(tmp_path, kind, full):
    found = crowded()[kind] if full else {"run": run_with(VERDICTS[1]), "one model": evidence(stated={})}[kind]
    said = Stated(asked="a b c " * 100, by="d " * 100, url="https://example.org/" + "x" * 300) if full else Stated()
    models = {f"{'m' * 200}{i}.pt": SHA for i in range(9)} if full else {}
    page = tmp_path / "record.html"
    page.write_text(render_record(what_was_tested(found, None, "here"), "result.json", SHA, models, said), "utf-8")
    subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
         f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={tmp_path / 'record.pdf'}", page.as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    printed = (tmp_path / "record.pdf").read_bytes()
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) == 1
    width, height = map(float, re.search(rb"/MediaBox \[0 0 (\S+) (\S+)\]", printed).groups())
    assert (round(width), round(height)) == (595, 842)


# -- statements --------------------------------------------------------------------------------------------------------


def test_statements_are_what_in_toto_asks_for(any_test):
    """The fields of Statement v1 and of the predicate test-result v0.1, restated."""
    files = files_of(any_test, url="https://example.org/run/1")
    for name in ("statement.json", "statement-forgetgauge.json"):
        statement = json.loads(files[name])
        assert set(statement) == {"_type", "subject", "predicateType", "predicate"}
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert [one["name"] for one in statement["subject"]] == ["result.json", "model.pt"]
        assert all(re.fullmatch("[0-9a-f]{64}", one["digest"]["sha256"]) for one in statement["subject"])
    statement = json.loads(files["statement.json"])
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    predicate = statement["predicate"]
    assert predicate["result"] in ("PASSED", "WARNED", "FAILED")
    for descriptor in predicate["configuration"]:
        assert {"uri", "digest", "content"} & set(descriptor)
        assert re.fullmatch("[0-9a-f]{64}", descriptor["digest"]["sha256"])
    named = [predicate[key] for key in ("passedTests", "warnedTests", "failedTests")]
    assert sorted(name for names in named for name in names) == sorted(any_test.checks)
    assert predicate["result"] == ("FAILED" if named[2] else "WARNED" if named[1] else "PASSED")
    assert predicate["url"] == "https://example.org/run/1"


def test_without_an_address_there_is_none():
    assert "url" not in json.loads(files_of(what_was_tested(evidence(), None, "here"))["statement.json"])["predicate"]


def test_our_own_statement_holds_every_number_that_was_measured():
    found = evidence({"mine": SEEN, "other": CLEAN})
    statement = whole_statement(
        what_was_tested(found, "mine", "here"), {"evidence.json": SHA}, {"asked": None, "by": "me"}
    )
    predicate = json.loads(json.dumps(statement))["predicate"]
    assert statement["predicateType"] == OWN_PREDICATE
    assert predicate["measured"]["model"] == json.loads(json.dumps(dataclasses.asdict(SEEN)))
    assert predicate["measured"]["commitment"] == found.commitment
    assert predicate["stated"] == {"asked": None, "by": "me"}
    run = run_with(VERDICTS[0])
    predicate = json.loads(json.dumps(whole_statement(what_was_tested(run, None, "here"), {"r": SHA}, {})))["predicate"]
    assert predicate["measured"]["method"] == json.loads(json.dumps(dataclasses.asdict(run.methods["mine"])))
    assert predicate["settings"] == run.games[0].spec
    assert {one["first"] for one in predicate["measured"]["comparisons"]} == {"retrain", "none"}


def test_another_setting_is_another_digest():
    def settings(found) -> str:
        statement = result_statement(what_was_tested(found, None, "here"), {"r": SHA}, None)
        return statement["predicate"]["configuration"][-1]["digest"]["sha256"]

    assert settings(evidence()) == settings(evidence())
    assert settings(evidence()) != settings(evidence(level=0.9))


# -- the model card ----------------------------------------------------------------------------------------------------


def read_yaml(text: str) -> Any:
    """The part of YAML that a model card is written in: indented mappings and lists, and words in JSON's quotes."""
    lines = [(len(line) - len(line.lstrip(" ")), line.strip(" ")) for line in text.split("\n") if line.strip(" ")]

    def scalar(word: str) -> Any:
        """As JSON, but for YAML's escapes of eight digits."""
        return json.loads(
            re.sub(r"\\(?:U([0-9a-f]{8})|.)", lambda m: json.dumps(chr(int(m[1], 16)))[1:-1] if m[1] else m[0], word)
        )

    def block(depth: int) -> Any:
        found: Any = [] if lines[0][1].startswith("- ") else {}
        while lines and lines[0][0] == depth:
            _, line = lines[0]
            if isinstance(found, list):
                assert line.startswith("- ")
                inner = line[2:]
                if re.match(r'[a-z][a-z0-9_-]*:( |$)|"', inner) and not re.fullmatch(r'"(?:[^"\\]|\\.)*"', inner):
                    lines[0] = (depth + 2, inner)
                    found.append(block(depth + 2))
                else:
                    lines.pop(0)
                    found.append(scalar(inner))
                continue
            match = re.fullmatch(r'([a-z][a-z0-9_-]*|"(?:[^"\\]|\\.)*"):(?: (.*))?', line)
            assert match, line
            lines.pop(0)
            key = match[1] if match[1][0] != '"' else scalar(match[1])
            assert key not in found
            found[key] = block(lines[0][0]) if match[2] is None else scalar(match[2])
        return found

    found = block(0)
    assert not lines
    return found


def front_of(card: str) -> str:
    match = re.match(r"---\n(.*?\n)---\n", card, re.S)
    assert match
    return match[1]


def loaded(text: str) -> Any:
    """By PyYAML where it is there, which must agree with the reading above."""
    found = read_yaml(text)
    try:
        import yaml
    except ImportError:
        return found
    assert yaml.safe_load(text) == found
    return found


def test_the_model_card_has_the_fields_of_a_model_index(any_test):
    card = model_card(any_test, "me/mine", SHA, "https://example.org")
    assert any_test.verdict in card
    if not any_test.metrics:  # an entry without a metric is none
        assert card.startswith("## Erasure test")
        return
    ((entry),) = loaded(front_of(card))["model-index"]
    assert entry["name"] == "me/mine"
    (found,) = entry["results"]
    assert found["task"]["type"]
    assert found["dataset"]["type"]
    assert found["dataset"]["name"] == any_test.data
    assert found["source"]["url"] == "https://example.org"
    assert [(one["type"], one["name"], one["value"]) for one in found["metrics"]] == [
        (metric.key, metric.name, metric.value) for metric in any_test.metrics
    ]
    assert "source" not in loaded(front_of(model_card(any_test, "me/mine", SHA, None)))["model-index"][0]["results"][0]


@given(LETTERS, st.floats(allow_nan=False, allow_infinity=False), st.integers())
def test_any_word_and_number_survives_yaml(text, fraction, whole):
    value = {"a": [{"b": text, "c": fraction}, {"d": {"e": whole}}], "f": text}
    assert loaded(yaml_text(value)) == value


def test_a_hostile_name_stays_a_name_in_the_card():
    test = what_was_tested(result(game({EVIL: method(0.9), "retrain": method(0.99)})), None, "here")
    card = model_card(test, EVIL, SHA, None)
    assert loaded(front_of(card))["model-index"][0]["name"] == EVIL
    assert "<script" not in card.removeprefix(f"---\n{front_of(card)}---\n")
    rows = [line for line in card.splitlines() if line.startswith("| ")]
    assert all(len(re.split(r"(?<!\\)\|", row)) == 4 for row in rows)


# -- Every Eval Ever ---------------------------------------------------------------------------------------------------

TOLD = {"model_id": "me/mine", "by": "Me, Inc.", "relationship": "first_party"}


def test_evidence_from_one_model_meets_every_eval_ever():
    """What its schema (0.2.2) requires, and the types it asks for, restated."""
    text = files_of(what_was_tested(evidence(), None, "here"), **TOLD)["every-eval-ever.json"]
    found = json.loads(text)
    assert {
        "schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library",
        "evaluation_results",
    } <= set(found) <= {
        "schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library",
        "evaluation_results", "evaluation_timestamp", "detailed_evaluation_results",
    }  # fmt: skip
    for key in ("schema_version", "evaluation_id", "retrieved_timestamp", "evaluation_timestamp"):
        assert isinstance(found[key], str)
    assert float(found["retrieved_timestamp"]) == 1763290000.25
    source = found["source_metadata"]
    assert source["source_type"] in ("documentation", "evaluation_run")
    assert source["source_organization_name"] == "Me, Inc."
    assert source["evaluator_relationship"] in RELATIONSHIPS
    assert found["model_info"] == {"name": "model", "id": "me/mine"}
    assert found["eval_library"] == {"name": "forgetgauge", "version": "0.1.0"}
    (one,) = found["evaluation_results"]
    assert {"evaluation_name", "source_data", "metric_config", "score_details"} <= set(one)
    assert one["source_data"]["source_type"] == "other"
    assert isinstance(one["source_data"]["dataset_name"], str)
    config = one["metric_config"]
    assert config["lower_is_better"] is True
    assert config["score_type"] == "continuous"
    assert config["min_score"] <= one["score_details"]["score"] <= config["max_score"]
    assert one["score_details"]["score"] == SEEN.tests["loss"].advantage
    assert all(isinstance(value, str) for value in one["score_details"]["details"].values())


@pytest.mark.parametrize("missing", [*TOLD, None])
def test_where_it_cannot_be_met_honestly_it_is_not_written(missing):
    told = {key: text for key, text in TOLD.items() if key != missing}
    found = evidence() if missing else run_with(VERDICTS[0])
    files, remarks = record_files(what_was_tested(found, None, "here"), "r", SHA, {}, Stated(**told), 0.0)
    assert "every-eval-ever.json" not in files
    (remark,) = remarks
    assert (f"--{missing.replace('_', '-')}" if missing else "a method over many") in remark
