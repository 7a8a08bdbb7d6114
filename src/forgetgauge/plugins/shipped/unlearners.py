"""The unlearners we ship: what makes a model forget."""

from __future__ import annotations

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
        "add noise to every weight, the more the less information the retain set has on it",
        needs="original model, retain set",
        cost="K × |R| gradients (|R| with sampled labels)",
        cites="Golatkar et al. 2020",
    ),
    "salun": Entry(
        "forgetgauge.unlearn.salun:SalUn",
        "fine-tune the weights most salient for the forget set: random labels on it, true ones on the retain set",
        needs="original model, retain set, forget set",
        cost="|F| + epochs × (|F| + |R|) gradients",
        cites="Fan et al. 2024",
    ),
    "ssd": Entry(
        "forgetgauge.unlearn.ssd:SSD",
        "shrink the weights that matter more for the forget set than for the training set",
        needs="original model, retain set, forget set",
        cost="|F| + |R ∪ F| gradients",
        cites="Foster et al. 2024",
    ),
    "fine-tune": Entry(
        "forgetgauge.unlearn.fine_tune:FineTune",
        "go on training all layers on the retain set",
        needs="original model, retain set",
        cost="epochs × |R| gradients",
        cites="Golatkar et al. 2020; Warnecke et al. 2023",
    ),
    "neg-grad-plus": Entry(
        "forgetgauge.unlearn.neg_grad_plus:NegGradPlus",
        "gradient descent on the retain set and ascent on the forget set at once",
        needs="original model, retain set, forget set",
        cost="epochs × |R| gradients, and a batch of F for each batch of R",
        cites="Kurmanji et al. 2023",
    ),
    "random-relabel": Entry(
        "forgetgauge.unlearn.random_relabel:RandomRelabel",
        "train on the forget set with random wrong labels, together with the retain set",
        needs="original model, retain set, forget set",
        cost="epochs × |R ∪ F| gradients",
        cites="Graves et al. 2021 (Amnesiac)",
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
        "move away from the original on the forget set, stay near it and right on the retain set, in turns",
        needs="original model, retain set, forget set",
        cost="epochs × |R| + msteps × |F| gradients",
        cites="Kurmanji et al. 2023",
    ),
    "sisa": Entry(
        "forgetgauge.unlearn.sisa:RetrainShards",
        "retrain the shards that hold a forgotten point: exact",
        needs="original model of the learner sisa, retain set, forget set",
        cost="a full training of the shards that are hit, nearly all unless F is small",
        cites="Bourtoule et al. 2021",
    ),
    "certified-removal": Entry(
        "forgetgauge.unlearn.certified_removal:CertifiedRemoval",
        "Newton steps on a perturbed linear model within a budget that proves (ε, δ); beyond it, retrain",
        needs="original model of the learner certified-linear, retain set, forget set",
        cost="|F| × |R ∪ F| second derivatives (a batch: |R ∪ F|); a full training where the budget is exceeded",
        cites="Guo et al. 2020",
    ),
}
