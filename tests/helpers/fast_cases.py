"""The cases of a test with many that stand for all of them in the fast set, and in CI."""

from itertools import combinations


def choose(items):
    """Return those of one test's cases that the fast set holds: the same wherever it is asked.

    Of a slow test that is marked ``slow_cases``, which says the same, those that CI runs.

    A test that says nothing gets cases that together hold each pair of values of any two of its
    ``parametrize``, where one ``seed`` stands for all. Marked ``fast_cases("values")`` it gets each
    value once, marked ``fast_cases(3)`` three cases of many values that lie evenly in the list.
    """
    wanted, cases = _wanted(items), _cases(items)
    if wanted == "pairs":
        cases = _without_seeds(cases, items)
    if isinstance(wanted, int):
        return [items[i] for i in spread([set(case) for case in cases], wanted)]
    return [items[i] for i in cover(_held(cases, 1 if wanted == "values" else 2))]


def add_nothing(items, fast):
    """Return those of one test's cases that are left out of CI, too: no two values meet anew.

    Where the fast set holds each value once, because they do not interact, these are all others.
    """
    cases = list(zip(items, _held(_cases(items), 2), strict=True))
    known = set().union(*(pairs for item, pairs in cases if item in fast))
    others = [(item, pairs - known) for item, pairs in cases if item not in fast]
    new = cover([pairs for _, pairs in others]) if _wanted(items) != "values" else ()
    return [item for i, (item, _) in enumerate(others) if i not in new]


def _wanted(items):
    """Return what a test's mark asks for."""
    mark = items[0].get_closest_marker("slow_cases") or items[0].get_closest_marker("fast_cases")
    return mark.args[0] if mark else "pairs"


def _cases(items):
    """Return the values of each case, numbered by their `parametrize`."""
    # pytest's list of what each `parametrize` calls its values; their order in a case never varies
    return [tuple(enumerate(item.callspec._idlist)) for item in items]


def _without_seeds(cases, items):
    """Return cases without the number of each one's draw, whose names `parametrize` has written."""
    seeds = [str(item.callspec.params.get("seed")) for item in items]
    names = zip(*cases, strict=True)
    place = next((k for k, of in enumerate(names) if [name for _, name in of] == seeds), None)
    return [case if place is None else case[:place] + case[place + 1 :] for case in cases]


def _held(cases, size):
    """Return what each case holds: its values, or its pairs of values."""
    size = min(size, len(cases[0]))
    return [set(combinations(case, size)) for case in cases]


def cover(sets):
    """Return indices, in order, of few sets that together hold all that the sets hold."""
    missing, chosen = set().union(*sets), []
    if len(missing) == sum(map(len, sets)):  # no two hold the same, as of a single `parametrize`
        return [i for i, held in enumerate(sets) if held]
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
