#!/usr/bin/env python3
"""Runs PyTorch's own tests of torch.distributed on TorchTPU's device, or with gloo on the CPU as the reference.

    tools/torch_tpu/suites.py run OUT.jsonl TESTS FILE… [--device tpu|cpu] [--ranks N] [--only REGEX] [--again RESULTS]
    tools/torch_tpu/suites.py report CPU.jsonl TPU.jsonl… [--all]

TESTS is the folder test/distributed of PyTorch's sources, FILE a test file or a folder in it.  PyTorch starts N processes
for each test, and each imports torch.  Here one process imports torch and the tests, and forks N ranks, which run one test
after another (suites_rank.py).  If ranks have different results, die or take too long, all are replaced.  Each test is a
JSON line of OUT.jsonl; tests that it has are not run again, except those with a result of --again.

    pass       in all ranks
    skip       the test skips itself in a rank
    fail       it raises an error in a rank; the line has the first
    slow       over the time limit, or no rank computes; the line has each rank's stack
    ended      a rank died
    no import  the file cannot be imported
"""

import collections
import json
import os
import pathlib
import re
import selectors
import signal
import socket
import tempfile
import time
import traceback

import row_file

# Errors of a rank that come after that of another rank.
_OTHER_RANK = re.compile(r"Connection (closed|reset) by peer|process \d+ (has ended|ended|died|is gone)")
GRACE = 5  # seconds that the other ranks have after a rank has failed
IDLE = 20  # seconds after which ranks that only wait are taken to hang
PODS = {1: "v6e:1x1", 2: "7x:1x1x1", 4: "v6e:2x2", 8: "v6e:2x4", 16: "v6e:4x4"}


# ---- ranks ----

def _free_port():
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]


def _environment(rank, count, port):
  """What torchrun sets."""
  return {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "GROUP_RANK": 0,
          "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


class _Rank:
  """A forked process that runs tests."""

  def __init__(self, rank, count, port):
    self._output = tempfile.TemporaryFile()
    requests, self._requests = os.pipe()
    self.replies, replies = os.pipe()
    self.pid = os.fork()
    if self.pid == 0:
      os.close(self._requests)
      os.close(self.replies)
      self._serve(rank, count, port, requests, replies)
    os.close(requests)
    os.close(replies)

  def _serve(self, rank, count, port, requests, replies):
    code = 1
    try:
      os.dup2(self._output.fileno(), 1)
      os.dup2(self._output.fileno(), 2)
      os.environ.update({name: str(value) for name, value in _environment(rank, count, port).items()})
      import suites_rank
      suites_rank.serve(rank, count, os.fdopen(requests), os.fdopen(replies, "w"))
      code = 0
    except BaseException:
      os.write(2, traceback.format_exc().encode())
    os._exit(code)

  def ask(self, case):
    try:
      os.write(self._requests, (json.dumps(case) + "\n").encode())
    except BrokenPipeError:
      pass  # its end is found when its reply is read

  def processor_time(self):
    """In seconds."""
    user, system = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

  def stacks(self):
    """Asks the process for its stacks."""
    os.kill(self.pid, signal.SIGUSR1)
    time.sleep(0.3)
    return self.last_words(4000)

  def last_words(self, size):
    self._output.seek(0, os.SEEK_END)
    self._output.seek(max(0, self._output.tell() - size))
    return self._output.read().decode(errors="replace")

  def is_alive(self):
    return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None

  def death(self):
    """How the process ended, and its last words."""
    status = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT).si_status  # of a signal its number
    return f"exit status {status}: {self.last_words(1500)}"

  def end(self):
    os.close(self._requests)
    os.close(self.replies)
    os.kill(self.pid, signal.SIGKILL)
    os.waitpid(self.pid, 0)


class _Idle:
  """Finds ranks that all wait: they use nearly no processor time, so the machine is not the reason that they are slow."""

  def __init__(self, processor_time):
    self._processor_time, self._used, self._since = processor_time, 0, time.monotonic()

  def too_long(self):
    used = self._processor_time()
    if used > self._used + IDLE / 40:
      self._used, self._since = used, time.monotonic()
    return time.monotonic() > self._since + IDLE


