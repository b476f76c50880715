#!/usr/bin/env python3
"""Writes the page about the chip model's rules: tools/site/pages/chip_rules.md.

    page.py [--build build]

Runs the model over the corpus, with all rules and without each.
"""

import argparse

import ablate
import compare
import corpus
import predictions as model

PAGE = model.ROOT / "tools" / "site" / "pages" / "chip_rules.md"
HEAD = """# Rules of the chip model

minipod predicts what the compiler of a described chip makes of a program: fusions, layouts, what stays in VMEM, the
schedule. Most of this follows the compilers' algorithms: *passes* that XLA publishes, and what is known of libtpu. The
rest are *rules*: special cases that we found by observation. This page lists them all, with what predictions lose without each. `tools/chip/page.py` writes it.

The evidence is a corpus of {programs} programs (`tests/fixtures/chip/`), and what libtpu
and XLA's GPU compiler say of them. A hash of a program's name puts it into *fit* or *held-out*; we look for rules and
parameters in *fit* only. `MINIPOD_CHIP_WITHOUT=name,...` switches rules and passes off.

## Scores

The share of programs whose predicted time is within 1.3x of the interval that the compiler's text supports.

| chip | fit | programs | held-out | programs |
|---|---|---|---|---|
"""
RULES = """
## {title}

*Used*: predictions (of a program on a chip) that ask for the {kind}. *Changed*: by more than 2 % without it. *Wrong* and *right*:
predictions that leave, or enter, the factor of 1.3 without it. Rules of schedules also change which collectives overlap.

| {kind} | compiler | pass | what | used | changed | wrong | right | for example |
|---|---|---|---|---|---|---|---|---|
"""
EXAMPLES = 3


def score_lines(found):
  for chip in model.ONE:
    cells = []
    for split in compare.SPLITS:
      of = [p for p in found if p.chip == chip and p.split == split]
      cells += [f"{model.share(of):.1f} %" if of else "-", str(len(of))]
    yield f"| {chip} | {' | '.join(cells)} |"


def rule_line(rule):
  examples = ", ".join(f"`{name}`" for name in rule.shown_by[:EXAMPLES])
  return (f"| `{rule.name}` | {rule.compiler} | {rule.stage} | {rule.meaning} | {rule.used} | {rule.changed} | "
          f"{sum(rule.loses.values())} | {sum(rule.gains.values())} | {examples} |")


def table_of(rules, title, kind):
  of = sorted(ablate.of_kind(rules, kind), key=lambda r: (r.stage, r.name))
  return RULES.format(title=title, kind=kind) + "\n".join(map(rule_line, of)) + "\n"


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--build", default="build", help="folder of the build")
  args = parser.parse_args()
  binary = model.ROOT / args.build / "minipod-chip"
  pairs, _ = model.predict(binary, form="--ablate")
  rules = ablate.rules_of(binary)
  ablate.count_all(rules, pairs)
  programs = len({p.name for p, _ in pairs})
  body = "\n".join(score_lines([p for p, _ in pairs]))
  passes, special = table_of(rules, "Passes", "pass"), table_of(rules, "Rules", "rule")
  PAGE.write_text(HEAD.format(programs=programs) + body + "\n" + passes + special, encoding="utf-8")
  print(f"{PAGE}: {len(rules)} rules and passes, {programs} programs of {len(corpus.classes())} classes")


if __name__ == "__main__":
  main()
