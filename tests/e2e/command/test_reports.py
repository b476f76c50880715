"""The time report as data, as a short table and from files; sweeps; changing the pod; the plugin of pytest."""

import csv
import json
import re
import subprocess
import sys
import textwrap

import pytest
import scenario
from minipod import notebook

TRAIN = """
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
mesh = jax.sharding.Mesh(jax.devices(), ("x",))
place = lambda shape, *axes: jax.device_put(jnp.ones(shape, jnp.bfloat16), jax.NamedSharding(mesh, P(*axes)))
x, w = place((256, 1024), None, "x"), place((1024, 512), "x")
@jax.jit
def step(x, w):
  for _ in range(40):  # more lines than a table has rows
    x = jnp.tanh(x)
  return (x @ w).sum()
for _ in range(3): y = step(x, w)
print(float(y))
"""


def test_a_report_adds_up():
  out = scenario.run(textwrap.dedent(TRAIN) + textwrap.dedent("""
      import json, minipod
      print(minipod.time_report("summary"))
      print(json.dumps(minipod.time_report("data")[0]))
      assert json.loads(minipod.time_report("json"))[0]["pod"] == "v5e:2x2"
      for wrong in ({"format": "xml"}, {"format": "summary", "by": "colour"}):
        try: minipod.time_report(**wrong)
        except ValueError as error: print(error)
      """), devices=None, MINIPOD_TOPOLOGY="v5e:2x2", MINIPOD_TIME="model")
  *lines, data, first, second = out.splitlines()
  assert first.startswith("format 'xml' is none of text, summary") and second.startswith("by 'colour'")
  assert max(map(len, lines)) <= 100
  report = json.loads(data)
  step = next(each for each in report["programs"] if each["name"] == "jit_step")
  assert step["launches"] == 3 and step["devices"] == 4 == report["num_devices"]
  parts = sum(step[key] for key in ("work", "collective", "waiting", "idle"))
  assert parts == pytest.approx(step["available"], rel=1e-9)
  assert sum(op["time"] for op in step["ops"]) + step["other_work"] == pytest.approx(step["work"])
  met = sum(each["exposed"] for each in step["collectives"])
  assert met + step["other_collective"] == pytest.approx(step["collective"], abs=1e-12)
  table = lines[lines.index("jit_step"):]
  begin = next(i for i, line in enumerate(table) if line.startswith("  by line"))
  shares = []
  for line in table[begin + 1:]:
    name, share = line[:58].strip(), float(line.split()[-2])
    if name == "all":
      break
    shares.append(share)
  assert share == 100 and sum(shares) == pytest.approx(100, abs=0.1 * len(shares))


def test_every_product_counts():
  """Includes those whose ops have no row in the text table."""
  out = scenario.run("""
      import json, minipod
      sides = [256 + 128 * i for i in range(30)]
      step = jax.jit(lambda xs: [x @ x for x in xs])
      jax.block_until_ready(step([jnp.ones((n, n), jnp.bfloat16) for n in sides]))
      print(minipod.time_report("summary", by="class"))
      print(json.dumps(minipod.time_report("data")[0]))
      """, devices=None, MINIPOD_TOPOLOGY="v5e:1x1", MINIPOD_TIME="model", MINIPOD_VALUES="shapes")
  *lines, data = out.splitlines()
  step = next(each for each in json.loads(data)["programs"] if each["name"] == "jit__lambda" and each["work"] > 1e-3)
  flops = sum(2 * (256 + 128 * i) ** 3 for i in range(30))
  assert len(step["ops"]) == 30 and step["classes"] == [
      {"class": "matmul", "flops": flops, "time": pytest.approx(step["work"], rel=1e-9)}]
  used = 100 * flops / 197e12 / step["seconds"]
  assert any(f"matmul utilisation {used:.1f} %" in line for line in lines), (used, lines)
  assert not any("(others)" in line and "work" in line for line in lines)


