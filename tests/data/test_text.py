import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from forgetgauge.data import text
from forgetgauge.data.checkpoints import checkpoint_folder
from forgetgauge.data.files import known_set
from forgetgauge.data.folders import find
from forgetgauge.data.loading import load_dataset
from forgetgauge.data.text import START, UNKNOWN, Pretrained, Words, load_sst5, tokenise, tokenise_once
from forgetgauge.errors import UserError

SENTENCES = ["a good film", "A bad film .", "a film , a film"]
TREES = {
    "train": "(3 (2 a) (3 (3 good) (2 film)))\n(1 (2 A) (1 (1 (1 bad) (2 film)) (2 .)))\n",
    "dev": "(4 (4 superb) (2 film))\n",
    "test": "(0 (0 awful) (2 film))\n(2 (2 a) (2 film))\n",
}


@pytest.fixture
def trees(tmp_path, monkeypatch):
    """Three small files in place of the published ones."""
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path))
    folder = tmp_path / "sst5"
    folder.mkdir()
    for part, lines in TREES.items():
        (folder / f"{part}.txt").write_text(lines)
    monkeypatch.setattr(text, "locate", lambda name: folder)
    return tmp_path


def test_words_are_numbered_by_frequency_then_by_alphabet_and_the_rest_is_unknown():
    words = Words(SENTENCES, n_ids=6, length=9)  # a and film four times each, then 4 words once: ',' is the first
    assert words.ids("a film , good") == [START, 3, 4, 5, UNKNOWN]
    assert words.ids("A FILM") == [START, 3, 4]


def test_the_order_of_the_sentences_does_not_matter_to_the_vocabulary():
    assert Words(SENTENCES[::-1], 6, 9).digest == Words(SENTENCES, 6, 9).digest
    assert Words(SENTENCES, 7, 9).digest != Words(SENTENCES, 6, 9).digest


def test_sentences_are_cut_and_padded_to_one_length():
    tokens = tokenise(Words(SENTENCES, 20, 4), SENTENCES, 4)
    assert tokens.shape == (3, 4)
    assert tokens.dtype == np.int64
    assert (tokens[:, 0] == START).all()
    assert (tokenise(Words(SENTENCES, 20, 6), SENTENCES, 6)[0, 4:] == 0).all()


def test_pooled_all_sentences_are_points_and_there_is_no_test_set(trees):
    dataset = load_sst5(max_length=8)
    assert dataset.points.y.tolist() == [3, 1, 4, 0, 2]
    assert dataset.points.x.shape == (5, 8)
    assert dataset.test is None


def test_of_the_training_pool_the_published_test_set_is_kept_apart(trees):
    dataset, pooled = load_sst5(max_length=8, pool="train"), load_sst5(max_length=8)
    assert dataset.points.y.tolist() == [3, 1, 4]
    assert dataset.test.y.tolist() == [0, 2]
    assert dataset.points.x.tolist() + dataset.test.x.tolist() == pooled.points.x.tolist()


def test_the_vocabulary_is_of_the_training_sentences_alone(trees):
    points = load_sst5(max_length=8).points
    assert UNKNOWN not in points.x[:2]
    assert points.x[2].tolist()[:3] == [START, UNKNOWN, points.x[3].tolist()[2]]  # superb is of the dev set


def test_a_run_file_reaches_the_readers_parameters(trees):
    assert load_dataset("sst5", {"max_length": 5}).points.x.shape == (5, 5)
    with pytest.raises(UserError, match="did you mean 'max_length'"):
        load_dataset("sst5", {"maxlength": 5})


@pytest.mark.parametrize("params", [{"pool": "test"}, {"max_length": 1}, {"max_length": "64"}, {"vocab": 3}])
def test_parameters_that_make_no_sense_are_one_line(trees, params):
    (key,) = params
    with pytest.raises(UserError, match=f"^data 'sst5': {key} = .* is n[^\n]*$"):
        load_sst5(**params)


class Counting(Words):
    calls = 0

    def ids(self, sentence):
        type(self).calls += 1
        return super().ids(sentence)


def test_sentences_are_tokenised_once_and_the_kept_file_is_no_pickle(tmp_path, monkeypatch):
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path))
    monkeypatch.setattr(Counting, "calls", 0)
    words = Counting(SENTENCES, 20, 6)
    first = tokenise_once(words, SENTENCES, 6)
    assert np.array_equal(tokenise_once(words, SENTENCES, 6), first)
    assert Counting.calls == 3
    (kept,) = (tmp_path / "tokens").iterdir()
    assert np.array_equal(np.load(kept, allow_pickle=False)["tokens"], first)


