#!/usr/bin/env python3
"""Fits parameters of a chip to what its compiler says of the *fit* programs, and writes the chip's file.

    fit.py CHIP [--file FILE] [--keys KEY,...] [--write FILE] [--build build]

CHIP has rows in tests/fixtures/chip and a pod in predictions.py.  The chip's file gives the values to begin with.  Least
squares on log(model / compiler's interval), which is 0 within the interval, plus a pull towards the first values: what no
program shows stays as it is.  Values that change by less than 4 % are left out.  Prints the scores before and after, with
those of the held-out programs, which take no part.  Requires scipy and PyYAML.
"""

import argparse
import collections
import math
import pathlib
import re
import statistics
import tempfile

import corpus
import gpu
import numpy
import predictions as model
import scipy.optimize
import yaml

CHIPS = model.ROOT / "configs" / "chips"
# Not vector.*: estimated cycles have a third of what final bundles have for quotients and roots.
TPU = """kernel.latency memory.share memory.latency gather.slice scatter.slice tiles.element tiles.rows tiles.lanes tiles.swap
 reverse.element sort.stage sort.best window.share window.scan fft.element matmul.launch matmul.step
 matmul.accumulate matmul.fetch matmul.read matmul.images matmul.tile.rows matmul.rates.f32 matmul.rates.s8 matmul.rates.f8
 matmul.write.narrow matmul.write.wide""".split()
GPU = ["kernel.latency", "memory.share", "vector.share", "sort.stage", "window.scan", *(
    f"matmul.{kind}.{member}" for kind in ("bf16", "f32") for member in "launch rate load store memory".split())]
STEP = 0.02  # of a value, for slopes: smaller ones only show where the model rounds
PULL = 0.2  # a value that changes by a quarter counts as much as a program that is off by 5 %
OUTLIER = 0.1  # programs that are off by more than 10 % count less: the model lacks something else there
KEPT = 0.04
# Without XLA's tables of measurements, matmuls have only their bytes, and all that streams has the data sheet's bandwidth.
MEASURED = ("matmul.", "memory.share", "kernel.latency")
FIRST = ("like", "compiler")  # keys of a file that are no groups, with `sources`
MOST = 40  # targets of one process


def fittable(chip):
  """The keys that rows of the chip can show."""
  if chip not in gpu.CHIPS:
    return TPU
  return GPU if has_tables(chip) else [key for key in GPU if not key.startswith(MEASURED)]


def has_tables(chip):
  return chip not in gpu.CHIPS or gpu.CHIPS[chip].tables


# ---- files ----
def read(name):
  """Key -> value of a chip's file, with those of the chip that it is like; and the file's own part."""
  path = pathlib.Path(name) if name.endswith((".yaml", ".yml")) else CHIPS / f"{name}.yaml"
  own = yaml.safe_load(path.read_text())
  values = dict(read(own["like"])[0]) if "like" in own else {}
  for group, members in body(own).items():
    values |= flat(group, members)
  return {key: value for key, value in values.items() if value != "none"}, own


def flat(key, value):
  if not isinstance(value, dict):
    return {key: value}
  return {inner: each for member, part in value.items() for inner, each in flat(f"{key}.{member}", part).items()}


def nested(values):
  tree = {}
  for key, value in values.items():
    *groups, last = key.split(".")
    inner = tree
    for group in groups:
      inner = inner.setdefault(group, {})
    inner[last] = value
  return tree


def times(value, factor):
  """A value such as 1.5us or 0.9, multiplied; three digits."""
  number, unit = re.fullmatch(r"([\d.e+-]+?)([a-zA-Z/]*)", str(value)).groups()
  text = f"{float(number) * factor:.3g}"
  return text + unit if unit else yaml.safe_load(text)


# ---- the model ----
class Model:
  """Programs of the corpus on one chip, for any values of its parameters."""

  def __init__(self, binary, chip, folder, own):
    self.binary, self.chip, self.folder, self.own = binary, chip, pathlib.Path(folder), own
    self.rows = {name: row for name, row in corpus.read_rows(chip)[1].items() if "error" not in row}
    programs = model.unpack(folder, "")
    self.pod = " ".join(word for word in model.ONE[chip].split() if not word.startswith("chip:"))
    self.programs = [(cls, path) for cls, path, targets in programs if path.stem in self.rows and targets is model.ONE]

  def predict(self, many):
    """For each set of values, name -> Prediction."""
    out = [{} for _ in many]
    for begin in range(0, len(many), MOST):
      targets = {}
      for i, values in enumerate(many[begin:begin + MOST], begin):
        path = self.folder / f"{i}.yaml"
        path.write_text(yaml.safe_dump({key: self.own[key] for key in FIRST if key in self.own} | merged(
            body(self.own), nested(values)), sort_keys=False))
        targets[i] = f"{self.pod} chip:{path}"
      numbers = {f"{target} {model.WITHOUT}": i for i, target in targets.items()}
      for cls, line in model.run(self.binary, "--summary", [(c, p, targets) for c, p in self.programs], list(targets)):
        if "error" in line:
          raise SystemExit(line["error"])
        name = pathlib.Path(line["file"]).stem
        out[numbers[line["target"]]][name] = model.Prediction(name, cls, self.chip, line, self.rows[name])
    return out


