#!/usr/bin/env python3
"""Compares what the product found in a corpus with what the independent probe found.

    compare.py FOLDER EXPLAINED [--whole]

FOLDER holds apps.jsonl and elf.jsonl of the probe, and found.jsonl, tree.json and inspected.jsonl of the product. EXPLAINED
lists the reviewed differences: application or file, field, the product's value, the probe's value, reason. A difference
that is not in it fails, and so does a line of it that no difference needs; of an application that is not in this corpus
only with --whole. The last line counts applications, and all ELF files of the corpus as one more.
"""
import json
import os
import sys

FIELDS = ["name", "categories", "terminal", "nodisplay", "dbus", "program", "kind", "file", "interpreter", "needed", "toolkit"]


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def product(folder):
    """The applications as the product sees them: names and ids by pcp-cli, programs by the reader behind it."""
    with open(folder + "/tree.json") as file:
        tree = json.load(file)["data"]
    programs = {row["id"]: row for row in lines(folder + "/found.jsonl")}
    apps = {}
    for app in tree["entries"]:
        found = programs.pop(app["id"])
        if (app["categories"], app["program"]) != (found["categories"], found["program"]):
            sys.exit(f"corpus: pcp-cli and the probe example disagree about {app['id']}")
        apps[app["id"].removesuffix(".desktop")] = {**found, "name": app["name"], "kind": found["target"]}
    if programs:
        sys.exit(f"corpus: pcp-cli does not list {sorted(programs)}")
    return apps, tree["skipped"]


def differences(ours, theirs):
    """Each as application, field, our value, the probe's value."""
    for app in sorted(ours.keys() | theirs.keys()):
        if (app in ours) != (app in theirs):
            yield app, "present", app in ours, app in theirs
            continue
        for field in FIELDS:
            our, their = ours[app][field], theirs[app][field]
            if field == "toolkit":
                if our not in (their or [None]):
                    yield app, field, our, their
            elif our != their:
                yield app, field, our, their


def libraries(folder):
    """The ELF files of the corpus of whose needs the two have different lists."""
    ours = {}
    for document in lines(folder + "/inspected.jsonl"):
        for report in document["data"]:
            ours[report["file"]] = report.get("needed")
    theirs = {row["file"]: row["needed"] for row in lines(folder + "/elf.jsonl")}
    found = [(file, "needed", ours.get(file), needed) for file, needed in theirs.items() if ours.get(file) != needed]
    return found, len(theirs)


def told(ours):
    count = sum(app["toolkit"] is not None for app in ours.values())
    there = [app for app in ours.values() if app["kind"] != "missing"]
    some = sum(app["toolkit"] is not None for app in there)
    print(f"corpus: toolkit told for {count} of {len(ours)} applications ({100 * count / len(ours):.1f} %), "
          f"for {some} of the {len(there)} whose program is in the corpus ({100 * some / len(there):.1f} %)")


def main():
    folder, explained_file = sys.argv[1:3]
    ours, skipped = product(folder)
    theirs = {row["id"]: row for row in lines(folder + "/apps.jsonl")}
    wrong, files = libraries(folder)
    explained = {}
    with open(explained_file) as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            cells = line.rstrip("\n").split("\t")
            if len(cells) != 5 or not cells[4].strip():
                sys.exit(f"corpus: {explained_file}:{number}: wants application, field, product, probe, reason")
            explained[tuple(cells[:4])] = number
    failed, used = set(), set()
    for app, field, our, their in [*differences(ours, theirs), *wrong]:
        row = (app, field, json.dumps(our, ensure_ascii=False), json.dumps(their, ensure_ascii=False))
        if row in explained:
            used.add(row)
            continue
        failed.add(app)
        why = ours.get(app, {}).get("evidence") or ours.get(app, {}).get("why") or ""
        print("corpus: FAILED not explained: " + "\t".join(row) + f"\t({why})")
    unneeded = [row for row in explained.keys() - used
                if "--whole" in sys.argv or row[0] in ours or row[0] in theirs or
                (row[0].startswith("/") and os.path.exists(folder + "/root" + row[0]))]
    for row in sorted(unneeded):
        print(f"corpus: FAILED {explained_file}:{explained[row]} explains no difference any more: remove it")
    for skip in skipped:
        print(f"corpus: left out: {skip['why'].replace(folder, '')}")
    apps = len(ours.keys() | theirs.keys())
    print(f"corpus: {apps} applications, {files} ELF files, {len(used)} explained differences")
    told(ours)
    checks = apps + 1
    bad = len(failed & (ours.keys() | theirs.keys())) + bool(failed - ours.keys() - theirs.keys())
    print(f"{checks - bad} passed, {bad + len(unneeded)} failed, 0 skipped")
    sys.exit(bool(bad + len(unneeded)))


main()