@pytest.mark.parametrize("change", ["sentences", "tokeniser", "length"])
def test_another_sentence_tokeniser_or_length_is_tokenised_anew(tmp_path, monkeypatch, change):
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path))
    tokenise_once(Words(SENTENCES, 20, 6), SENTENCES, 6)
    sentences = [*SENTENCES[:2], "a good film"] if change == "sentences" else SENTENCES
    words = Words(SENTENCES, 5 if change == "tokeniser" else 20, 6)
    length = 7 if change == "length" else 6
    assert np.array_equal(tokenise_once(words, sentences, length), tokenise(words, sentences, length))
    assert len(list((tmp_path / "tokens").iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 broken", b"no archive"])
def test_a_broken_kept_file_is_made_again(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path))
    words = Words(SENTENCES, 20, 6)
    first = tokenise_once(words, SENTENCES, 6)
    (kept,) = (tmp_path / "tokens").iterdir()
    kept.write_bytes(damage)
    assert np.array_equal(tokenise_once(words, SENTENCES, 6), first)
    assert kept.stat().st_size > 100


def test_a_data_folder_that_takes_no_files_keeps_nothing_and_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path / "file"))
    assert tokenise_once(Words(SENTENCES, 20, 6), SENTENCES, 6).shape == (3, 6)


@pytest.fixture
def checkpoint(tmp_path):
    """The tokenizer of a BERT of eight word pieces."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed (the extra [text])")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "film", "##s", "a"]
    made = tokenizers.BertWordPieceTokenizer({piece: i for i, piece in enumerate(pieces)})
    folder = tmp_path / "tiny"
    folder.mkdir()
    made.save(str(folder / "tokenizer.json"))
    return folder


def test_a_checkpoints_tokenizer_marks_both_ends_and_cuts_between_them(checkpoint):
    assert Pretrained(str(checkpoint), 8).ids("A good films") == [2, 7, 4, 5, 6, 3]
    assert Pretrained(str(checkpoint), 4).ids("A good films") == [2, 7, 4, 3]


def test_sst5_by_a_checkpoints_tokenizer(trees, checkpoint):
    dataset = load_sst5(tokenizer=str(checkpoint), max_length=6)
    assert dataset.points.x.tolist()[0] == [2, 7, 4, 5, 3, 0]


def test_a_changed_tokenizer_file_is_another_tokeniser(checkpoint):
    before = Pretrained(str(checkpoint), 8).digest
    file = checkpoint / "tokenizer.json"
    file.write_text(file.read_text().replace('"good"', '"best"'))
    assert Pretrained(str(checkpoint), 8).digest != before


def test_a_tokenizer_that_is_broken_or_pads_otherwise_is_one_line(checkpoint):
    file = checkpoint / "tokenizer.json"
    whole = json.loads(file.read_text())
    whole["model"]["vocab"].update({"[PAD]": 1, "[UNK]": 0})
    whole["added_tokens"] = []
    file.write_text(json.dumps(whole))
    with pytest.raises(UserError, match=r"its tokenizer is not a BERT's: \[PAD\] is not number 0$"):
        Pretrained(str(checkpoint), 8)
    file.write_text("{")
    with pytest.raises(UserError, match=r"tokenizer\.json: [^\n]*$"):
        Pretrained(str(checkpoint), 8)
    file.unlink()
    with pytest.raises(UserError, match=r"has no tokenizer\.json$"):
        Pretrained(str(checkpoint), 8)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UserError, match=r"pip install 'forgetgauge\[text\]'$"):
        Pretrained("anything", 8)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match=r"no such folder, and the hub needs 'forgetgauge\[text\]'$"):
        checkpoint_folder("some/bert")


def published_files_are_there():
    folder = os.environ.get("FORGETGAUGE_DATA")
    return folder is not None and find(known_set("sst5"), Path(folder)) is not None


@pytest.mark.skipif(not published_files_are_there(), reason="data: FORGETGAUGE_DATA does not name a folder with sst5")
def test_the_published_files_hold_11855_sentences_and_64_words_cut_none_short():
    dataset = load_sst5()
    assert dataset.points.x.shape == (11_855, 64)
    assert dataset.points.n_classes == 5
    assert (dataset.points.x[:, -1] == 0).all()
    assert (len(load_sst5(pool="train").points), len(load_sst5(pool="train").test)) == (9_645, 2_210)
