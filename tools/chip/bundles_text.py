"""Reads the text of final bundles that libtpu dumps of a kernel.

    0x4 LB: > { %s12_s11 = sadd.s32 1, %s31_s11  ;;  %p9_p2 = scmp.ge.s32.totalorder %s12_s11, 5 } /* Start region 25 */

A bundle is a line: its address, a mark, and its instructions between braces; all read before any writes.
Comments may have several lines.  `Start region n` and `Start/End empty region n` mark where branches to $regionN lead.
"""

import dataclasses
import re

BUNDLE = re.compile(r"^ *(?:0x)?[0-9a-f]+ +(?:[A-Z]{2})?: +[> ]*\{", re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
REGION = re.compile(r"Start(?:/End empty)? region (\d+)")
SLOT = re.compile(r"%(\w+) = ([\w.\-]+)\s*(.*)", re.S)
GUARD = re.compile(r"\((!?)%(\w+)\)\s*,?\s*")
ELSE = re.compile(r"\((!?)%(\w+), ([^)]*)\)\s*,?\s*")
CALL = re.compile(r"inlined_call [^;]*?/\* %?([\w.\-]+) = |inlined_call [^;]*?/\* (<[\w\-]+>) \*/", re.S)
VALUE = re.compile(r"%(\w+)")


@dataclasses.dataclass
class Slot:
  """An instruction.  With `guard` (sign, predicate) it runs only if that holds; `otherwise` is its result if not."""
  name: str
  opcode: str
  text: str  # operands and attributes, without comments
  guard: tuple | None = None
  otherwise: str | None = None

  def operands(self):
    return [part.strip() for part in self.text.split(",")] if self.text else []

  def reads(self):
    """Names of the values that it reads."""
    extra = [self.guard[1]] if self.guard else []
    return VALUE.findall(self.text) + extra + VALUE.findall(self.otherwise or "")


@dataclasses.dataclass
class Bundle:
  slots: list
  regions: list  # numbers of those that start here
  calls: list  # names of HLO instructions, or <late-initialization> and its like


def slot_of(text):
  match = SLOT.match(text)
  if not match:
    return None
  name, opcode, rest = match.groups()
  guard = otherwise = None
  found = ELSE.match(rest) or GUARD.match(rest)
  if found:
    guard, rest = (found.group(1) != "!", found.group(2)), rest[found.end():]
    otherwise = found.group(3) if found.re is ELSE else None
  return Slot(name, opcode, rest.strip(), guard, otherwise)


def bundle_of(text):
  regions = [int(n) for comment in COMMENT.findall(text) for n in REGION.findall(comment)]
  calls = [a or b for a, b in CALL.findall(text)]
  inside = COMMENT.sub("", text)
  inside = inside[inside.index("{") + 1:inside.rindex("}")]
  slots = [slot_of(part.strip()) for part in inside.split(";;")]
  return Bundle([slot for slot in slots if slot], regions, calls)


def parse(text):
  """The bundles of a dump, in order of their addresses."""
  starts = [match.start() for match in BUNDLE.finditer(text)] + [len(text)]
  return [bundle_of(text[a:b]) for a, b in zip(starts, starts[1:])]
