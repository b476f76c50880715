#!/usr/bin/env python3
"""Writes the programs of tests/fixtures/chip as JAX sends them to minipod.

    received.py [--build build] [--only WORD]

Needs the package minipod and JAX.  JAX rewrites a program before it hands it to a plugin (CHLO becomes StableHLO or
custom calls) and lowers some operations by platform, so this is not what `lower().as_text()` prints.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import corpus
import predictions as model

PODS = (("v5e:1x1", False, ""), ("v5e:4x4", True, ""), ("h100:8", True, corpus.GPUS))


def compile_all(names, suffix, dump):
  """In a process of its own: compiles programs, and prints the name and the file of each."""
  import jax
  import lowering
  import programs
  devices = jax.devices()
  for program in programs.PROGRAMS:
    if program.name not in names:
      continue
    before = set(os.listdir(dump))
    try:
      lowering.lower(program, devices).compile()
    except Exception as error:  # a mesh of 16 that cannot be one of 8, or what minipod refuses
      print(json.dumps({"name": program.name + suffix, "error": f"{type(error).__name__}: {error}"[:200]}), flush=True)
      continue
    received = [file for file in set(os.listdir(dump)) - before if ".input." in file]
    print(json.dumps({"name": program.name + suffix, "file": received[0]}), flush=True)


def received_on(pod, suffix, names, build):
  """Name -> text of the programs on a pod; prints what does not compile."""
  texts = {}
  with tempfile.TemporaryDirectory() as dump:
    env = os.environ | {"JAX_PLATFORMS": "minipod", "MINIPOD_TOPOLOGY": f"{pod} {model.WITHOUT}", "MINIPOD_TIME": "model",
                        "MINIPOD_VALUES": "shapes", "MINIPOD_DUMP": dump}
    child = subprocess.run([sys.executable, __file__, "--child", suffix, dump], env=env, input="\n".join(names), text=True,
                           stdout=subprocess.PIPE, check=True)
    for line in map(json.loads, child.stdout.splitlines()):
      if "error" in line:
        print(f"{line['name']}: {line['error']}")
        continue
      command = [str(build / "minipod-opt"), os.path.join(dump, line["file"])]
      texts[line["name"]] = subprocess.run(command, capture_output=True, text=True, check=True).stdout
  return texts


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--build", default="build", help="folder of the build")
  parser.add_argument("--only", default="", help="programs whose name contains this word")
  parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.child:
    compile_all(set(sys.stdin.read().split()), *args.child)
    return
  import programs
  build = pathlib.Path(model.ROOT / args.build)
  texts = {}
  for pod, is_sharded, suffix in PODS:
    names = [p.name for p in programs.PROGRAMS if bool(p.mesh) == is_sharded and args.only in p.name]
    texts |= received_on(pod, suffix, names, build)
  for cls in sorted({p.cls for p in programs.PROGRAMS}):
    members = {p.name for p in programs.PROGRAMS if p.cls == cls}
    kept = {name: text for name, text in corpus.read_programs(cls).items() if name.removesuffix(corpus.GPUS) in members}
    fresh = {name: text for name, text in texts.items() if name.removesuffix(corpus.GPUS) in members}
    corpus.write_programs(cls, kept | fresh, corpus.read_digests(cls))
  print(f"{len(texts)} programs")


if __name__ == "__main__":
  main()
