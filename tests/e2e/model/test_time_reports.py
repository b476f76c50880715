"""Where virtual time goes: the table, the timeline, profiles, and traces for other simulators."""

import collections
import gzip
import glob
import json
import subprocess
import sys
import textwrap

import pytest
import scenario
import trace_processor

from protos import fields_of, read_varint

# Ten steps of a matmul and a sum over four devices, and one shift in a loop.
PROGRAM = """
    import minipod
    step = jax.pmap(lambda x: lax.psum(x @ x, "i") / 1e6, axis_name="i")
    x = np.ones((4, 256, 256), np.float32)
    for _ in range(10):
      x = step(x)
    shift = jax.pmap(lambda x: lax.fori_loop(0, 5, lambda i, c: lax.ppermute(
        c, "i", [(0, 1), (1, 2), (2, 3), (3, 0)]) + 1, x), axis_name="i")
    np.asarray(shift(x))
    """


def run(code="", time="model", devices=None, topology="v5e:2x2", **variables):
  return scenario.run(textwrap.dedent(PROGRAM) + textwrap.dedent(code), devices=devices, MINIPOD_TIME=time,
                      MINIPOD_TOPOLOGY=topology, **variables)


def rows_of(table, kind):
  """The words of each row, and for collectives those of the next line, with algorithm and place."""
  lines = [*table.splitlines(), ""]
  return [line.split() + behind.split() for line, behind in zip(lines, lines[1:]) if line.strip().startswith(kind)]


def test_the_table_counts_collectives(tmp_path):
  table = run("print(minipod.time_report())", MINIPOD_DUMP=tmp_path)
  assert "virtual time of v5e:2x2 (4 devices)" in table
  (reduce,) = rows_of(table, "all_reduce")
  assert reduce[1:4] == ["10", "262", "kB"] and "psum at" in " ".join(reduce)
  assert "busy" in reduce
  (permute,) = rows_of(table, "collective_permute")
  assert permute[1] == "20" and permute[4] == "async" and "messages," in permute
  assert any(row[1] == "40" for row in rows_of(table, "dot_general"))
  assert max(map(len, table.splitlines())) <= 100, table
  (dumped,) = glob.glob(f"{tmp_path}/*.time.txt")
  with open(dumped) as file:
    text = file.read()
  drop_real = lambda text: text[text.index("program"):].strip()
  assert drop_real(text) == drop_real(table)


def test_the_table_says_how_much_rests_on_estimates():
  """All that an H200 has is from an H100; a v5e's matmuls and sums are libtpu's."""
  code = """
      import json
      print(minipod.time_report())
      print(json.dumps([(p["unsure"], p["work"]) for p in json.loads(minipod.time_report("json"))[0]["programs"]]))
      """
  *table, numbers = run(code, topology="h200:4").strip().splitlines()
  lines = [line for line in table if "rests on estimated or copied parameters" in line]
  assert len(lines) == 2 and all(line.startswith("  100 % of this time") and len(line) <= 100 for line in lines)
  assert all(unsure == pytest.approx(work) for unsure, work in json.loads(numbers))
  *table, numbers = run(code).strip().splitlines()
  assert not any("rests on" in line for line in table) and all(unsure < 0.005 * work for unsure, work in json.loads(numbers))


def test_a_process_whose_client_stays_writes_its_table(tmp_path):
  run("""
      import os, ctypes, sys
      sys.stdout.flush()
      ctypes.CDLL(None).exit(0)  # as a program without Python's exit handlers
      """, MINIPOD_DUMP=tmp_path)
  assert len(glob.glob(f"{tmp_path}/*.time.txt")) == 1


def test_virtual_time_and_estimates():
  out = run("""
      before = minipod.virtual_time()
      f = jax.jit(lambda x: (x @ x).sum())
      one = np.ones((256, 256), np.float32)
      estimate = f.lower(one).compile().cost_analysis()["optimal_seconds"]
      assert 1e-7 < estimate < 1e-4, estimate
      assert minipod.virtual_time() == before > 0
      f(one).block_until_ready()
      assert minipod.virtual_time() >= before + estimate
      """)
  assert out == ""


