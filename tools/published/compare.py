"""Compares modelled times with published ones: all_reduces of pods, and steps of public training runs.

    .venv/bin/python tools/published/compare.py [--build build] [--filter WORD] [--check]

Prints the tables of README.md.  Training steps run with `values: shapes`: each takes seconds.  --check fails when a
modelled figure has left the range that is recorded here.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GIB = 1 << 30

SOURCES = {
    "A": "https://github.com/NVIDIA/nccl-tests/issues/149",
    "H": "https://github.com/NVIDIA/nccl-tests/issues/212",
    "R": "https://github.com/NVIDIA/nccl/issues/1455",
    "V": "https://docs.cloud.google.com/tpu/docs/v5e",
    "E": "https://github.com/AI-Hypercomputer/maxtext/blob/main/MaxText/configs/v5e/README.md",
    "P": "https://github.com/AI-Hypercomputer/maxtext/blob/main/MaxText/configs/v5p/README.md",
    "L": "https://arxiv.org/abs/2302.13971",
    "W": "https://arxiv.org/abs/2204.02311",
}

# Pod, words added, bytes, published GB/s (as NCCL counts: 2 (n - 1) / n bytes per time), source, what is published.
ALL_REDUCES = [
    ("a100:8", "", 8 * GIB, 230, "A", "NCCL, what a developer of it expects"),
    ("a100:8", "links.bandwidth:20GB/s", 8 * GIB, 230, "A", "the same"),
    ("h100:8", "", 4 * GIB, 370, "R", "NCCL, ring, measured"),
    ("h100:8", "links.bandwidth:20GB/s", 4 * GIB, 370, "R", "the same"),
    ("h100:8", "", 4 * GIB, 480, "H", "NCCL, switches that add (NVLink SHARP)"),
    ("v5e:16x16", "", 8 * GIB, 200, "V", "51.2 TB/s for a pod of 256"),
]

SCALED = {"emb": 4096, "heads": 64, "mlp": 28672, "layers": 32}  # MaxText's global_parameter_scale=16
# Name, pod, model, published figure and its unit, source.
STEPS = [
    ("MaxText 16B", "v5e:16x16", {**SCALED, "batch": 6 * 256}, 120, "TFLOP/s", "E"),
    ("MaxText 16B", "v5e:16x16 slices:2", {**SCALED, "batch": 6 * 512, "data": 2}, 117, "TFLOP/s", "E"),
    ("MaxText 16B", "v5e:16x16 slices:8", {**SCALED, "batch": 6 * 2048, "data": 8}, 115, "TFLOP/s", "E"),
    ("MaxText 32B", "v5e:16x16", {**SCALED, "emb": 8192, "batch": 4 * 256}, 132, "TFLOP/s", "E"),
    ("MaxText 32B", "v5p:4x4x4",
     {**SCALED, "emb": 8192, "batch": 7 * 64, "tensor": 4, "remat": "minimal"}, 328, "TFLOP/s", "P"),
    ("MaxText 64B", "v5p:4x4x4",
     {**SCALED, "emb": 8192, "layers": 64, "batch": 3 * 64, "tensor": 4, "remat": "minimal"}, 323, "TFLOP/s",
     "P"),
    ("LLaMA 65B", "a100:8 slices:256",
     {"emb": 8192, "heads": 64, "mlp": 22016, "layers": 80, "batch": 2048, "tensor": 8, "remat": "minimal"}, 380,
     "tokens/s", "L"),
    ("PaLM 540B", "v4-megacore:12x16x16",  # one of its two pods, with half of the tokens
     {"emb": 18432, "heads": 48, "kv_heads": 1, "head_dim": 256, "mlp": 73728, "layers": 118, "vocab": 12 * 21504,
      "parallel": True, "batch": 1024, "tensor": 12, "flash": False}, 238.3e3 / 6144, "tokens/s", "W"),
]
# Modelled figures may differ from the published ones by these factors.
RANGE = 0.75, 1.35


def all_reduce_bandwidth(build, pod, size):
  done = subprocess.run([build / "minipod-network", pod, "all_reduce", str(size)], capture_output=True, text=True,
                        check=True)
  row = done.stdout.splitlines()[1].split()
  devices = 1
  for side in pod.split()[0].split(":")[1].split("x"):
    devices *= int(side)
  return 2 * (devices - 1) / devices * size / (float(row[1]) * 1e-6) / 1e9, row[0]


def step(pod, model):
  environment = os.environ | {"MINIPOD_TIME": "model", "MINIPOD_VALUES": "shapes", "JAX_PLATFORMS": "minipod",
                              # What is kept between the passes is another matter (README.md).
                              "MINIPOD_TOPOLOGY": f"{pod} hbm:1TiB"}
  done = subprocess.run([sys.executable, ROOT / "tools/published/train_step.py", json.dumps(model)],
                        capture_output=True, text=True, env=environment)
  if done.returncode != 0:
    raise SystemExit(done.stderr)
  return json.loads(done.stdout.splitlines()[-1])


def figure(result, model, unit, seconds):
  amount = result["operations"] / 1e12 if unit == "TFLOP/s" else model["batch"] * model.get("sequence", 2048)
  return amount / result["devices"] / seconds


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
  parser.add_argument("--filter", default="", help="only rows whose name or pod has this word")
  parser.add_argument("--check", action="store_true")
  arguments = parser.parse_args()
  wanted = lambda *words: any(arguments.filter in word for word in words)
  left = []

  print("| pod | all_reduce of | algorithm | published, GB/s | modelled, GB/s | ratio | what is published |\n"
        "|---|---|---|---|---|---|---|")
  for pod, words, size, published, source, what in ALL_REDUCES:
    if wanted("all_reduce", pod):
      modelled, algorithm = all_reduce_bandwidth(arguments.build, f"{pod} {words}".strip(), size)
      print(f"| `{f'{pod} {words}'.strip()}` | {size // GIB} GiB | {algorithm} | {published} | {modelled:.0f} | "
            f"{modelled / published:.2f} | {what} [{source}] |")
      left += [pod] * (not RANGE[0] <= modelled / published <= RANGE[1])

  print("\n| training | pod | step, s | collectives | published | modelled | ratio | all hidden |\n"
        "|---|---|---|---|---|---|---|---|")
  for name, pod, model, published, unit, source in STEPS:
    if wanted(name, pod):
      result = step(pod, model)
      modelled = figure(result, model, unit, result["seconds"])
      hidden = figure(result, model, unit, result["seconds"] * max(result["work"], result["collective"]))
      print(f"| {name} [{source}] | `{pod}` | {result['seconds']:.2f} | {100 * result['collective']:.0f} % | "
            f"{published:.0f} {unit} | {modelled:.0f} | {modelled / published:.2f} | {hidden:.0f} |", flush=True)
      left += [name] * (not RANGE[0] <= modelled / published <= RANGE[1])
  print()
  for letter, address in SOURCES.items():
    print(f"- [{letter}] {address}")
  if arguments.check and left:
    raise SystemExit(f"outside of {RANGE[0]} to {RANGE[1]}: {', '.join(left)}")


if __name__ == "__main__":
  main()
