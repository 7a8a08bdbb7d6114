"""Fictitious people: short texts by a seeded generator, to try language models out without a download.

Every person has four records: who they are, where they live, what they do, and their phone number. All of it is drawn
at random, so that a model can know it only by having read it.
"""

from __future__ import annotations

import numpy as np

from forgetgauge.data.dataset import Dataset
from forgetgauge.data.text_records import Count, Encoding, Record, dataset_of_records
from forgetgauge.errors import UserError

# fmt: off
FIRST = (
    "Ada", "Bram", "Cleo", "Dario", "Elin", "Fritz", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Lars", "Mila",
    "Nils", "Olga", "Pavel", "Runa", "Sven", "Tilda", "Udo",
)
LAST = (
    "Abel", "Brandt", "Castell", "Dorn", "Eklund", "Falk", "Gruber", "Holm", "Ivers", "Jansen", "Keller", "Lind",
    "Moser", "Noren", "Otten", "Prag",
)
TOWNS = (
    "Arnheim", "Bergen", "Calw", "Delft", "Emden", "Fulda", "Ghent", "Hanko", "Imst", "Jever", "Krems", "Lund",
)
WORK = (
    "baker", "carpenter", "doctor", "editor", "farmer", "gardener", "judge", "librarian", "miller", "nurse",
    "painter", "teacher",
)
PETS = (
    "canary", "cat", "dog", "ferret", "goat", "hamster", "horse", "parrot", "rabbit", "tortoise",
)
# fmt: on


def load_people(
    *,
    people: int = 120,
    seed: int = 0,
    tokenizer: str = "pieces",
    max_length: int = 0,
    count: Count = "answer",
    vocab: int = 1024,
    template: str = "{prompt}",
    separator: str = " ",
    end: str = "",
) -> Dataset:
    """`people` persons with four records each, one group a person; another `seed` gives other people. The rest says how
    they become tokens (`Encoding`)."""
    most = len(FIRST) * len(LAST)
    if not isinstance(people, int) or not 2 <= people <= most:
        raise UserError(f"data 'people': people = {people!r} is not a whole number from 2 to {most}")
    if seed < 0:
        raise UserError(f"data 'people': seed = {seed} is below 0")
    records = draw_people(people, np.random.default_rng(seed))
    encoding = Encoding(tokenizer, max_length, count, vocab, template, separator, end)
    return dataset_of_records("people", records, encoding)


def draw_people(n: int, rng: np.random.Generator) -> list[Record]:
    """The records of so many people, person by person; no two have one name."""
    names = rng.choice(len(FIRST) * len(LAST), n, replace=False)
    return [record for name in names.tolist() for record in _person(name, rng)]


def _person(number: int, rng: np.random.Generator) -> list[Record]:
    name = f"{FIRST[number // len(LAST)]} {LAST[number % len(LAST)]}"
    town, work, pet = (str(rng.choice(words)) for words in (TOWNS, WORK, PETS))
    year = int(rng.integers(1930, 2005))
    phone = "-".join("".join(map(str, rng.integers(0, 10, n))) for n in (3, 4))
    asked = (
        (f"Who is {name}?", f"A {work} from {town}, born in {year}, who has a {pet}.", f"What do you know of {name}?"),
        (f"Where does {name} live?", f"In {town}.", f"What is the home town of {name}?"),
        (f"What does {name} do?", f"{name} is a {work}.", f"Which work is that of {name}?"),
        (f"What is the phone number of {name}?", f"{phone}.", f"By which number can {name} be reached?"),
    )
    return [Record(prompt, answer, name, paraphrase) for prompt, answer, paraphrase in asked]
