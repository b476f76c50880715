"""Compares modelled times with published ones: all_reduces of pods, and steps of public training runs.

    .venv/bin/python tools/published/compare.py [--build build] [--filter WORD] [--check]
    .venv/bin/python tools/published/compare.py --meshes
    .venv/bin/python tools/published/compare.py --old

Prints the tables of README.md.  Training steps run with `values: shapes`: each takes seconds.

- --check fails if a modelled number has left the range that is recorded here.
- --meshes instead prints the step of one model on meshes with tensor axes of 1 to 16, with the seconds of exposed and
  of overlapped collectives.
- --old instead prints steps of compilers that are older than the one that the model imitates.
"""

import argparse
import json
import pathlib
import subprocess

import chips
import micro

ROOT = pathlib.Path(__file__).resolve().parents[2]
GIB = 1 << 30

SOURCES = {
    "A": "https://github.com/NVIDIA/nccl-tests/issues/149",
    "H": "https://github.com/NVIDIA/nccl-tests/issues/212",
    "R": "https://github.com/NVIDIA/nccl/issues/1455",
    "V": "https://docs.cloud.google.com/tpu/docs/v5e",
    "E": "https://github.com/AI-Hypercomputer/maxtext/blob/main/MaxText/configs/v5e/README.md",
    "P": "https://github.com/AI-Hypercomputer/maxtext/blob/main/MaxText/configs/v5p/README.md",
    "C": "https://github.com/AI-Hypercomputer/maxtext/tree/main/docs",
    "T": "https://github.com/AI-Hypercomputer/tpu-recipes/tree/main/training/trillium",
    "T5": "https://github.com/AI-Hypercomputer/tpu-recipes/tree/main/training/v5p/Llama3.1-405B-MaxText",
    "I": "https://github.com/AI-Hypercomputer/tpu-recipes/tree/main/training/ironwood",
    "H3": "https://github.com/AI-Hypercomputer/maxtext/tree/main/MaxText/configs/a3",
    "J": "https://github.com/NVIDIA/JAX-Toolbox/blob/main/docs/frameworks/maxtext/README.md",
    "U": "https://github.com/AI-Hypercomputer/gpu-recipes/tree/main/training/a3ultra/llama3-1-70b/maxtext-pretraining-gke",
    "M": "https://arxiv.org/abs/2104.04473",
    "L": "https://arxiv.org/abs/2302.13971",
    "W": "https://arxiv.org/abs/2204.02311",
    "X": "https://github.com/NVIDIA/JAX-Toolbox/blob/main/rosetta/rosetta/projects/pax/README.md",
}

# Pod, words added, bytes, published GB/s (as in NCCL's tests: 2 (n - 1) / n bytes per time), source, what is published.
ALL_REDUCES = [
    ("a100:8", "", 8 * GIB, 230, "A", "NCCL, what a developer of it expects"),
    ("a100:8", "links.bandwidth:20GB/s", 8 * GIB, 230, "A", "the same"),
    ("h100:8", "", 4 * GIB, 370, "R", "NCCL, ring, measured"),
    ("h100:8", "links.bandwidth:20GB/s", 4 * GIB, 370, "R", "the same"),
    ("h100:8", "", 4 * GIB, 480, "H", "NCCL, switches that add (NVLink SHARP)"),
    ("v5e:16x16", "", 8 * GIB, 200, "V", "51.2 TB/s for a pod of 256"),
]

# MaxText's models by global_parameter_scale (16, 32, 64, 128), as of the dates of its tables: October (v5e) and
# December 2023 (v5p).  Since February 2024 its base.yml has other sizes, and its layers have another structure.
SCALED = {"head_dim": 256, "gated": False, "activation": "relu", "parallel": True, "rope": "pairs", "vocab": 32768,
          "tied": True, "one_hot": True, "library": "pallas"}
