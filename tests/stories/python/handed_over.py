#!/usr/bin/env python3
"""handed_over.py SOCKET < FRAMES > ANSWER: speaks over a connection whose process has ended.

A child connects the socket and ends; the parent, whom the daemon never met, sends what comes on standard input.
"""
import os
import socket
import sys

connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
connection.settimeout(10)
child = os.fork()
if child == 0:
    connection.connect(sys.argv[1])
    os._exit(0)
os.waitpid(child, 0)
connection.sendall(sys.stdin.buffer.read())
connection.shutdown(socket.SHUT_WR)
while received := connection.recv(65536):
    sys.stdout.buffer.write(received)
