"""Counts the ops of the Mosaic modules in the corpus, by case and in all.

    python tools/mosaic/census.py FOLDER [--text NAME] [--modules FOLDER2]

`--text` prints the modules of one case in MLIR's generic form; `--modules` writes the bytes of all modules to files, for
readers and fuzzers.
"""

import argparse
import base64
import collections
import json
import pathlib
import re

from jax import export
from jax._src.interpreters import mlir
from jax._src.tpu_custom_call import tpu
from jaxlib.mlir import ir

_CONFIG = re.compile(r'backend_config = "((?:[^"\\]|\\.)*)"')


def find_configs(exported) -> list[str]:
  """The backend_configs of the kernels that an exported program calls."""
  texts = (re.sub(r"\\([0-9A-Fa-f]{2})", lambda code: chr(int(code[1], 16)), found[1])
           for found in _CONFIG.finditer(exported.mlir_module()))
  return [text for text in texts if '"custom_call_config"' in text]


def read_body(config: str) -> bytes:
  """The module in a backend_config."""
  return base64.b64decode(json.loads(config)["custom_call_config"]["body"])


def make_context():
  """A context of MLIR that parses Mosaic modules."""
  context = mlir.make_ir_context()
  context.allow_unregistered_dialects = True
  tpu.register_dialect(context)
  return context


def show(body: bytes) -> str:
  with make_context():
    return str(ir.Module.parse(body).operation.get_asm(print_generic_op_form=True))


def count(text: str) -> collections.Counter:
  return collections.Counter(name.replace("stable_mosaic.", "")
                             for name in re.findall(r'"([a-z_]+\.[\w.]+)"\(', text))


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--text", help="a case, as package/name")
  parser.add_argument("--modules", type=pathlib.Path)
  options = parser.parse_args()
  every, versions = collections.Counter(), collections.Counter()
  kernels_with = collections.Counter()
  for path in sorted(options.folder.glob("*/*/program.export")):
    name = f"{path.parent.parent.name}/{path.parent.name}"
    if options.text not in (None, name):
      continue
    for number, config in enumerate(find_configs(export.deserialize(path.read_bytes()))):
      body = read_body(config)
      text = show(body)
      if options.text:
        print(text)
      if options.modules:
        options.modules.mkdir(parents=True, exist_ok=True)
        (options.modules / f"{name.replace('/', '.')}.{number}.mosaic").write_bytes(body)
      found = count(text)
      every.update(found)
      kernels_with.update(found.keys())
      versions.update(re.findall(r"stable_mosaic.version = (\d+)", text))
  print(f"{sum(versions.values())} modules (versions {dict(versions)}), {sum(every.values())} ops, {len(every)} kinds")
  for op, number in every.most_common():
    print(f"{op:32} {number:6} in {kernels_with[op]} modules")


if __name__ == "__main__":
  main()