class _Ranks:
  """N ranks that share a pod."""

  def __init__(self, count):
    port = _free_port()
    self._ranks = [_Rank(rank, count, port) for rank in range(count)]

  def run(self, case, limit):
    """The replies by rank, in the order in which they came; None: the rank has died."""
    for rank in self._ranks:
      rank.ask(case)
    replies, end, idle = {}, time.monotonic() + limit, _Idle(self.processor_time)
    with selectors.DefaultSelector() as selector:
      for number, rank in enumerate(self._ranks):
        selector.register(rank.replies, selectors.EVENT_READ, number)
      while len(replies) < len(self._ranks) and (left := end - time.monotonic()) > 0 and not idle.too_long():
        for key, _ in selector.select(min(left, 1)):
          text = os.read(key.fd, 1 << 16)
          replies[key.data] = json.loads(text) if text else None
          selector.unregister(key.fd)
          if not text or replies[key.data]["result"] == "fail":
            end = min(end, time.monotonic() + GRACE)
    return replies

  def processor_time(self):
    return sum(rank.processor_time() for rank in self._ranks)

  def stacks(self):
    return "\n".join(f"rank {number}:\n{rank.stacks()}" for number, rank in enumerate(self._ranks))

  def are_alive(self):
    return all(rank.is_alive() for rank in self._ranks)

  def death(self, number):
    return self._ranks[number].death()

  def end(self):
    for rank in self._ranks:
      rank.end()


# ---- tests ----

def _verdict(ranks, replies, count):
  """The result of a test: that of the rank that is the reason."""
  for number, reply in replies.items():
    if reply is None:
      return {"result": "ended", "rank": number, "error": ranks.death(number)}
  failed = [{**reply, "rank": number} for number, reply in replies.items() if reply["result"] == "fail"]
  if failed:
    return next((reply for reply in failed if not _OTHER_RANK.search(reply["error"])), failed[0])
  if len(replies) < count:
    return {"result": "slow", "error": "the ranks hang, or need too long: " + ranks.stacks()}
  return next((reply for reply in replies.values() if reply["result"] == "skip"), {"result": "pass"})


def _go_on(replies, count):
  """Whether the ranks can run the next test: if all have the same result, none waits for another."""
  return len(replies) == count and None not in replies and len({reply["result"] for reply in replies}) == 1 and (
      len({reply.get("error") for reply in replies}) == 1)


def _cases(suites_rank, path):
  """What is wrong with a file, or "", and its tests: from a process that imports it, since imports may start the TPU."""
  reader, writer = os.pipe()
  pid = os.fork()
  if pid == 0:
    with os.fdopen(writer, "w") as out:
      json.dump(suites_rank.load(path), out)
    os._exit(0)
  os.close(writer)
  with os.fdopen(reader) as text:
    found = json.load(text)
  os.waitpid(pid, 0)
  return found


def _files(tests, names):
  for name in names:
    path = tests / name
    yield from sorted(path.glob("test_*.py")) if path.is_dir() else [path]


def _key(row):
  return f"{row['module']}:{row['class']}.{row['test']}"


def _prepare(args):
  """Chooses the device, before torch is imported."""
  os.environ["OMP_NUM_THREADS"] = "1"
  if args.device == "cpu":
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
  else:
    os.environ.setdefault("MINIPOD_TOPOLOGY", PODS[args.ranks])
  import suites_rank
  suites_rank.prepare(args.device, args.ranks)
  return suites_rank


def _run_case(ranks, case, args):
  """The row of a test, and the ranks, or None if they cannot go on."""
  if ranks and not ranks.are_alive():  # one has died after its reply
    ranks.end()
    ranks = None
  ranks = ranks or _Ranks(args.ranks)
  began = time.monotonic()
  replies = ranks.run(case, args.limit)
  row = _verdict(ranks, replies, args.ranks)
  row["seconds"] = round(time.monotonic() - began, 2)
  if not _go_on(replies.values(), args.ranks):
    ranks.end()
    ranks = None
  return row, ranks


