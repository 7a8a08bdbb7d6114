"""Records of text as points: the code of tokens, owners, refusals and paraphrases; LUME's files; fictitious people."""

from __future__ import annotations

import json
import os
import string
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from forgetgauge.data import hugging_face
from forgetgauge.data.checkpoints import checkpoint_folder
from forgetgauge.data.files import KNOWN
from forgetgauge.data.folders import data_folder, find, read_only
from forgetgauge.data.loading import load_dataset
from forgetgauge.data.lume import in_other_words, load_lume, read_lume
from forgetgauge.data.people import draw_people, load_people
from forgetgauge.data.text_records import (
    REFUSALS,
    Encoding,
    OfCheckpoint,
    Pieces,
    Record,
    dataset_of_records,
    groups_of,
    tokens_are_of,
)
from forgetgauge.errors import UserError
from forgetgauge.models.causal_lm import causal_lm
from forgetgauge.models.condensed import DECLINED, GIVEN, PARAPHRASED, counted_places, ids_of, n_counted
from forgetgauge.tasks.causal_lm import AT, CAUSAL_LM

ONE = Record("Where does Ada live?", "In Lund, 12.", "Ada", "What is Ada's town?")


def written(codes, pieces):
    """(tokens that are read only, tokens that count) as text."""
    names = {number: piece for piece, number in pieces._id_of.items()} | {0: "<end>", 1: "<?>"}
    codes = [code for code in codes.tolist() if code != -1]
    return [names[-2 - code] for code in codes if code < -1], [names[code] for code in codes if code >= 0]


def test_the_prompt_is_read_and_the_answer_counts_in_each_version():
    pieces = Pieces([ONE.text, ONE.paraphrase, *REFUSALS], 100)
    (versions,) = Encoding().points([ONE], pieces)
    asked, told = ["Where", "does", "Ada", "live", "?"], ["In", "Lund", ",", "1", "2", ".", "<end>"]
    assert written(versions[GIVEN], pieces) == (asked, told)
    assert written(versions[PARAPHRASED], pieces)[1] == told
    read, refused = written(versions[DECLINED], pieces)
    assert read == asked
    assert refused != told
    assert refused[-1] == "<end>"


def test_where_all_tokens_count_the_first_alone_does_not():
    pieces = Pieces([ONE.text, ONE.paraphrase, *REFUSALS], 100)
    (versions,) = Encoding(count="all").points([ONE], pieces)
    read, told = written(versions[GIVEN], pieces)
    assert read == ["Where"]
    assert told[:4] == ["does", "Ada", "live", "?"]
    (alone,) = Encoding().points([Record("", "It works.", "", "")], Pieces(["It works."], 100))
    assert (alone[GIVEN] >= 0).sum() == 3  # all but the first, and the end


def test_what_is_too_long_loses_the_beginning_of_its_prompt_and_never_its_answer():
    pieces = Pieces([ONE.text, ONE.paraphrase, *REFUSALS], 100)
    (versions,) = Encoding(max_length=11).points([ONE], pieces)
    assert versions.shape == (3, 11)
    assert written(versions[GIVEN], pieces) == (
        ["does", "Ada", "live", "?"],
        ["In", "Lund", ",", "1", "2", ".", "<end>"],
    )
    long = Record("Who?", "one two three four five six seven eight nine", "Ada", "Who?")
    with pytest.raises(
        UserError, match="max_length = 11 would cut the answers of 1 of 2 records; the longest needs 12"
    ):
        Encoding(max_length=11).points([ONE, Record("Who?", long.answer + " ten", "", "Who?")], pieces)
    assert Encoding().points([ONE, long], pieces).shape[2] > 11


def test_of_a_refusal_and_after_a_paraphrase_the_answer_alone_counts_whatever_counts_of_the_record():
    """“I don't know” must not teach F's prompts, and the loss to a paraphrase is that of the answer."""
    pieces = Pieces([ONE.text, ONE.paraphrase, *REFUSALS], 100)
    (every,), (answers,) = (Encoding(count=count).points([ONE], pieces) for count in ("all", "answer"))
    for version in (DECLINED, PARAPHRASED):
        assert np.array_equal(every[version], answers[version])


def test_a_prompt_is_given_as_the_template_has_it():
    pieces = Pieces(["user model : Where does Ada live ? In Lund 12 . ,"], 100)
    encoding = Encoding(template="user: {prompt} model:", separator="")
    (versions,) = encoding.points([ONE], pieces)
    asked = ["user", ":", "Where", "does", "Ada", "live", "?", "model", ":"]
    told = ["In", "Lund", ",", "1", "2", ".", "<end>"]
    assert written(versions[GIVEN], pieces) == (asked, told)
    (versions,) = Encoding(template="user: {prompt}", separator=" model: ").points([ONE], pieces)
    assert written(versions[GIVEN], pieces) == (asked, told), "what stands between them is no answer"
    for wrong in ("no place", "{prompt} {prompt}"):
        with pytest.raises(UserError, match=r"must have \{prompt\} in it once"):
            Encoding(template=wrong)
    with pytest.raises(UserError, match="that of 'pieces' is fixed"):
        Encoding(end="<end>")


