#!/usr/bin/env python3
"""What an unpacked corpus says of itself, found by other means than the product's.

    probe.py FOLDER APPS ELF

Reads FOLDER/root, packages.tsv and owners.tsv (see unpack). Writes to APPS one JSON line for each application, and to ELF
one for each ELF file with what `readelf` lists as needed. Shares no code and no table with the product: command lines are
taken apart by shlex, links are walked here, and a toolkit is what the libraries of the program name or, where they name
none, what the maintainer of the package declared as its dependencies. A toolkit is therefore a set: any of its members is
a right answer, and the empty set means that nothing should be told.
"""
import json
import os
import re
import shlex
import subprocess
import sys

PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/games", "/usr/games"]
MERGED = ("/bin/", "/sbin/", "/lib/", "/lib64/")
# What a library or a package is called that only applications of a toolkit need.
LIBRARIES = [
    ("gtk2", r"libgtk-x11-2\.|libgdk-x11-2\.|libgtkmm-2"),
    ("gtk3", r"libgtk-3\.|libgdk-3\.|libgtkmm-3|libwx_gtk3u|libhandy-1|libvte-2\.91\.|libwebkit2gtk-4|libgtksourceview-[34]\."),
    ("gtk4", r"libgtk-4\.|libadwaita-1|libgtkmm-4|libgtksourceview-5\.|libvte-2\.91-gtk4|libwebkitgtk-6"),
    ("qt5", r"libQt5|libKF5"),
    ("qt6", r"libQt6|libKF6"),
]
PACKAGES = [
    ("gtk2", r"libgtk2\.0-0|python-gtk2|libgtk2-perl"),
    ("gtk3", r"libgtk-3-0|gir1\.2-gtk-3\.0|libgtkmm-3\.0|libgtk3-perl|gir1\.2-handy-|gir1\.2-vte-2\.91|gir1\.2-webkit2-4|"
             r"python3-wxgtk|libwxgtk3\.2-[0-9]"),
    ("gtk4", r"libgtk-4-1|gir1\.2-gtk-4\.0|gir1\.2-adw-1|libadwaita-1-0"),
    ("qt5", r"libqt5widgets5|libqt5gui5|python3-pyqt5|python3-pyside2"),
    ("qt6", r"libqt6widgets6|libqt6gui6|python3-pyqt6|python3-pyside6"),
    ("java", r"default-jre|openjdk-[0-9]+-jre|java[0-9]*-runtime"),
]
CURSES = r"libncurses|libtinfo\.|libslang\."
WINDOWS = r"libX11\.|libxcb\.|libXt\.|libXaw|libwayland-client|libSDL|libfltk|libEGL|libGL\."


class Tree:
    """Paths within the unpacked tree, whose absolute links mean the tree itself."""

    def __init__(self, root):
        self.root = os.path.realpath(root)

    def real(self, path):
        return self.root + path

    def resolve(self, path, depth=0):
        if depth > 40:
            return None
        done, rest = "", [part for part in path.split("/") if part not in ("", ".")]
        while rest:
            part = rest.pop(0)
            if part == "..":
                done = os.path.dirname(done)
                continue
            here = (done if done != "/" else "") + "/" + part
            if os.path.islink(self.real(here)):
                target = os.readlink(self.real(here))
                base = target if target.startswith("/") else os.path.dirname(here) + "/" + target
                return self.resolve("/".join([base] + rest), depth + 1)
            done = here
        return done

    def file(self, path):
        """The regular file at the end of all links; /bin is /usr/bin, as on every system of today."""
        for candidate in [path] + (["/usr" + path] if path.startswith(MERGED) else []):
            found = self.resolve(candidate)
            if found and os.path.isfile(self.real(found)):
                return found
        return None

    def program(self, word):
        if "/" in word:
            return self.file(word)
        for folder in PATH:
            found = self.file(folder + "/" + word)
            if found and os.stat(self.real(found)).st_mode & 0o111:
                return found
        return None

    def read(self, path, limit=1 << 20):
        with open(self.real(path), "rb") as file:
            return file.read(limit)


