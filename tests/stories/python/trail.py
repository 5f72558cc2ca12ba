#!/usr/bin/env python3
"""Checks PCP audit trails by the text of FORMAT.md alone, sharing no code with the program that writes them.

usage: trail.py DIR     check the three trails of an audit directory
       trail.py FILE    check one journal file

Prints one JSON object per trail; for a directory also how many indexes of closed segments there are and how many of
them do not say what their segment says. Those are caches, so they break nothing. Exit 0: all whole, 11: one is broken, 12: one could not be read, 2: usage.
"""

import hashlib
import json
import os
import re
import struct
import sys
import uuid
import zlib

TRAILS = ("application", "compositor", "system")
MAX_LINE = 64 * 1024
LINK = re.compile(
    rb'\{"seq":(0|[1-9][0-9]*),"prev":"([0-9a-f]{64})","synced":(0|[1-9][0-9]*),.*"\}', re.DOTALL
)
TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}\Z')


class Broken(Exception):
    """Names the first bad line."""

    def __init__(self, file, line, offset, why):
        super().__init__(why)
        self.facts = {"file": file, "line": line, "offset": offset, "why": why}


def segments(directory, trail):
    """The trail's files in order; the numbers have no gap. They begin at 1, or later where a record says so."""
    shape = re.compile(re.escape(trail) + r"\.(\d{6,})\.jsonl\Z")
    found = {int(m[1]): name for name in os.listdir(directory) if (m := shape.match(name))}
    first = min(found, default=1)
    if first > 1 and not any(begins(os.path.join(directory, name), first) for name in found.values()):
        raise Broken(f"{trail}.{first - 1:06}.jsonl", 0, 0, "segment is missing")
    for number in range(first, max([*found, 1]) + 1):
        name = f"{trail}.{number:06}.jsonl"
        if found.get(number) != name:
            raise Broken(name, 0, 0, "segment is missing")
        yield os.path.join(directory, name)


def begins(path, first):
    """Whether a record in a file says that its trail begins with this segment or a later one."""
    with open(path, "rb") as file:
        said = [re.search(rb'"kind":"begin","segment":(\d+),', line) for line in file]
    return any(int(found[1]) >= first for found in said if found)


def fault(line, seq, prev):
    """What is wrong with a line that should have this number and predecessor; None if nothing is."""
    if len(line) >= MAX_LINE:
        return "longer than the limit"
    head, tail = LINK.match(line), TAIL.search(line)
    if not head or not tail:
        return "shape"
    if zlib.crc32(line[: tail.start()]) != int(tail[1], 16):
        return "checksum"
    if int(head[1]) != seq:
        return "sequence"
    if head[2].decode() != prev:
        return "chain"
    if int(head[3]) >= seq:
        return "mark"
    try:
        json.loads(line.decode("utf-8"))
    except ValueError as error:
        return f"not JSON: {error}"
    return None


def check(paths, adopt=False):
    """Walks the files of one trail; gives the number of lines and the hash of the last one."""
    seq, prev, lines = 0, "0" * 64, 0
    for path in paths:
        offset = 0
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                name = os.path.basename(path)
                if not line.endswith(b"\n"):
                    raise Broken(name, number, offset, "unfinished")
                line = line[:-1]
                if adopt and (head := LINK.match(line)) and int(head[1]) > 1:
                    seq, prev = int(head[1]) - 1, head[2].decode()
                adopt = False
                if why := fault(line, seq + 1, prev):
                    raise Broken(name, number, offset, why)
                seq, prev, lines = seq + 1, hashlib.sha256(line).hexdigest(), lines + 1
                offset += len(line) + 1
    return {"lines": lines, "seq": seq, "head": prev}


def index_of(lines, seq, prev):
    """The index of a closed segment, made from its lines; seq and prev are those of the line before."""
    found, latest, offset = {}, 0, 0
    for line in lines:
        record = json.loads(line)
        latest = max(latest, record.get("time_ms", 0))
        kind = record.get("kind")
        if kind in ("intent", "terminal"):
            key = uuid.UUID(record["operation_id"]).bytes
            begins = kind == "intent" or bool(found.get(key, (0, 0))[1] & 1 << 31)
            found[key] = (offset, len(line) | (kind == "terminal") << 30 | begins << 31)
        offset, last_at = offset + len(line) + 1, offset
    rows = [key + struct.pack("<II", *found[key]) for key in sorted(found)]
    marks = [found[key][1] >> 30 for key in sorted(found)]
    loose = [row for row, mark in zip(rows, marks) if mark != 3]
    ids = (min(found), max(found)) if found else (b"\xff" * 16, b"\0" * 16)
    head = b"PCPINDX1" + struct.pack("<5Q", offset, seq, seq + len(lines), last_at, latest)
    head += bytes.fromhex(prev) + hashlib.sha256(lines[-1]).digest() + ids[0] + ids[1]
    head += struct.pack("<II", len(rows), len(loose)) + b"".join(loose)
    pages = [b"".join(rows[at : at + 170]) for at in range(0, len(rows), 170)]
    return b"".join(part + struct.pack("<I", zlib.crc32(part)) for part in [head, *pages])


def indexes(paths):
    """How many closed segments of a trail have an index, and how many of those differ from the segment."""
    seq, prev, there, misfits = 0, "0" * 64, 0, 0
    for path in list(paths)[:-1]:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
        if seq == 0 and lines and (link := LINK.match(lines[0])):
            seq, prev = int(link[1]) - 1, link[2].decode()
        name = path.removesuffix(".jsonl") + ".index"
        if os.path.exists(name):
            with open(name, "rb") as file:
                there, misfits = there + 1, misfits + (file.read() != index_of(lines, seq, prev))
        seq, prev = seq + len(lines), hashlib.sha256(lines[-1]).hexdigest() if lines else prev
    return {"indexes": there, "misfits": misfits}


def check_trail(directory, trail):
    late = not os.path.exists(os.path.join(directory, f"{trail}.000001.jsonl"))
    result = check(segments(directory, trail), adopt=late)
    return {**result, **indexes(segments(directory, trail))}


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    target = arguments[0]
    if os.path.isdir(target):
        jobs = [(trail, lambda trail=trail: check_trail(target, trail)) for trail in TRAILS]
    else:
        jobs = [(os.path.basename(target), lambda: check([target], adopt=True))]
    code = 0
    for trail, job in jobs:
        try:
            result = {"trail": trail, "ok": True, **job()}
        except Broken as broken:
            result, code = {"trail": trail, "ok": False, **broken.facts}, 11
        except OSError as error:
            result, code = {"trail": trail, "ok": None, "why": str(error)}, code or 12
        print(json.dumps(result))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