SCALED_16 = {**SCALED, "emb": 5120, "heads": 32, "mlp": 32768, "layers": 32}
SCALED_32 = {**SCALED_16, "emb": 10240}
SCALED_64 = {**SCALED_32, "layers": 64}
SCALED_128 = {**SCALED_64, "heads": 64, "mlp": 65536}
SCALED_256 = {**SCALED_128, "emb": 20480}
SCALED_512 = {**SCALED_256, "layers": 128}
# Until November 1, queries and keys have neither rotary embeddings nor norms if attention is a kernel, which has no mask
# and ignores the biases by distance.  Afterwards pairs rotate, and heads have norms.
OCTOBER = {"rope": None, "causal": False, "sides": {"dq": (512, 512)}}
DECEMBER = {"normed": "qkv"}
LLAMA_7B = {"emb": 4096, "heads": 32, "mlp": 11008, "layers": 32, "sequence": 4096, "rope": "halves",
            "one_hot": True}
LLAMA_8B = {"emb": 4096, "heads": 32, "kv_heads": 8, "mlp": 14336, "layers": 32, "vocab": 128256, "sequence": 8192,
            "rope": "shifted"}
LLAMA_70B = {"emb": 8192, "heads": 64, "kv_heads": 8, "mlp": 28672, "layers": 80, "vocab": 128256, "sequence": 8192,
             "rope": "shifted"}
LLAMA_405B = {**LLAMA_70B, "emb": 16384, "heads": 128, "mlp": 53248, "layers": 126}
MISTRAL_7B = {**LLAMA_8B, "vocab": 32000, "rope": "halves"}
# A tied embedding.  MaxText makes its logits for a sixteenth of the tokens at a time.
GEMMA_12B = {"emb": 3840, "heads": 16, "kv_heads": 8, "head_dim": 256, "mlp": 15360, "layers": 48, "vocab": 262144,
             "activation": "gelu", "rope": "halves", "normed": "qk", "post": True, "window": 1024, "tied": True,
             "one_hot": True, "tiles": 16}
GPT_175B = {"emb": 12288, "heads": 96, "mlp": 49152, "layers": 96, "vocab": 50304, "gated": False}
# PyTorch's kernels and Megatron's own.  All GPUs of a tensor axis have the same activations between layers (its f and
# g).
MEGATRON = {"vocab": 51200, "gated": False, "flash": False, "kernels": "library", "dropout": 0.1, "replicated": True}
PROJECTIONS = ["q", "k", "v", "out"]
ALL_PRODUCTS = [*PROJECTIONS, "context", "gate", "up", "down"]
CUDNN = {"library": "cudnn"}
# Kernels of the recipes for Llama 3.1, and the values that they offload.
FUSED = {"block": 2048, "backward": 5}
# Recipes that set the blocks of queries alone: those of keys are 512 by MaxText's default.
QUERIES = {"sides": {"fwd": (1024, 512), "dkv": (2048, 512), "dq": (2048, 512)}}
OFFLOADED_8B = {**FUSED, "remat": ["input", *PROJECTIONS], "offload": True}
OFFLOADED_70B = {**FUSED, "remat": ["input", "q", "k", "v"], "offload": True}
TOKAMAX = {"library": "tokamax"}
IRONWOOD_70B = {**LLAMA_70B, **FUSED, **TOKAMAX, "remat": ["input", "q", "k", "v", "context"], "mu": "bfloat16"}
# As in the scripts of April 2024: layers are not scanned, and logits are f32, as in MaxText's `base.yml`.
LLAMA_2 = {**LLAMA_7B, **CUDNN, "remat": ALL_PRODUCTS, "scan": False, "logits": "float32"}
# Four cards of 200 Gbit/s with GPUDirect-TCPX.  The guides to these machines give all_gathers of NCCL's tests on two of
# them: 7.1 ms for 512 MiB, 2.1 for 128, 0.8 for 8, 0.7 for 1.
A3 = "dcn.links:4 dcn.bandwidth:20GB/s dcn.latency:500us"

