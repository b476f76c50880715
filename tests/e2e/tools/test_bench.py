"""tools/bench/table.py measures, and its check finds exactly the cases that are worse."""

import json
import os
import pathlib
import subprocess
import sys
import xml.dom.minidom

import pytest

BENCH = pathlib.Path(__file__).parents[3] / "tools" / "bench"
sys.path.insert(0, str(BENCH))

import cases
import limits
import plot
import record
import report


def row(wall=1.0, processor=1.0, temporaries=1 << 20):
  """A case that takes the CPU backend one second and one MiB."""
  return {"minipod": {"wall": wall, "processor": processor, "bytes": temporaries},
          "cpu": {"wall": 1.0, "processor": 1.0, "bytes": 1 << 20}}


KNOWN = ("a/b", "a/c")


@pytest.fixture
def recorded(tmp_path):
  record.save({"a/b": row(), "a/c": row()}, KNOWN, tmp_path / "recorded.json")
  return record.load(tmp_path / "recorded.json")


@pytest.mark.parametrize("now, complaint", [
    (row(), None),
    (row(wall=1.4, processor=1.4), None),
    (row(wall=9), None),  # the machine was busy
    (row(processor=9), None),
    (row(wall=1.6, processor=1.6), "slower"),
    (row(temporaries=2 << 20), "memory"),
    (row(temporaries=(1 << 20) + 4096), None),
    ({"minipod": {"error": "it died"}, "cpu": row()["cpu"]}, None),  # another check reports it
])
def test_check(recorded, now, complaint):
  worse = record.worse(recorded, {"a/b": now, "a/c": row(), "a/new": row(wall=9, processor=9)}, 1.5)
  assert list(worse) == (["a/b"] if complaint else [])
  assert not complaint or complaint in worse["a/b"]


def test_recording_a_part(tmp_path, recorded):
  file = tmp_path / "recorded.json"
  assert record.refusal(["a/c"], file) == ""
  record.save({"a/c": row(wall=0.5)}, KNOWN, file)
  assert record.load(file)["cases"]["a/b"] == recorded["cases"]["a/b"]
  assert record.load(file)["cases"]["a/c"]["wall"] == 0.5
  assert record.other_machine(record.load(file)) == []
  record.save({}, ["a/c"], file)  # a case that no longer exists
  assert list(record.load(file)["cases"]) == ["a/c"]


def test_recording_a_part_elsewhere(tmp_path, recorded):
  file = tmp_path / "recorded.json"
  file.write_text(json.dumps(recorded | {"jax": "0.1"}))
  assert record.refusal(["a/c"], file).startswith("jax 0.1, here ")
  assert record.refusal(["a/b", "a/c"], file) == ""


def test_summary():
  rows = [row(wall=wall) for wall in range(1, 21)]
  assert report.summary(rows)["wall"] == (20, 10, 19)
  assert report.ratios(row(temporaries=8))["bytes"] == report.PAGE / (1 << 20)


LIMITS = {"threads": 2, "f32": 100e9, "f64": 50e9, "start": 1e-3} | {
    kind: [[1 << 20, 80e9], [1 << 26, rate]]
    for kind, rate in (("read", 10e9), ("update", 20e9), ("copy", 8e9), ("triad", 9e9))}
KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize("read, written, changed, expected", [
    (64 * MIB, KIB, {}, ("read", (64 * MIB + KIB) / 10e9 + 1e-3)),  # a sum
    (32 * MIB, 32 * MIB, {}, ("copy", 64 * MIB / 8e9 + 1e-3)),
    (64 * MIB, 32 * MIB, {}, ("triad", 96 * MIB / 9e9 + 1e-3)),
    (32 * MIB, 32 * MIB, {"in_place": 32 * MIB}, ("update", 64 * MIB / 20e9 + 1e-3)),
    (4 * MIB, 4 * MIB, {}, ("copy", 2 * 8 * MIB / (80e9 * 8e9) ** 0.5)),  # halfway between both; one core is as fast
    (8 * MIB, 4 * MIB, {"flops": 2e9}, ("f32", 0.021)),
    (8 * MIB, 4 * MIB, {"flops": 2e9, "is_f64": 1}, ("f64", 0.041)),
    (KIB, KIB, {"transcendentals": 1e8}, ("f32", 0.031)),
    (KIB, KIB, {"flops": 2e6}, ("f32", 4e-5)),  # on one core
    (KIB, KIB, {"flops": 1e5}, None),
    (MIB, MIB, {"flops": 2e3}, None),
])
def test_share(read, written, changed, expected):
  figures = {"read": read, "written": written, "in_place": 0, "flops": 0, "transcendentals": 0, "is_f64": 0, "wall": 0.5}
  found = limits.share(LIMITS, figures | changed)
  assert found is None if expected is None else (found[1], found[0]) == (expected[0], pytest.approx(expected[1] / 0.5))


def test_limits_of_this_machine():
  """The program measures all limits, and keeps the better one of two runs."""
  if not limits.PROGRAM.exists():
    pytest.skip("the build has no minipod-bench-limits")
  measured = limits.measure()
  assert measured["threads"] == min(len(os.sched_getaffinity(0)), 256)
  assert all(measured[kind] > 1e8 for kind in ("f32", "f64"))
  assert all(rate > 1e7 for kind in limits.KINDS for _, rate in measured[kind])
  assert 0 <= measured["start"] < 1
  faster = measured | {"f32": 2 * measured["f32"], "read": [[size, 1] for size, _ in measured["read"]], "start": 2}
  assert limits.best(measured, faster)["f32"] == faster["f32"]
  assert limits.best(measured, faster)["read"] == measured["read"]
  assert limits.best(measured, faster)["start"] == measured["start"]
  assert limits.best(None, measured) == limits.best(measured, None) == measured


def comments_of(node):
  return [each for child in node.childNodes for each in ([child] if child.nodeType == child.COMMENT_NODE else comments_of(child))]


def test_plot(tmp_path):
  table = {"a/b": row(wall=1e-9, processor=1e9), "d/e": {"minipod": {"error": ""}, "cpu": {}}}
  plot.draw(table, tmp_path / "table.svg")
  picture = xml.dom.minidom.parse(str(tmp_path / "table.svg"))
  comments = [node.data.strip() for node in comments_of(picture)]  # matplotlib's, which have the text of each label
  assert "a/b" in comments and "d/e" not in comments and comments.count("wall time") == 1
  plot.draw({}, tmp_path / "empty.svg")


def test_what_is_recorded_is_measured():
  assert set(record.load()["cases"]) == set(cases.load())


def test_measures(tmp_path):
  """A whole run, of one case."""
  files = ["--json", tmp_path / "table.json", "--plot", tmp_path / "table.png"]
  out = subprocess.run([sys.executable, BENCH / "table.py", "dispatch", "--filter",
                        "/jit_8", "--rounds", "1", *files], env=os.environ | {"XLA_FLAGS": ""},
                       check=True, text=True, stdout=subprocess.PIPE, timeout=150).stdout
  table = json.loads((tmp_path / "table.json").read_text())["cases"]
  assert list(table) == ["dispatch/jit_8"] and "dispatch/jit_8" in out
  for platform in ("minipod", "cpu"):
    assert table["dispatch/jit_8"][platform]["wall"] > 0
    assert table["dispatch/jit_8"][platform]["processor"] > 0
    assert table["dispatch/jit_8"][platform]["bytes"] == 0
  assert (tmp_path / "table.png").read_bytes().startswith(b"\x89PNG")
