"""The distributed client that JAX's libraries use, for processes that an MPI launcher has started.

Libraries such as orbax keep values and wait for each other through the client that `jax.distributed.initialize()`
makes.  Processes of an MPI job have already found each other, so minipod gives them such a client without that
call.  The first process runs the service, and each process connects to it when it first uses the client.  Unlike JAX's
service, this one kills no process when another one ends.  If a process fails, the library ends the job.

A request is one JSON list, and so is its answer.  Both ends prove that they know a secret, which the processes exchange
through the job's own messages.
"""

import atexit
import contextlib
import ctypes
import json
from multiprocessing import connection
import secrets
import socket
import sys
import threading
import time

from minipod import foreign

# How long the first process waits at its end for the processes that have used its service.  The library waits as long
# for the others (MINIPOD_EXIT_TIMEOUT_S).
_EXIT_SECONDS = 30
_CONNECT_SECONDS = 30
# How much longer a client waits than the service.
_GRACE_SECONDS = 30
# A wait without a time limit consists of parts that Ctrl-C can end.
_PART_SECONDS = 0.2
# Space for the address of the service.
_ADDRESS_BYTES = 4096


class Failure(Exception):
  """A request has failed; the text begins with the name of a status code."""


# ---- The service ----

def _folder(key: str) -> str:
  """The prefix of all keys below this one."""
  return key if key.endswith("/") else key + "/"


class _Barrier:
  """A barrier that processes reach."""

  def __init__(self, wanted):
    self.wanted, self.came = frozenset(wanted), set()
    self.result = None  # None until the barrier is decided; then ["ok", live processes] or ["error", text]


