#!/usr/bin/env python3
"""Checks that pages, READMEs, comments, messages and commit subjects use plain words.

    tests/words.py [ROOT] [--count | --all]

RULES lists patterns, each with what to write instead and the kinds of text that it applies to:

- prose: Markdown without its code; commit subjects since this file exists;
- message: strings of C and Python that have blanks, outside of tests;
- comment: comments of C, Python and shell, and docstrings.

A pattern's blank matches any white space, so that it finds what a line break divides.  EXCEPT lists texts that a
pattern finds and that stay, each with its reason.  tests/words_left.txt lists how many hits each folder still has from
before this check: a folder may have fewer, not more.  Prints the hits of every folder that has more, as file:line with
what to write instead, and exits 1; else prints a count and exits 0.  --count prints the hits of each rule and of each
folder, --all prints every hit.
"""

import argparse
import collections
import fnmatch
import io
import pathlib
import re
import subprocess
import sys
import token
import tokenize

PROSE, MESSAGE, COMMENT = "prose", "message", "comment"
ALL = (PROSE, MESSAGE, COMMENT)
TEXT = (PROSE, MESSAGE)
# The people that pages speak of, who may have a "who".
PEOPLE = r"(?<!users\s)(?<!people\s)(?<!readers\s)(?<!user\s)(?<!person\s)(?<!anyone\s)"

