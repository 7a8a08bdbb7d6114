"""LoRA: a frozen base whose linear layers add a product of two small matrices, W x + (α/r) B A x (Hu et al. 2022).

The base is shared; a model's own weights, and all that is stored of it, are the adapters. They are written and read in
the layout of the library peft: `adapter_config.json` beside `adapter_model.safetensors`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.errors import UserError
from forgetgauge.files import parse_json
from forgetgauge.models.causal_lm import (
    Base,
    Correction,
    RecordModel,
    corrected,
    is_stored_by_inputs,
    linear_weights,
)
from forgetgauge.wording import listed

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The seven linear layers of a block of Llama."""
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX, _WRAPPED, _COPIED = "base_model.model.", "inner.", ".base_layer.weight"


class LoraModel(RecordModel):
    """Adapters on a shared base; B begins at 0, so that the model begins as the base."""

    def __init__(self, base: Base, targets: Sequence[str], rank: int, alpha: float) -> None:
        super().__init__()
        self.base, self.targets, self.rank, self.alpha = base, tuple(targets), rank, alpha
        linear = {
            name: module
            for name, module in base.on(torch.device("cpu")).named_modules()
            if isinstance(module, nn.Linear) or is_stored_by_inputs(module)
        }
        called = {name: {name, name.rpartition(".")[2]} & set(self.targets) for name in linear}
        if missing := sorted(set(self.targets).difference(*called.values())):
            there = listed(sorted({name.rpartition(".")[2] for name in linear}))
            raise UserError(
                f"learner lora: the base has no linear layer called '{missing[0]}'; its targets can be {there}"
            )
        self.layers = tuple(name for name in linear if called[name])
        self.by_inputs = frozenset(name for name in self.layers if is_stored_by_inputs(linear[name]))
        """The layers whose weight is (in, out), not (out, in)."""
        self.down, self.up = nn.ParameterDict(), nn.ParameterDict()
        for name in self.layers:
            sizes: tuple[int, int] = linear[name].get_parameter("weight").shape
            n_out, n_in = sizes[::-1] if name in self.by_inputs else sizes
            self.down[key_of(name)] = nn.Parameter(torch.empty(rank, n_in))
            self.up[key_of(name)] = nn.Parameter(torch.zeros(n_out, rank))
            nn.init.kaiming_uniform_(self.down[key_of(name)], a=math.sqrt(5))

    def extra_repr(self) -> str:
        """What makes two of them alike."""
        return f"base={self.base}, rank={self.rank}, alpha={self.alpha}, targets={self.targets}"

    @property
    def scale(self) -> float:
        """α/r."""
        return self.alpha / self.rank

    def logits_at(self, ids: Tensor, at: Tensor) -> Tensor:
        """The base's, its layers corrected by the adapters."""
        body = self.base.on(ids.device)
        with corrected(body, {name: self._correction(name) for name in self.layers}):
            logits: Tensor = body(ids, at)
        return logits

    def _correction(self, name: str) -> Correction:
        down, up = self.down[key_of(name)], self.up[key_of(name)]
        return lambda given, made: made + self.scale * F.linear(F.linear(given, down), up)

    @property
    def here(self) -> nn.Module:
        """The base, where the adapters are."""
        body: nn.Module = self.base.on(next(self.parameters()).device)
        return body

    @torch.no_grad()
    def merged(self) -> dict[str, Tensor]:
        """W + (α/r) B A of every linear layer, and of the last one if it has adapters: they would cost each token more
        than the base does."""
        weights = linear_weights(self.here)
        for name in self.layers:
            product = self.up[key_of(name)] @ self.down[key_of(name)]
            product = product.T if name in self.by_inputs else product
            weights[f"{name}.weight"] = self.here.get_parameter(f"{name}.weight") + self.scale * product
        return weights


def key_of(layer: str) -> str:
    """A layer's name without dots, which the names of parameters cannot have."""
    return layer.replace(".", "/")


# -- peft's layout -----------------------------------------------------------------------------------------------------


def _name_in_peft(layer: str) -> str:
    """Without the wrapper that models of other architectures stand in here."""
    return _PREFIX + layer.removeprefix(_WRAPPED)


def _layer_in(base: Base, name: str) -> str:
    """The base's layer that peft calls so."""
    layers = dict(base.on(torch.device("cpu")).named_modules())
    own = name.removeprefix(_PREFIX)
    return _WRAPPED + own if own not in layers and _WRAPPED + own in layers else own