LAYERS = """
import jax, jax.numpy as jnp, minipod, json
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
w = jax.device_put(jnp.ones((2, 512, 512)), NamedSharding(mesh, P(None, None, "model")))
x = jax.device_put(jnp.ones((64, 512)), NamedSharding(mesh, P("data")))
def loss(w, x):
  h = x
  for i in range(2):
    with jax.named_scope(f"layer{i}"):
      h = jnp.tanh(h @ w[i])
  return (h ** 2).sum()
jax.block_until_ready(jax.jit(lambda w, x: w - 0.1 * jax.grad(loss)(w, x))(w, x))
report = next(each for each in minipod.time_report("data")[0]["programs"] if each["collectives"])
print(json.dumps(report))
print(minipod.time_report("summary", by="axis", mesh=mesh))
print(minipod.time_report("summary", by="layer", tokens=64))
print(minipod.time_report("html", mesh=mesh, tokens=64))
"""


def test_layers_and_axes_have_the_names_that_users_gave():
  data, *lines = scenario.run(textwrap.dedent(LAYERS), devices=None, MINIPOD_TOPOLOGY="v5e:2x4",
                              MINIPOD_TIME="model").splitlines()
  report = json.loads(data)
  for what in ("work", "collective"):
    assert sum(row[what] for row in report["layers"]) == pytest.approx(report[what], rel=1e-6)
  page = lines.index(next(line for line in lines if line.startswith("<!doctype html>")))
  text = "\n".join(lines[:page])
  assert " along model " in text and " along data " in text and "groups of" not in text
  assert "\n  layer0 " in text and "\n  layer1 " in text and " tokens/s" in text
  assert max(map(len, lines[:page])) <= 100
  html = "".join(lines[page:])
  assert all(f"by {by}</th>" in html for by in ("line", "layer", "kind", "class", "axis"))
  # One table at a time, a roofline, and no rows of 0.0 % in the tables of a program.
  assert html.count("checked>") == html.count("<details") > 0 and ">roofline</label>" in html and "<circle" in html
  assert ">0.0 %<" not in html[html.index("<details"):] and "0.00 ns" not in html
  assert "<script" not in html and "http" not in html


def test_axes_are_those_of_the_programs_mesh_and_programs_of_one_name_have_numbers():
  """Includes messages along one axis, which have pairs instead of groups."""
  data, *lines = scenario.run("""
      import json, minipod
      from jax.sharding import AxisType
      mesh = jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(AxisType.Auto,) * 3)
      whole = P(("a", "b", "c"))
      def f(axes):
        pairs = [(i, (i + 1) % 2 ** len(axes)) for i in range(2 ** len(axes))]
        body = lambda x: lax.ppermute(x, axes, pairs)
        body.__name__ = body.__qualname__ = "send"
        return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=whole, out_specs=whole))
      x = jax.device_put(jnp.ones((8, 1024)), jax.NamedSharding(mesh, whole))
      for axes in (("a",), ("b",), ("a", "c"), ("a",)): jax.block_until_ready(f(axes)(x))
      jax.block_until_ready(jax.jit(jax.shard_map(lambda x: lax.psum(x, ("b", "c")), mesh=mesh, in_specs=whole, out_specs=P("a")))(x))
      print(json.dumps(minipod.time_report("data")[0]["programs"]))
      print(minipod.time_report("summary", by="axis"))
      print(minipod.time_report())
      """, devices=None, MINIPOD_TOPOLOGY="v5e:2x4", MINIPOD_TIME="model").splitlines()
  sent = sorted((each["number"], each["launches"], each["collectives"][0]["axes"])
                for each in json.loads(data) if each["name"] == "jit_send")
  assert sent == [(1, 2, "a"), (2, 1, "b"), (3, 1, "a and c")]
  text = "\n".join(lines)
  assert " along b and c " in text and " along a and c " in text and " along a and b" not in text
  for number in (1, 2, 3):
    assert text.count(f"\njit_send #{number}") == 4, text  # for each report: in the first table, and with its rows