# Pattern, what to write instead, kinds of text.
RULES = [
    # No people for things, no clause as a subject.
    (r"\b(?:nobody|somebody|everybody|anybody|whoever|nobody's|somebody's)\b",
     "name the thread, process, op or value: 'no op reads it', 'every rank'", ALL),
    (rf"(?:^|[.:;,(] |\b(?:that|of|by|for|to|from|and|says|knows|before|all|those|one|or|but|on|with|wakes) )"
     rf"{PEOPLE}who\b(?! (?:am|are) )", "name the thread or process that acts", ALL),
    (r"(?:^|[.!] )What (?!happens\b|to\b|if\b)[^.?!|]*\.(?= |$)",
     "no clause as a subject: begin with the thing, or with the condition", (PROSE,)),
    (r"(?:^|[.!;] )Of (?:a|an|all|each|every|several|those|its|such|what|programs|pods|GPUs|TPUs)\b",
     "begin with the subject: 'x of y', 'y has x'", (PROSE,)),
    (r"\b(?:is|are|was|were|be) (?:told|said)\b(?! apart)", "prints, reports, states, learns", ALL),
    (r"\b(?:is|are|has to be|be) taught\b", "minipod registers, patches, adds", ALL),
    (r"\bhas (?:it|them) as\b", "say who does what", ALL),
    (r"\bas [\w']+ (?:has|have) (?:it|them)\b", "as in JAX, as in XLA", ALL),
    (r"(?:^|[.!] )Has (?!(?:the (?:contract|interface)|no effect|to)\b)", "makes, lets: 'Makes the thread poll'", (COMMENT,)),
    (r"\bwhat (?:came|comes) of\b", "the result of", ALL),
    # The field's words.
    (r"\bproducts? of matrices\b", "matmul; 'matmul utilisation' for the share of the peak", ALL),
    (r"\bin HBM or near\b|\bnear memory\b|\bfar memory\b", "VMEM, HBM, shared memory, L2", ALL),
    (r"\bdear(?:er|est)?\b", "expensive", ALL),
    (r"\b(?:is|are|be|been) made again\b", "recomputed, rematerialized, repeated", ALL),
    (r"\b(?:laid|lays|lay|lie|lies) anew\b|\brelaid\b|\bhow (?:it|they|[\w ]{1,20}) lies?\b", "layout, layout change", ALL),
    (r"\banew\b", "again, or re-: 'recompiled', 'renumbered'", ALL),
    (r"\bat hand\b", "kept on chip; current; available", ALL),
    (r"\bbeside (?:work|compute|the (?:backward|forward) pass|them go)\b"
     r"|\b(?:go|goes|went|run|done|sent) (?:on )?beside\b|\bgoes on beside\b",
     "overlapped with compute, runs concurrently", ALL),
    (r"\bfigures? of (?:a|the|its|each) chip\b", "parameter", ALL),
    (r"\babsent (?:values?|arrays?|results?|one)\b|\b(?:is|are|stays?) absent\b",
     "not computed: 'a value that was not computed'", TEXT),
    (r"\b(?:the|a|no|which|each|every|either) way on\b(?! (?:the|a|its|which)\b)", "path", ALL),
    (r"\bin front of\b", "before", ALL),
    (r"\b(?:directly|right|just|comes?|stands?|inserted|put|goes|runs?) behind\b"
     r"|\bbehind (?:each|every|all) (?:other|sum|kernel|launch|copy|step|op|loop|product)s?\b", "after", TEXT),
    (r"\bcomes? of (?:it|them|each|this|that|the)\b", "is computed from; result", ALL),
    (r"\bpretended\b", "simulated hosts", ALL),
    (r"\bby chance\b", "at random", ALL),
    (r"\b(?:can|could|may|cannot) be had\b|\bto be had\b", "is available; failed", ALL),
    (r"\b(?:come|comes|came) to lie\b", "is placed, aliases", ALL),
    (r"\b(?:is|are|was|were) not there\b", "is missing, does not exist", ALL),
    (r"\bthere already\b", "already exists, already done", (PROSE,)),
    (r"\bcarr(?:y|ies) on\b", "continue, resume", ALL),
    (r"\bgo(?:es)? on\b(?! beside)", "continue, run", TEXT),
    (r"\bas ever\b", "as always", ALL),
    (r"\bwants?\b(?! to\b)(?<!you\swant)", "requires, reads, takes", TEXT),
    (r"\b(?:it|code|program|op|kernel|library|framework|Open MPI|minipod) wants\b", "requires, reads", ALL),
    (r"\bmend(?:s|ed|ing)?\b", "fix", ALL),
    (r"(?<!there\s)\b(?:is|are) no (?!longer\b|more\b|less\b|fewer\b|larger\b|such\b|other\b|one\b|way\b|room\b)",
     "is not a", (MESSAGE,)),
    (r"\bread (?:\w+ )?where (?:it is|they are)\b", "read in place", ALL),
    (r"\bl(?:ies?|ay) (?:[\w`*]+ ){0,4}apart\b", "are ... apart", ALL),
    (r"\bone behind the other\b", "one after the other", ALL),
    (r"\bcomes? again\b", "repeats", ALL),
    (r"\bwhich \w+ (?:has|have) which\b", "the table of ...; the rule of each op", ALL),
    (r"\bas [\w']+ ha(?:s|ve) (?:it|them)\b", "as in ...", ALL),
    (r"\bmakes? no sense\b|\bsenseless\b|\bhow things are\b", "is malformed, is damaged, is invalid", ALL),
    (r"\b(?:comes?|came|coming) back\b|\bin vain\b", "is restarted, rejoins, returns; without success", (MESSAGE,)),
    (r"\b(?:says?|could) (?:nothing|not say)\b|\bto say (?:why|more)\b", "sends no reason; cannot be read", (MESSAGE,)),
    (r"\bin words\b|\bwords of (?:the|its|an) error\b|\bits words\b", "message; say what is printed", TEXT),
    (r"\bhow near\b|\bas near as\b|\bcomes? near\b", "how close, how accurate", TEXT),
    (r"\bin all\b(?=[,.;:)]|$)", "in total", TEXT),
    (r"\b(?:so many|as many) of [\w ]+ as (?:there are|are there)\b", "one per", TEXT),
    (r"\b(?:is|are|was) asked for\b", "requested", TEXT),
    (r"\bno (?:mistake|fault) of\b|\bmade no mistake\b", "say what is wrong", TEXT),
    (r"\bshall\b", "must, should, or present tense", (PROSE,)),
    (r"\bis a matter of\b|\bhas its say\b|\bhas to do with\b", "depends on", TEXT),
    (r"\b(?:die|dies|died) (?:takes?|brings?)\b|\bcomes? back before\b|\btakes nobody along\b",
     "a dead process, a restarted process", TEXT),
]

