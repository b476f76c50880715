"""tests/words.py finds the listed phrases in each kind of text, but not in code and quoted names."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[3]
BAD = {
    "page.md": "A wait is\ntold to the op, which nobody reads.\n",
    "room/room.c": '// Copies what is\n// in front of it.\nconst char *text = "the way on of a"\n                   " step is a guess";\n',
    "tool.py": '"""Who dies first is named."""\nraise ValueError("this cannot be had here")\n',
    "tool.sh": "# an expensive, dear\n# step made anew\n",
}
GOOD = {
    "page.md": "Programs are told apart by name. `nobody` and `anew` are names:\n\n```\nnobody\n```\n",
    "room/room.c": 'int nobody = 0; const char *name = "nobody"; // users who read the log\n',
    "tool.py": 'nobody = {"nobody": 1}  # one way only\n',
}


def check(root: pathlib.Path, files: dict[str, str], left: str = "") -> tuple[int, str]:
  for name, text in {**files, "tests/words_left.txt": left}.items():
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
  done = subprocess.run([sys.executable, ROOT / "tests/words.py", root], capture_output=True, text=True, check=False)
  return done.returncode, done.stdout + done.stderr


def test_hits_have_their_line_and_a_replacement(tmp_path):
  code, printed = check(tmp_path, BAD)
  assert code == 1, printed
  for hit in ("page.md:1: prose: 'is told'", "page.md:2: prose: 'nobody'", "room/room.c:2: comment: 'in front of'",
              "room/room.c:3: message: 'the way on'", "tool.py:1: comment: 'Who'", "tool.py:2: message: 'cannot be had'",
              "tool.sh:1: comment: 'dear': expensive", "tool.sh:2: comment: 'anew'"):
    assert hit in printed, (hit, printed)


def test_code_and_names_are_no_hits(tmp_path):
  assert check(tmp_path, GOOD) == (0, "words: 0 older hits, 0 to fix\n")


def test_a_folder_may_have_fewer_hits_than_listed_but_not_more(tmp_path):
  few = {"room/a.c": "// nobody\n"}
  assert check(tmp_path, few, "room 1\n")[0] == 0
  code, printed = check(tmp_path, {**few, "room/b.c": "// nobody\n"}, "room 1\n")
  assert code == 1 and "room/b.c:1" in printed, printed