def body(own):
  """The groups of a file."""
  return {key: part for key, part in own.items() if key not in (*FIRST, "sources")}


def merged(a, b):
  return {key: merged(a.get(key, {}), b[key]) if isinstance(b.get(key), dict) and isinstance(a.get(key, {}), dict)
          else b.get(key, a.get(key)) for key in [*a, *(key for key in b if key not in a)]}


def fit(chip, start):
  """The values that fit best."""
  keys = list(start)
  names = sorted(name for name in chip.rows if corpus.split(name) == corpus.FIT)
  values = lambda logs: {key: times(start[key], math.exp(log)) for key, log in zip(keys, logs)}

  def residuals(points):
    return [numpy.array([math.log(found[name].ratio) for name in names if name in found] + [PULL * log for log in logs])
            for logs, found in zip(points, chip.predict([values(logs) for logs in points]))]

  def slopes(logs):
    points = [logs + STEP * row * sign for row in numpy.eye(len(keys)) for sign in (1, -1)]
    at = residuals(points)
    return numpy.stack([(up - down) / (2 * STEP) for up, down in zip(at[::2], at[1::2])], axis=1)

  best = scipy.optimize.least_squares(lambda logs: residuals([logs])[0], numpy.zeros(len(keys)), slopes, loss="cauchy",
                                      f_scale=OUTLIER, bounds=(-1.5, 1.5), max_nfev=8)
  return {key: times(start[key], math.exp(log)) for key, log in zip(keys, best.x) if abs(log) > KEPT}


# ---- reports ----
def score(found):
  cells = [[p for p in found.values() if p.split == split] for split in (corpus.FIT, corpus.HELD_OUT)]
  return ", ".join(f"{name} {model.share(of):.1f} % of {len(of)}" for name, of in zip(("fit", "held-out"), cells) if of)


def residual_lines(found):
  """By class: how far the fit programs are from the interval."""
  classes = collections.defaultdict(list)
  for p in found.values():
    if p.split == corpus.FIT:
      classes[p.cls].append(p.ratio)
  for cls, ratios in sorted(classes.items()):
    yield f"{cls}: {len(ratios)} programs, model / interval {min(ratios):.2f} to {max(ratios):.2f}, median {statistics.median(ratios):.2f}"


def write(path, own, fitted, found, count):
  """The file with the fitted values; of its comments those before the first key remain."""
  head = re.match(r"(#.*\n)*", path.read_text() if path.exists() else "").group()
  parts = merged(body(own), nested(fitted))
  new = marks(parts, fitted)
  kinds = {kind: {key: text for key, text in of.items() if not {key, key.split(".")[0]} & set(new)}
           for kind, of in own.get("sources", {}).items()}
  text = f"fitted to estimates of the compiler, {count} programs (tools/chip/fit.py)"
  kinds["compiler"] = kinds.get("compiler", {}) | {key: text for key in new}
  tree = {key: own[key] for key in FIRST if key in own} | {"sources": {kind: of for kind, of in kinds.items() if of}} | parts
  lines = "".join(f"# {line}\n" for line in residual_lines(found))
  path.write_text(f"{head}{yaml.safe_dump(tree, sort_keys=False, width=120)}# Residuals of the fitted programs:\n{lines}")


def marks(parts, fitted):
  """What the sources name: a group if all that the file sets there is fitted, else parameters."""
  keys = {".".join(key.split(".")[:2]): key.split(".")[0] for key in fitted}
  whole = {group for group in keys.values() if all(f"{group}.{name}" in keys for name, value in parts[group].items()
                                                   if value != "none")}
  return list(dict.fromkeys(group if group in whole else key for key, group in keys.items()))


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("chip")
  parser.add_argument("--file", help="the chip's file; default: that of the library")
  parser.add_argument("--keys", type=lambda text: text.split(","), help="parameters to fit; default: all that can be")
  parser.add_argument("--write", type=pathlib.Path, help="the file to write")
  parser.add_argument("--build", default="build", help="folder of the build")
  args = parser.parse_args()
  values, own = read(args.file or args.chip)
  keys = args.keys or [key for key in fittable(args.chip) if key in values]
  if not args.keys and not has_tables(args.chip):
    print(f"not fitted: matmul, memory.share and kernel.latency, because XLA has no measured matmuls of {args.chip}")
  with tempfile.TemporaryDirectory() as folder:
    chip = Model(model.ROOT / args.build / "minipod-chip", args.chip, folder, own)
    before = chip.predict([{}])[0]
    print(f"before: {score(before)}", flush=True)
    fitted = fit(chip, {key: values[key] for key in keys})
    after = chip.predict([fitted])[0]
  print(f"after:  {score(after)}")
  for key, value in fitted.items():
    print(f"{key}: {values[key]} -> {value}")
  print("\n".join(residual_lines(after)))
  if args.write:
    write(args.write, own, fitted, after, sum(p.split == corpus.FIT for p in after.values()))


if __name__ == "__main__":
  main()