# Overlap with compute: flags pipeline collectives in loops; PyTorch has a stream for each group of devices; Megatron of
# 2021 waits for its all_reduces.
PIPELINED, STREAMS, WAITED = {"pipeline": 1}, {"tracks": 2, "started": 2}, {"all_reduce": 0}

# Flags that the scripts of these rows pass to libtpu, as far as modelled times depend on them; on v5e it is the
# default.
CARRIED = ["xla_tpu_enable_async_collective_fusion_fuse_all_gather=true"]
# More flags of some rows: DISABLE_COLLECTIVE_MATMUL of MaxText's library of flags.
NO_RINGS = "xla_jf_spmd_threshold_for_windowed_einsum_mib=1000000"

HALF = "TFLOP/s of causal scores"
# Family, name, pod, model, published number and its unit, source.  MaxText's tables of October 2023 (v5e) count all of
# attention's scores.  Those of December 2023 (v5p) and April 2024 (H100) count half of them.  Those of SC21 also count
# recomputed operations.
STEPS = [
    *(("v5e", name, f"v5e:16x16{f' slices:{slices}' * (slices > 1)}",
       {**model, **OCTOBER, "batch": batch * 256 * slices, "data": slices}, figure, "TFLOP/s", "E")
      for name, model, batch, figures in (("MaxText 16B", SCALED_16, 6, {1: 120, 2: 117, 4: 117, 8: 115}),
                                          ("MaxText 32B", SCALED_32, 4, {1: 132, 2: 128, 8: 125}),
                                          ("MaxText 64B", SCALED_64, 2, {1: 118, 2: 112, 4: 110}))
      for slices, figure in figures.items()),
    ("v5e", "MaxText 128B", "v5e:16x16", {**SCALED_128, **OCTOBER, "batch": 256, "tensor": 16}, 110, "TFLOP/s", "E"),
    *(("v5p", name, f"v5p:{pod}", {**model, **DECEMBER, "batch": batch, "tensor": tensor, "remat": remat, **other}, figure,
       HALF, "P") for name, pod, model, batch, tensor, remat, other, figure in (
           ("MaxText 32B", "4x4x4", SCALED_32, 8 * 64, 4, "minimal", {}, 328),
           ("MaxText 64B", "4x4x4", SCALED_64, 4 * 64, 4, "minimal", {}, 323),
           ("MaxText 64B", "4x4x4 slices:2", SCALED_64, 4 * 128, 4, "minimal", {"data": 2}, 309),
           ("MaxText 128B", "4x4x8", SCALED_128, 2 * 128, 8, "minimal", {}, 315),
           ("MaxText 128B", "4x8x8", SCALED_128, 2 * 256, 8, "minimal", {}, 316),
           ("MaxText 256B", "8x8x8", SCALED_256, 2 * 512, 8, "minimal", {}, 308),
           ("MaxText 512B", "8x8x8", SCALED_512, 2 * 512, 16, "full", {}, 294))),
    ("v5p", "Llama 2 70B", "v5p:8x8x8",
     {**LLAMA_70B, "vocab": 32000, "sequence": 4096, "rope": "halves", "batch": 4 * 512,
      "remat": [*PROJECTIONS, "down"]}, 692, "tokens/s", "C"),
    ("v5p", "Llama 3.1 405B", "v5p:8x8x8",
     {**LLAMA_405B, "batch": 2 * 512, "remat": ["context", "down"], "offload": True, "block": 2048, "scoped": "64 of 64"},
     131.474, "s", "T5"),
    *(("v6e", "Llama 3.1 8B", f"v6e:{pod}", {**LLAMA_8B, **OFFLOADED_8B, "batch": batch, "rings": rings}, seconds, "s", "T")
      for pod, batch, rings, seconds in (("2x4", 3 * 8, False, 3.443), ("4x4", 3 * 16, False, 3.393),
                                         ("4x8", 3 * 32, False, 3.495), ("8x8", 5 * 64, True, 5.652))),
    *(("v6e", "Llama 3.1 8B", f"v6e:{pod}", {**LLAMA_8B, **OFFLOADED_8B, "batch": batch}, seconds, "s", "T")
      for pod, batch, seconds in (("8x16", 4 * 128, 4.602), ("16x16", 4 * 256, 4.546))),
    *(("v6e", "Gemma 3 12B", f"v6e:16x16{f' slices:{slices}' * (slices > 1)}",
       {**GEMMA_12B, "sequence": 32768, "batch": 256 * slices, "data": slices, "remat": ["input"], "block": 1024,
        "sides": {"dkv": (512, 2048)}, "scoped": 120, "carried": False}, seconds, "s", "T")
      for slices, seconds in ((1, 7.318), (2, 7.793), (4, 8.390))),
    ("v6e", "Mistral 7B", "v6e:2x4", {**MISTRAL_7B, **OFFLOADED_8B, "batch": 6 * 8, "rings": False}, 6.320, "s", "T"),
    ("v6e", "Llama 3.1 70B", "v6e:4x8",
     {**LLAMA_70B, **OFFLOADED_70B, "batch": 2 * 32, "rings": False, "weights": "bfloat16"}, 17.790, "s", "T"),
    *(("v6e", "Llama 3.1 70B", f"v6e:{pod}", {**LLAMA_70B, **OFFLOADED_70B, "batch": batch}, seconds, "s", "T")
      for pod, batch, seconds in (("8x8", 2 * 64, 18.688), ("8x16", 4 * 128, 34.786), ("16x16", 5 * 256, 42.656))),
    ("v6e", "Llama 2 70B", "v6e:16x16",
     {**LLAMA_70B, "vocab": 32000, "sequence": 4096, "rope": "halves", "batch": 2 * 256, "remat": ["q", "k", "v"],
      "offload": True, **QUERIES}, 9.052, "s", "T"),
    ("v6e", "Llama 3.1 405B", "v6e:16x16 slices:2",
     {**LLAMA_405B, "batch": 512, "remat": ["input"], "offload": True, **QUERIES}, 54.803, "s", "T"),
    ("v6e", "Mixtral 8x7B", "v6e:16x16",
     {**MISTRAL_7B, "sequence": 4096, "experts": 8, "batch": 12 * 256, "remat": ["input", *PROJECTIONS], "offload": True,
      "sides": {**QUERIES["sides"], "fwd": (2048, 512)}, "scoped": 80}, 13.484, "s", "T"),
    ("v6e", "GPT-3 175B", "v6e:16x16", {**GPT_175B, "batch": 3 * 256, **QUERIES}, 17.182, "s", "T"),
    ("7x", "Llama 3.1 70B", "7x:4x4x4", {**IRONWOOD_70B, "batch": 2 * 128}, 12.20, "s", "I"),
    ("7x", "Llama 3.1 70B", "7x:4x8x8", {**IRONWOOD_70B, "batch": 2 * 512}, 12.27, "s", "I"),
    ("7x", "Llama 3.1 405B", "7x:4x8x8",
     {**LLAMA_405B, **FUSED, **TOKAMAX, "batch": 3 * 512, "remat": ["input", "down"], "offload": True, "mu": "bfloat16"},
     98.34, "s", "I"),
    ("h100", "Llama 2 7B", "h100:8", {**LLAMA_2, "batch": 4 * 8}, 492, HALF, "H3"),
    *(("h100", "Llama 2 7B", f"h100:8 slices:{hosts} {A3}", {**LLAMA_2, "batch": 4 * 8 * hosts, "data": hosts}, figure,
       HALF, "H3") for hosts, figure in ((2, 422), (4, 407), (8, 409))),
    ("h100", "Llama 2 7B", "h100:8", {**LLAMA_2, "logits": "bfloat16", "batch": 2 * 8}, 0.721, "s", "J"),
    ("h200", "Llama 3.1 70B", "h200:8 slices:32",
     {**LLAMA_70B, **CUDNN, "batch": 2 * 256, "data": 2, "remat": [*PROJECTIONS, "context"], "one_hot": True}, 15.516, "s",
     "U"),
    ("a100", "Megatron 7.5B", "a100:8 slices:16",
     {**MEGATRON, "emb": 4096, "heads": 32, "mlp": 16384, "layers": 36, "batch": 512, "data": 32, "tensor": 4,
      "overlap": WAITED}, 142, "TFLOP/s with remat", "M"),
    ("a100", "Megatron 18.4B", "a100:8 slices:32",
     {**MEGATRON, "emb": 6144, "heads": 48, "mlp": 24576, "layers": 40, "batch": 1024, "data": 32, "tensor": 8,
      "overlap": WAITED}, 135, "TFLOP/s with remat", "M"),
    ("a100", "LLaMA 65B", "a100:8 slices:256",
     {"emb": 8192, "heads": 64, "mlp": 22016, "layers": 80, "rope": "pairs", "batch": 2048, "tensor": 8,
      "remat": "minimal", "overlap": PIPELINED | STREAMS, **CUDNN}, 380, "tokens/s", "L"),
    ("v4", "PaLM 540B", "v4-megacore:12x16x16",  # one of its two pods, which together had 1.95 times its speed
     {"emb": 18432, "heads": 48, "kv_heads": 1, "head_dim": 256, "mlp": 73728, "layers": 118, "vocab": 12 * 21504,
      "parallel": True, "rope": "halves", "batch": 1024, "tensor": 12, "flash": False}, 238.3e3 / 1.95 / 3072, "tokens/s",
     "W"),
]
# Pax on XLA of October 2023 [X]: attention with ordinary operations and without Triton's softmax, or cuDNN's (TE).
PAX_5B = {"emb": 4096, "heads": 32, "mlp": 16384, "layers": 24, "vocab": 50304, "gated": False, "tied": True,
          "remat": "minimal", "batch": 8 * 256}
