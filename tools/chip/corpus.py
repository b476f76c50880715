"""The corpus in tests/fixtures/chip: its files, its split, and how rows are read and written.

    <class>.zip    the programs of a class as StableHLO text: NAME.mlir, and NAME@8.mlir for the 8 GPUs
    <chip>.json    what the chip's compiler says of each program: a row of numbers a line

The same contents give the same bytes.
"""

import hashlib
import json
import math
import pathlib
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "chip"
MODULE = ".mlir"
GPUS = "@8"  # after the name of a program: the one for the 8 GPUs of a host
TIME = (1980, 1, 1, 0, 0, 0)
DIGITS = 6  # of seconds

FIT, HELD_OUT = "fit", "held-out"
DMA_CYCLES = 1300  # latency of a small copy from HBM to VMEM, as libtpu's simulation has it on v5e; v6e has about 700


def split(name):
  """Which part of the corpus a program belongs to: rules and parameters are looked for in `fit` alone."""
  return FIT if hashlib.sha256(name.encode()).digest()[0] % 2 == 0 else HELD_OUT


# ---- programs ----

def path_of(cls, folder=FOLDER):
  return folder / "programs" / f"{cls}.zip"


def classes(folder=FOLDER):
  return sorted(path.stem for path in path_of("*", folder).parent.glob("*.zip"))


def read_programs(cls, folder=FOLDER):
  """Name of a program, @8 included -> its StableHLO text."""
  if not path_of(cls, folder).exists():
    return {}
  with zipfile.ZipFile(path_of(cls, folder)) as archive:
    return {member.removesuffix(MODULE): archive.read(member).decode() for member in archive.namelist()}


def digest(text):
  return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_digests(cls, folder=FOLDER):
  """Name of a program, @8 included -> the digest of what JAX lowers it to, which rows carry as `of`.

  It is the comment of the archive's member, whose text received.py may have rewritten.
  """
  if not path_of(cls, folder).exists():
    return {}
  with zipfile.ZipFile(path_of(cls, folder)) as archive:
    return {member.filename.removesuffix(MODULE): member.comment.decode() for member in archive.infolist()}


def digests(folder=FOLDER):
  """`read_digests` of all classes."""
  return {name: of for cls in classes(folder) for name, of in read_digests(cls, folder).items()}


def write_programs(cls, texts, of=None, folder=FOLDER):
  """All programs of a class; without any there is no file.  Leaves a file alone that has the same ones.

  `of` has digests of programs whose text is no longer what JAX lowers them to.
  """
  of = {name: (of or {}).get(name) or digest(text) for name, text in texts.items()}
  if texts == read_programs(cls, folder) and of == read_digests(cls, folder):
    return
  path = path_of(cls, folder)
  if not texts:
    path.unlink()
    return
  path.parent.mkdir(parents=True, exist_ok=True)
  with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
    for name in sorted(texts):
      member = zipfile.ZipInfo(name + MODULE, TIME)
      member.compress_type, member.create_system, member.external_attr = zipfile.ZIP_LZMA, 3, 0o644 << 16
      member.comment = of[name].encode()
      archive.writestr(member, texts[name])


# ---- rows ----

def chips(folder=FOLDER):
  return sorted(path.stem for path in folder.glob("*.json"))


def read_rows(chip, folder=FOLDER):
  """What the file of a chip says at its top, and name of a program -> row."""
  path = folder / f"{chip}.json"
  if not path.exists():
    return {}, {}
  data = json.loads(path.read_text())
  return data["about"], data["programs"]


def short(value):
  """Numbers as they are written: seconds with few digits, no fraction that says nothing."""
  if isinstance(value, float):
    value = float(f"{value:.{DIGITS}g}")
    return int(value) if value == int(value) and abs(value) < 1e15 else value
  if isinstance(value, dict):
    return {key: short(inner) for key, inner in value.items()}
  return value


def write_rows(chip, about, rows, folder=FOLDER):
  """A line for each program, sorted by name."""
  folder.mkdir(parents=True, exist_ok=True)
  line = lambda value: json.dumps(short(value), separators=(",", ":"))
  body = ",\n".join(f"{json.dumps(name)}:{line(rows[name])}" for name in sorted(rows))
  (folder / f"{chip}.json").write_text(f'{{"about":{line(about)},\n"programs":{{\n{body}\n}}}}\n')


def interval(row, clock=None):
  """Low and high seconds of a row, with its final bundles if it has certain ones.

  If the text knows only bytes, it is those of the bundles, or infinity.
  """
  is_open = row.get("irregular") or row.get("unknown_loops")
  low, high = row["low"], math.inf if is_open else max(row["low"], row["high"])
  issued = by_bundles(row, clock) if clock and not row.get("unknown_loops") else None
  if issued is None:
    return low, high
  waited = issued + row["bundle_waits"] * DMA_CYCLES / clock
  return (max(low, issued), max(low, waited)) if is_open else (min(low, issued), max(high, waited))


def by_bundles(row, clock):
  """Seconds by final bundles, if the program lives in VMEM; None if HBM or what only the chip knows decides."""
  cycles = row.get("bundles")
  if not cycles or row.get("bundle_unsure") or row.get("bundle_low", cycles) < 0.9 * cycles:
    return None
  waits = row["bundle_waits"] * DMA_CYCLES
  return cycles / clock if row["floor"] < 0.5 * cycles / clock and waits < 0.35 * cycles else None
