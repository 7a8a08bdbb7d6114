"""What is shipped with forgetgauge, by name: what it is, what it needs and costs, and whom to cite.

`plugins` makes catalogues of these; the code behind a name is imported when it is first used.
"""

from __future__ import annotations

from forgetgauge.plugins import language_models
from forgetgauge.plugins.catalogue import Entry

UNLEARNERS: dict[str, Entry] = {
    "retrain": Entry(
        "forgetgauge.unlearn.retrain:Retrain",
        "train again from scratch on the retain set: the gold standard",
        needs="retain set; not the original model",
        cost="one full training",
        cites="Cao and Yang 2015",
    ),
    "none": Entry(
        "forgetgauge.unlearn.none:Nothing",
        "leave the model as it is: what an attacker sees if the request is ignored",
        needs="original model",
        cost="nothing",
        cites="baseline of the paper",
    ),
    "neg-grad": Entry(
        "forgetgauge.unlearn.neg_grad:NegGrad",
        "gradient ascent on the forget set",
        needs="original model, forget set",
        cost="epochs × |F| gradients",
        cites="Golatkar et al. 2020",
        differs_in="lr",
    ),
    "ft-final": Entry(
        "forgetgauge.unlearn.final_layer:FineTuneFinal",
        "fine-tune the last layer on the retain set, the rest frozen",
        needs="original model, retain set",
        cost="epochs × |R| gradients of the head",
        cites="Goel et al. 2023 (CF-k, k = 1)",
    ),
    "retrain-final": Entry(
        "forgetgauge.unlearn.final_layer:RetrainFinal",
        "re-initialise the last layer and train it on the retain set, the rest frozen",
        needs="original model, retain set",
        cost="epochs × |R| gradients of the head",
        cites="Goel et al. 2023 (EU-k, k = 1)",
    ),
    "fisher": Entry(
        "forgetgauge.unlearn.fisher:Fisher",
        "add noise to every weight, more of it where the retain set says less about the weight",
        needs="original model, retain set",
        cost="classes × |R| gradients (|R| with sampled labels)",
        cites="Golatkar et al. 2020",
        differs_in="alpha",
    ),
    "salun": Entry(
        "forgetgauge.unlearn.salun:SalUn",
        "fine-tune the weights most salient for the forget set: random labels on it, true ones on the retain set",
        needs="original model, retain set, forget set",
        cost="|F| + epochs × (|F| + |R|) gradients",
        cites="Fan et al. 2024",
        differs_in="lr",
    ),
    "ssd": Entry(
        "forgetgauge.unlearn.ssd:SSD",
        "shrink the weights that matter more for the forget set than for the training set",
        needs="original model, retain set, forget set",
        cost="|F| + |R ∪ F| gradients",
        cites="Foster et al. 2024",
        differs_in="alpha",
    ),
    "fine-tune": Entry(
        "forgetgauge.unlearn.fine_tune:FineTune",
        "go on training all layers on the retain set",
        needs="original model, retain set",
        cost="epochs × |R| gradients",
        cites="Golatkar et al. 2020; Warnecke et al. 2023",
        differs_in="lr",
    ),
    "neg-grad-plus": Entry(
        "forgetgauge.unlearn.neg_grad_plus:NegGradPlus",
        "gradient descent on the retain set and ascent on the forget set at once",
        needs="original model, retain set, forget set",
        cost="epochs × |R| gradients, and a batch of F for each batch of R",
        cites="Kurmanji et al. 2023",
        differs_in="lr",
    ),
    "random-relabel": Entry(
        "forgetgauge.unlearn.random_relabel:RandomRelabel",
        "train on the forget set with random wrong labels, together with the retain set",
        needs="original model, retain set, forget set",
        cost="epochs × |R ∪ F| gradients",
        cites="Graves et al. 2021 (Amnesiac)",
        differs_in="lr",
    ),
    "l1-sparse": Entry(
        "forgetgauge.unlearn.l1_sparse:L1Sparse",
        "fine-tune on the retain set under an ℓ1 penalty that fades to 0",
        needs="original model, retain set",
        cost="epochs × |R| gradients",
        cites="Jia et al. 2023",
    ),
    "bad-teacher": Entry(
        "forgetgauge.unlearn.bad_teacher:BadTeacher",
        "imitate an untrained model on the forget set and the original on a part of the retain set",
        needs="original model, retain set, forget set",
        cost="epochs × (|F| + retain_share × |R|) gradients",
        cites="Chundawat et al. 2023",
    ),
    "scrub": Entry(
        "forgetgauge.unlearn.scrub:Scrub",
        "in turns, move away from the original on the forget set, and stay near it and accurate on the retain set",
        needs="original model, retain set, forget set",
        cost="epochs × |R| + msteps × |F| gradients",
        cites="Kurmanji et al. 2023",
    ),
    "sisa": Entry(
        "forgetgauge.unlearn.sisa:RetrainShards",
        "retrain the shards that contain a forgotten point: exact",
        needs="original model of the learner sisa, retain set, forget set",
        cost="a full training of each such shard, which are nearly all unless F is small",
        cites="Bourtoule et al. 2021",
    ),
    "certified-removal": Entry(
        "forgetgauge.unlearn.certified_removal:CertifiedRemoval",
        "Newton steps on a perturbed linear model within a budget that proves (ε, δ); beyond it, retrain",
        needs="original model of the learner certified-linear, retain set, forget set",
        cost="|F| × |R ∪ F| second derivatives (a batch: |R ∪ F|); a full training where the budget is exceeded",
        cites="Guo et al. 2020",
    ),
    **language_models.UNLEARNERS,
}
"""What makes a model forget."""