def _run(args):
  suites_rank = _prepare(args)
  done = row_file.find_done(args.out, _key, "result", args.again)
  with args.out.open("a") as out:
    for path in _files(args.tests, args.files):
      about = {"module": str(path.relative_to(args.tests).with_suffix("")), "ranks": args.ranks, "device": args.device}
      error, cases, ranks = *_cases(suites_rank, path), None
      if error:
        row_file.write(out, {**about, "class": "", "test": "", "result": "no import", "error": error})
      for case in cases:
        if re.search(args.only, f"{case['class']}.{case['test']}") and _key(about | case) not in done:
          row, ranks = _run_case(ranks, case | {"path": str(path)}, args)
          row_file.write(out, about | case | row)
      if ranks:
        ranks.end()


# ---- report ----

FAMILIES = {"tensor": "DTensor", "_composable": "FSDP2", "checkpoint": "DCP"}


def _family(row):
  return FAMILIES.get(row["module"].split("/")[0], "c10d")


# The causes of failures, by what the error, the stacks or the log say; the first that matches.
CAUSES = (
    (r"in create_process_group", "TorchTPU waits for all ranks when some of them create a group"),
    (r"a leaf Variable that requires grad is being used", "TorchTPU refuses collectives of parameters that need gradients"),
    (r"CUDA|cuda", "the test needs CUDA"),
    (r"is not implemented for TPU|option not supported|must be divisible by process group size", "not in TorchTPU"),
    (r"in communicate", "the test starts processes that import torch"),
    (r"tpu_custom_call", "a Mosaic kernel that minipod refuses"),
)


def _cause(row):
  text = "\n".join([row.get("error", ""), *row.get("log", []), *row.get("where", [])])
  return next((cause for pattern, cause in CAUSES if re.search(pattern, text)), text.strip().splitlines()[0][:100])


def _common_key(row):
  """The key of a test without the device, which is in the names that instantiate_device_type_tests() makes."""
  return re.sub(r"(PRIVATEUSE1|TPU|CPU)\.(.*)_(tpu|cpu)$", r".\2", _key(row))


def _report(args):
  reference, rows = row_file.read([args.reference], _key), row_file.read(args.rows, _key)
  passed = {_common_key(row) for row in reference.values() if row["result"] == "pass"}
  counts, causes = collections.defaultdict(collections.Counter), collections.defaultdict(list)
  for key, row in rows.items():
    if _common_key(row) in passed:
      counts[_family(row)][row["result"]] += 1
      if row["result"] != "pass":
        causes[_cause(row)].append(f"{row['result']:5} {key}")
  results = ("pass", "fail", "skip", "slow", "ended")
  print(f"{'family':10}{'pass on the CPU':>16}" + "".join(f"{result:>7}" for result in results))
  for family, count in sorted(counts.items()):
    print(f"{family:10}{sum(count.values()):16}" + "".join(f"{count[result]:7}" for result in results))
  for cause, keys in sorted(causes.items(), key=lambda each: -len(each[1])):
    print(f"{len(keys):5} {cause}")
    for key in keys[:None if args.all else 0]:
      print(f"        {key}")


def main():
  parser, run, report = row_file.make_parser(__doc__)
  run.add_argument("tests", type=pathlib.Path)
  run.add_argument("files", nargs="+")
  run.add_argument("--device", choices=("tpu", "cpu"), default="tpu")
  run.add_argument("--ranks", type=int, default=4)
  run.add_argument("--only", default="", help="regular expression of CLASS.TEST")
  run.add_argument("--limit", type=int, default=120, help="seconds for a test")
  report.add_argument("reference", type=pathlib.Path)
  report.add_argument("rows", type=pathlib.Path, nargs="+")
  report.add_argument("--all", action="store_true", help="list the tests of each cause")
  row_file.call_verb(parser, _run, _report)


if __name__ == "__main__":
  main()
