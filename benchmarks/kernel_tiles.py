"""Which tiles make the stacked convolutions fastest on this GPU: where the tables of `learn/kernels.py` are from.

    python benchmarks/kernel_tiles.py [out.json]

Every kernel of a ResNet-20 stack (16 members, batch 128, bfloat16) with every tile of a grid; compiled by a dozen
processes first, then timed one after another (median over CUDA-graph-free launches, device events).
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch

K, B = 16, 128
SHAPES = [(3, 16, 32, 1), (16, 16, 32, 1), (16, 32, 32, 2), (32, 32, 16, 1), (32, 64, 16, 2), (64, 64, 8, 1)]


def trials() -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """(kernel, shape, tile) for all that is worth trying."""
    found: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
    for shape in SHAPES:
        ci, co, size, stride = shape
        for kind, inner in (("forward", ci), ("backward", co)):
            if kind == "backward" and ci == 3:
                continue
            wide = [c for c in (16, 32, 64, 128) if c <= max(16, 4 * inner)]
            for pixels, columns, warps, stages in itertools.product((64, 128, 256), wide, (4, 8), (2, 4)):
                if pixels * columns <= 256 * 64 and (warps == 8) <= (pixels == 256):
                    found.append((kind, shape, (pixels, columns, warps, stages, 1)))
        image = (size // stride) ** 2
        wide = [c for c in (16, 32, 64, 128) if c <= max(16, 4 * ci)]
        for pixels, columns, warps, stages, rows in itertools.product((32, 64, 128, 256), wide, (4, 8), (2, 4), (1, 3)):
            if (
                pixels <= image
                and columns * co * rows <= 12288
                and columns >= min(64, 3 * ci)
                and (stages == 4) <= (warps == 4)
            ):
                found.append(("weight", shape, (pixels, columns, warps, stages, rows)))
    return found


def prepare(kind: str, shape: tuple[int, ...], tile: tuple[int, ...]) -> Any:
    """A function without arguments that launches the kernel."""
    from forgetgauge.learn import kernels

    ci, co, size, stride = shape
    window = kernels.Window(3, 3, stride, 1)
    image = (size // stride) ** 2
    x = torch.randn(K, B, size, size, ci, device="cuda", dtype=torch.bfloat16)
    up = torch.randn(K, B, size // stride, size // stride, co, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(K, 3, 3, ci, co, device="cuda", dtype=torch.bfloat16)
    n_valid = torch.full((K,), B, device="cuda", dtype=torch.int32)
    if kind == "forward":
        kernels.CONV_TILES[ci, image] = kernels.Tile(*tile)
        return lambda: kernels.convolve(x, weight, window, n_valid)
    if kind == "backward":
        kernels.CONV_TILES[co, size * size] = kernels.Tile(*tile)
        return lambda: kernels.convolve_back(up, weight, window, x.shape, x)
    kernels.WEIGHT_TILES[ci, image] = kernels.Tile(*tile)
    out = torch.empty(K, 9 * ci * co, device="cuda")
    return lambda: kernels.weight_gradient(x, up, window, out)


def compile_one(trial: tuple[str, tuple[int, ...], tuple[int, ...]]) -> str | None:
    """Launch once, so that the compiled kernel is on disk; the reason where it cannot be."""
    try:
        prepare(*trial)()
        torch.cuda.synchronize()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None


def milliseconds(launch: Any, n: int = 12) -> float:
    """Median of n launches."""
    for _ in range(3):
        launch()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    marks[0].record()
    for mark in marks[1:]:
        launch()
        mark.record()
    torch.cuda.synchronize()
    return sorted(a.elapsed_time(b) for a, b in itertools.pairwise(marks))[n // 2]


def norm_times(size: int, c: int) -> str:
    """Microseconds of the batch-norm kernels, and of moving the bytes each must move at 4.3 TB/s.

    Without a CUDA graph: small ones cost a launch, about 50 µs.
    """
    from forgetgauge.learn import kernels

    y, up, z = (torch.randn(K, B, size, size, c, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    n_valid = torch.full((K,), B, device="cuda", dtype=torch.int32)
    rows = [torch.rand(K, c, device="cuda") for _ in range(6)]
    weight = torch.randn(K, 3, 3, c, c, device="cuda", dtype=torch.bfloat16)
    moments = kernels.convolve(y, weight, kernels.Window(3, 3, 1, 1), n_valid)[1]

    def finish() -> Any:
        return kernels.finish_moments(moments, n_valid, size * size, *rows[:2], (rows[2], rows[3]), 0.1, 1e-5)

    norm = finish()

    def gradient(residual: bool) -> Any:
        return kernels.norm_gradient(up, y, z, norm, n_valid, *rows[4:], residual=residual, relu=True, train=True)

    timed = {
        "finish": (milliseconds(finish), 0),
        "apply": (milliseconds(lambda: kernels.scale_shift(y, norm, None, True)), 2),
        "apply with residual": (milliseconds(lambda: kernels.scale_shift(y, norm, up, True)), 3),
        "gradient": (milliseconds(lambda: gradient(False)), 5),
        "gradient with residual": (milliseconds(lambda: gradient(True)), 8),
    }
    floor = y.numel() * 2 / 4.3e6
    return f"norm {size} {c}: " + ", ".join(f"{n} {1000 * ms:.0f} ({k * floor:.0f})" for n, (ms, k) in timed.items())


def main() -> None:
    """Compile, time, print the best three of each."""
    tried = trials()
    start = time.perf_counter()
    with ProcessPoolExecutor(14, mp_context=get_context("spawn")) as pool:
        problems = list(pool.map(compile_one, tried, chunksize=4))
    failed = [problem for problem in problems if problem]
    print(f"{len(tried)} trials compiled in {time.perf_counter() - start:.0f} s; {len(failed)} failed", *failed[:1])
    times: dict[str, list[tuple[float, tuple[int, ...]]]] = {}
    for trial, problem in zip(tried, problems, strict=True):
        if problem is None:
            kind, shape, tile = trial
            times.setdefault(f"{kind} {shape}", []).append((milliseconds(prepare(*trial)), tile))
    for name, found in times.items():
        found.sort()
        print(name, [(round(1000 * ms), tile) for ms, tile in found[:3]], "worst", round(1000 * found[-1][0]))
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            json.dump(times, file)
    for size, c in ((32, 16), (16, 32), (8, 64)):
        print(norm_times(size, c))
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