LEARNERS: dict[str, Entry] = {
    "minibatch": Entry(
        "forgetgauge.learn.minibatch:Minibatch",
        "a torch model trained by minibatch gradient descent, many models at once",
        needs="a data set",
        cost="epochs × n gradients",
    ),
    "scikit-learn": Entry(
        "forgetgauge.learn.estimator:EstimatorLearner", "an estimator of scikit-learn: no gradients", cost="one fit"
    ),
    "sisa": Entry(
        "forgetgauge.learn.sisa:Sisa",
        "one model per shard of the data, trained like minibatch, their posteriors averaged",
        needs="a data set",
        cost="epochs × n gradients",
        cites="Bourtoule et al. 2021",
    ),
    "certified-linear": Entry(
        "forgetgauge.learn.certified_linear:CertifiedLinear",
        "logistic regression whose objective has a random linear term, at its optimum in float64",
        needs="a data set of two classes, inputs of norm 1 or less",
        cost="twenty to sixty passes of L-BFGS",
        cites="Guo et al. 2020; Chaudhuri et al. 2011",
    ),
    "dp-sgd": Entry(
        "forgetgauge.learn.dp_sgd:DpSgd",
        "clipped gradients and noise: a stated (ε, δ) of differential privacy, many models at once",
        needs="a data set; the extra [dp]",
        cost="epochs × n gradients, and their norms",
        cites="Abadi et al. 2016; opacus (Yousefpour et al. 2021)",
    ),
    **language_models.LEARNERS,
}
"""How a model comes to be."""