def unescape(text):
    return re.sub(r"\\(.)", lambda m: {"s": " ", "n": "\n", "t": "\t", "r": "\r", "\\": "\\"}.get(m[1], m[0]), text)


def entry(data):
    """The pairs of the main group without translations."""
    pairs, inside = {}, False
    for line in data.decode("utf-8", "replace").lstrip("\ufeff").splitlines():
        line = line.strip()
        if line.startswith("["):
            inside = line == "[Desktop Entry]"
        elif inside and "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            pairs.setdefault(key.strip(), value.strip())
    return pairs


def listed(text):
    items = re.split(r"(?<!\\);", text or "")
    return [unescape(item.replace("\\;", ";")) for item in items if item]


def words(command):
    try:
        found = shlex.split(command, posix=True)
    except ValueError:
        return None
    return [word for word in found if not re.fullmatch(r"%[a-zA-Z]", word)]


TRANSPARENT = {"nice", "nohup", "pkexec", "sudo", "gksu", "setsid", "exec", "dbus-run-session"}
SHELLS = {"sh", "bash", "dash"}


def started(argv, tree, depth=0):
    """The word of a command line that names the program, behind what only hands over to it."""
    argv = list(argv or [])
    while argv and depth < 8:
        name = os.path.basename(argv[0])
        if name == "env":
            argv.pop(0)
            while argv and (argv[0].startswith("-") or "=" in argv[0]):
                if argv[0] in ("-u", "-C"):
                    argv.pop(0)
                argv.pop(0)
        elif name in TRANSPARENT:
            argv.pop(0)
            while argv and argv[0].startswith("-"):
                argv = argv[2:] if argv[0] in ("-n", "--user", "-u") else argv[1:]
        elif name in SHELLS and len(argv) > 2 and argv[1] == "-c":
            code = words(argv[2]) or []
            while code and "=" in code[0]:
                code.pop(0)
            if code and re.fullmatch(r"[\w./+-]+", code[0]) and code[0] not in ("if", "for", "case", "u", "test"):
                argv = code
            else:
                return None
        elif name in SHELLS and len(argv) > 1 and not argv[1].startswith("-"):
            argv.pop(0)
        elif re.fullmatch(r"python[\d.]*|perl|gjs", name):
            rest = [word for word in argv[1:] if not word.startswith("-")]
            return rest[0] if rest and "/" in rest[0] else argv[0]
        elif name == "gapplication" and argv[1:2] == ["launch"]:
            service = tree.file("/usr/share/dbus-1/services/" + argv[2] + ".service")
            line = re.search(r"^Exec=(.*)$", tree.read(service).decode(), re.M) if service else None
            return started(words(line[1]), tree, depth + 1) if line else argv[0]
        else:
            return argv[0]
        depth += 1
    return argv[0] if argv else None


def needed_of(paths, tree):
    """What readelf lists for each of the files, many at a time."""
    found = {}
    for start in range(0, len(paths), 200):
        some = paths[start:start + 200]
        # one of two names for the same file twice, so that readelf prints names even where one file is left
        output = subprocess.run(["readelf", "-dW"] + [tree.real(path) for path in some + some[:1]],
                                capture_output=True, env={"LC_ALL": "C", "PATH": os.environ["PATH"]}).stdout
        current = None
        for line in output.decode("utf-8", "replace").splitlines():
            if line.startswith("File: "):
                current = line[6:][len(tree.root):]
                found[current] = []
            elif current is not None and "(NEEDED)" in line:
                found[current].append(re.search(r"\[(.*)\]", line)[1])
    return found


def elf_files(tree):
    for folder, folders, files in os.walk(tree.root):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path) or "\n" in path:
                continue
            try:
                with open(path, "rb") as file:
                    # relocatable parts of programs have no table of what they need
                    if file.read(18)[:4] == b"\x7fELF" and not name.endswith((".o", ".ko")):
                        yield path[len(tree.root):]
            except OSError:
                continue


