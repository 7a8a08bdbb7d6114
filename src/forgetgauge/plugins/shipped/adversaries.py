"""The adversaries we ship: who looks for what a model did not forget."""

from __future__ import annotations

from forgetgauge.plugins.catalogue import Entry

ADVERSARIES: dict[str, Entry] = {
    "correctness": Entry(
        "forgetgauge.attack.threshold:CORRECTNESS",
        "says “forget” where the model predicts the label; the gap attack",
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
        "entropy that knows the true label, against a threshold per class",
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
        "the shadow attack, its shadow models passed through the same unlearner",
        needs="logits and label (black box), shadow models unlearned by each method",
        cost="each method on each shadow model; one logistic regression per class",
        cites="Shokri et al. 2017",
    ),
    "lira-online": Entry(
        "forgetgauge.attack.lira:ONLINE",
        "likelihood ratio at each point between models that saw it and models that did not",
        needs="logits and label (black box), reference models trained on parts of D",
        cost="the reference models",
        cites="Carlini et al. 2022",
    ),
    "lira-offline": Entry(
        "forgetgauge.attack.lira:OFFLINE",
        "how far the model is above models that did not see the point",
        needs="logits and label (black box), shadow models and their signals on D",
        cost="one mean per point",
        cites="Carlini et al. 2022",
    ),
    "rmia-online": Entry(
        "forgetgauge.attack.rmia:ONLINE",
        "share of unseen points whose probability rose less than the point's; models of both sides as reference",
        needs="logits and label (black box), signals on the shadow half, shadow models, models of parts of D",
        cost="the reference models",
        cites="Zarifzadeh et al. 2024",
    ),
    "rmia-offline": Entry(
        "forgetgauge.attack.rmia:OFFLINE",
        "share of unseen points whose probability rose less than the point's; unseeing models as reference",
        needs="logits and label (black box), signals on the shadow half, shadow models and their signals on D",
        cost="one sort per model",
        cites="Zarifzadeh et al. 2024",
    ),
    "quantile": Entry(
        "forgetgauge.attack.quantile:REGRESSION",
        "logit gap against a quantile of what the model gives to unseen points of the kind",
        needs="logits and label (black box), signals on the shadow half, shadow models and their signals on D",
        cost="one linear quantile regression per model",
        cites="Bertran et al. 2023",
    ),
    "u-lira": Entry(
        "forgetgauge.attack.lira:UNLEARNING",
        "likelihood ratio at each point between “trained on, then forgotten” and “never seen”",
        needs="logits and label (black box), reference models trained on parts of D, unlearned by each method",
        cost="the reference models, and each method on each of them",
        cites="Hayes et al. 2024",
    ),
    "gradient-norm": Entry(
        "forgetgauge.attack.white_box:GRADIENT_NORM",
        "norm of the loss gradient at the point against a threshold per class",
        needs="weights (white box), shadow models",
        cost="one gradient per point",
        cites="Nasr et al. 2019",
    ),
    "loss-landscape": Entry(
        "forgetgauge.attack.white_box:LANDSCAPE",
        "rise of the loss at the point when the weights are shaken, against a threshold per class",
        needs="weights (white box), shadow models",
        cost="a few predictions per point",
        cites="Keskar et al. 2017 (sharpness)",
    ),
}
