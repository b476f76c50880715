"""tools/chip: the readers of compilers' texts, on texts that are small enough to check by hand."""

import json
import math
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools" / "chip"))

import bundles
import bundles_run
import bundles_times
import corpus
import gpu
import gpu_matmuls
import hlo_kernels
import hlo_loops
import hlo_text
import hlo_traffic
import tpu


def module(*lines):
  return hlo_text.Module("ENTRY %main (p: f32[8]) -> f32[8] {\n" + "\n".join("  " + line for line in lines) + "\n}\n")


# ---- shapes and traffic ----

@pytest.mark.parametrize("shape, anywhere, in_hbm", [
    ("f32[8,128]{1,0:T(8,128)}", 4096, 4096),
    ("f32[9,130]{1,0:T(8,128)}", 16 * 256 * 4, 16 * 256 * 4),  # whole tiles
    ("bf16[16,128]{0,1:T(8,128)(2,1)}", 16 * 128 * 16, 16 * 128 * 16),  # the minor dimension is the first
    ("f32[8,128]{1,0:T(8,128)S(1)}", 4096, 0),  # VMEM
    ("(f32[4], s4[4], f8e4m3fn[3])", 16 + 2 + 3, 16 + 2 + 3),
    ("pred[]", 1, 1),
])
def test_size_of(shape, anywhere, in_hbm):
  assert hlo_text.size_of(shape, False) == anywhere
  assert hlo_text.size_of(shape, True) == in_hbm


def test_an_instruction_is_taken_apart():
  body = module("ROOT %a.1 = (f32[2]{0}, s32[]) fusion(%b, (f32[]) %c), kind=kLoop, calls=%inner.2").body("main")
  op = body["a.1"]
  assert (op.shape, op.opcode, op.operands, op.root) == ("(f32[2]{0}, s32[])", "fusion", ["b", "c"], True)
  assert op.called("calls") == "inner.2" and op.attribute(r"kind=(\w+)") == "kLoop"


SLICING = """%slices (a: f32[1024,8], i: s32[]) -> f32[1,8] {
  %a = f32[1024,8] parameter(0)
  %i = s32[] parameter(1)
  ROOT %s = f32[1,8] dynamic-slice(%a, %i, %i), dynamic_slice_sizes={1,8}
}
%updates (a: f32[1024,8], u: f32[1,8], i: s32[]) -> f32[1024,8] {
  %a = f32[1024,8] parameter(0)
  %u = f32[1,8] parameter(1)
  %i = s32[] parameter(2)
  ROOT %d = f32[1024,8] dynamic-update-slice(%a, %u, %i, %i)
}
ENTRY %main (x: f32[1024,8], k: s32[]) -> f32[1024,8] {
  %x = f32[1024,8] parameter(0)
  %k = s32[] parameter(1)
  %row = f32[1,8] fusion(%x, %k), kind=kLoop, calls=%slices
  ROOT %new = f32[1024,8] fusion(%x, %row, %k), kind=kLoop, calls=%updates
}
"""


def test_traffic_of_slices_and_updates_in_place():
  text = hlo_text.Module(SLICING)
  body = text.body("main")
  assert hlo_traffic.moved(text, body["row"], body) == 32 + 4 + 32
  assert hlo_traffic.moved(text, body["new"], body) == 32 + 32 + 4  # writes the row, reads the row and the index


def test_traffic_of_an_update_in_a_nested_fusion():
  """The fusion that updates an array may be the root of another one."""
  nested = """%outer (b: f32[1024,8], v: f32[1,8], j: s32[]) -> f32[1024,8] {
  %b = f32[1024,8] parameter(0)
  %v = f32[1,8] parameter(1)
  %j = s32[] parameter(2)
  ROOT %n = f32[1024,8] fusion(%b, %v, %j), kind=kCustom, calls=%updates
}
"""
  text = hlo_text.Module(nested + SLICING.replace("kind=kLoop, calls=%updates", "kind=kLoop, calls=%outer"))
  plain = hlo_text.Module(SLICING)
  assert hlo_traffic.moved(text, text.body("main")["new"], text.body("main")) == hlo_traffic.moved(
      plain, plain.body("main")["new"], plain.body("main"))


