#!/usr/bin/python3 -B
"""One TCP connection between two test hosts, before, during and after what tools/hosts does to their link. Run by hosts_test.cpp.

    link_check.py echo|cut|round_trip|stream HOSTS NAME A B       HOSTS: tools/hosts; NAME: the set of hosts

`echo` fails unless B answers A. `cut` cuts the link under a waiting connection and heals it. `round_trip` prints the microseconds of
one message there and back, `stream` those of 2 MB in one direction until the other end has it all.
"""

import socket
import subprocess
import sys
import time

STREAM_BYTES = 2_000_000
RETRANSMITS_OFFSET = 2  # of tcpi_retransmits in struct tcp_info
WATCHDOG_S = 20


def serve():
    server = socket.create_server(("", 0))
    print(server.getsockname()[1], flush=True)
    connection, _ = server.accept()
    received = 0
    while data := connection.recv(65536):
        received += len(data)
        if received < 100 or received >= STREAM_BYTES:
            connection.sendall(b"%d\n" % received)


def connect(host):
    connection = socket.create_connection((host, int(sys.stdin.readline())), WATCHDOG_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def tell(text):
    """Asks the script outside for something and waits until it is done."""
    print(text, flush=True)
    sys.stdin.readline()


def call(what, host):
    connection = connect(host)
    before = time.monotonic_ns()
    if what == "stream":
        connection.sendall(bytes(STREAM_BYTES))
    else:
        connection.sendall(b"x")
    answer = connection.recv(100)
    taken_us = (time.monotonic_ns() - before) // 1000
    if what == "cut":
        tell("cut")
        connection.sendall(b"y")
        # The packet went out and vanished when the kernel has sent it again; nobody was told of an error.
        while connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 16)[RETRANSMITS_OFFSET] < 2:
            time.sleep(0.01)
        connection.setblocking(False)
        try:
            sys.exit(f"an answer came through the cut: {connection.recv(100)}")
        except BlockingIOError:
            pass
        connection.settimeout(WATCHDOG_S)
        tell("heal")
        answer = connection.recv(100)
        if answer != b"2\n":
            sys.exit(f"after the heal came {answer}")
    print(taken_us, flush=True)


def outside(what, tool, name, one, other):
    def hosts(*words):
        return [tool, "--name", name, *words]

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(hosts("exec", other, __file__, "serve"), **pipes) as server, \
            subprocess.Popen(hosts("exec", one, __file__, "call", what, other), **pipes) as caller:
        try:
            port = server.stdout.readline()
            caller.stdin.write(port)
            caller.stdin.flush()
            for line in caller.stdout:
                if line.strip() in ("cut", "heal"):
                    subprocess.run(hosts(line.strip(), one, other), check=True)
                    caller.stdin.write("done\n")
                    caller.stdin.flush()
                else:
                    print(line.strip())
            return caller.wait()
        finally:
            caller.kill()
            server.kill()


if sys.argv[1] == "serve":
    serve()
elif sys.argv[1] == "call":
    call(*sys.argv[2:4])
else:
    sys.exit(outside(*sys.argv[1:6]))
