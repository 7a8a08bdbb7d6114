"""The learners we ship: how a model comes to be."""

from __future__ import annotations

from forgetgauge.plugins.catalogue import Entry

LEARNERS: dict[str, Entry] = {
    "minibatch": Entry(
        "forgetgauge.learn.minibatch:Minibatch",
        "a torch model trained by minibatch gradient descent, many at once as a stack",
        needs="a data set",
        cost="epochs × n gradients",
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
}