def test_traffic_of_slices_in_a_nested_fusion():
  """A fusion in another one may read a slice of an array, and the array may be copied in place before."""
  nested = """%as_it_is (c: f32[1024,8]) -> f32[1024,8] {
  %c = f32[1024,8] parameter(0)
  ROOT %y = f32[1024,8] copy(%c)
}
%outer (b: f32[1024,8], j: s32[]) -> f32[1,8] {
  %b = f32[1024,8] parameter(0)
  %j = s32[] parameter(1)
  %z = f32[1024,8] fusion(%b), kind=kLoop, calls=%as_it_is
  %r = f32[1,8] fusion(%z, %j), kind=kLoop, calls=%slices
  ROOT %t = f32[1,8] tanh(%r)
}
"""
  text = hlo_text.Module(nested + SLICING.replace("kind=kLoop, calls=%slices", "kind=kLoop, calls=%outer"))
  plain = hlo_text.Module(SLICING)
  assert hlo_traffic.moved(text, text.body("main")["row"], text.body("main")) == hlo_traffic.moved(
      plain, plain.body("main")["row"], plain.body("main"))


def test_an_argument_that_is_prefetched_for_the_next_run_counts_once():
  """What no op reads is for the next run, whose copy at the start then moves nothing."""
  both = "(f32[1024,8]{1,0:S(1)}, f32[1024,8]{1,0}, u32[]{:S(2)})"
  text = module("%p = f32[1024,8]{1,0} parameter(0)", "%q = f32[1024,8]{1,0} parameter(1)",
                f"%first = {both} copy-start(%p), cross_program_prefetch_index=0",
                f"%other = {both} copy-start(%q), cross_program_prefetch_index=1",
                "%here = f32[1024,8]{1,0:S(1)} copy-done(%first)", "%there = f32[1024,8]{1,0:S(1)} copy-done(%other)",
                "%sum = f32[1024,8]{1,0:S(1)} add(%here, %there)", f"%last = {both} copy-start(%p)",
                "%unread = f32[1024,8]{1,0:S(1)} copy-done(%last)", f"%again = {both} copy-start(%q)",
                "%more = f32[1024,8]{1,0:S(1)} copy-done(%again)", "ROOT %r = f32[1024,8]{1,0} add(%sum, %more)")
  body = text.body("main")
  assert {name: hlo_traffic.moved(text, body[name], body) for name in ("first", "last", "other", "again", "unread")} == {
      "first": 0, "last": 32768, "other": 32768, "again": 32768, "unread": 0}


# ---- loops ----

LOOP = """%body (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %step = s32[] constant(STEP)
  %next = s32[] add(%i, %step)
  %x = f32[8] get-tuple-element(%t), index=1
  %y = f32[8] negate(%x), backend_config={"estimated_cycles":"7"}
  ROOT %r = (s32[], f32[8]) tuple(%next, %y)
}
%cond (t: (s32[], f32[8])) -> pred[] {
  %t = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %n = s32[] constant(50)
  ROOT %c = pred[] compare(SIDES), direction=DIRECTION
}
ENTRY %main (x: f32[8], s: s32[]) -> f32[8] {
  %x = f32[8] parameter(0)
  %s = s32[] parameter(1)
  %zero = s32[] constant(0)
  %t = (s32[], f32[8]) tuple(START, %x)
  %w = (s32[], f32[8]) while(%t), condition=%cond, body=%bodyATTRIBUTES
  ROOT %y = f32[8] get-tuple-element(%w), index=1
}
"""


def loop(start="%zero", step=1, sides="%i, %n", direction="LT", attributes=""):
  return (LOOP.replace("START", start).replace("STEP", str(step)).replace("SIDES", sides)
          .replace("DIRECTION", direction).replace("ATTRIBUTES", attributes))


@pytest.mark.parametrize("text, trips", [
    (loop(), 50),
    (loop(step=3), 17),
    (loop(direction="LE"), 51),
    (loop(sides="%n, %i", direction="GT"), 50),
    (loop(direction="GT", step=-1), 0),
    (loop(start="%s"), None),  # an argument
    (loop(start="%s", attributes=', backend_config={"known_trip_count":{"n":"9"}}'), 9),
])
def test_trips(text, trips):
  read = hlo_text.Module(text)
  assert hlo_loops.trips(read, read.body("main")["w"], read.body("main")) == trips


def test_a_loop_counts_times_its_trips():
  row = tpu.read(loop(), "v5e")
  assert (row["cycles"], row["launches"], row["loops"]) == (350, 100, 1) and "unknown_loops" not in row