class Service:
  """Values and barriers of all processes.  Any thread may call any method."""

  def __init__(self, num_processes: int):
    self._num_processes = num_processes
    self._changed = threading.Condition()
    self._values: dict[str, str] = {}
    self._barriers: dict[str, _Barrier] = {}
    self._gone: set[int] = set()
    self._present: set[int] = set()  # processes that use the service
    self._secret = secrets.token_bytes(16)
    self._socket = socket.create_server(("", 0), backlog=num_processes)
    threading.Thread(target=self._accept, daemon=True, name="minipod coordination").start()

  def address(self) -> str:
    """The address and the secret, for `Client`."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
      try:
        probe.connect(("192.0.2.1", 9))  # this sends nothing; it only chooses the outgoing network
        own = [probe.getsockname()[0]]
      except OSError:
        own = []
    name = socket.gethostname()
    return json.dumps({"host": name, "hosts": [*own, name],
                       "port": self._socket.getsockname()[1], "secret": self._secret.hex()})

  def ask(self, process: int, op: str, *args):
    """Answers a request; raises Failure."""
    return getattr(self, "_" + op)(process, *args)

  def wait_for_others(self, seconds: float) -> None:
    """Waits until all processes that have used the service have ended."""
    with self._changed:
      self._changed.wait_for(lambda: not self._present, seconds)

  # The service stores text; bytes are stored as text of the first 256 characters.

  def _set(self, _, key, value, allow_overwrite):
    with self._changed:
      if not allow_overwrite and key in self._values:
        raise Failure(f"ALREADY_EXISTS: the key '{key}' has a value")
      self._values[key] = value
      self._changed.notify_all()

  def _get(self, _, key, seconds):
    with self._changed:
      if not self._changed.wait_for(lambda: key in self._values, seconds):
        code = "DEADLINE_EXCEEDED" if seconds else "NOT_FOUND"
        raise Failure(f"{code}: the key '{key}' has not been set"
                      + (f" within {seconds} s" if seconds else ""))
      return self._values[key]

  def _directory(self, _, key):
    folder = _folder(key)
    with self._changed:
      return sorted([k, v] for k, v in self._values.items() if k.startswith(folder))

  def _delete(self, _, key):
    folder = _folder(key)
    with self._changed:
      for known in [k for k in self._values if k == key or k.startswith(folder)]:
        del self._values[known]

  def _increment(self, _, key, by):
    with self._changed:
      self._values[key] = str(int(self._values.get(key, "0")) + by)
      self._changed.notify_all()
      return int(self._values[key])

  def _meet(self, process, name, processes, seconds, may_lack):
    """Waits until all of `processes` (None: all) have arrived; returns those that are alive."""
    wanted = range(self._num_processes) if processes is None else processes
    with self._changed:
      barrier = self._barriers.setdefault(name, _Barrier(wanted))
      if barrier.wanted != frozenset(wanted) or process not in barrier.wanted:
        raise Failure(f"INVALID_ARGUMENT: barrier '{name}' is for the processes"
                      f" {sorted(barrier.wanted)}, but process {process} names {sorted(wanted)}")
      barrier.came.add(process)
      self._changed.notify_all()
      if not self._changed.wait_for(lambda: self._decide(name, barrier, may_lack), seconds):
        missing = sorted(barrier.wanted - barrier.came)
        barrier.result = ["error", f"DEADLINE_EXCEEDED: barrier '{name}': the processes {missing}"
                          f" have not come within {seconds} s"]
        self._changed.notify_all()
    kind, value = barrier.result
    if kind == "error":
      raise Failure(value)
    return value

  def _decide(self, name, barrier, may_lack) -> bool:
    if barrier.result is None:
      gone = barrier.wanted & self._gone - barrier.came
      if gone and not may_lack:
        barrier.result = ["error",
                          f"UNAVAILABLE: barrier '{name}': the processes {sorted(gone)} have ended"]
      elif barrier.wanted <= barrier.came | self._gone:
        barrier.result = ["ok", sorted(barrier.wanted - self._gone)]
        del self._barriers[name]  # the next barrier may have this name
    return barrier.result is not None

  # ---- Connections ----

  def _accept(self):
    while True:
      try:
        other, _ = self._socket.accept()
      except OSError:
        return
      threading.Thread(target=self._serve, args=(other,), daemon=True,
                       name="minipod coordination").start()

  def _serve(self, other):
    peer = connection.Connection(other.detach())
    try:
      connection.deliver_challenge(peer, self._secret)
      connection.answer_challenge(peer, self._secret)
      process, purpose = json.loads(peer.recv_bytes())
      (self._watch if purpose == "presence" else self._answer_all)(peer, process)
    except (EOFError, OSError, ValueError, connection.AuthenticationError):
      pass
    finally:
      peer.close()

  def _watch(self, peer, process):
    """Counts a process as alive as long as it keeps this connection open."""
    with self._changed:
      self._present.add(process)
    try:
      peer.recv_bytes()  # the process sends nothing on it; reading ends when the connection closes
    finally:
      with self._changed:
        self._present.discard(process)
        self._gone.add(process)
        self._changed.notify_all()

  def _answer_all(self, peer, process):
    while True:
      op, *args = json.loads(peer.recv_bytes())
      peer.send_bytes(self._answer(process, op, args))

  def _answer(self, process, op, args) -> bytes:
    try:
      answer = ["ok", self.ask(process, op, *args)]
    except Failure as failure:
      answer = ["error", str(failure)]
    return json.dumps(answer).encode()


# ---- The client ----

class Client:
  """A client with the interface of jaxlib's DistributedRuntimeClient; `error` is the type of the exceptions that it raises."""

  def __init__(self, process: int, error, service: Service | None, address: str = ""):
    self._process, self._error, self._service, self._address = process, error, service, address
    self._threads = threading.local()  # one connection per thread, because an answer may take long
    self._lock = threading.Lock()
    self._presence: connection.Connection | None = None
    atexit.register(self.shutdown)

  def connect(self) -> None:
    """Does nothing: the first request connects."""

  def shutdown(self) -> None:
    """Disconnects from the service.  The first process waits for the processes that use it, unless it has failed."""
    with self._lock:
      presence, self._presence = self._presence, None
    if presence is not None:
      presence.close()
    has_failed = getattr(sys, "last_value", None) is not None
    if self._service is not None and not has_failed:
      self._service.wait_for_others(_EXIT_SECONDS)

  def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
    self._ask("set", key, value, allow_overwrite)

  def key_value_set_bytes(self, key: str, value: bytes, allow_overwrite: bool = False) -> None:
    self._ask("set", key, value.decode("latin-1"), allow_overwrite)

  def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
    return self._ask("get", key, timeout_in_ms / 1000, seconds=timeout_in_ms / 1000)

  def blocking_key_value_get_bytes(self, key: str, timeout_in_ms: int) -> bytes:
    return self.blocking_key_value_get(key, timeout_in_ms).encode("latin-1")

  def key_value_try_get(self, key: str) -> str:
    return self._ask("get", key, 0)

  def key_value_try_get_bytes(self, key: str) -> bytes:
    return self.key_value_try_get(key).encode("latin-1")

  def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
    return [(known, value) for known, value in self._ask("directory", key)]

  def key_value_dir_get_bytes(self, key: str) -> list[tuple[str, bytes]]:
    return [(known, value.encode("latin-1")) for known, value in self.key_value_dir_get(key)]

  def key_value_delete(self, key: str) -> None:
    self._ask("delete", key)

  def key_value_increment(self, key: str, increment: int) -> int:
    return self._ask("increment", key, increment)

  def wait_at_barrier(self, barrier_id: str, timeout_in_ms: int, process_ids=None) -> None:
    processes = None if process_ids is None else sorted(process_ids)
    self._ask("meet", "barrier " + barrier_id, processes, timeout_in_ms / 1000, False,
              seconds=timeout_in_ms / 1000)

  def get_live_nodes(self, process_ids) -> dict[int, int]:
    """The processes that are alive, once all of them have asked.  A number distinguishes a restarted process from a
    dead one.
    """
    processes = sorted(process_ids)
    return dict.fromkeys(self._ask("meet", f"live {processes}", processes, None, True,
                                   seconds=None), 1)

  def _ask(self, op, *args, seconds=0.0):
    try:
      if self._service is not None:
        return self._service.ask(self._process, op, *args)
      return self._ask_far(op, args, seconds)
    except Failure as failure:
      raise self._error(str(failure)) from None

  def _ask_far(self, op, args, seconds):
    # After an interrupt, the answer to the request is unread, so the next request needs a new connection.
    peer = getattr(self._threads, "peer", None) or self._connect_thread()
    self._threads.peer = None
    try:
      peer.send_bytes(json.dumps([op, *args]).encode())
      end = None if seconds is None else time.monotonic() + seconds + _GRACE_SECONDS
      while not peer.poll(_PART_SECONDS):
        if end is not None and time.monotonic() > end:
          raise Failure("DEADLINE_EXCEEDED: process 0 does not answer")
      kind, value = json.loads(peer.recv_bytes())
    except (EOFError, OSError):
      raise Failure("UNAVAILABLE: process 0, which coordinates the others, has ended") from None
    self._threads.peer = peer
    if kind == "error":
      raise Failure(value)
    return value

  def _connect_thread(self):
    with self._lock:
      if self._presence is None:
        self._presence = self._connect("presence")
    return self._connect("requests")

  def _connect(self, purpose):
    where = json.loads(self._address)
    hosts = ["127.0.0.1"] if where["host"] == socket.gethostname() else where["hosts"]
    secret, errors = bytes.fromhex(where["secret"]), []
    for host in hosts:
      try:
        plain = socket.create_connection((host, where["port"]), timeout=_CONNECT_SECONDS)
        plain.settimeout(None)
        peer = connection.Connection(plain.detach())
        connection.answer_challenge(peer, secret)
        connection.deliver_challenge(peer, secret)
        peer.send_bytes(json.dumps([self._process, purpose]).encode())
        return peer
      except (EOFError, OSError, connection.AuthenticationError) as error:
        errors.append(f"{host}: {error}")
    raise Failure("UNAVAILABLE: process 0, which coordinates the others, cannot be reached at port"
                  f" {where['port']}: {'; '.join(errors)}")


class NoPreemption:
  """A manager with the interface of jaxlib's PreemptionSyncManager.  It never announces a preemption."""

  def reached_sync_point(self, step: int) -> bool:
    del step
    return False

  def shutdown(self) -> None:
    pass


def make_client(process: int, num_processes: int, error):
  """The client of one process of a job; None if the first process cannot run the service.

  All processes call this function, right after they have made a pod together.  Raises OSError if they can no longer
  reach each other.
  """
  service, address = None, ""
  if process == 0:
    with contextlib.suppress(OSError):  # then all processes go without it
      service = Service(num_processes)
      address = service.address()
  address = _tell_world(address)
  return Client(process, error, service, address) if address else None


def _tell_world(text: str) -> str:
  """Sends a text of the first process to all processes."""
  tell = foreign.library().minipod_tell_world
  tell.argtypes, tell.restype = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t], ctypes.c_char_p
  heard = ctypes.create_string_buffer(_ADDRESS_BYTES)
  if refusal := tell(text.encode(), heard, _ADDRESS_BYTES):
    raise OSError(refusal.decode(errors="replace"))
  return heard.value.decode()
