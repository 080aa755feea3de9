"""Apply a unified diff of one file in plain Python, wherever its lines have moved to."""


def patched_file(patch):
    """Return the path that a patch names, relative to the checkout."""
    named = [line for line in patch.splitlines() if line.startswith("+++ b/")]
    if len(named) != 1:
        raise ValueError(f"a patch must change one file; this one names {len(named)}.")
    return named[0].removeprefix("+++ b/").partition("\t")[0]


def patched(text, patch):
    """Return the text that a patch makes of a file; refuse one that does not fit.

    Line numbers do not count: the lines of each hunk, context included, must be found once.
    """
    lines = text.splitlines()
    for hunk in f"\n{patch}".split("\n@@ ")[1:]:
        changes = [line or " " for line in hunk.splitlines()[1:]]  # an editor may strip the blank
        old, new = ([line[1:] for line in changes if line[0] in kind] for kind in (" -", " +"))
        found = [k for k in range(len(lines)) if lines[k : k + len(old)] == old]
        if len(found) != 1:
            raise ValueError(f"these lines are found {len(found)} times, not once: {old}")
        lines[found[0] : found[0] + len(old)] = new
    return "\n".join([*lines, ""])
