"""The cases of a test with many that stand for all of them in the fast set."""

from itertools import combinations


def choose(items):
    """Return those of one test's cases that the fast set holds: the same wherever it is asked.

    A test that says nothing gets cases that together hold each pair of values of any two of its
    ``parametrize``. Marked ``fast_cases("values")`` it gets each value once, marked
    ``fast_cases(3)`` three cases of many values that lie evenly in the list.
    """
    mark = items[0].get_closest_marker("fast_cases")
    wanted = mark.args[0] if mark else "pairs"
    # pytest's list of what each `parametrize` calls its values; their order in a case never varies
    cases = [tuple(enumerate(item.callspec._idlist)) for item in items]
    if isinstance(wanted, int):
        return [items[i] for i in spread([set(case) for case in cases], wanted)]
    size = min({"pairs": 2, "values": 1}[wanted], len(cases[0]))
    held = [set(combinations(case, size)) for case in cases]
    return [items[i] for i in cover(held)]


def cover(sets):
    """Return indices, in order, of few sets that together hold all that the sets hold."""
    missing, chosen = set().union(*sets), []
    while missing:
        chosen.append(max(range(len(sets)), key=lambda i: len(sets[i] & missing)))
        missing -= sets[chosen[-1]]
    return sorted(chosen)


def spread(sets, n_wanted):
    """Return indices, in order, of so many sets that hold much and otherwise lie evenly."""
    missing, left = set().union(*sets), list(range(len(sets)))
    for k in range(min(n_wanted, len(sets))):
        place = k * len(sets) // n_wanted
        left.remove(best := max(left, key=lambda i: (len(sets[i] & missing), -abs(i - place))))
        missing -= sets[best]
    return sorted(set(range(len(sets))) - set(left))
