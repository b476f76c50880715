#!/usr/bin/env python3
"""Jobs of real processes under a real mpirun: messages, and the ways in which a job can end.

    tests/mpi/test_job.py --build BUILD [TEST…]

Each test starts build/tests/mp_job (job.c) on one host or on two simulated ones.  Exits with 77
where there is no mpirun.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"
# More than any of these jobs takes on a busy machine. The library's own limits are set to a day, so
# that a job which waits for something that will not come does not end before this.
SECONDS = 250
DAY = str(24 * 3600)
FORBIDDEN = 77  # exit code of two_hosts.sh if it cannot make simulated hosts


# Open MPI's files of a job: mpiruns that begin at the same time fail now and then where they make /tmp/ompi.HOST.USER.
SESSIONS = tempfile.TemporaryDirectory(prefix="mpi-", ignore_cleanup_errors=True)


def environment(**extra):
  """Ours without what a surrounding job or an impatient tester has set."""
  clean = {name: value for name, value in os.environ.items()
           if not re.match("MINIPOD_|OMPI_|PMI|SLURM_", name)}
  return clean | {"MINIPOD_MPI_MODULE": str(BUILD / "minipod_mpi_ompi.so"),
                  "MINIPOD_INIT_TIMEOUT_S": DAY, "MINIPOD_EXIT_TIMEOUT_S": DAY,
                  "OMPI_MCA_orte_tmpdir_base": SESSIONS.name,
                  "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} | extra


class Result:
  """What a job printed, and how it ended, which it must do in time."""

  def __init__(self, command, env):
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    self.status = done.returncode
    self.text = done.stdout
    # mpirun frames its own words with lines of dashes, or logs under its own name.
    self.lines = [line for line in re.sub(r"(?ms)^-{10,}\n.*?^-{10,}\n", "", self.text).splitlines()
                  if line.strip() and not re.match(r"\[[^\]]*:\d+\]|\d+ more process", line)]


def run(scenario, ranks=2, program="mp_job", options=(), **extra):
  return Result(["mpirun", "-n", str(ranks), "--oversubscribe", *options,
                 str(BUILD / "tests" / program), scenario], environment(**extra))


def run_two_hosts(scenario, ranks=2):
  env = environment()
  result = Result([str(HERE / "two_hosts.sh"), "--ranks", str(ranks), "-x",
                   f"MINIPOD_MPI_MODULE={env['MINIPOD_MPI_MODULE']}",
                   str(BUILD / "tests" / "mp_job"), scenario], env)
  if result.status == FORBIDDEN:
    raise unittest.SkipTest(result.text.strip().splitlines()[-1])
  return result


class JobTest(unittest.TestCase):

  def assert_good(self, result, ranks):
    self.assertEqual(result.status, 0, result.text)
    said = sorted(line for line in result.lines if line.endswith(": ok"))
    self.assertEqual(said, sorted(f"rank {i}: ok" for i in range(ranks)), result.text)


class OneHost(JobTest):

  def test_messages(self):
    for scenario, ranks in [("who", 4), ("pairs", 2), ("pairs", 4), ("large", 2), ("barriers", 4)]:
      with self.subTest(scenario=scenario, ranks=ranks):
        self.assert_good(run(scenario, ranks), ranks)

  def test_all_share_the_host(self):
    self.assertIn("rank 1: rank 2 is number 2 of 3 on host 0 of 1", run("who", 3).text)

  def test_messages_without_shared_memory(self):
    # No rank can make a file of useful size: all goes by MPI, which then may not use files either.
    for scenario, ranks in [("pairs", 2), ("large", 2), ("barriers", 4)]:
      with self.subTest(scenario=scenario):
        job = f"ulimit -f 60000; exec {BUILD}/tests/mp_job {scenario}"
        result = Result(["mpirun", "-n", str(ranks), "--oversubscribe", "--mca", "btl", "self,tcp",
                         "bash", "-c", job], environment(MINIPOD_LOG_LEVEL="warning"))
        self.assertIn("use MPI, not shared memory", result.text)
        self.assert_good(result, ranks)

  def test_waiting_costs_nothing(self):
    result = run("idle", 2)
    self.assert_good(result, 2)
    for percent in re.findall(r"([0-9.]+) % of a core", result.text):
      self.assertLess(float(percent), 1)

  def test_one_rank_is_alone(self):
    self.assertEqual(run("who", 1).lines, ["alone"])

  def test_no_launcher(self):
    result = Result([str(BUILD / "tests" / "mp_job"), "who"], environment())
    self.assertEqual(result.lines, ["alone"])

  def test_children_are_alone(self):
    self.assert_good(run("children", 2), 2)

  def test_leaves_nothing_behind(self):
    # MPI gets places of its own for files, so that other jobs' files are not taken for ours.
    with tempfile.TemporaryDirectory(prefix="job-places-") as places:
      named = lambda: {f"{folder}/{name}" for folder in (places, "/dev/shm", "/tmp")
                       for name in os.listdir(folder)
                       if folder == places or name.startswith(("minipod", "mp-"))}
      before = named()
      for scenario in ("barriers", "exit3", "kill"):
        run(scenario, 2, options=["--mca", "btl_vader_backing_directory", places], TMPDIR=places)
      left = lambda: sorted(named() - before)
      # mpirun need not wait for those that it has killed.
      end = time.monotonic() + SECONDS
      while left() and time.monotonic() < end:
        time.sleep(0.1)
      self.assertEqual(left(), [])


class Ends(JobTest):
  """The ways in which one rank can end while the others wait for it."""

  def assert_explained(self, result, status):
    self.assertEqual(result.status, status, result.text)
    self.assertRegex(result.lines[-1], r"^minipod: rank 1 \(host \S+, pid \d+\) exits with status "
                     f"{status}; stopping the job$")

  def test_exit_3(self):
    for ranks in (2, 4):
      self.assert_explained(run("exit3", ranks), 3)

  def test_exit_0(self):
    # Rank 0 leaves when it has heard of rank 1's end, and rank 2 may hear of both in any order.
    for scenario in ("exit0", "exit0late"):
      with self.subTest(scenario=scenario):
        result = run(scenario, 3)
        self.assertEqual(result.status, 0, result.text)
        self.assertEqual(len(re.findall(r"told after [0-9.]+ s: process 1 \(pid \d+ on host \S+\) "
                                        "has exited", result.text)), 2, result.text)

  def test_killed(self):
    result = run("kill", 3)
    self.assertEqual(result.status, 128 + signal.SIGKILL, result.text)

  def test_quick_exit(self):
    result = run("_exit3", 2)
    self.assertEqual(result.status, 3, result.text)

  def test_interrupted(self):
    job = subprocess.Popen(["mpirun", "-n", "2", "--oversubscribe", str(BUILD / "tests" / "mp_job"),
                            "wait"], env=environment(), stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    for _ in range(2):
      self.assertIn("waiting", job.stdout.readline())
    job.send_signal(signal.SIGINT)
    text, _ = job.communicate(timeout=SECONDS)
    self.assertNotEqual(job.returncode, 0, text)

  def test_a_rank_that_never_comes(self):
    # Rank 1 does not run minipod: it starts MPI and goes to sleep.
    command = (f"if [ $OMPI_COMM_WORLD_RANK = 1 ]; then exec sleep 100; "
               f"else exec {BUILD}/tests/mp_job who; fi")
    result = Result(["mpirun", "-n", "2", "--oversubscribe", "bash", "-c", command],
                    environment(MINIPOD_INIT_TIMEOUT_S="2"))
    self.assertEqual(result.status, 7, result.text)
    self.assertIn("DEADLINE_EXCEEDED", result.text)
    self.assertIn("within 2 s", result.text)
    self.assertIn("not heard of: rank 1\n", result.text)

  def test_killed_where_the_launcher_lets_the_others_live(self):
    result = run("kill", 3, options=["--enable-recovery"])
    told = re.findall(r"rank [02]: told after [0-9.]+ s: process 1 \(pid \d+ on host \S+\) has "
                      "ended unexpectedly", result.text)
    self.assertEqual(len(told), 2, result.text)


class Owner(JobTest):
  """The program has started MPI, and ends it."""

  def test_messages(self):
    self.assert_good(run("pairs", 2, "mp_job_owner"), 2)

  def test_exit_0(self):
    result = run("exit0", 3, "mp_job_owner")
    self.assertEqual(result.status, 0, result.text)

  def test_exit_3(self):
    result = run("exit3", 3, "mp_job_owner")
    self.assertNotEqual(result.status, 0)
    self.assertRegex(result.lines[-1], r"^minipod: rank \d .* exits with status [13]")


class Refusals(JobTest):

  def test_no_module(self):
    result = run("who", 2, MINIPOD_MPI_MODULE="/nowhere/minipod_mpi_ompi.so")
    self.assertEqual(result.status, 7)
    self.assertIn("UNAVAILABLE: Open MPI's mpirun started this process", result.text)
    self.assertIn("/nowhere/minipod_mpi_ompi.so", result.text)
    self.assertIn("MINIPOD_BOOTSTRAP=none", result.text)

  def test_launcher_of_another_mpi(self):
    """What Hydra says to its processes, and Open MPI does not hear: no process may be alone without a word."""
    result = Result([str(BUILD / "tests" / "mp_job"), "who"], environment(PMI_RANK="0", PMI_SIZE="2"))
    self.assertEqual(result.status, 7, result.text)
    self.assertRegex(result.text, r"UNAVAILABLE: MPICH's mpiexec \(Hydra\) started this process as rank 0 .*: it has started 2 "
                     r"processes, but in Open MPI v.* each is alone: the launcher belongs to another MPI")

  def test_none_asked_for(self):
    result = run("who", 2, MINIPOD_MPI_MODULE="/nowhere", MINIPOD_BOOTSTRAP="none")
    self.assertEqual((result.status, result.lines), (0, ["alone", "alone"]))

  def test_unknown_way(self):
    self.assertIn("expected auto, mpi, kv, none or absent, got 'smoke'",
                  run("who", 2, MINIPOD_BOOTSTRAP="smoke").text)

  def test_different_builds(self):
    copy = BUILD / "tests" / "mp_job.other"
    try:
      copy.write_bytes((BUILD / "tests" / "mp_job").read_bytes() + b"other")
      copy.chmod(0o755)
      command = (f"if [ $OMPI_COMM_WORLD_RANK = 1 ]; then exec {copy} who; "
                 f"else exec {BUILD}/tests/mp_job who; fi")
      result = Result(["mpirun", "-n", "2", "--oversubscribe", "bash", "-c", command], environment())
    finally:
      copy.unlink(missing_ok=True)
    self.assertEqual(result.status, 7, result.text)
    self.assertRegex(result.text, r"mixes builds of minipod \S+: rank 0 \(host \S+\) runs build "
                     r"[0-9a-f]{16}, rank 1 \(host \S+\) runs build [0-9a-f]{16}")


class TwoHosts(JobTest):

  def test_messages(self):
    for scenario, ranks in [("who", 2), ("pairs", 2), ("large", 1), ("barriers", 2)]:
      with self.subTest(scenario=scenario, ranks=ranks):
        self.assert_good(run_two_hosts(scenario, ranks), 2 * ranks)

  def test_they_are_two(self):
    self.assertIn("rank 0: rank 3 is number 1 of 2 on host 1 of 2 (pretended2)",
                  run_two_hosts("who", 2).text)

  def test_waiting_costs_little(self):
    result = run_two_hosts("idle", 1)
    self.assert_good(result, 2)
    # A thread that polls without sleeping takes all of the core that it is given, a third of one on
    # the busiest machine; one that sleeps takes 2 to 6 %, more where its caches are cold each time.
    percents = re.findall(r"([0-9.]+) % of a core", result.text)
    self.assertEqual(len(percents), 2, result.text)
    for percent in percents:
      self.assertLess(float(percent), 15)

  def test_exit_3(self):
    result = run_two_hosts("exit3", 1)
    self.assertEqual(result.status, 3, result.text)
    self.assertRegex(result.lines[-1], r"^minipod: rank 1 \(host pretended2, pid \d+\) exits with "
                     "status 3; stopping the job$")

  def test_killed(self):
    result = run_two_hosts("kill", 1)
    self.assertNotEqual(result.status, 0)


def main():
  global BUILD
  parser = argparse.ArgumentParser()
  parser.add_argument("--build", type=pathlib.Path, default=BUILD)
  arguments, rest = parser.parse_known_args()
  BUILD = arguments.build.resolve()
  if shutil.which("mpirun") is None:
    print("skipped: there is no mpirun")
    return 77
  return unittest.main(argv=sys.argv[:1] + rest, verbosity=2)


if __name__ == "__main__":
  sys.exit(main())
