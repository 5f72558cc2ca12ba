#!/usr/bin/env python3
"""Hashes and signatures of protocol v2, from its description alone: canonical JSON, SHA-256, Ed25519 (RFC 8032).

It shares no code with the writers.

  protocol.py vectors FILE    every golden vector; prints how many hashes and signatures agreed
  protocol.py hashes < LINES  a request a line; answers each with its action hash, the SHA-256 of its grant's signed
                              bytes, and the same request in another layout
"""

import hashlib
import json
import sys

HASHED = ("protocol_version", "action_version", "target_version", "verification_version", "subject", "session_id",
          "action", "target", "interaction_mode", "deadline_at_ms", "verification", "safety")
OPTIONAL = {"type_text": ("delay_ms",), "press": ("delay_ms",)}
ESCAPES = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def string(text):
    return '"' + "".join(ESCAPES.get(ord(c), c if ord(c) >= 32 else f"\\u{ord(c):04x}") for c in text) + '"'


def real(number):
    """The shortest digits that read back; an exponent below 1e-5 and from 1e16 on."""
    sign, digits = ("-", repr(number)[1:]) if repr(number).startswith("-") else ("", repr(number))
    mantissa, _, exponent = digits.partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if not digits:
        return sign + "0.0"
    power = point - 1
    if -5 <= power < 16:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        digits = digits.ljust(point, "0")
        return f"{sign}{digits[:point]}.{digits[point:] or '0'}"
    rest = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{power:+d}"


def canonical(value):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return string(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return real(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    members = sorted(value.items(), key=lambda member: member[0].encode())
    return "{" + ",".join(string(name) + ":" + canonical(item) for name, item in members) + "}"


def sha256(value):
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def integer(text):
    """What does not fit 64 bits is a real number to the protocol, and so is minus nought."""
    number = int(text)
    return number if text != "-0" and -(1 << 63) <= number < 1 << 64 else float(text)


def action_hash(request):
    action = dict(request["action"])
    for name in OPTIONAL.get(action["kind"], ()):
        action.setdefault(name, None)
    return sha256([action if name == "action" else request[name] for name in HASHED])


P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def decode(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - xx) % P:
        raise ValueError("no point")
    return (x, y) if x & 1 == sign else (P - x, y)


def add(a, b):
    product = D * a[0] * b[0] * a[1] * b[1] % P
    x = (a[0] * b[1] + a[1] * b[0]) * pow(1 + product, P - 2, P) % P
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, P - 2, P) % P
    return x, y


def times(scalar, point):
    result = (0, 1)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point, scalar = add(point, point), scalar >> 1
    return result


def verifies(key, message, signature):
    base = decode(bytes([0x58] + 31 * [0x66]))
    s = int.from_bytes(signature[32:], "little")
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    return s < L and times(s, base) == add(decode(signature[:32]), times(k, decode(key)))


def other_layout(value):
    """The same JSON: members in the reverse order, white space, every character escaped that can be."""
    if isinstance(value, dict):
        pairs = (json.dumps(name) + " :\t" + other_layout(value[name]) for name in reversed(sorted(value)))
        return "{ " + " ,\r".join(pairs) + "}"
    if isinstance(value, list):
        return "[ " + " , ".join(map(other_layout, value)) + " ]"
    return json.dumps(value)


def main():
    if sys.argv[1] == "hashes":
        for line in sys.stdin.buffer:
            request = json.loads(line, parse_int=integer)
            grant = sha256(request["authority"]["grant"])
            print(action_hash(request), grant, other_layout(request))
        return 0
    document = json.load(open(sys.argv[2], encoding="utf-8"), parse_int=integer)
    key = bytes.fromhex(document["public_key"])
    hashes = signatures = 0
    for vector in document["vectors"]:
        request = vector["request"]
        if action_hash(request) != vector["action_hash"]:
            print(f"{vector['name']}: {action_hash(request)}")
            return 1
        hashes += 1
        if "signature" in vector:
            message = canonical(request["authority"]["grant"]).encode()
            if not verifies(key, message, bytes.fromhex(vector["signature"])):
                print(f"{vector['name']}: the signature does not verify")
                return 1
            signatures += 1
    print(f"{hashes} hashes and {signatures} signatures agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