def test_numbers_of_programs_stay_when_one_is_gone():
  """Programs that no longer exist have the first rows; numbers follow the order in which programs were made."""
  first, second = scenario.run("""
      import gc, json, minipod
      def make(g):
        def f(x): return g(x)
        return jax.jit(f)
      def numbers():
        programs = minipod.time_report("data")[0]["programs"]
        print(json.dumps(sorted((each["number"], each["launches"]) for each in programs if each["name"] == "jit_f")))
      x, kept, gone = jnp.ones(8), make(jnp.sin), make(jnp.tanh)
      for each in (kept, gone, gone): jax.block_until_ready(each(x))
      numbers()
      del gone, each
      gc.collect()
      numbers()
      """, devices=None, MINIPOD_TOPOLOGY="v5e:2x2", MINIPOD_TIME="model").splitlines()
  assert json.loads(first) == json.loads(second) == [[1, 1], [2, 2]]


def command(*words, code=0, is_error=False, **variables):
  done = subprocess.run([sys.executable, "-m", "minipod", *map(str, words)], capture_output=True, text=True,
                        timeout=300, env=scenario.environment(devices=None, **variables))
  assert done.returncode == code, done.stdout + done.stderr
  return done.stderr if is_error else done.stdout


SWEPT = """
import os, jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P
batch = int(os.environ["BATCH"])
mesh = jax.make_mesh((jax.device_count(),), ("fsdp",), axis_types=(AxisType.Auto,))
on = lambda *axes: jax.NamedSharding(mesh, P(*axes))
w = jax.jit(lambda: jnp.ones((4, 1024, 1024), jnp.bfloat16), out_shardings=on(None, "fsdp"))()
x = jax.jit(lambda: jnp.ones((batch, 1024), jnp.bfloat16), out_shardings=on("fsdp"))()
def loss(w, x):
  layer = lambda x, w: (jnp.tanh(x @ w), None)
  return (jax.lax.scan(jax.checkpoint(layer), x, w)[0].astype(jnp.float32) ** 2).sum()
@jax.jit
def step(w, x):
  return w - jax.grad(loss)(w, x).astype(w.dtype)
for _ in range(2): w = step(w, x)
if batch == 512: raise RuntimeError("a message\\nof two lines") from ValueError("another one")
jax.block_until_ready(w)
"""


def test_a_sweep(tmp_path):
  script = tmp_path / "train.py"
  script.write_text(SWEPT)
  words = ("sweep", "--pod", "v5e:2x2", "--set", "BATCH=1024,4096,512,67108864", "--tokens", "BATCH*8", script)
  done = subprocess.run([sys.executable, "-m", "minipod", *map(str, words)], capture_output=True, text=True, timeout=300,
                        env=scenario.environment(devices=None))
  assert done.returncode == 1
  assert "minipod sweep: pod=v5e:2x2 BATCH=512: RuntimeError: a message\n" in done.stderr, done.stderr
  number = SWEPT[:SWEPT.index("if batch ==")].count("\n") + 1
  assert f"\n  at {script}:{number}: if batch == 512: raise RuntimeError(" in done.stderr, done.stderr
  assert re.search(rf"BATCH=67108864: JaxRuntimeError: RESOURCE_EXHAUSTED: jit_.*\n  at {script}:\d+: ", done.stderr), done.stderr
  assert "Traceback" not in done.stderr and "\nof two lines" not in done.stderr
  assert "removed its internal frames" not in done.stderr + done.stdout
  head, *rows = done.stdout.splitlines()
  assert head.split() == ["pod", "BATCH", "program", "each", "tokens/s", "MFU", "work", "exposed", "memory", "exposed", "longest"]
  assert [row.replace("*", " ").split()[1] for row in rows] == ["4096", "1024", "512", "67108864"]
  assert rows[0].startswith("*") and not any(row.startswith("*") for row in rows[1:])
  assert " along fsdp " in rows[0] and " of 15.8 GiB" in rows[0] and "a message" in rows[2]
  assert rows[3].endswith("does not fit") and " of 15.8 GiB" in rows[3]