PAX_175B = {**GPT_175B, "vocab": 50257, "tied": True, "batch": 6 * 256}
OLD = [(chip, f"Pax {size} {kind}", f"{chip}:8 slices:32", {**model, **attention}, model["batch"] / figure, "s", "X")
       for chip, kind, attention, figures in (("a100", "bf16", {"flash": False}, (465.45, 18.29)),
                                              ("a100", "TE", CUDNN, (586.82, 19.47)), ("h100", "TE", CUDNN, (1066.67, 44.01)))
       for (size, model), figure in zip((("5B", PAX_5B), ("175B", PAX_175B)), figures)]
# For --meshes: a model, and the sizes of its tensor axis; the rest of the pod is `fsdp`.
MESHES = "MaxText 64B", "v5e:16x16", {**SCALED_64, **OCTOBER, "batch": 2 * 256}, (1, 2, 4, 8, 16)
# MiB of VMEM that recipes give to matmuls: all recipes for Trillium, and one for v5p.
SCOPED = {"v6e": 96}
# Modelled numbers may differ from published ones by these factors.
RANGE = 0.75, 1.5


def all_reduce_bandwidth(build, pod, size):
  done = subprocess.run([build / "minipod-network", pod, "all_reduce", str(size)], capture_output=True, text=True,
                        check=True)
  row = done.stdout.splitlines()[1].split()
  devices = 1
  for side in pod.split()[0].split(":")[1].split("x"):
    devices *= int(side)
  return 2 * (devices - 1) / devices * size / (float(row[1]) * 1e-6) / 1e9, row[0]