def estimated_and_taken(script, **variables):
  """The seconds of a launch of the script's f(x): as cost_analysis estimates them, and by the virtual clock."""
  out = scenario.run(textwrap.dedent(script) + textwrap.dedent("""
      estimate = f.lower(x).compile().cost_analysis()["optimal_seconds"]
      jax.block_until_ready(f(x))
      before = minipod.virtual_time()
      jax.block_until_ready(f(x))
      print(estimate, minipod.virtual_time() - before)
      """), devices=None, MINIPOD_TIME="model", **variables)
  return map(float, out.split())


@pytest.mark.parametrize("function", [
    "lambda x: lax.fori_loop(0, 40, lambda i, x: x @ x, x)",
    "lambda x: lax.scan(lambda x, i: (x @ x + i, x.sum()), x, jnp.arange(30.))",
    "lambda x: lax.fori_loop(0, 5, lambda i, x: lax.fori_loop(0, 7, lambda k, x: jnp.sin(x @ x), x), x)",
    "lambda x: lax.while_loop(lambda c: 20 >= c[0], lambda c: (c[0] + 3, c[1] @ c[1]), (2, x))",
    "lambda x: lax.while_loop(lambda c: c[0] > -3, lambda c: (c[0] - 2, c[1] @ c[1]), (8, x))",
    "lambda x: lax.fori_loop(3, 3, lambda i, x: x @ x, x + 1)",
    "lambda x: lax.fori_loop(0, 1000, lambda i, s: s + i, 0)",  # one command
    "lambda x: lax.fori_loop(0, 6, lambda i, s: lax.fori_loop(0, 50, lambda k, s: s + k, s), 0)",
    "jax.shard_map(lambda x: lax.fori_loop(0, 9, lambda i, x: lax.psum(x @ x, 'i') / 4, x), "
    "mesh=mesh, in_specs=P('i'), out_specs=P('i'), check_vma=False)",
])
def test_estimates_count_rounds(function):
  estimate, taken = estimated_and_taken(f"""
      import minipod
      mesh = Mesh(np.array(jax.devices()), ("i",))
      x = jnp.ones((4 * 64, 64)) if {"shard_map" in function} else jnp.ones((128, 128))
      f = jax.jit({function}, **(dict(in_shardings=NamedSharding(mesh, P("i"))) if {"shard_map" in function} else {{}}))
      x = jax.device_put(x, f.lower(x).compile().input_shardings[0][0])
      """, MINIPOD_TOPOLOGY="v5e:2x2 launch_latency:0")
  assert abs(estimate - taken) < 0.001 * taken + 1e-12, (estimate, taken)


def test_a_gather_beside_a_loop_delays_only_its_first_rounds():
  estimate, taken = estimated_and_taken("""
      import minipod
      mesh = Mesh(np.array(jax.devices()), ("i",))
      gather = lambda x: lax.all_gather(x, "i", tiled=True)
      rounds = lambda x: lax.fori_loop(0, 9, lambda i, x: gather(x @ x)[:64] / 4, x)
      f = jax.jit(jax.shard_map(lambda x: gather(jnp.tile(x, (64, 64))).T @ rounds(x)[:1].repeat(8 * 64 * 64, 0),
                                mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
      x = jax.device_put(jnp.ones((8 * 64, 64)), NamedSharding(mesh, P("i")))
      """, MINIPOD_TOPOLOGY="7x:2x2x1 launch_latency:0", MINIPOD_VALUES="shapes")
  assert abs(estimate - taken) < 0.001 * taken, (estimate, taken)


def test_lines_are_the_users(tmp_path):
  """Work that the package does for a user's call belongs to the line of that call."""
  script = tmp_path / "script.py"
  script.write_text("import jax, minipod, jax.numpy as jnp\n"
                    "on = jax.NamedSharding(jax.make_mesh((512,), ('x',)), jax.P('x'))\n"
                    "jax.block_until_ready(jax.device_put(jnp.arange(1024.), on))\n"
                    "print(minipod.time_report('summary', by='line'))\n")
  env = scenario.environment(None, MINIPOD_TOPOLOGY="v5p:8x8x8", MINIPOD_TIME="model")
  done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=300)
  assert "_multi_slice" in done.stdout and "script.py:3:" in done.stdout, done.stderr
  assert "arrays.py" not in done.stdout


def test_without_a_model_there_is_no_time():
  out = run("""
      for ask in (minipod.time_report, minipod.virtual_time):
        try:
          ask()
        except RuntimeError as error:
          print("MINIPOD_TIME=model" in str(error))
      print("optimal_seconds" in step.lower(x).compile().cost_analysis())
      """, time="off")
  assert out.split() == ["True", "True", "False"]


