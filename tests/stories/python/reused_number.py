#!/usr/bin/env python3
"""reused_number.py SOCKET ROUNDS < FRAMES > ANSWERS: speaks under the number of the process that connected.

Each round a child connects the socket and ends; then another child is made until one has the very number of the
first. That one, alive and of that number, sends what came on standard input. Exit 1 when a number was not reused.
"""
import os
import socket
import sys

NEXT_NUMBER = "/proc/sys/kernel/ns_last_pid"
TRIES = 50
request = sys.stdin.buffer.read()


def connected():
    """A connection, and the number of the process that made it and is gone."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(10)
    child = os.fork()
    if child == 0:
        connection.connect(sys.argv[1])
        # The daemon has asked who is there once it has answered; only then may the number become free.
        connection.sendall(PING)
        connection.recv(65536)
        os._exit(0)
    os.waitpid(child, 0)
    return connection, child


def speak(connection):
    connection.sendall(request)
    connection.shutdown(socket.SHUT_WR)
    while received := connection.recv(65536):
        os.write(1, received)


def child_of_number(number, work):
    """Makes children until one has the number; that one does the work."""
    for _ in range(TRIES):
        with open(NEXT_NUMBER, "w", encoding="ascii") as file:
            file.write(str(number - 1))
        child = os.fork()
        if child == 0:
            if os.getpid() == number:
                work()
            os._exit(0)
        os.waitpid(child, 0)
        if child == number:
            return True
    return False


sys.path.insert(0, os.path.dirname(__file__))
from frames import encode  # noqa: E402

PING = encode(0, b"")
for _ in range(int(sys.argv[2])):
    connection, number = connected()
    if not child_of_number(number, lambda: speak(connection)):
        sys.exit(1)
    connection.close()