# File (or folder) and text that a pattern finds: why it stays.
EXCEPT = {
    ("sim/README.md", "carry on"): "the glossary explains the name in the code",
    ("sim/runtime", "carr"): "the same name: mp_session_carry_on",
    ("sim/numeric/meaning.h", "anew"): "what a tool does each time",
    ("CHANGELOG.md", "products of matrices"): "quotes what was printed before",
}

# Folders, files and patterns of files that are not read: why.
SKIP = {
    "tests/unit/chip": "its tests are rebuilt with it",
    "tests/words.py": "has all the patterns",
    "tests/fixtures": "recorded programs, not prose",
    "tests/fuzz/corpus": "inputs, not prose",
}
LEFT = "tests/words_left.txt"
COMPILED = [(re.compile(p.replace(" ", r"\s+"), re.I if not p.startswith("(?:^|[.!") else 0), instead, kinds)
            for p, instead, kinds in RULES]

C_PIECE = re.compile(r"(?P<comment>(?://[^\n]*(?:\n[ \t]*(?=//))?)+|/\*.*?\*/)"
                     r'|(?P<message>"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*)'
                     r"|'(?:\\.|[^'\\\n])'", re.S)
FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$", re.S | re.M)


def blank(match: re.Match) -> str:
  """As many characters, without letters, in the same lines."""
  return re.sub(r"[^\n]", "_", match.group(0))


def blank_leader(match: re.Match) -> str:
  return re.sub(r"[^\n]", " ", match.group(0))


def c_pieces(text: str):
  """(kind, offset, text) of each comment, of consecutive lines together, and of each string."""
  for match in C_PIECE.finditer(text):
    if match.lastgroup == COMMENT:
      yield COMMENT, match.start(), re.sub(r"^[ \t]*//", blank_leader, match.group(0), flags=re.M)
    elif match.lastgroup == MESSAGE and " " in match.group(0):
      yield MESSAGE, match.start(), re.sub(r'"\s*"', blank_leader, match.group(0)).replace("\\n", "  ")


def python_pieces(text: str):
  """Docstrings are comments; a string that is part of an expression is a message."""
  starts = [0]
  for line in text.split("\n"):
    starts.append(starts[-1] + len(line) + 1)
  before = token.NEWLINE
  for piece in tokenize.generate_tokens(io.StringIO(text).readline):
    offset = starts[piece.start[0] - 1] + piece.start[1]
    if piece.type == token.COMMENT:
      yield COMMENT, offset, piece.string
    elif piece.type in (token.STRING, getattr(token, "FSTRING_MIDDLE", -1)) and " " in piece.string:
      is_docstring = before in (token.NEWLINE, token.INDENT, token.DEDENT, token.NL)
      yield COMMENT if is_docstring else MESSAGE, offset, re.sub(r"^\w*[\"']+", blank_leader, piece.string)
    if piece.type not in (token.COMMENT, token.NL):
      before = piece.type


def markdown_pieces(text: str):
  """Paragraphs, list items and table cells, their code replaced by underscores."""
  text = FENCE.sub(blank, text)
  text = re.sub(r"`[^`]*`", blank, text)
  text = re.sub(r"\]\([^)]*\)", blank, text)
  for match in re.finditer(r"(?:(?<=\n)|^)(?!\n)(?:[^\n|]*\n(?!\s*(?:[-*|#] |\d+\. ))(?!\n))*[^\n]*", text):
    piece = match.group(0)
    if piece.startswith("    ") or piece.startswith("#"):
      continue
    offset = match.start()
    for cell in piece.split("|"):
      yield PROSE, offset, re.sub(r"^(\s*)(?:[-*] |\d+\. |: )?", lambda m: " " * len(m.group(0)), cell)
      offset += len(cell) + 1


def shell_pieces(text: str):
  for match in re.finditer(r"^[ \t]*#[^!][^\n]*(?:\n[ \t]*#[^\n]*)*", text, re.M):
    yield COMMENT, match.start(), re.sub(r"^[ \t]*#", blank_leader, match.group(0), flags=re.M)


def pieces_of(path: str, text: str):
  if path.endswith((".c", ".h")):
    return c_pieces(text)
  if path.endswith(".py"):
    return python_pieces(text)
  if path.endswith(".md"):
    return markdown_pieces(text)
  if path.endswith((".sh", ".cmake", "CMakeLists.txt")) or text.startswith("#!/"):
    return shell_pieces(text)
  return ()


