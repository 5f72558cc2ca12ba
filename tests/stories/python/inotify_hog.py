#!/usr/bin/env python3
"""inotify_hog.py UID: takes every inotify instance that the user may have, says "ready", keeps them until its input ends."""
import ctypes
import os
import sys

uid = int(sys.argv[1])
os.setgid(uid)
os.setuid(uid)
libc = ctypes.CDLL(None, use_errno=True)
held = 0
while libc.inotify_init1(0) >= 0:
    held += 1
if held == 0:
    sys.exit("no inotify instance can be had")
print("ready", flush=True)
sys.stdin.read()
