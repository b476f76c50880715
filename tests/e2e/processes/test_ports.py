"""Which ports a process opens, and what other users can do with them, as SECURITY.md describes."""

import scenario
import test_ucx

# The addresses where this process listens, as (IP, port), "" for any IP.
LISTENING = """\
import os, socket
def listening():
  def own():
    for fd in os.listdir("/proc/self/fd"):
      try:
        yield os.readlink(f"/proc/self/fd/{fd}")
      except OSError:
        pass
  sockets, found = set(own()), set()
  for table in "tcp", "tcp6":
    for line in open(f"/proc/self/net/{table}").read().splitlines()[1:]:
      fields = line.split()
      host, _, port = fields[1].partition(":")
      if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
        ip = socket.inet_ntoa(bytes.fromhex(host)[::-1]) if table == "tcp" and host.strip("0") else ""
        found.add((ip, int(port, 16)))
  return found
"""


def test_a_process_alone_opens_no_port():
  assert scenario.run(LISTENING + "print(jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')(np.ones(4)), listening())",
                      4).split("]")[-1].strip() == "set()"


# Each process sends garbage to all its own ports before and between sums.
STRANGERS = """
before = listening()
f = jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')
x = np.ones((jax.local_device_count(), 300000), np.float32)
open_here = listening() - before if jax.process_count() else set()
held = []
for size in 0, 1, 16, 64, 5000:
  total = float(f(x)[0, 0])
  for ip, port in sorted(open_here):
    stranger = socket.create_connection((ip, port))
    stranger.send(os.urandom(size)) if size else None
    held.append(stranger)
total += float(f(x)[0, 0])
os.write(1, f"{sorted({ip for ip, _ in open_here})} {len(open_here)} {total}\\n".encode())
"""


@test_ucx.NEEDS_UCX
def test_ucx_listens_on_own_networks_and_passes_strangers_over():
  returncode, out, err = test_ucx.run(1, LISTENING + STRANGERS, 2)
  assert returncode == 0, (out, err)
  lines = sorted(out.strip().splitlines())
  assert len(lines) == 2, (out, err)
  for line in lines:
    assert line.startswith("['10.") and line.count(".") > 3 and "'127.0.0.1'" in line and line.endswith(" 8.0"), (out, err)