@pytest.mark.parametrize("option", ["trace", "chakra"])
def test_reports_need_a_model(option, tmp_path):
  returncode, _, log = scenario.finish(scenario.start("jax.devices()", **{f"MINIPOD_{option.upper()}": tmp_path / "file"}))
  assert (returncode, log) == (
      0, f"minipod: warning: option {option} (environment variable) has no effect without time: model\n")
  assert not (tmp_path / "file").exists()


def test_a_file_that_cannot_be_written(tmp_path):
  error = scenario.run("jax.devices()", fails=True, MINIPOD_TIME="model",
                       MINIPOD_TRACE=tmp_path / "none" / "t.json")
  assert "option trace: cannot write" in error


# ---- the timeline ----

def slices_of(events):
  """Complete events by row.  Checks that they nest, and that an outer event comes before its inner ones."""
  rows = collections.defaultdict(list)
  for event in events:
    if event["ph"] == "X":
      begin = round(event["ts"] * 1000)
      rows[event["pid"], event["tid"]].append((begin, begin + round(event["dur"] * 1000), event))
  for row in rows.values():
    row.sort(key=lambda slice: slice[0])  # the sort is stable: events with the same start keep the file's order
    open_ends = []
    for begin, end, event in row:
      while open_ends and open_ends[-1] <= begin:
        open_ends.pop()
      assert not open_ends or end <= open_ends[-1], event
      if end > begin:
        open_ends.append(end)
  return {key: [event for _, _, event in row] for key, row in rows.items()}


def check_format(events):
  """Checks the requirements of the Trace Event Format on minipod's events."""
  number = lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)
  needed = {"X": {"name", "ph", "ts", "dur", "pid", "tid"}, "M": {"name", "ph", "pid", "args"},
            "i": {"name", "ph", "ts", "pid", "tid", "s"}}
  assert isinstance(events, list)
  for event in events:
    assert needed[event["ph"]] <= set(event), event
    assert set(event) <= needed[event["ph"]] | {"tid", "args", "cat"}, event
    assert all(isinstance(event.get(key, 0), int) for key in ("pid", "tid")), event
    assert all(isinstance(event.get(key, ""), str) for key in ("name", "cat")), event
    assert all(number(event.get(key, 0)) and event.get(key, 0) >= 0 for key in ("ts", "dur")), event
    assert isinstance(event.get("args", {}), dict), event
    if event["ph"] == "M":
      assert event["name"] in ("process_name", "thread_name", "process_labels", "process_sort_index",
                               "thread_sort_index"), event
    if event["ph"] == "i":
      assert event["s"] in "gpt", event


def test_the_timeline(tmp_path):
  run(MINIPOD_TRACE=tmp_path / "t.json")
  with open(tmp_path / "t.json") as file:
    events = json.load(file)
  check_format(events)
  processes = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
  assert set(processes) == {"host", "v5e:2x2", "links", "overlapped collectives"}
  rows = slices_of(events)
  named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
  assert set(rows) <= named
  pod, links, beside = (processes[name] for name in ("v5e:2x2", "links", "overlapped collectives"))
  for device in range(4):
    names = collections.Counter(e["args"].get("kind", e["name"]) for e in rows[pod, device + 1])
    assert names["all_reduce"] == 10 and names["dot_general"] == 10
    assert collections.Counter(e["name"] for e in rows[beside, device + 1]) == {"collective_permute": 5}
    work = [e["name"] for e in rows[pod, device + 1] if e["args"].get("kind") == "dot_general"]
    assert all(name.endswith("dot_general") and "jit(" not in name for name in work), work
  reduce = next(e for e in rows[pod, 1] if e["name"] == "all_reduce")
  assert reduce["args"]["bytes"] == 262144 and reduce["args"]["algorithm"]
  assert reduce["args"]["op"].endswith("psum") and reduce["args"]["line"] > 0
  used = [row for (pid, _), row in rows.items() if pid == links]
  assert used and all(0 < e["args"]["load"] <= 1.001 for row in used for e in row)


