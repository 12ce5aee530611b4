"""How a benchmark tells a figure that docs/BENCHMARKS.md shows; figures.h is the same in C++."""


def report(work, beside="", now="", ratio="", goal=""):
    """Prints one figure.

    work: what is done; beside: what it is compared with; now: what was measured, of both sides, with units; ratio: the
    number that carries over to another machine, such as "1.13x"; goal: a bound of it, such as "<= 1.6x", or "".
    """
    fields = (work, beside, now, ratio, goal)
    assert not any("|" in field or "\n" in field for field in fields), fields
    print("figure: " + " | ".join(fields), flush=True)