def test_a_failed_run_of_a_sweep(tmp_path):
  """Its line is the user's, not the library's that raised it; everything is there if it is asked for."""
  script = tmp_path / "fails.py"
  script.write_text("import json\ndef read(text):\n  return json.loads(text)\nread('{')\n")
  said = command("sweep", "--set", "A=1", script, code=1, is_error=True)
  assert said.splitlines() == ["minipod sweep: A=1: JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
                               f"  at {script}:3: return json.loads(text)"]
  whole = command("sweep", "--verbose", "--set", "A=1", script, code=1, is_error=True)
  assert whole.startswith(said + "  | Traceback (most recent call last):\n") and "  | json.decoder.JSONDecodeError: " in whole
  (row,) = json.loads(command("sweep", "--json", "--set", "A=1", script, code=1))
  assert row["line"] == f"{script}:3: return json.loads(text)"
  script.write_text("x = (\n")
  said = command("sweep", "--set", "A=1", script, code=1, is_error=True)
  assert said.splitlines() == ["minipod sweep: A=1: SyntaxError: '(' was never closed", f"  at {script}:1: x = ("]


def test_a_sweep_as_data(tmp_path):
  """Model FLOPs leave out recomputed matmuls, so only the four forward matmuls count."""
  script = tmp_path / "train.py"
  script.write_text(SWEPT)
  flops = 12 * 2 * 1024**3
  rows = json.loads(command("sweep", "--json", "--pod", "v5e:2x2", "--pod", "v5e:2x3", script, code=1, BATCH=1024))
  assert [row["settings"]["MINIPOD_TOPOLOGY"] for row in rows] == ["v5e:2x2", "v5e:2x3"]
  assert rows[0]["program"] == "jit_step" and rows[0]["launches"] == 2 and rows[0]["step_seconds"] > 0
  assert rows[0]["mfu"] == pytest.approx(flops / (4 * 197e12 * rows[0]["step_seconds"]), rel=0.02)
  assert rows[0]["utilisation"] == pytest.approx(rows[0]["mfu"] * 16 / 12, rel=0.02)
  assert "no slice of v5e" in rows[1]["error"] and rows[0]["device_memory"] == 15.75 * 2**30
  text = command("sweep", "--csv", "--set", f"BATCH=1024", "--model-flops", "3*2*BATCH*4*1024**2", "--tokens", "BATCH*8/devices",
                 script, MINIPOD_TOPOLOGY="v5e:2x2")
  (row,) = csv.DictReader(text.splitlines())
  assert float(row["mfu"]) == pytest.approx(flops / (4 * 197e12 * float(row["step_seconds"])), rel=1e-3)
  assert float(row["tokens_per_second"]) == pytest.approx(2048 / float(row["step_seconds"])) and row["BATCH"] == "1024"


@pytest.mark.parametrize("words", [("--tokens", "NOTHING*2"), ("--tokens", "__import__('os')"), ("--tokens", "9**9**9**9"),
                                   ("--tokens", "1/0"), ("--model-flops", "A"), ("--json", "--csv"), ("--set", "A")])
def test_sweeps_that_cannot_be(words):
  assert "error: " in command("sweep", "--set", "A=x", *words, "no.py", code=2, is_error=True)


def test_a_report_is_read_from_its_file(tmp_path):
  scenario.run(textwrap.dedent(TRAIN), devices=None, MINIPOD_TOPOLOGY="v5e:2x2", MINIPOD_TIME="model",
               MINIPOD_DUMP=str(tmp_path))
  (file,) = tmp_path.glob("*.time.json")
  assert "jit_step" in command("report", file, "--by", "kind")
  assert " 1.000 " in command("report", file, file)
  assert command("report", file, "--html").startswith("<!doctype html>")
  assert command("report", tmp_path / "no.json", code=1) == ""


