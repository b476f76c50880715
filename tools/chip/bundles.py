"""Cycles of a TPU program by the final bundles that libtpu dumps.

A TensorCore issues one bundle of instructions a cycle.  libtpu writes the bundles of every kernel, and those of the
program that calls them (TLP), as text.  This module counts the cycles of that text:

- It runs the scalar instructions that decide branches, so that loops count their turns and skipped regions count
  nothing.  If a branch depends on data that the text does not have, the longer way counts; if a loop of HLO does, its
  trips in the optimized text count.
- A bundle waits for the results that it reads (bundles_times.py).
- Waits for DMAs do not count.  Times of programs that stream from HBM are in the interval of a row instead.
"""

import dataclasses
import re

import bundles_run
import bundles_times
import hlo_kernels
import tpu

TOP = "TLP"
ALWAYS = 2  # branches of the TLP that depend on data in every program: whether it runs at all, and the random seed
FILE = re.compile(r"\d+-(.*)-\d+-final_bundles\.txt")


def flags(folder):
  """LIBTPU_INIT_ARGS that make libtpu write the final bundles into a folder."""
  return (f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true "
          "--xla_jf_dump_llo_pass_label_regex=final_bundles")


@dataclasses.dataclass
class Count:
  cycles: int = 0
  short: int = 0  # cycles if regions that depend on data do not run
  issued: int = 0  # cycles without waits for results
  waits: int = 0  # for DMAs, in kernels
  unsure: int = 0  # loops of unknown length, branches of the TLP that depend on data, kernels without a text


class Counter:
  """Counts of a program's kernels, each read once."""

  def __init__(self, folder, text, chip):
    self.times, self.schedule = bundles_times.TIMES[chip], tpu.Schedule(text)
    self.texts = {}
    for path in sorted(folder.iterdir()):  # by time: the last one is the one that runs
      found = FILE.fullmatch(path.name)
      if found and not found.group(1).endswith("schedule-analysis"):
        self.texts[found.group(1)] = path
    self.counted, self.like = {}, None

  def text_of(self, name):
    """The text of a kernel, or of another instruction that is the same kernel."""
    if name in self.texts:
      return self.texts[name]
    if self.like is None:
      signatures = hlo_kernels.signatures(self.schedule.module)
      self.like = ({signatures[n]: n for n in self.texts if n in signatures}, signatures)
    by_signature, signatures = self.like
    return self.texts.get(by_signature.get(signatures.get(name)))

  def kernel(self, name):
    if name.startswith("<"):  # what every program does before and after
      return Count()
    path = self.text_of(name)
    if path is None:
      return Count(unsure=1)
    if path not in self.counted:
      self.counted[path] = self.count(path, {})
    return self.counted[path]

  def count(self, path, trips, both=True):
    """A kernel's count; both ways through regions that depend on data, unless it is the TLP, which may not run at all."""
    kernel = bundles_run.kernel_of(path.read_text())
    lost = set(kernel.unsure) - set(trips)
    total = Count(unsure=len(lost & set(kernel.loops())))
    costs = Costs(kernel, self.times)
    counts, total.waits = kernel.counts(trips)
    total.issued = sum((block.last - block.first) * times for block, times in zip(kernel.blocks, counts))
    ways = [costs.of(counts)] + ([costs.of(kernel.counts(trips, short=True)[0])] if lost and both else [])
    total.cycles, total.short = max(ways), min(ways)
    for block, times in zip(kernel.blocks, counts):
      for name in [name for bundle in kernel.bundles[block.first:block.last] for name in bundle.calls]:
        self.add_call(total, name, times)
    return total

  def add_call(self, total, name, times):
    inner = self.kernel(name)
    for field in ("cycles", "short", "issued", "waits"):
      setattr(total, field, getattr(total, field) + getattr(inner, field) * times)
    total.unsure += inner.unsure

  def program(self):
    path = self.texts[TOP]
    kernel = bundles_run.kernel_of(path.read_text())
    loops, known = kernel.loops(), [trips for _, trips in self.schedule.loops]
    trips = {}
    if len(loops) == len(known):
      trips = {block: n for block, n in zip(loops, known) if block in kernel.unsure and n is not None}
    total = self.count(path, trips, both=False)  # with the waits of the TLP, most of them for copies that overlap
    total.unsure += max(0, len(set(kernel.unsure) - set(loops)) - ALWAYS)
    return total


class Costs:
  """Cycles of the blocks of a kernel."""

  def __init__(self, kernel, times):
    self.kernel, self.times, self.memo = kernel, times, {}
    self.columns = bundles_times.transposed_columns(kernel.bundles)

  def of_block(self, i):
    if i not in self.memo:
      block = self.kernel.blocks[i]
      clock = bundles_times.Clock(self.times, self.columns)
      self.memo[i] = clock.run(self.kernel.bundles[block.first:block.last])
    return self.memo[i]

  def of(self, counts):
    return sum(self.of_block(i) * times for i, times in enumerate(counts) if times)


def read(folder, text, chip):
  """What a row gets: cycles, the same without waits for results, and waits for DMAs.

  If regions depend on data, `bundle_low` has the cycles without them; `bundle_unsure` says that not even bounds are
  known.
  """
  total = Counter(folder, text, chip).program()
  row = {"bundles": total.cycles, "bundle_issue": total.issued, "bundle_waits": total.waits}
  if total.short < total.cycles:
    row["bundle_low"] = total.short
  return row | ({"bundle_unsure": total.unsure} if total.unsure else {})
