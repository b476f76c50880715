"""The cable between two simulated hosts: it can lose packets, be cut, and be repaired.

tests/mpi/two_hosts.sh makes the hosts, and its process identifies them.  While the link loses packets, they pass
through this process, which drops random ones.  If the kernel has netem, netem does this.
"""

import random
import select
import socket
import subprocess
import threading

_ALL_PROTOCOLS = 3
# Packets have their virtio header, and so also checksums and sizes that the sender leaves to its network card
# (linux/if_packet.h).
_SOL_PACKET, _PACKET_VNET_HDR, _PACKET_IGNORE_OUTGOING = 263, 15, 23
_MOST = 1 << 17


class Cable:
  """The link between hosts 1 and 2 of the two_hosts.sh with process id `pid`."""

  def __init__(self, pid: int, dice: random.Random):
    self._bridge = f"mp{pid}br"
    self._ends = [f"mp{pid}c{host}" for host in (1, 2)]
    self._dice = dice
    self._forwarder: threading.Thread | None = None
    self._is_mended = threading.Event()
    self.passed = self.lost = 0

  def cut(self) -> None:
    for end in self._ends:
      subprocess.run(["ip", "link", "set", end, "nomaster"], check=True)

  def lose(self, share: float) -> None:
    """Loses this share of the packets from now on, in both directions."""
    self.cut()
    sockets = [self._open(end) for end in self._ends]
    self._is_mended.clear()
    self._forwarder = threading.Thread(target=self._forward, args=(sockets, share), daemon=True)
    self._forwarder.start()

  def mend(self) -> None:
    self._is_mended.set()
    if self._forwarder:
      self._forwarder.join()
      self._forwarder = None
    for end in self._ends:  # the hosts may no longer exist
      subprocess.run(["ip", "link", "set", end, "master", self._bridge], check=False, capture_output=True)

  @staticmethod
  def _open(end: str) -> socket.socket:
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    link.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    link.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    link.bind((end, _ALL_PROTOCOLS))
    return link

  def _forward(self, sockets: list[socket.socket], share: float) -> None:
    to = dict(zip(sockets, reversed(sockets)))
    while not self._is_mended.is_set():
      for link in select.select(sockets, [], [], 0.05)[0]:
        try:
          packet = link.recv(_MOST)
          if self._dice.random() < share:
            self.lost += 1
          else:
            to[link].send(packet)
            self.passed += 1
        except OSError:  # the queue is full, or the hosts no longer exist
          self.lost += 1
    for link in sockets:
      link.close()