def test_perfetto_opens_the_timeline(tmp_path):
  trace_processor.folder_of_the_program()
  run(MINIPOD_TRACE=tmp_path / "t.json")
  with open(tmp_path / "t.json") as file:
    written = slices_of(json.load(file))
  rows, lost = trace_processor.query(
      tmp_path / "t.json", "select process.name, thread.name, count(*), sum(dur) from slice "
      "join thread_track on slice.track_id = thread_track.id join thread using(utid) "
      "join process using(upid) group by 1, 2",
      "select name, value from stats where severity in ('error', 'data_loss') and value > 0")
  assert not lost
  assert len(rows) == len(written)
  counts = collections.Counter({name: count for _, name, count, _ in rows})
  assert sum(counts.values()) == sum(map(len, written.values()))
  assert all(counts[f"device {device}"] == counts["device 0"] for device in range(4))
  longest = {name: time for process, name, _, time in rows if process == "v5e:2x2"}
  assert all(longest[f"device {device}"] > 0 for device in range(4))
  assert any(process == "links" for process, *_ in rows)


def test_a_compressed_timeline_is_the_same(tmp_path):
  run(MINIPOD_TRACE=tmp_path / "t.json")
  run(MINIPOD_TRACE=tmp_path / "t.json.gz")
  plain = (tmp_path / "t.json").read_bytes()
  small = (tmp_path / "t.json.gz").read_bytes()
  assert gzip.decompress(small) == plain
  assert len(small) < len(plain) / 4


def test_the_timeline_is_bounded(tmp_path):
  run(MINIPOD_TRACE=tmp_path / "t.json", MINIPOD_TRACE_EVENTS=50)
  with open(tmp_path / "t.json") as file:
    events = json.load(file)
  check_format(events)
  assert sum(e["ph"] == "X" for e in events) == 50
  assert sum("MINIPOD_TRACE_EVENTS" in e["name"] for e in events) == 1


def test_the_timeline_of_a_killed_process(tmp_path):
  process = scenario.start(textwrap.dedent(PROGRAM) + textwrap.dedent("""
      for _ in range(2000):
        x = step(x)
      x.block_until_ready()
      minipod.virtual_time()  # which computes what the timeline tells
      import os
      os.kill(os.getpid(), 9)
      """), devices=None, MINIPOD_TIME="model", MINIPOD_TOPOLOGY="v5e:2x2",
      MINIPOD_TRACE=tmp_path / "t.json")
  assert scenario.finish(process)[0] == -9
  with open(tmp_path / "t.json") as file:
    text = file.read()
  # Perfetto accepts an array without its end.
  events = json.loads(text.rstrip().rstrip(",") + "]")
  assert len(events) > 1000


# ---- profiles ----

PROFILE = """
    with jax.profiler.trace("{folder}"):
      for _ in range(3):
        step(np.ones((4, 256, 256), np.float32)).block_until_ready()
    """


def test_profiles_have_virtual_times(tmp_path):
  """The planes of a described TPU, as its own profiler writes them."""
  out = run(PROFILE.format(folder=tmp_path) + f"""
    import glob
    path, = glob.glob("{tmp_path}/**/*.xplane.pb", recursive=True)
    for plane in jax.profiler.ProfileData.from_file(path).planes:
      if "TPU" in plane.name:
        lines = {{line.name: [e.name for e in line.events] for line in plane.lines}}
        print(plane.name, len(lines["XLA Modules"]), *lines["Steps"], *lines["XLA Ops"])
    """)
  rows = [line.split() for line in out.splitlines()]
  assert [row[:5] for row in rows] == [[f"/device:TPU:{i}", "3", "0", "1", "2"] for i in range(4)]
  for row in rows:
    assert sum(name.startswith("all_reduce") for name in row) == 3
    assert sum(name.startswith("dot_general") for name in row) == 3