def test_what_notebooks_show(tmp_path):
  out = scenario.run(textwrap.dedent(TRAIN) + textwrap.dedent("""
      import minipod, pickle
      for report in (minipod.time_report(), minipod.time_report("summary")):
        page = report._repr_html_()
        assert "jit_step" in report and isinstance(report, str) and pickle.loads(pickle.dumps(report)) == report
        assert page.startswith('<div class="minipod">') and "jit_step</summary>" in page
      assert minipod.time_report("summary")._repr_html_() != page  # tabs of two reports in one page are apart
      pod = minipod.topo()
      assert "v5e:2x2" in repr(pod) and pod._repr_svg_() == pod.svg and "<svg" in pod.svg
      minipod.use("v5e:4x4")
      assert "v5e:4x4" in repr(minipod.topo()) and "v5p:2x2x1" in repr(minipod.topo("v5p:2x2x1"))
      try: minipod.topo("v5e:3x5")
      except ValueError as error: assert "no slice of v5e" in str(error)
      else: raise SystemExit("a pod of 3x5")
      """), devices=None, MINIPOD_TOPOLOGY="v5e:2x2", MINIPOD_TIME="model")
  assert out


def test_lines_of_cells_have_their_numbers():
  known = {"/tmp/ipykernel_7/123.py": "In [3]"}
  assert notebook.name_cells({"at": ["dot at /tmp/ipykernel_7/123.py:4:22", 3]}, known) == {"at": ["dot at In [3]:4:22", 3]}


def test_a_page_has_the_step_of_a_timeline(tmp_path):
  scenario.run(textwrap.dedent(TRAIN), devices=None, MINIPOD_TOPOLOGY="v5e:2x2", MINIPOD_TIME="model",
               MINIPOD_DUMP=str(tmp_path), MINIPOD_TRACE=str(tmp_path / "t.json.gz"))
  (file,) = tmp_path.glob("*.time.json")
  page = command("report", file, "--html", "--timeline", tmp_path / "t.json.gz")
  assert page.count(">step</label>") >= 1 and "197 TFLOP/s, 819 GB/s" in page and " us on</title>" in page
  assert "not a timeline" in command("report", file, "--html", "--timeline", file, code=1, is_error=True)


def test_another_pod_in_the_same_process():
  out = scenario.run(textwrap.dedent("""
      import jax, minipod
      print(jax.device_count())
      minipod.use("v5e:4x4", hosts=2)
      print(jax.device_count(), jax.devices()[0].device_kind, jax.numpy.arange(3).sum())
      minipod.use("v5litepod-8", time="model")
      kept = jax.jit(lambda x: x + 1)(1.0); print(jax.device_count(), (before := minipod.virtual_time()) > 0)
      minipod.use("v5litepod-4", time="model")
      jax.devices(); print(minipod.virtual_time() < before)
      minipod.use()
      print(jax.device_count())
      """), devices=None, MINIPOD_DEVICES="3")
  assert out.splitlines() == ["3", "16 TPU v5 lite 3", "8 True", "True", "3"]


TESTS = """
import jax, pytest

@pytest.mark.pod("v5e:4x4", hosts=4)
def test_pod(pod):
  assert pod.num_devices == 16 and len({device.host_index for device in pod.devices}) == 4

@pytest.mark.pod("v5e:2x4")
def test_mark_alone():
  assert jax.device_count() == 8

def test_without_mark(pod):
  assert pod.num_devices == 3

@pytest.mark.pod("torus:4", time="model")
def test_faults(pod):
  pod.inject({"device": 0, "dead": True})
  with pytest.raises(jax.errors.JaxRuntimeError, match="dead"):
    jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))

def test_healed(pod):
  assert jax.jit(lambda x: x + 1)(1.0) == 2

@pytest.mark.pod("torus:4", processes=2)
def test_processes(pod, tmp_path):
  (tmp_path / "a.py").write_text("import jax; print(jax.process_index(), jax.device_count())")
  assert pod.run(tmp_path / "a.py") == ["0 4", "1 4"]
"""