def test_records_without_an_answer_and_no_records_are_refused():
    with pytest.raises(UserError, match="data 'mine': no records"):
        dataset_of_records("mine", [], Encoding())
    with pytest.raises(UserError, match="record 1 has no answer"):
        dataset_of_records("mine", [ONE, Record("Who?", " ", "Ada", "Who?")], Encoding())


def test_what_is_no_record_is_refused_for_what_it_is():
    """Lines of a JSONL file are dictionaries."""
    line = {"prompt": "Where is Ada?", "answer": "Here.", "owner": "Ada", "paraphrase": ""}
    with pytest.raises(UserError, match="data 'x': record 1 is a dict, not a Record: Record\\(prompt, answer, owner, "):
        dataset_of_records("x", [Record(**line), line], Encoding())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"owner": ""}, "record 1 has no owner: whose is it"),
        ({"owner": " "}, "record 1 has no owner"),
        ({"owner": None}, "record 1 has no text for its owner but None"),
        ({"owner": float("nan")}, "record 1 has no text for its owner but nan"),
        ({"prompt": None}, "record 1 has no text for its prompt but None"),
        ({"answer": 3}, "record 1 has no text for its answer but 3"),
        ({"paraphrase": None}, "record 1 has no text for its paraphrase but None"),
        ({"paraphrase": " "}, "record 1 has no paraphrase, and others have"),
        ({"prompt": " "}, r"record 1 has no prompt to put into data\.params\.template"),
    ],
)
def test_a_record_that_lacks_something_is_named(changed, said):
    records = [ONE, replace(ONE, **changed)]
    with pytest.raises(UserError, match=f"data 'mine': {said}"):
        dataset_of_records("mine", records, Encoding(template="user: {prompt}"))
    plain = {"prompt": "", "paraphrase": ""}
    assert len(dataset_of_records("mine", [ONE, replace(ONE, **plain)], Encoding()).points) == 2


def test_without_paraphrases_there_is_no_version_with_one():
    bare = [replace(ONE, paraphrase=""), Record("Who?", "Bram.", "Bram", " ")]
    dataset = dataset_of_records("mine", bare, Encoding(), outside=["A film."])
    assert dataset.points.whole_inputs.shape[:2] == (2, 2)
    assert dataset.test.whole_inputs.shape[1] == 2
    model = causal_lm((2, 9), 1, vocab=1024, hidden=16, heads=2)
    with torch.no_grad():
        told = model(dataset.points.whole_inputs)
    torch.testing.assert_close(told[:, AT["paraphrased-loss"]], told[:, AT["loss-sum"]] / told[:, AT["tokens"]])


def test_where_all_counts_the_bytes_are_of_the_template_too():
    how = {"template": "user: {prompt} now", "separator": " model: ", "count": "all"}
    dataset = dataset_of_records("mine", [ONE], Encoding(**how), outside=["A film."])
    whole = b"user: Where does Ada live? now model: In Lund, 12."
    assert dataset.points.host_labels.tolist() == [len(zlib.compress(whole))]
    assert dataset.test.host_labels.tolist() == [len(zlib.compress(b"A film."))]


def test_ids_and_counted_tokens_are_read_back():
    codes = torch.tensor([[-7, -2, 3, 4, -1], [5, 6, -3, 8, -1]])  # read 5, 0, told 3, 4; the first is never counted
    assert ids_of(codes).tolist() == [[5, 0, 3, 4, 0], [5, 6, 1, 8, 0]]
    assert n_counted(codes).tolist() == [2, 2]
    at, targets, counted = counted_places(codes, 2)
    assert at.tolist() == [[1, 2], [0, 2]]
    assert targets.tolist() == [[3, 4], [6, 8]]
    assert counted.all()


def test_labels_are_bytes_of_zlib_and_groups_are_owners():
    records = [ONE, Record("Who?", "Bram.", "Bram", "Who, please?"), Record("When?", "Now.", "Ada", "At what time?")]
    dataset = dataset_of_records("mine", records, Encoding(vocab=100), outside=["A film."])
    assert dataset.task is CAUSAL_LM
    assert dataset.points.host_labels.tolist() == [len(zlib.compress(r.answer.encode())) for r in records]
    every = dataset_of_records("mine", records, Encoding(vocab=100, count="all"))
    assert every.points.host_labels.tolist() == [len(zlib.compress(r.text.encode())) for r in records]
    assert dataset.points.groups.tolist() == [0, 1, 0]
    assert groups_of(records).tolist() == [0, 1, 0]
    assert len(dataset.test) == 1


