"""Where the processes of these jobs are: on this host, or on pretended ones (network namespaces, which need root)."""

import pathlib
import socket

HOSTS = pathlib.Path(__file__).parents[2] / "tests" / "mpi" / "two_hosts.sh"
# The command that makes them and runs another one there. It ends with what has started it, and ends
# all processes there.
ON_HOSTS = ["setpriv", "--pdeathsig", "TERM", str(HOSTS)]
REFUSED = 77  # its status where such hosts cannot be made; it says why


def free_port() -> int:
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]
