"""The faults in `tests/faults` apply to the present source."""

from collections import Counter
from pathlib import Path

import pytest

import reservoir
from helpers import ROOT
from helpers.patches import patched, patched_file

CHECKOUT = Path(reservoir.__file__).parents[1]  # or where the wheel lies
FAULTS = sorted((ROOT / "tests" / "faults").glob("*.patch"))


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_a_fault_still_applies_and_leaves_valid_python(path):
    patch = path.read_text(encoding="utf-8")
    name = patched_file(patch)
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    faulty = patched(text, patch)
    assert faulty != text
    compile(faulty, name, "exec")


def test_faults_are_at_least_two_for_each_of_the_rooms():
    """A room is a package, or a module beside the packages: a line of the table in the docs."""
    rooms = Counter(patched_file(path.read_text(encoding="utf-8")).split("/")[1] for path in FAULTS)
    assert len(rooms) == 21
    assert min(rooms.values()) == 2


def test_a_patch_that_does_not_fit_raises():
    patch = "--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert patched("z\na\nb\nd\n", patch) == "z\na\nc\nd\n"
    for other in ("a\nx\n", "a\nb\na\nb\n", "a\n\nb\n", "a\nbz\n", "za\nb\n"):
        with pytest.raises(ValueError, match="times, not once"):
            patched(other, patch)
