"""Which files the known data sets consist of, where they are published, and the checksums they must have.

Sizes and SHA-256 of the files of CIFAR-10, CIFAR-100 and MNIST were taken from real copies; MNIST's have the published
MD5s, CIFAR's the SHA-256 that other libraries keep. The SHA-256 of the archives and of Fashion-MNIST's downloads are
those that other libraries agree on; none of them was at hand. So the unpacked files of Fashion-MNIST are known by their
sizes alone, and those of SST-5 by their published numbers of trees: two copies of its training file differ by two
characters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from forgetgauge.errors import UserError, unknown_name


@dataclass(frozen=True)
class File:
    """One file of a data set."""

    name: str
    n_bytes: int | None = None
    """Unpacked; None where it is not known."""
    sha256: str | None = None
    """SHA-256 of the unpacked content."""
    n_lines: int | None = None
    """Lines of a text file, empty ones not counted."""
    packable: bool = False
    """Whether the same file compressed, with `.gz` after its name, does as well."""


@dataclass(frozen=True)
class Download:
    """A published file: a file or a `.gz` of it that is kept as it is, or an archive of several that is unpacked."""

    url: str
    n_bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """The last part of the address."""
        return urlsplit(self.url).path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class KnownSet:
    """A data set whose files are known."""

    name: str
    folders: tuple[str, ...]
    """Where it is looked for under the data folder; downloads go to the first."""
    files: tuple[File, ...]
    downloads: tuple[Download, ...]
    n_train: int
    """Points a game is played with."""
    n_test: int
    n_classes: int
    """0 where points have none."""


_TORONTO = "https://www.cs.toronto.edu/~kriz"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"  # PyTorch's copy: the original address answers no more
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_IDX_BYTES = {  # images: 16 bytes and 28 × 28 per image; labels: 8 bytes and one per label
    "train-images-idx3-ubyte": 47_040_016,
    "train-labels-idx1-ubyte": 60_008,
    "t10k-images-idx3-ubyte": 7_840_016,
    "t10k-labels-idx1-ubyte": 10_008,
}

CIFAR10 = KnownSet(
    "cifar10",
    ("cifar-10-batches-bin",),
    (
        File("data_batch_1.bin", 30_730_000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
        File("data_batch_2.bin", 30_730_000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
        File("data_batch_3.bin", 30_730_000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
        File("data_batch_4.bin", 30_730_000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
        File("data_batch_5.bin", 30_730_000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        File("test_batch.bin", 30_730_000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
    ),
    (
        Download(
            f"{_TORONTO}/cifar-10-binary.tar.gz",
            170_052_171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
    n_train=50_000,
    n_test=10_000,
    n_classes=10,
)

CIFAR100 = KnownSet(
    "cifar100",
    ("cifar-100-binary",),
    (
        File("train.bin", 153_700_000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"),
        File("test.bin", 30_740_000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"),
    ),
    (
        Download(
            f"{_TORONTO}/cifar-100-binary.tar.gz",
            168_513_733,
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        ),
    ),
    n_train=50_000,
    n_test=10_000,
    n_classes=100,
)


def _packed(folder: str, *names: tuple[str, int, str]) -> tuple[Download, ...]:
    """Packed files of one folder on the web, each by its name, its size and its SHA-256."""
    return tuple(Download(f"{folder}/{name}-ubyte.gz", n_bytes, sha256) for name, n_bytes, sha256 in names)


MNIST = KnownSet(
    "mnist",
    ("mnist", "MNIST/raw"),  # the second is where torchvision keeps them
    tuple(
        File(name, _IDX_BYTES[name], sha256, packable=True)
        for name, sha256 in {
            "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        }.items()
    ),
    _packed(
        _MNIST,
        ("train-images-idx3", 9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        ("train-labels-idx1", 28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        ("t10k-images-idx3", 1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        ("t10k-labels-idx1", 4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
    n_train=60_000,
    n_test=10_000,
    n_classes=10,
)

FASHION_MNIST = KnownSet(
    "fashion-mnist",
    ("fashion-mnist", "FashionMNIST/raw"),
    tuple(File(name, n_bytes, packable=True) for name, n_bytes in _IDX_BYTES.items()),
    _packed(
        _FASHION,
        ("train-images-idx3", 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        ("train-labels-idx1", 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        ("t10k-images-idx3", 4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        ("t10k-labels-idx1", 5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    ),
    n_train=60_000,
    n_test=10_000,
    n_classes=10,
)

SST5 = KnownSet(
    "sst5",
    ("sst5", "trees"),  # the archive's own folder is called trees
    (
        File("train.txt", n_lines=8_544),
        File("dev.txt", n_lines=1_101),
        File("test.txt", n_lines=2_210),
    ),
    (
        Download(
            "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
            789_539,
            "5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc",
        ),
    ),
    n_train=8_544 + 1_101 + 2_210,  # the paper's pool, as read by default
    n_test=0,
    n_classes=5,
)

_LUME = "https://raw.githubusercontent.com/amazon-science/lume-llm-unlearning/b2fa8f9c567715f1e2c6d442213f33b2e9a28fe6"
_LUME_FILES = {
    "forget.jsonl": (1_039_485, "3a74f30223c35b173664dfea5b1c5939587f1eac868a9764891f30c2c317c381"),
    "retain.jsonl": (1_040_496, "ec8826a91d9fb9e5a50ba732549e8eff75fc99c2f67d6873d1ea36fd403a003d"),
}

LUME = KnownSet(
    "lume",
    ("lume",),
    tuple(File(name, n_bytes, sha256) for name, (n_bytes, sha256) in _LUME_FILES.items()),
    tuple(Download(f"{_LUME}/data/{name}", n_bytes, sha256) for name, (n_bytes, sha256) in _LUME_FILES.items()),
    n_train=5_466,
    n_test=0,
    n_classes=0,
)

KNOWN: Mapping[str, KnownSet] = {known.name: known for known in (CIFAR10, CIFAR100, MNIST, FASHION_MNIST, SST5, LUME)}

PART_OF: Mapping[str, str] = {"mnist-3-8": "mnist"}
"""Data sets that are read from another one's files."""


def known_set(name: str) -> KnownSet:
    """The files of a data set by its name."""
    if name not in KNOWN:
        raise UserError(unknown_name("data set", name, KNOWN))
    return KNOWN[name]