def test_a_loop_without_trips_counts_once_and_opens_the_interval():
  row = tpu.read(loop(start="%s"), "v5e")
  assert (row["cycles"], row["unknown_loops"]) == (7, 1)
  assert corpus.interval(row)[1] == math.inf


# ---- what a row says ----

TPU = """%dot (a: bf16[128,128], b: bf16[128,128]) -> bf16[128,128] {
  %a = bf16[128,128] parameter(0)
  %b = bf16[128,128] parameter(1)
  ROOT %c = bf16[128,128]{1,0:S(1)} convolution(%a, %b), dim_labels=bf_io->bf
}
ENTRY %main (x: bf16[128,128], y: bf16[128,128], i: s32[64]) -> bf16[128,128] {
  %x = bf16[128,128] parameter(0)
  %y = bf16[128,128] parameter(1)
  %i = s32[64] parameter(2)
  %m = bf16[128,128]{1,0:S(1)} fusion(%x, %y), kind=kOutput, calls=%dot, backend_config={"estimated_cycles":"3000000"}
  %s = (bf16[128,128], bf16[128,128]) all-gather-start(%m), dimensions={0}
  %n = bf16[128,128] negate(%x), backend_config={"estimated_cycles":"1000"}
  %d = bf16[128,128] all-gather-done(%s)
  %r = bf16[128,128] all-reduce(%d), to_apply=%add
  ROOT %g = bf16[64,128] gather(%r, %i), offset_dims={1}
}
"""


def test_a_row_of_a_tpu():
  row, array = tpu.read(TPU, "v5e"), 128 * 128 * 2
  assert (row["cycles"], row["matmul"], row["kernels"]) == (3001000, 3000000, 6)
  assert row["low"] >= 3e6 / 1.5e9 and row["high"] - row["low"] < 1000 / 1.5e9
  assert row["collectives"] == {"all-gather": {"async": 1}, "all-reduce": {"sync": 1}}
  assert row["overlapped"] == 1000
  assert row["irregular"] == ["gather"] and corpus.interval(row)[1] == math.inf
  gathered = 64 * 128 * 2
  # The matmul reads two arrays, its result stays in VMEM; the start has its operand and result, the gather its rows.
  assert row["bytes"] == 2 * array + 2 * array + 2 * array + 2 * array + (gathered + 256 + gathered)


def cost(**models):
  entries = ",".join(f'{{"exec_time_us":{us},"name":"{name}"}}' for name, us in models.items())
  return f'backend_config={{"reification_cost":[{entries}]}}'


CONTRACTED = 'backend_config={"lhs_batch_dimensions":[],"lhs_contracting_dimensions":["1"]}'
GPU = f"""%add (a: f32[8], b: f32[8]) -> f32[8] {{
  %a = f32[8] parameter(0)
  ROOT %s = f32[8] add(%a, %a)
}}
ENTRY %main (x: f32[8]) -> f32[8] {{
  %x = f32[8] parameter(0)
  %f = f32[8] fusion(%x), kind=kLoop, calls=%add, {cost(sol=2.0)}
  %w = bf16[512,512] parameter(1)
  %p = bf16[512,512] custom-call(%w, %w), custom_call_target="__cublas$lt$matmul", {CONTRACTED}, {cost(sol=5.0)}
  %s = (f32[8], f32[8]) all-reduce-start(%f), to_apply=%add, {cost(sol=9.0)}
  %g = f32[8] fusion(%f), kind=kLoop, calls=%add, {cost(sol=4.0)}
  %d = f32[8] all-reduce-done(%s)
  ROOT %o = f32[8] sort(%d), dimensions={{0}}
}}
"""


def test_a_row_of_a_gpu():
  row = gpu.read(GPU, "h100", {})
  assert (row["cycles"], row["matmul"]) == (11000, 5000)
  assert row["collectives"] == {"all-reduce": {"async": 1}}
  assert (row["collective"], row["exposed"], row["overlapped"]) == (9000, 5000, 4000)
  assert row["irregular"] == ["sort"]


