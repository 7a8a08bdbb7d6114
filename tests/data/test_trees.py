import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetgauge.data.text import parse_tree, read_trees
from forgetgauge.errors import UserError
from tests.data.test_dataset import QUICK

LABELS = st.integers(0, 4)
WORDS = st.text(st.characters(categories=["L", "N", "P"], exclude_characters="()\\"), min_size=1, max_size=5)
LEAVES = st.tuples(LABELS, WORDS.filter(lambda word: word[0] != "-"))
TREES = st.recursive(LEAVES, lambda below: st.tuples(LABELS, st.lists(below, min_size=1, max_size=3)), max_leaves=12)


def written(tree):
    label, below = tree
    return f"({label} {below})" if isinstance(below, str) else f"({label} {' '.join(map(written, below))})"


def words_of(tree):
    below = tree[1]
    return [below] if isinstance(below, str) else [word for branch in below for word in words_of(branch)]


@QUICK
@given(tree=TREES)
def test_a_tree_that_was_written_is_read_again(tree):
    assert parse_tree(written(tree)) == (" ".join(words_of(tree)), tree[0])


def test_a_sentence_of_the_treebank():
    line = "(3 (2 It) (4 (4 (2 's) (4 (3 (2 a) (4 (3 lovely) (2 film))) (3 (2 and\\/or) (2 \\*\\*)))) (2 .)))"
    assert parse_tree(line) == ("It 's a lovely film and/or ** .", 3)


def test_brackets_of_the_sentence_are_brackets_again():
    assert parse_tree("(2 (2 -LRB-) (2 (2 so) (2 -RRB-)))") == ("( so )", 2)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("(5 word)", "label '5' is not one of 0 to 4"),
        ("(x word)", "label 'x'"),
        ("(² word)", "label '²'"),
        ("(2 (2 a) (2 b)", "1 brackets are not closed"),
        ("(2 a))", "more than one tree"),
        ("(2 a) (2 b)", "more than one tree"),
        ("word", "not a tree"),
        (")", "not a tree"),
        ("(2 )", "without words"),
        ("()", "without words"),
    ],
)
def test_what_is_no_tree_is_one_line_with_file_and_line(line, problem, tmp_path):
    (tmp_path / "train.txt").write_text(f"(2 fine)\n{line}\n")
    with pytest.raises(UserError) as refusal:
        read_trees(tmp_path / "train.txt")
    assert str(refusal.value).startswith(f"{tmp_path}/train.txt, line 2: ")
    assert problem in str(refusal.value)


def test_lines_end_at_newlines_alone_and_empty_ones_do_not_count(tmp_path):
    (tmp_path / "train.txt").write_bytes("(2 (2 a) (2 \x85b))\r\n\n(4 c)".encode())
    sentences, labels = read_trees(tmp_path / "train.txt")
    assert sentences == ["a b", "c"]
    assert labels.tolist() == [2, 4]


def test_a_missing_an_empty_and_a_binary_file_are_one_line_each(tmp_path):
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    for name, problem in {"none.txt": "no such file", "empty.txt": "no trees", "binary.txt": "cannot be read"}.items():
        with pytest.raises(UserError, match=f"{name}: {problem}"):
            read_trees(tmp_path / name)