def _is_the_bases(base: Base, name: str, tensor: Tensor) -> bool:
    """Whether it is a copy of the base's own weight, which peft writes beside adapters of the last layer."""
    if not name.endswith(_COPIED):
        return False
    own = dict(base.on(torch.device("cpu")).named_parameters(remove_duplicate=False))  # a tied one has two names
    weight = own.get(f"{_layer_in(base, name.removesuffix(_COPIED))}.weight")
    return weight is not None and torch.equal(weight, tensor.to(weight.dtype))


def save_adapters(model: LoraModel, folder: Path | str) -> None:
    """Write the adapters so that peft loads them on the same base."""
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name in model.layers:
        tensors[f"{_name_in_peft(name)}.lora_A.weight"] = model.down[key_of(name)].detach().cpu().contiguous()
        tensors[f"{_name_in_peft(name)}.lora_B.weight"] = model.up[key_of(name)].detach().cpu().contiguous()
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": model.base.name,
        "r": model.rank,
        "lora_alpha": model.alpha,
        "target_modules": [target.removeprefix(_WRAPPED) for target in model.targets],
        "lora_dropout": 0.0,
        "bias": "none",
        "use_rslora": False,
        "fan_in_fan_out": bool(model.by_inputs),
        "inference_mode": True,
    }
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", "utf-8")


_NOT_PLAIN = ("use_dora", "modules_to_save", "rank_pattern", "alpha_pattern", "lora_bias", "layer_replication",
    "trainable_token_indices", "target_parameters", "alora_invocation_tokens", "use_qalora")  # fmt: skip
"""What peft's adapters may do besides, and these do not."""
_LEAVE_THE_BASE = (None, True, False, "gaussian", "eva", "orthogonal", "mica")
"""How adapters may begin: by other ways, such as PiSSA's, the base gets other weights as well."""


def load_adapters(base: Base, folder: Path | str) -> LoraModel:
    """Adapters that peft, or `save_adapters`, wrote for this base; what LoRA alone does not do is refused."""
    from safetensors.torch import load_file

    folder = Path(folder)
    try:
        config = parse_json((folder / CONFIG).read_bytes())
        tensors = load_file(folder / WEIGHTS)
    except Exception as error:  # absent, or not what they are called
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{folder}: adapters cannot be read: {line}") from None
    if not isinstance(config, dict):
        raise UserError(f"{folder}: adapters cannot be read: {CONFIG} is not peft's")
    odd = [key for key in _NOT_PLAIN if config.get(key)]
    if config.get("init_lora_weights") not in _LEAVE_THE_BASE:
        odd.append(f"init_lora_weights = {config['init_lora_weights']!r}, which changes the base")
    if config.get("peft_type") != "LORA" or config.get("bias", "none") != "none" or odd:
        raise UserError(f"{folder}: these are not plain LoRA adapters ({odd[0] if odd else config.get('peft_type')})")
    try:
        rank, alpha = int(config["r"]), float(config["lora_alpha"])
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{folder}: adapters cannot be read: {CONFIG} names no r and lora_alpha") from None
    alpha *= math.sqrt(rank) if config.get("use_rslora") else 1.0
    tensors = {name: tensor for name, tensor in tensors.items() if not _is_the_bases(base, name, tensor)}
    suffix = ".lora_A.weight"
    adapted = [_layer_in(base, name.removesuffix(suffix)) for name in tensors if name.endswith(suffix)]
    if strange := sorted(set(adapted) - set(dict(base.on(torch.device("cpu")).named_modules()))):
        raise UserError(f"{folder}: the adapters are of another base: it has no layer {strange[0]}")
    model = LoraModel(base, sorted({name.rpartition(".")[2] for name in adapted}), rank, alpha)
    if set(model.layers) != set(adapted):  # of some blocks alone
        model = LoraModel(base, sorted(adapted), rank, alpha)
    wanted = {f"{_name_in_peft(name)}.lora_{which}.weight" for name in model.layers for which in "AB"}
    if wanted != set(tensors):
        raise UserError(f"{folder}: the adapters are of another base: {min(wanted ^ set(tensors))}")
    with torch.no_grad():
        for name in model.layers:
            for ours, which in ((model.down, "A"), (model.up, "B")):
                theirs = tensors[f"{_name_in_peft(name)}.lora_{which}.weight"]
                if theirs.shape != ours[key_of(name)].shape:
                    raise UserError(f"{folder}: the adapters are of another base: {name} has other sizes")
                ours[key_of(name)].copy_(theirs)
    return model.eval()
