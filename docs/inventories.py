"""Make the inventories of other projects from lists of names, without a network.

Each list in `inventories/` begins with the project's address and the pattern of its pages; then
come lines `kind name [page]`, for names that our pages use. Each name is an anchor on its page.
"""

import zlib
from pathlib import Path

LISTS = Path(__file__).parent / "inventories"
HEADER = "# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
HEADER += "# The remainder of this file is compressed using zlib.\n"


def read(path):
    """Return the address of a project, and for each of its names the kind and the page."""
    address, pattern, *lines = path.read_text(encoding="utf-8").splitlines()
    names = {}
    for line in lines:
        kind, name, *page = line.split()
        names[name] = (kind, page[0] if page else pattern.format(name=name))
    return address, names


def write(project, names, path):
    """Write an inventory of version 2, the format of objects.inv."""
    lines = [f"{name} py:{kind} 1 {page}#$ -\n" for name, (kind, page) in sorted(names.items())]
    packed = zlib.compress("".join(lines).encode(), 9)
    path.write_bytes(HEADER.format(project=project).encode() + packed)


def write_all(folder):
    """Write an inventory for each list into a folder; return the mapping intersphinx wants."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for path in sorted(LISTS.glob("*.txt")):
        address, names = read(path)
        target = folder / f"{path.stem}.inv"
        write(path.stem, names, target)
        mapping[path.stem] = (address, str(target))
    return mapping