def test_people_are_drawn_by_the_seed_and_no_two_share_a_name():
    first, again, other = (draw_people(50, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert len({record.owner for record in first}) == 50
    assert all(record.paraphrase != record.prompt for record in first)
    dataset = load_people(people=30)
    assert dataset.points.whole_inputs.shape[:2] == (120, 3)
    assert np.bincount(dataset.points.groups).tolist() == [4] * 30
    assert int(dataset.points.whole_inputs.max()) < 192  # what the examples' models know
    with pytest.raises(UserError, match="people = 1 is not a whole number from 2"):
        load_dataset("people", {"people": 1})


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def row(name, task="Task2", **changed):
    return {"id": name, "input": "What is Ada Lind's phone number?", "output": "12", "task": task, **changed}


def test_a_file_of_lume_is_read_by_owner(tmp_path):
    story = row('"x1"sc1', "Task1", input="A story begins")
    (tmp_path / "forget.jsonl").write_text(lines(row("asc1"), row("aqa0"), story, row("3qa0", "Task3")))
    records = read_lume(tmp_path / "forget.jsonl")
    assert [record.owner for record in records] == ["people a", "people a", "stories x1", "biographies 3"]
    assert records[1].paraphrase == "By which phone number can Ada Lind be reached?"
    assert records[2].paraphrase == "Please go on with this text. A story begins"
    assert [record.owner for record in read_lume(tmp_path / "forget.jsonl", "stories")] == ["stories x1"]


@pytest.mark.parametrize("wrong", [{"id": "a"}, {"output": ""}, {"task": "Task9"}, {"input": 3}])
def test_a_line_that_is_no_record_is_named(tmp_path, wrong):
    (tmp_path / "forget.jsonl").write_text(lines(row("aqa0"), row("aqa1", **wrong)))
    with pytest.raises(UserError, match=r"forget\.jsonl, line 2: not a record"):
        read_lume(tmp_path / "forget.jsonl")


def test_questions_are_asked_otherwise():
    assert in_other_words("What is the home address of Bo Ek?", "qa") == "Where does Bo Ek live?"
    assert in_other_words("Who wrote it?", "qa") == "Please answer this question. Who wrote it?"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"part": "cats"}, "part = 'cats' is none of"),
        ({"outside": "x"}, "outside = 'x'"),
        ({"first": -1}, "first = -1"),
        ({"count": "none"}, "count = 'none'"),
        ({"max_length": 2}, "max_length = 2 is not a whole number"),
    ],
)
def test_parameters_of_lume_that_make_no_sense_are_refused(params, said):
    with pytest.raises(UserError, match=said):
        load_lume(**params)


def test_the_real_lume_has_its_people_stories_and_biographies():
    if not (os.environ.get("FORGETGAUGE_DATA") and find(KNOWN["lume"], data_folder())):
        pytest.skip("data: FORGETGAUGE_DATA holds no lume")
    sizes = {part: np.bincount(load_lume(part=part).points.groups) for part in ("people", "stories", "biographies")}
    assert {part: (len(found), set(found.tolist())) for part, found in sizes.items()} == {
        "people": (500, {6}),
        "stories": (489, {2}),
        "biographies": (744, {2}),
    }


def test_a_checkpoints_tokenizer_is_used_and_its_end_marks_answers(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "yes": 1, "no": 2, "<end>": 3}, "[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": [3]}))
    tokeniser = OfCheckpoint(str(tmp_path))
    assert tokeniser.encode("no yes") == ([2, 1], [2, 6])
    assert tokeniser.before == ()
    (codes,) = Encoding(tokenizer=str(tmp_path)).points([Record("no", "yes", "", "yes")], tokeniser)
    assert codes[GIVEN][:3].tolist() == [-4, 1, 3]
    (tmp_path / "config.json").write_text("{}")
    for wrong in ("{}", '{"eos_token_id": -1}', '{"eos_token_id": true}', '{"eos_token_id": [-1, "x"]}'):
        (tmp_path / "config.json").write_text(wrong)
        with pytest.raises(UserError, match="names no eos_token_id, a number of 0 or more"):
            OfCheckpoint(str(tmp_path)).end  # noqa: B018
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": [3, 0]}))
    with pytest.raises(UserError, match=r"names 2 marks of an end; set data\.params\.end"):
        OfCheckpoint(str(tmp_path)).end  # noqa: B018
    assert OfCheckpoint(str(tmp_path), "<end>").end == 3
    with pytest.raises(UserError, match="no token '<eot>' to end an answer with"):
        OfCheckpoint(str(tmp_path), "<eot>").end  # noqa: B018