def hits_of(kind: str, piece: str):
  """(position, text, instead) of each hit.  A `^` in a pattern is where the text begins, after blanks."""
  text = piece.lstrip()
  for pattern, instead, kinds in COMPILED:
    for match in pattern.finditer(text) if kind in kinds else ():
      found = match.group(0)
      begin = match.start() + len(found) - len(found.lstrip(" .!;:,("))
      yield len(piece) - len(text) + begin, " ".join(found.split()).lstrip(" .!;:,("), instead


def is_skipped(path: str) -> bool:
  return any(path == skip or path.startswith(skip if skip.endswith("_") else skip + "/") or fnmatch.fnmatch(path, skip)
             for skip in SKIP)


def is_excepted(path: str, found: str) -> bool:
  return any(path.startswith(file) and text.lower() in found.lower() for file, text in EXCEPT)


def git(root: pathlib.Path, *arguments: str) -> list[str]:
  done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
  return done.stdout.splitlines() if done.returncode == 0 else []


def subjects(root: pathlib.Path):
  """(commit, subject) since the commit that adds this file; none outside of a clone."""
  first = git(root, "log", "--diff-filter=A", "--format=%H", "--", "tests/words.py")
  if first:
    for line in git(root, "log", "--format=%h %s", f"{first[-1]}..HEAD"):
      yield line.split(" ", 1)


def all_hits(root: pathlib.Path):
  """(kind, file, line, text, instead) of the whole tree."""
  paths = git(root, "ls-files") or [p.relative_to(root).as_posix() for p in sorted(root.rglob("*")) if p.is_file()]
  for path in paths:
    if is_skipped(path) or not (root / path).is_file():
      continue
    try:
      text = (root / path).read_text()
    except UnicodeDecodeError:
      continue
    for kind, offset, piece in pieces_of(path, text):
      if kind == MESSAGE and path.startswith("tests/"):
        continue
      for position, found, instead in hits_of(kind, piece):
        if not is_excepted(path, found):
          yield kind, path, text.count("\n", 0, offset + position) + 1, found, instead
  for commit, subject in subjects(root):
    for _, found, instead in hits_of(PROSE, subject):
      yield PROSE, f"commit {commit}", 0, found, instead


def folder_of(path: str) -> str:
  """The file itself at the top; else its room, of which sim, tests and tools have several."""
  parts = path.split("/")
  return "/".join(parts[:2] if parts[0] in ("sim", "tests", "tools") and len(parts) > 2 else parts[:1])


def read_left(root: pathlib.Path) -> dict[str, int]:
  lines = [line.split("#")[0].split() for line in (root / LEFT).read_text().splitlines()]
  return {folder: int(count) for folder, count in filter(None, lines)}


def show_counts(hits: list) -> None:
  print("by kind:", ", ".join(f"{kind} {count}" for kind, count in collections.Counter(h[0] for h in hits).items()))
  for (kind, instead), count in collections.Counter((h[0], h[4]) for h in hits).most_common():
    print(f"{count:5} {kind:8} {instead}")
  for folder, count in sorted(collections.Counter(folder_of(h[1]) for h in hits).items()):
    print(f"{folder} {count}")


def main() -> int:
  parser = argparse.ArgumentParser()
  parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
  parser.add_argument("--count", action="store_true")
  parser.add_argument("--all", action="store_true")
  arguments = parser.parse_args()
  hits = list(all_hits(arguments.root))
  if arguments.count:
    show_counts(hits)
    return 0
  left = read_left(arguments.root)
  count = collections.Counter(folder_of(hit[1]) for hit in hits)
  wrong = [h for h in hits if arguments.all or count[folder_of(h[1])] > left.get(folder_of(h[1]), 0)]
  for kind, path, line, found, instead in wrong:
    print(f"{path}:{line}: {kind}: '{found}': {instead}")
  print(f"words: {len(hits) - len(wrong)} older hits, {len(wrong)} to fix")
  return 1 if wrong else 0


if __name__ == "__main__":
  sys.exit(main())
