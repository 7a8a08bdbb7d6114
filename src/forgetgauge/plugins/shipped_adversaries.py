"""The adversaries that are shipped, by name: what each is, needs and costs, and whom to cite."""

from __future__ import annotations

from forgetgauge.plugins import language_models
from forgetgauge.plugins.catalogue import Entry

ADVERSARIES: dict[str, Entry] = {
    "correctness": Entry(
        "forgetgauge.attack.threshold:CORRECTNESS",
        "calls a point forgotten where the model predicts its label correctly; the gap attack",
        needs="logits and label (black box)",
        cost="nothing to fit",
        cites="Yeom et al. 2018; Song and Mittal 2021",
    ),
    "confidence": Entry(
        "forgetgauge.attack.threshold:CONFIDENCE",
        "probability of the true label against a threshold per class",
        needs="logits and label (black box), shadow models",
        cost="one sort per class",
        cites="Song and Mittal 2021",
    ),
    "entropy": Entry(
        "forgetgauge.attack.threshold:ENTROPY",
        "entropy of the prediction against a threshold per class",
        needs="logits and label (black box), shadow models",
        cost="one sort per class",
        cites="Shokri et al. 2017; Song and Mittal 2021",
    ),
    "modified-entropy": Entry(
        "forgetgauge.attack.threshold:MODIFIED_ENTROPY",
        "entropy that takes the true label into account, against a threshold per class",
        needs="logits and label (black box), shadow models",
        cost="one sort per class",
        cites="Song and Mittal 2021",
    ),
    "loss": Entry(
        "forgetgauge.attack.threshold:LOSS",
        "cross-entropy against the mean training loss of the shadow models, one threshold for all classes",
        needs="logits and label (black box), shadow models",
        cost="one mean",
        cites="Yeom et al. 2018",
    ),
    "shadow": Entry(
        "forgetgauge.attack.shadow_model:PLAIN",
        "a classifier per class, taught by shadow models what a member's prediction looks like",
        needs="logits and label (black box), shadow models",
        cost="one logistic regression per class",
        cites="Shokri et al. 2017",
    ),
    "shadow-aware": Entry(
        "forgetgauge.attack.shadow_model:AWARE",
        "the shadow attack, with shadow models that were unlearned by the method under test",
        needs="logits and label (black box), shadow models unlearned by each method",
        cost="each method on each shadow model; one logistic regression per class",
        cites="Shokri et al. 2017",
    ),
    "lira-online": Entry(
        "forgetgauge.attack.lira:ONLINE",
        "likelihood ratio at each point between models that saw it and models that did not",
        needs="logits and label (black box), reference models trained on random parts of the data",
        cost="the reference models",
        cites="Carlini et al. 2022",
    ),
    "lira-offline": Entry(
        "forgetgauge.attack.lira:OFFLINE",
        "how much surer the model is of the point than models that did not see it",
        needs="logits and label (black box), shadow models and their outputs on F and T",
        cost="one mean per point",
        cites="Carlini et al. 2022",
    ),
    "rmia-online": Entry(
        "forgetgauge.attack.rmia:ONLINE",
        "probability relative to models some of which saw the point, ranked among points that the model never saw",
        needs="logits and label (black box), outputs on unseen points, shadow models, reference models",
        cost="the reference models",
        cites="Zarifzadeh et al. 2024",
    ),
    "rmia-offline": Entry(
        "forgetgauge.attack.rmia:OFFLINE",
        "probability relative to models that did not see the point, ranked among points that the model never saw",
        needs="logits and label (black box), outputs on unseen points, shadow models and their outputs on F and T",
        cost="one sort per model",
        cites="Zarifzadeh et al. 2024",
    ),
    "quantile": Entry(
        "forgetgauge.attack.quantile:REGRESSION",
        "confidence (logit gap) against a quantile of the confidence in similar points that the model never saw",
        needs="logits and label (black box), outputs on unseen points, shadow models and their outputs on F and T",
        cost="one linear quantile regression per model",
        cites="Bertran et al. 2023",
    ),
    "u-lira": Entry(
        "forgetgauge.attack.lira:UNLEARNING",
        "likelihood ratio at each point between “trained on, then forgotten” and “never seen”",
        needs="logits and label (black box), reference models, unlearned by each method",
        cost="the reference models, and each method on each of them",
        cites="Hayes et al. 2024",
    ),
    "bavaria": Entry(
        "forgetgauge.attack.bavaria:BAVARIA",
        "LiRA for few reference models: what one more model would say follows Student's t, by a prior of all points",
        needs="logits and label (black box), reference models trained on random parts of the data",
        cost="the reference models",
        cites="Brännvall 2026 (BaVarIA); Carlini et al. 2022",
    ),
    "ensemble": Entry(
        "forgetgauge.attack.ensemble:ENSEMBLE",
        "a logistic regression over the margins of other adversaries, fitted on reference models",
        needs="logits and label (black box), shadow models and their outputs on F and T, reference models",
        cost="the reference models; each member that leans on them is fitted once per reference model",
        cites="Shokri et al. 2017 (a learned attack); Wang et al. 2025 (attacks call different points members)",
    ),
    "label-only": Entry(
        "forgetgauge.attack.threshold:LABEL_ONLY",
        "how many shifted and mirrored copies of the image, or noisy ones of another input, are given its label",
        needs="predicted labels of altered copies (black box), shadow models",
        cost="26 predictions per point",
        cites="Choquette-Choo et al. 2021; Li and Zhang 2021",
    ),
    "gradient-norm": Entry(
        "forgetgauge.attack.threshold:GRADIENT_NORM",
        "norm of the loss gradient at the point against a threshold per class",
        needs="weights (white box), shadow models",
        cost="one gradient per point",
        cites="Nasr et al. 2019",
    ),
    "loss-landscape": Entry(
        "forgetgauge.attack.threshold:LANDSCAPE",
        "rise of the loss at the point when noise is added to the weights, against a threshold per class",
        needs="weights (white box), shadow models",
        cost="a few predictions per point",
        cites="Keskar et al. 2017 (sharpness)",
    ),
    "relearning": Entry(
        "forgetgauge.attack.threshold:RELEARNING",
        "loss at the point after an epoch of training on the attacker's own data, against a threshold per class",
        needs="weights (white box), shadow models",
        cost="one epoch on the shadow half for each model",
        cites="Hu et al. 2024; Siddiqui et al. 2025",
    ),
    **language_models.ADVERSARIES,
}
"""The catalogue of adversaries, which look for what a model did not forget."""