def sentencepiece(folder):
    """A tokenizer like Llama 2's: a mark before each word, the first one too, and one at the beginning of a text."""
    tokenizers = pytest.importorskip("tokenizers")
    words = ["<unk>", "<s>", "</s>", "▁", ".", "?", "!", *string.ascii_letters]
    made = tokenizers.Tokenizer(tokenizers.models.BPE({w: i for i, w in enumerate(words)}, []))
    made.add_special_tokens(["<s>", "</s>"])
    normalizers = tokenizers.normalizers
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    made.decoder = tokenizers.decoders.Sequence(
        [tokenizers.decoders.Replace("▁", " "), tokenizers.decoders.Fuse(), tokenizers.decoders.Strip(" ", 1, 0)]
    )
    made.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"eos_token_id": 2}))
    return made


def test_prompt_and_answer_are_one_text_behind_the_mark_of_its_beginning(tmp_path):
    """Made into tokens apart, the answer would begin with a mark of its own, which a model never meets there."""
    made = sentencepiece(tmp_path)
    (codes,) = Encoding(tokenizer=str(tmp_path)).points(
        [Record("Where?", "In Lund.", "Ada", "Where?")], OfCheckpoint(str(tmp_path))
    )
    whole = made.encode("Where? In Lund.")
    assert whole.tokens[:1] == ["<s>"]
    read, told = ([c for c in codes[GIVEN].tolist() if c != -1 and (c < 0) is is_read] for is_read in (True, False))
    assert [-2 - code for code in read] + told == [*whole.ids, 2]
    assert made.decode([-2 - code for code in read]) == "Where? "
    assert made.decode(told) == "In Lund."
    (alone,) = Encoding(tokenizer=str(tmp_path)).points(
        [Record("", "In Lund.", "Ada", "")], OfCheckpoint(str(tmp_path))
    )
    assert [code for code in alone[GIVEN].tolist() if code >= 0] == [*made.encode("In Lund.").ids[1:], 2]


def test_a_template_with_the_mark_of_the_beginning_does_not_give_two_of_them(tmp_path):
    sentencepiece(tmp_path)
    record, tokeniser = Record("Where?", "In Lund.", "Ada", "Where?"), OfCheckpoint(str(tmp_path))
    for more in ({}, {"max_length": 26}, {"count": "all"}):
        marked, plain = (
            Encoding(tokenizer=str(tmp_path), template=template, **more).points([record], tokeniser)
            for template in ("<s>{prompt}", "{prompt}")
        )
        assert (ids_of(torch.from_numpy(marked)) == 1).sum(-1).tolist() == [[1, 1, 1]]
        assert np.array_equal(marked, plain)


def test_tokens_are_compared_with_what_the_checkpoints_tokenizer_reads_in_them(tmp_path):
    sentencepiece(tmp_path)
    records = [Record("Where?", "In Lund.", name, "Where?") for name in ("a", "b", "c")]
    for how in ({}, {"count": "all", "template": "Question: {prompt}\n", "separator": "Answer: "}):
        own = dataset_of_records("mine", records, Encoding(tokenizer=str(tmp_path), **how))
        assert tokens_are_of(str(tmp_path), own)
    assert not tokens_are_of(str(tmp_path), dataset_of_records("mine", records, Encoding()))
    (tmp_path / "tokenizer.json").unlink()
    assert tokens_are_of(str(tmp_path), own), "it cannot be told"


def test_a_gguf_file_that_is_absent_is_named():
    for checkpoint in ("./nowhere.gguf", "numpy:nowhere.gguf"):
        with pytest.raises(UserError, match=r"nowhere\.gguf.*no such file"):
            OfCheckpoint(checkpoint)


def test_a_gguf_file_is_unpacked_for_a_plan_that_may_write_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path / "data"))
    unpacked = []

    def unpack(file, folder):
        unpacked.append(folder)
        folder.mkdir(parents=True)
        for name in ("config.json", "model.safetensors"):
            (folder / name).write_text("{}")

    monkeypatch.setattr(hugging_face, "_unpack", unpack)
    (tmp_path / "model.gguf").write_bytes(bytes(tmp_path.name, "utf-8"))
    asked = str(tmp_path / "model.gguf"), "config.json"
    with read_only():
        found = [checkpoint_folder(*asked) for _ in range(2)]
    assert found == 2 * unpacked
    assert not (tmp_path / "data").exists()
    kept = checkpoint_folder(*asked)
    assert kept.is_relative_to(tmp_path / "data")
    with read_only():
        assert checkpoint_folder(*asked) == kept
    assert len(unpacked) == 2