def named(table, names):
    return {toolkit for toolkit, pattern in table for name in names if re.match(pattern, name)}


def dependencies(text):
    return [re.split(r"[ (:]", name.strip())[0] for name in re.split(r"[,|]", text) if name.strip()]


def declared(package, depends):
    """What a package declares to need, or, where that tells nothing, what its own parts in the corpus declare."""
    first = dependencies(depends.get(package, ""))
    found = named(PACKAGES, first)
    return found or named(PACKAGES, [name for part in first for name in dependencies(depends.get(part, ""))])


def toolkits(row, needed, by_package):
    """The set of right answers, and what told it."""
    if row["kind"] == "missing":
        return {"terminal"} if row["terminal"] else set(), "no program"
    direct = named(LIBRARIES, needed)
    if direct:
        return direct, "libraries"
    if row["kind"] == "elf" and any(re.match(CURSES, name) for name in needed):
        if not any(re.match(WINDOWS, name) for name in needed):
            return {"terminal"}, "libraries"
    if row["terminal"]:
        return {"terminal"}, "entry"
    return by_package, "dependencies"


def application(path, tree, applications):
    pairs = entry(tree.read(path))
    row = {"id": os.path.relpath(path, applications).replace("/", "-").removesuffix(".desktop"), "path": path}
    if pairs.get("Type") != "Application" or not pairs.get("Name") or pairs.get("Hidden") == "true":
        return None
    for key, name in [("Terminal", "terminal"), ("NoDisplay", "nodisplay"), ("DBusActivatable", "dbus")]:
        row[name] = pairs.get(key) == "true"
    row["name"] = unescape(pairs["Name"])
    row["categories"] = listed(pairs.get("Categories"))
    if not pairs.get("Exec") and not row["dbus"]:
        return None
    command = words(unescape(pairs.get("Exec", "")))
    row["program"] = started(command, tree)
    file = tree.program(row["program"]) if row["program"] else None
    # words given to a shell are a script of their own where they are more than a command
    code = row["program"] is None and os.path.basename((command or [""])[0]) in SHELLS
    row.update(file=file, kind="script" if code else "missing", interpreter=None)
    if file:
        head = tree.read(file, 4096)
        row["kind"] = "elf" if head[:4] == b"\x7fELF" else "script" if head[:2] == b"#!" else "other"
        if row["kind"] == "script":
            line = head[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
            line = [word for word in line[1:] if not word.startswith("-")] if line[0].endswith("/env") else line
            row["interpreter"] = line[0] if line else None
    return row


def main():
    folder, apps_file, elf_file = sys.argv[1:4]
    tree = Tree(folder + "/root")
    depends = dict(line.rstrip("\n").split("\t")[::2] for line in open(folder + "/packages.tsv"))
    owners = dict(line.rstrip("\n").split("\t") for line in open(folder + "/owners.tsv"))
    elf = needed_of(list(elf_files(tree)), tree)
    with open(elf_file, "w") as out:
        for path in sorted(elf):
            out.write(json.dumps({"file": path, "needed": elf[path]}) + "\n")
    applications = "/usr/share/applications"
    with open(apps_file, "w") as out:
        for folder, folders, files in os.walk(tree.real(applications)):
            folders.sort()
            for name in sorted(files):
                path = os.path.join(folder, name)[len(tree.root):]
                if not name.endswith(".desktop") or not tree.file(path):
                    continue
                row = application(path, tree, applications)
                if row is None:
                    continue
                row["needed"] = elf.get(row["file"], []) if row["kind"] == "elf" else None
                right, row["by"] = toolkits(row, row["needed"] or [], declared(owners.get(path), depends))
                row["toolkit"] = sorted(right)
                out.write(json.dumps(row, ensure_ascii=False) + "\n")


main()