MODELS: dict[str, Entry] = {
    "small-cnn": Entry(
        "forgetgauge.models.small_cnn:SmallCNN",
        "three convolutions and a linear head, for images of 8 to 32 pixels",
    ),
    "resnet20": Entry(
        "forgetgauge.models.resnet:resnet20",
        "residual network of 20 layers for small images; 269,722 parameters on CIFAR-10",
        cites="He et al. 2016",
    ),
    "resnet32": Entry(
        "forgetgauge.models.resnet:resnet32",
        "residual network of 32 layers for small images; 464,154 parameters on CIFAR-10",
        cites="He et al. 2016",
    ),
    "resnet44": Entry(
        "forgetgauge.models.resnet:resnet44",
        "residual network of 44 layers for small images; 658,586 parameters on CIFAR-10",
        cites="He et al. 2016",
    ),
    "resnet56": Entry(
        "forgetgauge.models.resnet:resnet56",
        "residual network of 56 layers for small images; 853,018 parameters on CIFAR-10",
        cites="He et al. 2016",
    ),
    "resnet110": Entry(
        "forgetgauge.models.resnet:resnet110",
        "residual network of 110 layers for small images; 1,727,962 parameters on CIFAR-10",
        cites="He et al. 2016",
    ),
    "resnet18": Entry(
        "forgetgauge.models.resnet:resnet18",
        "residual network of 18 wide layers, with batch or group norm; 11.2 million parameters",
        cites="He et al. 2016",
    ),
    "mlp": Entry("forgetgauge.models.mlp:MLP", "perceptron with hidden layers, for points of any shape"),
    "linear": Entry("forgetgauge.models.mlp:linear", "softmax regression, for points of any shape"),
    **language_models.MODELS,
}
"""Architectures."""


DATA: dict[str, Entry] = {
    "digits": Entry(
        "forgetgauge.data.digits:load_digits",
        "1,797 real handwritten digits, 8 × 8 pixels, embedded in scikit-learn",
        cites="Alpaydin and Kaynak 1998 (UCI optical recognition of handwritten digits)",
        embedded=True,
    ),
    "diabetes": Entry(
        "forgetgauge.data.diabetes:load_diabetes",
        "442 patients, ten measurements each, and how far their diabetes went: regression; embedded in scikit-learn",
        cites="Efron et al. 2004",
        embedded=True,
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
        "forgetgauge.data.digits:load_mnist",
        "60,000 handwritten digits, 28 × 28 pixels padded to 32 × 32, and 10,000 to test",
        needs="a download of 11 MiB, once",
        cites="LeCun et al. 1998",
    ),
    "digits-3-8": Entry(
        "forgetgauge.data.digits:load_digits_three_eight",
        "357 threes and eights of the embedded digits, 8 × 8 pixels, centred, of norm 1",
        cites="Alpaydin and Kaynak 1998 (UCI optical recognition of handwritten digits)",
        embedded=True,
    ),
    "mnist-3-8": Entry(
        "forgetgauge.data.digits:load_mnist_three_eight",
        "11,982 threes and eights of MNIST, 28 × 28 pixels, centred, of norm 1, and 1,984 to test",
        needs="MNIST: a download of 11 MiB, once",
        cites="LeCun et al. 1998; Guo et al. 2020",
    ),
    "fashion-mnist": Entry(
        "forgetgauge.data.digits:load_fashion_mnist",
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
    **language_models.DATA,
}
"""The data sets we know how to read, and where they are from."""


TASKS: dict[str, Entry] = {
    "classification": Entry(
        "forgetgauge.tasks.classification:CLASSIFICATION",
        "a label is the number of a class; cross-entropy, accuracy",
    ),
    "regression": Entry("forgetgauge.tasks.regression:REGRESSION", "a label is a real number; squared error, R²"),
    **language_models.TASKS,
}
"""What a data set's labels and a model's outputs mean."""

EXECUTORS: dict[str, Entry] = {
    "inline": Entry("forgetgauge.run.executors:Inline", "everything in this process, one job after another"),
    "processes": Entry("forgetgauge.run.executors:Processes", "one worker process for each core, one thread each"),
    "ray": Entry(
        "forgetgauge.run.cluster.executor:Ray",
        "tasks of a Ray cluster (--address), or of one that is started on this machine for the run",
        needs="the extra [ray]",
        cites="Moritz et al. 2018",
    ),
}
"""The catalogue of executors, which do the jobs of a run."""
