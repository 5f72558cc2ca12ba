#!/usr/bin/env python3
"""Reads and writes frames of the Portal Capability Protocol, from WIRE.md alone.

It shares no code with the writers: it is how a reader in another language looks, and what the tests hold
the Rust codec against.

  frames.py decode [--hex] < BYTES    one JSON object per frame; exit 1 and a last line {"error": ...} on a bad frame
  frames.py encode < JSON-LINES       the bytes of those frames
  frames.py check [--hex] < BYTES     decode, encode again, compare; prints how many frames agreed
  frames.py vectors WIRE.md           check the golden vectors written in the document
"""

import json
import struct
import sys
import zlib

MAGIC = 0x50435000
VERSION = 1
MAX_FRAME_BYTES = 1024 * 1024
MIN_HEADER_BYTES = 9
TYPES = (
    "ping pong error_response detect_request detect_response execute_request execute_response "
    "registry_query registry_response subscribe_events unsubscribe_events subscription_ack push_event "
    "event_ack get_manifest manifest_response invoke_capability capability_result_msg validate_params_msg "
    "validate_params_response query_state state_response app_shutdown app_shutdown_ack "
    "confirmation_request confirmation_response cancel_request"
).split()


class BadFrame(Exception):
    """A rule of WIRE.md that the bytes break."""


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data, at, end, field):
    value = 0
    for index in range(5):
        if at + index >= end:
            raise BadFrame(f"{field} runs past the frame")
        byte = data[at + index]
        if index == 4 and byte > 0x0F:
            break
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if byte == 0 and index > 0:
                break
            return value, at + index + 1
    raise BadFrame(f"{field} is not a 32-bit varint in its shortest form")


def encode(message_type, payload):
    header = b"".join(map(varint, (MAGIC, VERSION, message_type, len(payload), zlib.crc32(payload))))
    if len(header) + len(payload) > MAX_FRAME_BYTES:
        raise BadFrame("frame exceeds the limit")
    return struct.pack("<I", len(header) + len(payload)) + header + payload


def decode(data, at):
    """The frame at `at`: (type, payload, where the next one begins)."""
    if len(data) - at < 4:
        raise BadFrame("stream ends inside a length field")
    (total,) = struct.unpack_from("<I", data, at)
    if total > MAX_FRAME_BYTES:
        raise BadFrame(f"frame of {total} bytes exceeds the limit")
    if total < MIN_HEADER_BYTES:
        raise BadFrame(f"frame of {total} bytes cannot hold a header")
    at += 4
    end = at + total
    if end > len(data):
        raise BadFrame("stream ends inside a frame")
    fields = []
    for field in ("magic", "version", "message type", "payload_len", "checksum"):
        value, at = read_varint(data, at, end, field)
        if field == "magic" and value != MAGIC:
            raise BadFrame(f"magic is {value:#010x}")
        if field == "version" and value != VERSION:
            raise BadFrame(f"version is {value}")
        fields.append(value)
    _, _, message_type, payload_len, checksum = fields
    if payload_len != end - at:
        raise BadFrame(f"payload_len is {payload_len}, the frame holds {end - at}")
    payload = bytes(data[at:end])
    if zlib.crc32(payload) != checksum:
        raise BadFrame("checksum mismatch")
    if message_type >= len(TYPES):
        raise BadFrame(f"message type {message_type} is unknown")
    return message_type, payload, end


def frames(data):
    at = 0
    while at < len(data):
        message_type, payload, at = decode(data, at)
        yield message_type, payload


def as_json(message_type, payload):
    row = {"type": message_type, "name": TYPES[message_type]}
    try:
        row["payload"] = payload.decode("utf-8")
    except UnicodeDecodeError:
        row["payload_hex"] = payload.hex()
    return json.dumps(row, ensure_ascii=False)


def from_json(line):
    row = json.loads(line)
    if "payload_hex" in row:
        return row["type"], bytes.fromhex(row["payload_hex"])
    return row["type"], row["payload"].encode("utf-8")


def vectors(path):
    """The lines of the document's ```golden block: name, hex, payload text."""
    inside = False
    for line in open(path, encoding="utf-8"):
        if line.startswith("```"):
            inside = line.strip() == "```golden"
        elif inside and line.strip():
            name, hexed, *payload = line.rstrip("\n").split(" ", 2)
            yield name, bytes.fromhex(hexed), (payload[0] if payload else "").encode("utf-8")


def check_vectors(path):
    count = 0
    for name, data, payload in vectors(path):
        message_type, found, end = decode(data, 0)
        if (TYPES[message_type], found, end) != (name, payload, len(data)):
            raise BadFrame(f"vector {name}: decoded as {as_json(message_type, found)}")
        if encode(message_type, payload) != data:
            raise BadFrame(f"vector {name}: encodes to {encode(message_type, payload).hex()}")
        count += 1
    if count == 0:
        raise BadFrame("no vectors found")
    return count


def main(arguments):
    verb = arguments[0] if arguments else ""
    if verb == "vectors" and len(arguments) == 2:
        print(f"{check_vectors(arguments[1])} vectors agree")
        return 0
    if verb == "encode":
        for line in sys.stdin:
            sys.stdout.buffer.write(encode(*from_json(line)))
        return 0
    if verb not in ("decode", "check"):
        print(__doc__, file=sys.stderr)
        return 2
    data = sys.stdin.buffer.read()
    if "--hex" in arguments:
        data = bytes.fromhex(data.decode("ascii"))
    if verb == "check":
        again = b"".join(encode(*frame) for frame in frames(data))
        if again != data:
            raise BadFrame("encoding again gives other bytes")
        print(f"{sum(1 for _ in frames(data))} frames agree")
        return 0
    for frame in frames(data):
        print(as_json(*frame))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BadFrame as error:
        print(json.dumps({"error": str(error)}))
        sys.exit(1)