def step(pod, model):
  model = dict(model)
  asked = {key: model.pop(key, default) for key, default in (("scoped", SCOPED.get(pod.split(":")[0])), ("overlap", {}))}
  flags = CARRIED if model.pop("carried", True) and pod.startswith(("v5p", "v6e")) else []
  flags = [*flags, *[NO_RINGS] * (not model.pop("rings", True))]
  with chips.described(pod, **asked) as topology:
    # No memory limit, because memory is not compared (README.md).
    pod = " ".join([topology, *["flags:" + ",".join(flags)] * (len(flags) > 0), "hbm:1TiB"])
    return json.loads(chips.run_on(pod, ROOT / "tools/published/train_step.py", json.dumps(model)).splitlines()[-1])


def published_seconds(result, model, figure, unit):
  """Seconds of a step with the published speed."""
  if unit == "s":
    return figure
  if unit == "tokens/s":
    return model["batch"] * model.get("sequence", 2048) / result["devices"] / figure
  operations = result["operations"][2 if unit == HALF else 1] * (4 / 3 if unit == "TFLOP/s with remat" else 1)
  return operations / result["devices"] / (figure * 1e12)


def compare_meshes():
  name, pod, model, sizes = MESHES
  print(f"{name}, `{pod}`\n\n| fsdp | tensor | step, s | work, s | exposed, s | hidden, s |\n|---|---|---|---|---|---|")
  for size in sizes:
    result = step(pod, {**model, "tensor": size})
    seconds, work = result["seconds"], result["seconds"] * result["work"]
    print(f"| {result['devices'] // size} | {size} | {seconds:.2f} | {work:.2f} | {seconds - work:.2f} | "
          f"{result['hidden']:.2f} |", flush=True)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
  parser.add_argument("--filter", default="", help="only rows whose name or pod has this word")
  parser.add_argument("--check", action="store_true")
  parser.add_argument("--meshes", action="store_true")
  parser.add_argument("--old", action="store_true")
  arguments = parser.parse_args()
  if arguments.meshes:
    compare_meshes()
    return
  wanted = lambda *words: any(arguments.filter in word for word in words)
  left = []

  print("| pod | all_reduce of | algorithm | published, GB/s | modelled, GB/s | ratio | what is published |\n"
        "|---|---|---|---|---|---|---|")
  for pod, words, size, published, source, what in [] if arguments.old else ALL_REDUCES:
    if wanted("all_reduce", pod):
      modelled, algorithm = all_reduce_bandwidth(arguments.build, f"{pod} {words}".strip(), size)
      print(f"| `{f'{pod} {words}'.strip()}` | {size // GIB} GiB | {algorithm} | {published} | {modelled:.0f} | "
            f"{modelled / published:.2f} | {what} [{source}] |")
      left += [pod] * (not RANGE[0] <= modelled / published <= RANGE[1])

  print("\n| training | pod | published | that is, s | modelled, s | error | work | collectives |\n"
        "|---|---|---|---|---|---|---|---|")
  errors = []
  for family, name, pod, model, published, unit, source in OLD if arguments.old else STEPS:
    if wanted(name, pod):
      result = step(pod, model)
      seconds = published_seconds(result, model, published, unit)
      errors.append((family, f"{name}, `{pod}`", result["seconds"] / seconds - 1))
      print(f"| {name} [{source}] | `{pod}` | {published:.4g} {unit} | {seconds:.2f} | {result['seconds']:.2f} | "
            f"{100 * errors[-1][2]:+.1f} % | {100 * result['work']:.0f} % | {100 * result['collective']:.0f} % |",
            flush=True)
      left += [name] * (not RANGE[0] <= seconds / result["seconds"] <= RANGE[1])
  if errors:
    print("\n" + micro.family_table(errors))
  print()
  for letter, address in SOURCES.items():
    print(f"- [{letter}] {address}")
  if arguments.check and left:
    raise SystemExit(f"outside of {RANGE[0]} to {RANGE[1]}: {', '.join(left)}")


if __name__ == "__main__":
  main()
