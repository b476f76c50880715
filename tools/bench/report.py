"""Prints the table of measurements and ratios, and a summary of the ratios."""

import math

import limits

FIGURES = ("wall", "processor", "bytes")
PAGE = 4096  # less memory than a page counts as a page, because a ratio to zero is undefined


def ratios(row):
  """Ratios of the quantities that both platforms have; of memory only if one of them uses more than a page."""
  ours, theirs = row.get("minipod", {}), row.get("cpu", {})
  result = {}
  for figure in FIGURES:
    if figure in ours and figure in theirs and "error" not in (ours | theirs):
      floor = PAGE if figure == "bytes" else 1e-9
      values = max(ours[figure], floor), max(theirs[figure], floor)
      if figure != "bytes" or max(values) > PAGE:
        result[figure] = values[0] / values[1]
  return result


def percentile(values, share):
  """The smallest value that is not below this share of the values."""
  return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def seconds(value):
  for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
    if value >= size:
      return f"{value / size:.3g} {unit}"
  return f"{value / 1e-9:.3g} ns"


def size(value):
  for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
    if value >= 1 << power:
      return f"{value / (1 << power):.3g} {unit}"
  return f"{value} B"


def times(ratio):
  return f"{ratio:.2f}" if ratio < 100 else f"{ratio:.0f}"


def cells(row, figure, text):
  """A quantity on both platforms and their ratio, as text."""
  values = [text(row[platform][figure]) if figure in row[platform] else ""
            for platform in ("minipod", "cpu")]
  ratio = ratios(row).get(figure)
  return [*values, "" if ratio is None else times(ratio)]


def by_section(table):
  sections = {}
  for name, row in table.items():
    sections.setdefault(name.split("/")[0], []).append(row)
  return sections


def summary(rows):
  """For each quantity: its number of rows, and the median and 95th percentile of its ratio."""
  result = {}
  for figure in FIGURES:
    values = [r[figure] for r in map(ratios, rows) if figure in r]
    if values:
      result[figure] = (len(values), percentile(values, 0.5), percentile(values, 0.95))
  return result


def print_summary(table):
  print(f"\n{'':40}" + "".join(f"{figure + ' ratio':>24}" for figure in FIGURES))
  print(f"{'':40}" + f"{'cases  median     95 %':>24}" * len(FIGURES))
  for section, rows in [*by_section(table).items(), ("all", list(table.values()))]:
    line = f"{section:40}"
    for figure in FIGURES:
      count, median, high = summary(rows).get(figure, (0, 0, 0))
      line += f"{count:8}{times(median):>8}{times(high):>8}" if count else " " * 24
    print(line.rstrip())


def share_text(machine, figures):
  found = limits.share(machine, figures)
  return f"{found[0]:.2f} {found[1]}" if found else ""


def rates_text(machine):
  """The machine's limits, in one line."""
  rates = [f"{kind} {machine[kind] / 1e9:.0f} GFLOP/s" for kind in ("f32", "f64")]
  rates += [f"{kind} " + ", ".join(f"{rate / 1e9:.0f}" for _, rate in machine[kind]) + " GB/s"
            for kind in limits.KINDS]
  sizes = ", ".join(size(entry[0]) for entry in machine["read"])
  return (f"limits of {machine['threads']} threads ({sizes}): {'; '.join(rates)}; "
          f"started in {seconds(machine['start'])}")


def print_shares(table, machine):
  """For each limit: how close the cases that it bounds come to it."""
  shares = {}
  for row in table.values():
    if found := limits.share(machine, row["minipod"]):
      shares.setdefault(found[1], []).append(found[0])
  print(f"\n{rates_text(machine)}")
  for kind, values in sorted(shares.items()):
    print(f"bound by {kind:6} {len(values):4} cases: share median {percentile(values, 0.5):.2f}, "
          f"least {min(values):.2f}, {sum(v >= 0.9 for v in values)} at 0.9 or above")


def print_table(table, machine=None):
  print(f"{'case':40}{'minipod':>10}{'JAX CPU':>10}{'wall':>7}{'processor':>11}"
        f"{'memory':>11}{'JAX CPU':>10}{'ratio':>7}{'share':>12}")
  for name, row in table.items():
    wall, processor = cells(row, "wall", seconds), cells(row, "processor", seconds)
    memory = cells(row, "bytes", size)
    print((f"{name:40}{wall[0]:>10}{wall[1]:>10}{wall[2]:>7}{processor[2]:>11}"
           f"{memory[0]:>11}{memory[1]:>10}{memory[2]:>7}"
           f"{share_text(machine, row['minipod']):>12}").rstrip())
    for platform in ("minipod", "cpu"):
      if "error" in row[platform]:
        print(f"  fails on {platform}: {row[platform]['error']}")
  print_summary(table)
  if machine:
    print_shares(table, machine)
