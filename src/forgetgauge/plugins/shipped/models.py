"""The models we ship: architectures by name."""

from __future__ import annotations

from forgetgauge.plugins.catalogue import Entry

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
        "forgetgauge.models.resnet18:resnet18",
        "residual network of 18 wide layers, with batch or group norm; 11.2 million parameters",
        cites="He et al. 2016",
    ),
    "mlp": Entry("forgetgauge.models.mlp:MLP", "perceptron with hidden layers, for points of any shape"),
    "linear": Entry("forgetgauge.models.mlp:linear", "softmax regression, for points of any shape"),
    "bert": Entry(
        "forgetgauge.models.bert:bert",
        "transformer encoder for token ids, pretrained (a local or hub checkpoint) or random",
        needs="the extra [text]",
        cites="Devlin et al. 2019",
    ),
}
