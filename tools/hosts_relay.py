"""The late links of tools/hosts: holds each frame for its link's delay, then sends it on; started by tools/hosts, never by hand.

    nsenter --net=... hosts_relay.py STATE_FILE        SIGHUP: the delays of STATE_FILE are read again

Frames come and go on the interface `relay`. A frame counts as arrived when the kernel stamped it, so the time that this process takes
to wake up is part of the delay. Frames of one direction of a link keep their order.
"""

import ctypes
import heapq
import json
import select
import signal
import socket
import struct
import sys
import time

SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
SO_TIMESTAMPNS, SO_RCVBUFFORCE, SO_SNDBUFFORCE = 35, 33, 32
PR_SET_TIMERSLACK = 29
ETH_P_ALL = 3
VNET_HEADER_BYTES = 10  # in front of each frame, so that large TCP segments pass unsplit
LARGEST_FRAME_BYTES = 128 * 1024
BUFFER_BYTES = 64 * 1024 * 1024
MOST_HELD = 20_000  # frames; what is above is dropped, as in a full switch
# A sleeper wakes that much late at most, mostly: the rest until the frame is due is spent looking at the clock.
WAKE_UP_NS = 40_000
OLDEST_NS = 1_000_000_000


def read_delays(path):
    """From the two last bytes of target's and source's Ethernet address to nanoseconds."""
    with open(path, encoding="utf-8") as file:
        state = json.load(file)
    number = {host["name"]: index + 1 for index, host in enumerate(state["hosts"])}
    delays = {}
    for pair, link in state["links"].items():
        one, other = (number[name] for name in pair.split())
        delays[one, other] = delays[other, one] = link["delay_us"] * 1000
    return delays


def open_socket():
    frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    frames.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    frames.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    frames.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    frames.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    frames.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
    frames.bind(("relay", ETH_P_ALL))
    frames.setblocking(False)
    return frames


class Relay:
    """Frames wait in a heap by the time at which they are due."""

    def __init__(self, frames, delays):
        self.frames = frames
        self.delays = delays
        self.held = []
        self.arrived = 0
        self.latest_due = {}

    def take_all(self):
        """Takes what has arrived. The kernel's stamp is wall-clock time: only the age of a frame is taken from it."""
        while len(self.held) < MOST_HELD:
            try:
                frame, extra, _, _ = self.frames.recvmsg(LARGEST_FRAME_BYTES, 64)
            except BlockingIOError:
                return
            age = 0
            if extra:
                seconds, nanoseconds = struct.unpack("qq", extra[0][2][:16])
                age = min(max(0, time.time_ns() - seconds * 1_000_000_000 - nanoseconds), OLDEST_NS)
            link = (struct.unpack_from("!H", frame, VNET_HEADER_BYTES + 4)[0],
                    struct.unpack_from("!H", frame, VNET_HEADER_BYTES + 10)[0])
            due = max(time.monotonic_ns() - age + self.delays.get(link, 0), self.latest_due.get(link, 0))
            self.latest_due[link] = due
            self.arrived += 1
            heapq.heappush(self.held, (due, self.arrived, frame))

    def send_due(self):
        while self.held and self.held[0][0] - time.monotonic_ns() < WAKE_UP_NS:
            due, _, frame = heapq.heappop(self.held)
            while time.monotonic_ns() < due:
                pass
            try:
                self.frames.send(frame)
            except OSError:
                pass  # no room, or no such frame here: lost, as on a wire

    def run(self):
        while True:
            wait_s = None
            if self.held:
                wait_s = max(0, self.held[0][0] - WAKE_UP_NS - time.monotonic_ns()) / 1e9
            # With no room the wait is for the next frame that is due; the kernel drops what its buffer cannot take.
            select.select([self.frames] if len(self.held) < MOST_HELD else [], [], [], wait_s)
            self.take_all()
            self.send_due()


def main():
    path = sys.argv[1]
    relay = Relay(open_socket(), read_delays(path))

    def read_again(*_):
        relay.delays = read_delays(path)

    signal.signal(signal.SIGHUP, read_again)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    print("ready", flush=True)
    relay.run()


main()