def test_tables_of_matmuls_bound_those_that_they_lack():
  bf16, exact = ("bf16",) * 3, False
  bounds = lambda *sizes, types=bf16: gpu_matmuls.bounds(gpu_matmuls.Matmul(types, exact, *sizes), 8000.0, "h100", 1e15)
  assert bounds(1, 512, 512, 512) == (8000, 8000)
  assert bounds(1, 64, 512, 128) == (8000, 8000 * 4 * 2)  # no longer than with 256 rows and a k of 256
  assert bounds(16, 256, 256, 256) == (2000, 8000)  # no shorter than four of them
  assert bounds(1, 8192, 4096, 4096)[0] == pytest.approx(2 * 8192 * 4096**2 / 1e15 * 1e9)  # nor than at the peak
  assert bounds(1, 512, 512, 512, types=("bf16", "bf16", "f32")) is None
  assert bounds(1, 512, 512, 512, types=("f8", "f8", "bf16")) == (8000, 16000)  # the mean of two kernels


def test_costs_of_wrapped_collectives_come_from_the_serialized_module():
  number = lambda n: bytes([n & 127 | 128, n >> 7]) if n > 127 else bytes([n])
  field = lambda n, data: number(n << 3 | 2) + number(len(data)) + data
  inner = field(1, b"r") + field(2, b"reduce-scatter") + field(43, cost(sol=3.0).encode())
  start = field(1, b"async-start.1") + field(2, b"async-start") + field(38, b"\x07")
  module = field(3, b"\x28\x07" + field(2, inner)) + field(3, b"\x28\x08" + field(2, start))
  assert gpu.wrapped_costs(module) == {"async-start.1": 3000}


# ---- bundles ----

def kernel(*lines):
  """A dump: the lines are bundles, in order."""
  return bundles_run.kernel_of("= control target key end\n\n" + "\n".join(
      f"{hex(i) if i else '0':>6} {line}" for i, line in enumerate(lines)))


COUNTED = (
    "  :  { %s1_s2 = smov.u32 0 }",
    "LB: > { %s2_s2 = sphi %s1_s2, %s3_s2  ;;  %p1_p0 = scmp.ge.s32.totalorder %s2_s2, 2 } /* Start region 4 */",
    "  : > { %9 = sbr.rel (%p1_p0) target = $region7 }", *["  :  {}"] * 4,
    "  : > { %11 = dma.done.wait (!%p1_p0), [#allocation2], 16 /* a comment\n of two lines */ }",
    "PF: > { %s3_s2 = sadd.s32 1, %s2_s2 } /* Start/End empty region 7 */",
    "  : > { %p2_p1 = scmp.ge.s32.totalorder %s3_s2, 5 /* loop exit test */ }",
    "  :  { %10 = sbr.rel (!%p2_p1) target = $region4 }", *["  :  {}"] * 4,
)


def test_bundles_of_loops_and_skipped_regions():
  counts, waits = kernel(*COUNTED).counts()
  assert counts == [1, 5, 2, 5]  # before the loop, its head, the region that two turns run, its end
  assert waits == 2
  text = kernel(*COUNTED).bundles
  assert len(text) == 15 and text[7].slots[0].guard == (False, "p1_p0")


def test_a_spilled_counter_is_followed():
  counts, _ = kernel(
      "  :  { %s1_s2 = smov.u32 0 }",
      "  :  { %2 = sst [smem:[#allocation5_spill]] %s1_s2 }",
      "LB: > { %s3_s4 = sld [smem:[#allocation5_spill]] } /* Start region 1 */",
      "  : > { %s4_s4 = sadd.s32 2, %s3_s4 }",
      "  : > { %5 = sst [smem:[#allocation5_spill]] %s4_s4  ;;  %p1_p0 = scmp.lt.s32.totalorder %s4_s4, 9 }",
      "  :  { %6 = sbr.rel (%p1_p0) target = $region1 }", *["  :  {}"] * 4).counts()
  assert counts == [1, 5]


def test_a_loop_whose_end_depends_on_data_takes_the_trips_that_it_is_given():
  looping = kernel(
      "LB: > { %s1_s1 = sld [smem:[#allocation3]] } /* Start region 1 */",
      "  : > { %p1_p0 = scmp.lt.s32.totalorder %s1_s1, 9 }",
      "  :  { %6 = sbr.rel (%p1_p0) target = $region1 }", *["  :  {}"] * 4)
  assert looping.unsure == [0] and looping.loops() == [0]
  assert looping.counts()[0] == [1]
  assert looping.counts({0: 12})[0] == [12]


def cycles(chip, *lines):
  return bundles_times.Clock(bundles_times.TIMES[chip], {}).run(kernel(*lines).bundles)