def test_reports_beside_each_other(tmp_path):
  """Compares programs of one name in their order, and reads the output of `time_report("json")`."""
  out = scenario.run("""
      import minipod
      small, large = jnp.ones((256, 256)), jnp.ones((2048, 2048))
      jax.block_until_ready([jax.jit(lambda x: x @ x)(small), jax.jit(lambda x: x @ x)(large)])
      print(minipod.time_report("json"))
      """, devices=None, MINIPOD_TOPOLOGY="v5e:1x1", MINIPOD_TIME="model")
  path = tmp_path / "run.json"
  path.write_text(out)
  rows = [line for line in command("report", path, path).splitlines() if line.startswith("jit__lambda")]
  assert len(rows) == 2 and all(" 1.000 " in row for row in rows) and rows[0] != rows[1]
  assert "jit__lambda" in command("report", path)
  path.write_text(json.dumps(2 * json.loads(out)))
  assert "it has 2 pods" in command("report", path, code=1, is_error=True)


WRONG = """import pytest

@pytest.mark.pod("v5e:3x5")
def test_grid(pod):
  pass

@pytest.mark.pod("v5e:2x2", tyme="model")
def test_option(pod):
  pass
"""


def test_the_plugin_of_pytest_refuses_pods_that_cannot_be(tmp_path):
  (tmp_path / "test_wrong.py").write_text(WRONG)
  done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
                        capture_output=True, text=True, timeout=300, cwd=tmp_path, env=scenario.environment(devices=None))
  assert "2 errors" in done.stdout, done.stdout + done.stderr
  assert "no slice of v5e has the grid 3x5" in done.stdout and "did you mean 'time'?" in done.stdout
  assert "uninstall" not in done.stdout


def test_the_plugin_of_pytest(tmp_path):
  (tmp_path / "test_pods.py").write_text(TESTS)
  done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                         str(tmp_path)], capture_output=True, text=True, timeout=300, cwd=tmp_path,
                        env=scenario.environment(devices=None, MINIPOD_DEVICES="3"))
  assert "6 passed" in done.stdout, done.stdout + done.stderr


def test_the_pytest_plugin_does_not_warn_of_an_earlier_jax(tmp_path):
  (tmp_path / "test_one.py").write_text("def test_one():\n  pass\n")
  code = f"import jax, pytest, sys; jax.devices(); sys.exit(pytest.main(['-q', '-W', 'error', {str(tmp_path)!r}]))"
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=tmp_path,
                        env=scenario.environment(devices=1))
  assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_launches_are_counted_by_their_label():
  *_, data = scenario.run("""
      import json, minipod
      from minipod import launch_labels
      step, slot = jax.jit(lambda x: x @ x), launch_labels.slot()
      x = step(jnp.ones((256, 256)))
      for label, launches in (("up at train.py:3", 3), ("down at train.py:4", 2), ("up at train.py:3", 1)):
        slot.value = launch_labels.address(label)
        for _ in range(launches): x = step(x)
      slot.value = 0
      print(json.dumps(minipod.time_report("data")[0]))
      """, devices=None, MINIPOD_TOPOLOGY="v5e:1x1", MINIPOD_TIME="model").splitlines()
  step = next(each for each in json.loads(data)["programs"] if each["name"] == "jit__lambda")
  assert [(each["at"], each["launches"]) for each in step["callers"]] == [
      ("up at train.py:3", 4), ("down at train.py:4", 2)]
  assert step["launches"] == 7
  assert all(each["seconds"] == pytest.approx(step["seconds"] * each["launches"] / 7, rel=1e-6)
             for each in step["callers"])
