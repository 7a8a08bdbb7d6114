"""The data sets we know how to read, and where they are from."""

from __future__ import annotations

from forgetgauge.plugins.catalogue import Entry

DATA: dict[str, Entry] = {
    "digits": Entry(
        "forgetgauge.data.digits:load_digits",
        "1,797 real handwritten digits, 8 × 8 pixels, embedded in scikit-learn",
        cites="Alpaydin and Kaynak 1998 (UCI optical recognition of handwritten digits)",
    ),
    "diabetes": Entry(
        "forgetgauge.data.diabetes:load_diabetes",
        "442 patients, ten measurements each, and how far their diabetes went: regression; embedded in scikit-learn",
        cites="Efron et al. 2004",
    ),
    "cifar10": Entry(
        "forgetgauge.data.cifar:load_cifar10",
        "50,000 photographs in 10 classes, 3 × 32 × 32 pixels, and 10,000 to test",
        needs="a download of 162 MiB, once",
        cites="Krizhevsky 2009",
    ),
    "cifar100": Entry(
        "forgetgauge.data.cifar:load_cifar100",
        "50,000 photographs in 100 classes, 3 × 32 × 32 pixels, and 10,000 to test",
        needs="a download of 161 MiB, once",
        cites="Krizhevsky 2009",
    ),
    "mnist": Entry(
        "forgetgauge.data.mnist:load_mnist",
        "60,000 handwritten digits, 28 × 28 pixels padded to 32 × 32, and 10,000 to test",
        needs="a download of 11 MiB, once",
        cites="LeCun et al. 1998",
    ),
    "digits-3-8": Entry(
        "forgetgauge.data.three_eight:load_digits_three_eight",
        "357 threes and eights of the embedded digits, 8 × 8 pixels, centred, of norm 1",
        cites="Alpaydin and Kaynak 1998 (UCI optical recognition of handwritten digits)",
    ),
    "mnist-3-8": Entry(
        "forgetgauge.data.three_eight:load_mnist_three_eight",
        "11,982 threes and eights of MNIST, 28 × 28 pixels, centred, of norm 1, and 1,984 to test",
        needs="MNIST: a download of 11 MiB, once",
        cites="LeCun et al. 1998; Guo et al. 2020",
    ),
    "fashion-mnist": Entry(
        "forgetgauge.data.mnist:load_fashion_mnist",
        "60,000 clothes in 10 classes, 28 × 28 pixels padded to 32 × 32, and 10,000 to test",
        needs="a download of 29 MiB, once",
        cites="Xiao et al. 2017",
    ),
    "sst5": Entry(
        "forgetgauge.data.text:load_sst5",
        "11,855 sentences of film reviews in 5 classes of sentiment, as 64 token ids each",
        needs="a download of 0.8 MiB, once; the extra [text] for a checkpoint's tokenizer",
        cites="Socher et al. 2013",
    ),
}
