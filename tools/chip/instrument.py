"""Rewrites C sources so that each condition can be counted, or forced to one value, by environment variables.

A condition is an operand of && or || in an `if`, a `return` or an assignment, or the whole of it before `?`.
"""

import re

SKIPPED = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'')
STARTS = re.compile(r"\bif (?=\()|\breturn\b|[^=!<>+*/|&-]=(?!=)")
HEADER = """\
#ifndef CONDITION_H_
#define CONDITION_H_
#include <stdbool.h>
extern int forced_condition;
extern bool forced_value;
extern unsigned condition_counts[][2];
static inline bool condition_met(int number, bool is_met) {
  condition_counts[number][is_met]++;
  return number == forced_condition ? forced_value : is_met;
}
#endif
"""
# With `count`, the number of conditions.  It writes one line for each: how often it was false, and true.
SOURCE = """\
#include "condition.h"
#include <stdio.h>
#include <stdlib.h>
int forced_condition = -1;
bool forced_value;
unsigned condition_counts[%(count)d][2];
static void write_counts(void) {
  const char *path = getenv("CONDITION_COUNTS");
  FILE *file = path == NULL ? NULL : fopen(path, "w");
  if (file == NULL)
    return;
  for (int i = 0; i < %(count)d; i++)
    fprintf(file, "%%u %%u\\n", condition_counts[i][0], condition_counts[i][1]);
  fclose(file);
}
__attribute__((constructor)) static void read_environment(void) {
  const char *text = getenv("CONDITION");
  int value = 0;
  if (text != NULL && sscanf(text, "%%d:%%d", &forced_condition, &value) == 2)
    forced_value = value != 0;
  atexit(write_counts);
}
"""


def blank(text):
  """The text with comments, strings and characters blanked, at the same offsets."""
  return SKIPPED.sub(lambda found: " " * len(found.group()), text)


def depths(text, begin):
  """Yields (offset, character, depth) from begin on; a closing bracket has the depth of its opening one."""
  depth = 0
  for at in range(begin, len(text)):
    depth -= text[at] in ")]}"
    yield at, text[at], depth
    depth += text[at] in "([{"


def end_of(text, begin):
  """Where the bracket, statement or initializer that begins there ends."""
  for at, char, depth in depths(text, begin):
    if depth < 0 or (depth == 0 and (char in ";," or (char == ")" and text[begin] == "("))):
      return at
  return len(text)


def cuts(text, begin, end, operator):
  return [at for at, _, depth in depths(text[:end], begin) if depth == 0 and text.startswith(operator, at)]


def operands(text, begin, end):
  """Spans of the operands of && and ||, through parentheses and negations."""
  while begin < end and text[begin].isspace():
    begin += 1
  while end > begin and text[end - 1].isspace():
    end -= 1
  for operator in ("||", "&&"):
    found = cuts(text, begin, end, operator)
    if found:
      edges = [begin, *(edge for cut in found for edge in (cut, cut + 2)), end]
      return [span for pair in zip(edges[::2], edges[1::2]) for span in operands(text, *pair)]
  inner = begin + (text[begin:begin + 1] == "!")
  if text[inner:inner + 1] == "(" and end_of(text, inner) == end - 1:
    return operands(text, inner + 1, end - 1)
  return [(begin, end)]


def spans_of(text):
  """Spans of the conditions of a blanked C source, none inside of another."""
  found = set()
  for start in STARTS.finditer(text):
    begin = start.end()
    end = end_of(text, begin)
    if start.group().startswith("if"):
      found.update(operands(text, begin + 1, end))
      continue
    question = cuts(text, begin, end, "?")
    if question:
      found.update(operands(text, begin, question[0]))
    elif cuts(text, begin, end, "&&") or cuts(text, begin, end, "||"):
      found.update(operands(text, begin, end))
  return sorted(a for a in found if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in found))


def instrument(text, first):
  """The rewritten source, and (line, condition) of each condition; they are numbered from first on."""
  out, conditions, last = [], [], 0
  for begin, end in spans_of(blank(text)):
    condition = text[begin:end]
    if re.search(r"\bstatus\b", condition) or not condition:  # of errors
      continue
    out += [text[last:begin], f"condition_met({first + len(conditions)}, ({condition}))"]
    conditions.append((text.count("\n", 0, begin) + 1, " ".join(condition.split())))
    last = end
  return '#include "condition.h"\n' + "".join(out) + text[last:], conditions
