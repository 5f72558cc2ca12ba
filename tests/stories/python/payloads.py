#!/usr/bin/env python3
"""Reads and writes the payloads of the Portal Capability Protocol, from WIRE.md alone.

Every payload is taken apart by the schemas of the document and put together again from its values, members in the order of
the schema, JSON of somebody else byte for byte. It shares no code with the writers.

  payloads.py vectors WIRE.md           every golden vector; prints how many agreed, of how many types
  payloads.py check WIRE.md < BYTES     every frame; prints how many agreed, and the names of their types
"""

import json
import re
import sys

from frames import BadFrame, TYPES, decode, encode, frames, vectors

EMBEDDED = ("parameters", "arguments", "rows", "added", "plan", "manifest")
EMPTY = ("ping", "pong")
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


class Raw(str):
    """JSON text of somebody else, handed through."""


class Schemas:
    """The fenced schemas of the document: of payloads by title, of events by topic."""

    def __init__(self, path):
        text = open(path, encoding="utf-8").read()
        self.payloads = self.named(text, "json schema")
        self.events = self.named(text, "json event")

    @staticmethod
    def named(text, fence):
        found = {}
        for block in re.findall(rf"^```{fence}\n(.*?)\n```$", text, re.M | re.S):
            schema = json.loads(block)
            found.setdefault(schema["title"], []).append(schema)
        return found


def skip(text, at):
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def read_value(text, at, schema, name=""):
    """The value at `at` and where it ends. Objects with a schema keep their members' text where that is embedded."""
    begin = at = skip(text, at)
    properties = schema.get("properties")
    if text[at : at + 1] != "{" or not properties or is_embedded(name):
        try:
            value, end = json.JSONDecoder(object_pairs_hook=members).raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise BadFrame(f"no JSON at {at}: {error}")
        return (Raw(text[begin:end]) if is_embedded(name) else value), end
    pairs = []
    at = skip(text, at + 1)
    while text[at : at + 1] != "}":
        if pairs:
            at = expect(text, at, ",")
        key, at = json.JSONDecoder().raw_decode(text, skip(text, at))
        at = expect(text, at, ":")
        value, at = read_value(text, at, properties.get(key, {}), key)
        pairs.append((key, value))
        at = skip(text, at)
    return members(pairs), at + 1


def expect(text, at, character):
    at = skip(text, at)
    if text[at : at + 1] != character:
        raise BadFrame(f"{character!r} is missing at {at}")
    return at + 1


def members(pairs):
    value = dict(pairs)
    if len(value) != len(pairs):
        raise BadFrame("a member is given twice")
    return value


def is_embedded(name):
    return name.endswith("_json") or name in EMBEDDED


def problem(value, schema, where="payload"):
    """What the value breaks of the schema; None where nothing."""
    plain = json.loads(value) if isinstance(value, Raw) else value
    kind = schema.get("type")
    if kind and (not isinstance(plain, KINDS[kind]) or kind == "integer" and isinstance(plain, bool)):
        return f"{where} is no {kind}"
    if "const" in schema and plain != schema["const"]:
        return f"{where} is not {schema['const']!r}"
    if "enum" in schema and plain not in schema["enum"]:
        return f"{where} is none of {schema['enum']}"
    if isinstance(plain, str):
        if len(plain.encode("utf-8")) > schema.get("maxLength", len(plain.encode("utf-8"))):
            return f"{where} is longer than {schema['maxLength']}"
        if "pattern" in schema and not re.search(schema["pattern"], plain):
            return f"{where} does not match {schema['pattern']}"
    if isinstance(plain, int) and not isinstance(plain, bool):
        if not schema.get("minimum", plain) <= plain <= schema.get("maximum", plain):
            return f"{where} is out of range"
    if isinstance(plain, list):
        if len(plain) > schema.get("maxItems", len(plain)):
            return f"{where} has more than {schema['maxItems']} items"
        found = (problem(item, schema.get("items", {}), f"{where}[]") for item in plain)
        return next(filter(None, found), None)
    if "oneOf" in schema and sum(problem(plain, one, where) is None for one in schema["oneOf"]) != 1:
        return f"{where} fits none or several of its forms"
    if "properties" in schema:
        return object_problem(value, schema, where)
    return None


def object_problem(value, schema, where):
    known = schema["properties"]
    value = json.loads(value) if isinstance(value, Raw) else value
    for name in schema.get("required", []):
        if name not in value:
            return f"{where} has no {name}"
    for name, member in value.items():
        if name not in known:
            return f"{where} has an unknown member {name}"
        found = problem(member, known[name], f"{where}.{name}")
        if found:
            return found
    return None


def write_value(value, schema):
    """The value as JSON, the members of objects in the order of their schema."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        names = [name for name in known if name in value] or list(value)
        inside = (f"{write_value(name, {})}:{write_value(value[name], known.get(name, {}))}" for name in names)
        return "{" + ",".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ",".join(write_value(item, schema.get("items", {})) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def again(schemas, name, payload):
    """The payload, taken apart and put together again."""
    if name in EMPTY:
        if payload:
            raise BadFrame(f"{name} has a payload")
        return b""
    text = payload.decode("utf-8")
    problems = []
    for schema in schemas.payloads.get(name, []):
        value, end = read_value(text, 0, schema)
        if skip(text, end) != len(text):
            raise BadFrame(f"{name}: bytes after the object")
        found = problem(value, schema, name)
        if found is None:
            check_event(schemas, name, value)
            return write_value(value, schema).encode("utf-8")
        problems.append(found)
    raise BadFrame(f"{name} keeps to no schema: {'; '.join(problems)}")


def check_event(schemas, name, value):
    """The data of a topic that the document knows has the topic's shape, and is put together again as well."""
    if name != "push_event" or value.get("topic") not in schemas.events:
        return
    data = value["data_json"]
    for schema in schemas.events[value["topic"]]:
        taken, _ = read_value(str(data), 0, schema)
        found = problem(taken, schema, value["topic"])
        if found:
            raise BadFrame(found)
        if write_value(taken, schema) != str(data):
            raise BadFrame(f"{value['topic']} is written as {write_value(taken, schema)}")


def check(schemas, name, payload):
    written = again(schemas, name, payload)
    if written != payload:
        raise BadFrame(f"{name} is written as {written.decode('utf-8')}")


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in ("vectors", "check"):
        print(__doc__, file=sys.stderr)
        return 2
    schemas = Schemas(arguments[1])
    names = []
    if arguments[0] == "vectors":
        for name, data, _ in vectors(arguments[1]):
            message_type, payload, end = decode(data, 0)
            check(schemas, name, payload)
            if TYPES[message_type] != name or end != len(data):
                raise BadFrame(f"vector {name} is another frame")
            if encode(message_type, again(schemas, name, payload)) != data:
                raise BadFrame(f"vector {name} encodes to other bytes")
            names.append(name)
        print(f"{len(names)} vectors of {len(set(names))} types agree")
        return 0
    for message_type, payload in frames(sys.stdin.buffer.read()):
        check(schemas, TYPES[message_type], payload)
        names.append(TYPES[message_type])
    print(f"{len(names)} payloads agree: {' '.join(names)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BadFrame as error:
        print(json.dumps({"error": str(error)}))
        sys.exit(1)