@pytest.mark.parametrize("chip, lines, expected", [
    ("v5e", ["  :  { %v1_v1 = vld [vmem:[%s1_s1]] }", "  :  { %2 = vst [vmem:[%s2_s2]] /*vst_source=*/%v1_v1 }"], 2),
    ("v5e", ["  :  { %v1_v1 = vadd.f32 %v0_v0, %v0_v0 }", "  :  { %v2_v2 = vadd.f32 %v1_v1, %v1_v1 }"], 3),
    ("v5e", ["  :  { %1 = vtanh.f32 %v0_v0 }", "  :  { %v2_v2 = vpop.erf }"], 8),
    ("v6e", ["  :  { %1 = vtanh.f32 %v0_v0 }", "  :  { %v2_v2 = vpop.erf }"], 15),
    ("v5e", ["  :  { %1 = vrot.lane.b32.xlu0 %v0_v0, 1 }", "  :  { %v2_v2 = vpop.permute.xlu0 %1 }"], 93),
    ("v5e", ["  :  { %1 = vmatmul.bf16.gmra.mxu0 %v0_v0 }", "  :  { %v2_v2 = vpop.f32.mrf.mxu0 }",
             "  :  { %v3_v3 = vpop.f32.mrf.mxu0 }"], 132 + 8),  # packed: two results, eight cycles apart
    ("v5e", ["  :  { %1 = vmatmul.f32.gmra.mxu0 %v0_v0  ;;  %2 = vmatmul.f32.gmra.mxu1 %v0_v0 }",
             "  :  { %v2_v2 = vpop.f32.mrf.mxu0  ;;  %v3_v3 = vpop.f32.mrf.mxu1 }"], 132),
    ("v5e", ["  :  { %1 = vdelay 3 }", "  :  {}"], 5),
])
def test_waits_for_results(chip, lines, expected):
  assert cycles(chip, *lines) == expected


DUMP = "= control target key end\n\n"
CALLER = """     0   :  { %s1_s1 = smov.u32 0 }
   0x1 LB: > { %4 = inlined_call %s2_s2 /* %negate.1 = negate(%x.1) */ } /* Start region 5 */
   0x2   : > { %5 = inlined_call %s2_s2 /* %negate.2 = negate(%x.2) */ }
   0x3   : > { %s1_s1 = sadd.s32 1, %s1_s1 }
   0x4   : > { %p1_p0 = scmp.lt.s32.totalorder %s1_s1, 3 }
   0x5   :  { %6 = sbr.rel (%p1_p0) target = $region5 }
   0x6   :  {}
   0x7   :  {}
   0x8   :  {}
   0x9   :  {}
   0xa   :  { %7 = inlined_call /* <late-finalization> */ }
"""
CALLED = "     0   :  {}\n   0x1   :  {}\n"
SAME = """ENTRY %main (x: f32[8]) -> f32[8] {
  %x.1 = f32[8] parameter(0)
  %negate.1 = f32[8] negate(%x.1), metadata={op_name="a"}
  %x.2 = f32[8] copy(%negate.1)
  ROOT %negate.2 = f32[8] negate(%x.2), metadata={op_name="b"}
}
"""


def test_a_program_counts_its_kernels_and_those_that_are_the_same(tmp_path):
  (tmp_path / "17-TLP-01-final_bundles.txt").write_text(DUMP + CALLER)
  (tmp_path / "17-TLP-00-schedule-analysis_final_bundles.txt").write_text("not this one")
  (tmp_path / "18-negate.1-01-final_bundles.txt").write_text(DUMP + CALLED)
  row = bundles.read(tmp_path, SAME, "v5e")
  assert row == {"bundles": 1 + 3 * 9 + 1 + 3 * 4, "bundle_issue": 1 + 3 * 9 + 1 + 3 * 4, "bundle_waits": 0}


GUARDED = """     0   :  { %p1_p1 = scmp.lt.s32.totalorder %s9_s9, 3 }
   0x1   :  { %6 = sbr.rel (%p1_p1) target = $region5 }
   0x2   :  {}
   0x3   :  {}
   0x4   :  {}
   0x5   :  {}
   0x6   :  {}
   0x7 PF:  {} /* Start region 5 */
"""


def test_regions_that_depend_on_data_give_bounds(tmp_path):
  (tmp_path / "17-TLP-01-final_bundles.txt").write_text(DUMP + CALLER.splitlines()[0].replace(
      "smov.u32 0", "smov.u32 0  ;;  %4 = inlined_call %s2_s2 /* %negate.1 = negate(%x.1) */") + "\n")
  (tmp_path / "18-negate.1-01-final_bundles.txt").write_text(DUMP + GUARDED)
  row = bundles.read(tmp_path, SAME, "v5e")
  assert (row["bundles"], row["bundle_low"]) == (1 + 8, 1 + 7) and "bundle_unsure" not in row


