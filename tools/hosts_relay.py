"""The late links of tools/hosts: holds each frame for its link's delay, then sends it on; started by tools/hosts, never by hand.

    hosts_relay.py FOLDER NETWORK        NETWORK: a descriptor of the switch's network

The links stand in FOLDER/state.json; who connects to the socket FOLDER/relay has them read again, and is told when that is done.
Frames come and go on the interface `relay`. A frame counts as arrived when the kernel stamped it, so the time that this process takes
to wake up is part of the delay. Frames of one direction of a link keep their order. Where a link's rate is the relay's business,
frames leave one after the other, and what finds the link's queue full is dropped.
"""

import ctypes
import heapq
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path

import hosts_namespaces as namespaces
import hosts_network as network

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


class Direction:
    """One way of a link: how late frames are, how long each occupies it, and until when it is occupied."""

    def __init__(self, link):
        self.delay_ns = link["delay_us"] * 1000
        self.ns_per_byte = 8000 / link["rate_mbit"] if link["relay_limits"] else 0
        self.longest_queue_ns = network.queue_bytes(link["rate_mbit"]) * self.ns_per_byte
        self.free_ns = 0
        self.latest_due_ns = 0

    def due(self, now_ns, arrived_ns, frame_bytes):
        """When the frame is to leave the relay; None when it is dropped."""
        if self.ns_per_byte:
            if self.free_ns - now_ns > self.longest_queue_ns:
                return None
            arrived_ns = self.free_ns = max(self.free_ns, arrived_ns) + int(frame_bytes * self.ns_per_byte)
        self.latest_due_ns = max(self.latest_due_ns, arrived_ns + self.delay_ns)
        return self.latest_due_ns


def read_directions(path):
    """From the two last bytes of target's and source's Ethernet address to what the link does in that direction."""
    state = json.loads(path.read_text(encoding="utf-8"))
    number = {host["name"]: index + 1 for index, host in enumerate(state["hosts"])}
    directions = {}
    for pair, link in state["links"].items():
        one, other = (number[name] for name in pair.split())
        directions[one, other], directions[other, one] = Direction(link), Direction(link)
    return directions


def open_frames():
    frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    frames.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    frames.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    frames.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    frames.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    frames.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
    frames.bind(("relay", ETH_P_ALL))
    frames.setblocking(False)
    return frames


def open_orders(path):
    path.unlink(missing_ok=True)
    orders = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    orders.bind(str(path))
    orders.listen()
    return orders


class Relay:
    """Frames wait in a heap by the time at which they are due."""

    def __init__(self, folder):
        self.folder = folder
        self.frames = open_frames()
        self.orders = open_orders(folder / "relay")
        self.directions = read_directions(folder / "state.json")
        self.held = []
        self.arrived = 0

    def obey(self):
        """Directions keep what they know of frames under way, so that these are not overtaken."""
        caller, _ = self.orders.accept()
        with caller:
            fresh = read_directions(self.folder / "state.json")
            for ends, direction in fresh.items():
                if ends in self.directions:
                    direction.free_ns = self.directions[ends].free_ns
                    direction.latest_due_ns = self.directions[ends].latest_due_ns
            self.directions = fresh
            try:
                caller.send(b"read")
            except OSError:
                pass  # who asked was killed

    def take_all(self):
        """Takes what has arrived. The kernel's stamp is wall-clock time: only the age of a frame is taken from it."""
        while len(self.held) < MOST_HELD:
            try:
                frame, extra, _, _ = self.frames.recvmsg(LARGEST_FRAME_BYTES, 64)
            except BlockingIOError:
                return
            now, age = time.monotonic_ns(), 0
            if extra:
                seconds, nanoseconds = struct.unpack("qq", extra[0][2][:16])
                age = min(max(0, time.time_ns() - seconds * 1_000_000_000 - nanoseconds), OLDEST_NS)
            direction = self.directions.get((struct.unpack_from("!H", frame, VNET_HEADER_BYTES + 4)[0],
                                             struct.unpack_from("!H", frame, VNET_HEADER_BYTES + 10)[0]))
            due = direction.due(now, now - age, len(frame) - VNET_HEADER_BYTES) if direction else now
            if due is not None:
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
            heard = [self.orders] + ([self.frames] if len(self.held) < MOST_HELD else [])
            ready, _, _ = select.select(heard, [], [], wait_s)
            if self.orders in ready:
                self.obey()
            self.take_all()
            self.send_due()


def main():
    namespaces.join_network(int(sys.argv[2]))
    os.close(int(sys.argv[2]))
    relay = Relay(Path(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    print("ready", flush=True)
    relay.run()


main()
