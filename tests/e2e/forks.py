"""Starts processes that have JAX imported: forks of a process that has imported JAX and done nothing else.

Importing JAX takes longer than most scenarios, of which there are hundreds.  A fork behaves like a process that was
started: it begins without backends and threads, and its output, exit code and files are its own.  Only settings that
are read while JAX is imported must be the same as in the process that imported it: see can_fork().
"""

import array
import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys

# The variables that are read before a scenario's first line: by the dynamic linker, by Python, and while JAX and its
# dependencies are imported.  minipod's variables and XLA_FLAGS are read later, when a backend starts.
READ_BEFORE = ("JAX_", "LD_", "PYTHON", "OMP_", "OPENBLAS_", "TF_", "GLIBC_", "MALLOC_", "ASAN_", "TSAN_", "COVERAGE_")
MAIN = """
import sys
sys.path.insert(0, {folder!r})
import forks
del sys.path[0]
{prelude}
exec(compile({lines} * "\\n" + forks.serve({socket}), "<string>", "exec"))
"""
_servers: dict[str, socket.socket] = {}


def _read_before(env):
  return {name: value for name, value in env.items() if name.startswith(READ_BEFORE)}


def can_fork(env):
  """Whether the process that imports JAX has the same settings for the import."""
  own = _read_before(os.environ)
  return sys.platform == "linux" and _read_before(env) == (
      {name: value for name, value in own.items() if not name.startswith("JAX_")} | {"JAX_PLATFORMS": "minipod"})


# ---- the process that forks ----


def _receive(connection):
  """A request and its files; None if no client is left."""
  fds = array.array("i")
  message, ancillary, _, _ = connection.recvmsg(1 << 22, socket.CMSG_SPACE(4 * fds.itemsize))
  for _, _, data in ancillary:
    fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
  return (json.loads(message), list(fds)) if message else None


def _begin(request, fds, said, others):
  """In the fork: changes to the request's settings, runs its code, and returns the exit code."""
  os.setsid()
  said.sendall(os.getpid().to_bytes(4, "little"))
  signal.set_wakeup_fd(-1)
  for end in (said, *others):
    end.close()
  for target, fd in enumerate(fds):
    os.dup2(fd, target)
  os.closerange(3, 1 << 12)
  signal.signal(signal.SIGINT, signal.default_int_handler)
  signal.signal(signal.SIGCHLD, signal.SIG_DFL)
  os.environ.clear()
  os.environ.update(request["env"])
  os.chdir(request["cwd"])
  sys.argv = ["-c"]
  return request["code"]


def _reap(children):
  """Reports how the forks that have ended did so."""
  while children:
    pid, status = os.waitpid(-1, os.WNOHANG)
    if pid == 0:
      return
    with children.pop(pid) as said:
      said.sendall(status.to_bytes(4, "little"))


def serve(number):
  """Forks for each request; in a fork, returns its exit code."""
  connection = socket.socket(fileno=number)
  gc.freeze()  # collections in the forks would copy memory that all of them share
  children = {}
  wake, waker = socket.socketpair()
  waker.setblocking(False)
  signal.set_wakeup_fd(waker.fileno())
  signal.signal(signal.SIGCHLD, lambda *_: None)
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  while True:
    ready = select.select([connection, wake], [], [])[0]
    if wake in ready:
      wake.recv(1 << 12)
    _reap(children)
    if connection not in ready:
      continue
    asked = _receive(connection)
    if asked is None:
      os._exit(0)
    request, fds = asked
    said = socket.socket(fileno=fds.pop())
    pid = os.fork()
    if pid == 0:
      return _begin(request, fds, said, [connection, wake, waker, *children.values()])
    for fd in fds:
      os.close(fd)
    children[pid] = said


# ---- the clients ----


def _server(prelude):
  if prelude in _servers:
    return _servers[prelude]
  ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
  for end in (ours, theirs):
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
  env = {name: value for name, value in os.environ.items() if not name.startswith(("MINIPOD_", "JAX_"))}
  code = MAIN.format(folder=os.path.dirname(__file__), prelude=prelude, lines=prelude.count("\n"),
                     socket=theirs.fileno())
  subprocess.Popen([sys.executable, "-c", code], env=env | {"JAX_PLATFORMS": "minipod"}, pass_fds=[theirs.fileno()],
                   stdin=subprocess.DEVNULL, start_new_session=True)
  theirs.close()
  _servers[prelude] = ours
  atexit.register(ours.close)
  return ours


class Popen(subprocess.Popen):
  """Starts code after a prelude of imports, like `python -c` of both in its own session."""

  def __init__(self, prelude, code, env, **pipes):
    self._prelude, self._code = prelude, code
    super().__init__([sys.executable, "-c", prelude + code], env=env, start_new_session=True, **pipes)

  def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest):
    # These follow the start-up information, the creation flags and the shell of Windows.
    pipes = rest[3:9]
    ours = [fd if fd != -1 else inherited for fd, inherited in zip((pipes[0], pipes[3], pipes[5]), range(3))]
    self._said, theirs = socket.socketpair()
    request = json.dumps({"env": env, "cwd": cwd or os.getcwd(), "code": self._code}).encode()
    socket.send_fds(_server(self._prelude), [request], [*ours, theirs.fileno()])
    theirs.close()
    self.pid = int.from_bytes(self._said.recv(4), "little")
    if self.pid == 0:
      raise RuntimeError("the process that forks has ended")
    self._child_created = True
    self._close_pipe_fds(*pipes)

  def _try_wait(self, wait_flags):
    """Like waitpid(): the process that forked it reports how it ended."""
    self._said.setblocking(not wait_flags & os.WNOHANG)
    try:
      data = self._said.recv(4)
    except BlockingIOError:
      return 0, 0
    self._said.close()
    return self.pid, int.from_bytes(data, "little")

  def _internal_poll(self, _deadstate=None, **_):
    if self.returncode is None and self._waitpid_lock.acquire(False):
      try:
        if self.returncode is None:
          pid, status = self._try_wait(os.WNOHANG)
          if pid == self.pid:
            self._handle_exitstatus(status)
      finally:
        self._waitpid_lock.release()
    return self.returncode