def test_different_shapes_are_different_kernels():
  signatures = hlo_kernels.signatures(hlo_text.Module(SAME.replace("ROOT %negate.2 = f32[8]", "%negate.2 = f32[9]")))
  assert signatures["negate.1"] != signatures["negate.2"]


# ---- the corpus ----

def test_the_split_never_changes():
  names = ["add_f32_8192", "attn_plain_512", "chain_5", "gelu_bf16", "mm_bf16_64x64x64", "sum_rows"]
  assert [corpus.split(name) for name in names] == [
      corpus.HELD_OUT, corpus.FIT, corpus.HELD_OUT, corpus.HELD_OUT, corpus.FIT, corpus.FIT]


def test_files_of_the_same_contents_are_the_same(tmp_path):
  texts = {"b": "module {}\n", "a@8": "module {}\n", "a": "x" * 1000}
  corpus.write_programs("one", texts, folder=tmp_path / "x")
  corpus.write_programs("one", dict(reversed(texts.items())), folder=tmp_path / "y")
  assert corpus.path_of("one", tmp_path / "x").read_bytes() == corpus.path_of("one", tmp_path / "y").read_bytes()
  assert corpus.read_programs("one", tmp_path / "x") == texts and corpus.classes(tmp_path / "x") == ["one"]


def test_a_rewritten_text_keeps_the_digest_of_what_jax_lowers(tmp_path):
  corpus.write_programs("one", {"a": "chlo"}, folder=tmp_path)
  of = corpus.read_digests("one", tmp_path)
  corpus.write_programs("one", {"a": "stablehlo"}, of, tmp_path)
  assert corpus.read_programs("one", tmp_path) == {"a": "stablehlo"} and corpus.digests(tmp_path) == of


def test_rows_are_lines(tmp_path):
  rows = {"b": {"low": 1.23456789e-6, "high": 2.0}, "a": {"error": "RESOURCE_EXHAUSTED"}}
  corpus.write_rows("v5e", {"chip": "v5e"}, rows, tmp_path)
  lines = (tmp_path / "v5e.json").read_text().splitlines()
  assert lines[2:4] == ['"a":{"error":"RESOURCE_EXHAUSTED"},', '"b":{"low":1.23457e-06,"high":2}']
  assert corpus.read_rows("v5e", tmp_path)[0] == {"chip": "v5e"}


@pytest.mark.parametrize("change, seconds", [
    ({}, 1e-3),
    ({"bundle_low": 950_000}, 1e-3),
    ({"bundle_low": 800_000}, None),
    ({"bundle_unsure": 1}, None),
    ({"bundle_waits": 1000}, None),
    ({"floor": 0.9e-3}, None),
    ({"bundles": None}, None),
])
def test_bundles_count_for_programs_that_live_in_vmem(change, seconds):
  row = {"bundles": 1_000_000, "bundle_waits": 10, "floor": 1e-5, "low": 1e-5, "irregular": ["sort"]} | change
  assert corpus.by_bundles(row, 1e9) == seconds
  waits = row["bundle_waits"] * corpus.DMA_CYCLES / 1e9
  expected = (1e-5, math.inf) if seconds is None else (seconds, seconds + waits)
  assert corpus.interval(row, 1e9) == pytest.approx(expected)
  row |= {"irregular": [], "high": 2e-4}
  expected = (1e-5, 2e-4 if seconds is None else seconds + waits)
  assert corpus.interval(row, 1e9) == pytest.approx(expected)


@pytest.mark.parametrize("chip", corpus.chips())
def test_every_row_is_of_a_program_of_the_corpus(chip):
  digests = corpus.digests()
  about, rows = corpus.read_rows(chip)
  assert about["chip"] == chip and rows.keys() <= digests.keys()
  for name, row in rows.items():
    assert row["of"] in (digests[name], digests.get(name + corpus.GPUS)), f"{name} has changed since"
    assert "error" in row or 0 <= row["floor"] <= row["low"] <= row["high"] * 1.000001, name
  text = (corpus.FOLDER / f"{chip}.json").read_text()
  assert list(json.loads(text)["programs"]) == sorted(rows)