def planes_of(folder):
  """The fields of each plane of the profile there."""
  (path,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
  with open(path, "rb") as file:
    return [list(fields_of(plane)) for number, plane in fields_of(file.read()) if number == 1]


def test_profiles_say_what_the_chip_and_its_kernels_are(tmp_path):
  run(PROFILE.format(folder=tmp_path))
  planes = planes_of(tmp_path)
  (plane,) = [plane for plane in planes if (2, b"/device:TPU:0") in plane]
  names = {}
  for number, entry in plane:
    if number == 5:
      name = dict(fields_of(dict(fields_of(entry))[2]))
      names[name[1]] = name[2].decode()

  def stats_of(fields, number):
    stats = (list(fields_of(value)) for field, value in fields if field == number)
    return {names[dict(stat)[1]]: stat[-1][1] for stat in stats}

  chip = stats_of(plane, 6)
  assert chip["device_type_string"] == b"TPU v5 lite"
  assert chip["peak_teraflops_per_second"] == 197
  assert round(chip["peak_hbm_bw_gigabytes_per_second"]) in (819, 820)
  events = [list(fields_of(dict(fields_of(entry))[2])) for number, entry in plane if number == 4]
  (program,) = [dict(event)[2].decode() for event in events if dict(event)[2].endswith(b")")]
  (product,) = [stats_of(event, 5) for event in events if dict(event)[2].startswith(b"dot_general")]
  assert f"({product['program_id']})" in program and product["hlo_category"] == b"matmul"
  assert 2 * 256**3 <= product["flops"] < 2.1 * 256**3 and product["bytes_accessed"] >= 2 * 4 * 256**2
  assert dict(fields_of(dict(fields_of(product["memory_access_breakdown"]))[1])) == {
      1: 1, 2: 1, 3: product["bytes_accessed"]}
  (psum,) = [stats_of(event, 5) for event in events if dict(event)[2].startswith(b"all_reduce")]
  assert psum["hlo_category"] == b"all-reduce"


def test_profiles_have_the_memory_of_programs(tmp_path):
  out = run(PROFILE.format(folder=tmp_path) + """
    m = step.lower(x).compile().memory_analysis()
    print(m.argument_size_in_bytes, m.output_size_in_bytes - m.alias_size_in_bytes, m.temp_size_in_bytes)
    """)
  arguments, results, temporaries = map(int, out.split())
  planes = planes_of(tmp_path)
  protos = [dict(fields_of(dict(fields_of(dict(fields_of(entry))[2]))[5]))[6] for plane in planes
            if (2, b"/host:metadata") in plane for number, entry in plane if number == 4]
  (hlo,) = [dict(fields_of(proto)) for proto in protos]
  allocations = [dict(fields_of(value)) for number, value in fields_of(hlo[3]) if number == 3]
  sizes = collections.Counter()
  for allocation in allocations:
    sizes["argument" if 5 in allocation else "result" if 7 in allocation else "temporary"] += allocation[2]
  assert sizes == {"argument": arguments, "result": results, "temporary": temporaries}
  assert 4 * 256**2 <= temporaries


def test_a_profile_of_a_pod_without_figures_has_names_of_its_own(tmp_path):
  out = run(PROFILE.format(folder=tmp_path) + f"""
    import glob
    path, = glob.glob("{tmp_path}/**/*.xplane.pb", recursive=True)
    print(*[p.name for p in jax.profiler.ProfileData.from_file(path).planes if "MINIPOD" in p.name])
    """, topology="ring:4")
  assert out.split() == [f"/device:CUSTOM:MINIPOD:{i}" for i in range(4)]


XPROF = """
import json, os, sys
from xprof.convert import raw_to_tool_data as xprof
path = sys.argv[1]
xprof.xspace_to_tool_names([path])
module, = [name.removesuffix(".hlo_proto.pb") for name in os.listdir(os.path.dirname(path))
           if name.endswith(").hlo_proto.pb")]
pages = {"module": module}
for tool in sys.argv[2:]:
  data = xprof.xspace_to_tool_data([path], tool, {"tqx": "out:json;", "module_name": module})[0]
  pages[tool] = json.loads(data)
json.dump(pages, sys.stdout)
"""


# The second step has two launches.
PROFILE_OF_STEPS = """
    x = np.ones((4, 256, 256), np.float32)
    with jax.profiler.trace("{folder}"):
      for number, launches in ((7, 1), (8, 2)):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
          for _ in range(launches):
            step(x).block_until_ready()
    """


@pytest.mark.parametrize("profile, steps", [(PROFILE, 3), (PROFILE_OF_STEPS, 2)])
def test_xprof_shows_the_pod(tmp_path, profile, steps):
  """Launches are steps of their own; if the program has marked steps, launches belong to these."""
  pytest.importorskip("xprof")
  run(profile.format(folder=tmp_path))
  (path,) = glob.glob(f"{tmp_path}/**/*.xplane.pb", recursive=True)
  # In a process of its own, because XProf brings libraries that JAX also has.
  done = subprocess.run([sys.executable, "-c", XPROF, path, "trace_viewer", "overview_page", "op_profile",
                         "memory_viewer", "pod_viewer"], capture_output=True, text=True, timeout=200)
  assert done.returncode == 0, done.stderr
  pages = json.loads(done.stdout)
  events = pages["trace_viewer"]["traceEvents"]
  devices = {e["args"]["name"]: e["pid"] for e in events if e.get("name") == "process_name"}
  for device in range(4):
    names = [e["name"] for e in events if e.get("ph") == "X" and
             e["pid"] == devices[f"/device:TPU:{device}"]]
    assert sum(name.startswith("all_reduce") for name in names) == 3
  assert not any("minipod" in name for name in devices)  # next to a TPU, XProf omits other devices
  assert float(pages["overview_page"][0]["p"]["tc_active_ms_average"]) > 0
  assert len(pages["overview_page"][1]["rows"]) == steps
  percent = lambda name: float(pages["overview_page"][0]["p"][name].rstrip("%"))
  shown = pages["pod_viewer"]["podStatsSequence"]["podStatsMap"]
  assert len(shown) == steps
  for one in shown:
    cores = one["podStatsPerCore"].values()
    assert len(cores) == 4 and all(core["totalDurationUs"] > 0 and core["bottleneck"] for core in cores)
  (program,) = [p for p in pages["op_profile"]["byProgram"]["children"] if p["name"] != "IDLE"]
  # Shares of the time of launches, with one decimal.  XProf's own share of operations refers to other times.
  seconds = 1e-12 * program["metrics"]["rawTime"]
  used = program["metrics"]["rawFlops"] / (197e12 * seconds), program["metrics"]["rawBytesAccessedArray"][0] / (819e9 * seconds)
  assert 0 < percent("mxu_utilization_percent") == pytest.approx(100 * used[0], abs=0.06)
  assert 0 < percent("hbm_utilization_percent") == pytest.approx(100 * used[1], abs=0.06)
  assert program["name"] == pages["module"] and 0 < program["metrics"]["flops"] < 1
  memory = pages["memory_viewer"]
  assert memory["entryComputationParametersMib"] == 0.25
  assert memory["peakHeapMib"] >= memory["totalBufferAllocationMib"] * 0.99


# ---- Chakra ----

def nodes_of(path):
  with open(path, "rb") as file:
    data = file.read()
  at, messages = 0, []
  while at < len(data):
    size, at = read_varint(data, at)
    messages.append(data[at:at + size])
    at += size
  assert dict(fields_of(messages[0])) == {1: b"0.0.4"}
  for message in messages[1:]:
    node = collections.defaultdict(list)
    for number, value in fields_of(message):
      node[number].append(value)
    attrs = [dict(fields_of(attr)) for attr in node[10]]
    yield {"id": node[1][0], "type": node[3][0], "name": node[2][0].decode(),
           "deps": [read_varint(deps, 0)[0] for deps in node[5]],
           **{attr[1].decode(): next(v for k, v in attr.items() if k != 1) for attr in attrs}}


def test_chakra_traces(tmp_path):
  run(MINIPOD_CHAKRA=tmp_path / "et")
  with open(tmp_path / "et" / "comm_groups.json") as file:
    groups = json.load(file)
  assert groups == {"1": [0, 1, 2, 3]}
  COMP, SEND, RECV, COLL = 4, 5, 6, 7
  sends, receives = collections.Counter(), collections.Counter()
  for device in range(4):
    nodes = list(nodes_of(tmp_path / "et" / f"minipod.{device}.et"))
    assert [n["id"] for n in nodes] == list(range(len(nodes)))
    assert all(n["deps"] == [n["id"] - 1] for n in nodes[1:])
    collectives = [n for n in nodes if n["type"] == COLL]
    assert len(collectives) == 10
    assert all(n["comm_type"] == 0 and n["comm_size"] == 262144 and n["pg_name"] == b"1"
               for n in collectives)
    assert sum(n["type"] == COMP and n["num_ops"] == 2 * 256**3 for n in nodes) == 10
    for counts, kind in ((sends, SEND), (receives, RECV)):
      counts.update((n["comm_src"], n["comm_dst"], n["comm_tag"], n["comm_size"])
                    for n in nodes if n["type"] == kind)
  assert sends == receives and sum(sends.values()) == 20
