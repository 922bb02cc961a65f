"""A problem before its laws, and before its twins."""

import re
from collections.abc import Callable, Sequence

from fuzz.findings import Finding, Outcome
from fuzz.kinds.base import Effort, generator
from fuzz.problems import Problem
from fuzz.programs import Run, run, script
from fuzz.shrinking import shrunk
from fuzz.twins import Way, stopped_short, tried

Law = Callable[[Problem, Run], str | None]
Judge = Callable[[Problem, Run], tuple[str | None, tuple[Problem, ...]]]
"""What is wrong with a problem that was run, and the problems that show it."""


def tried_out(problem: Problem, laws: Sequence[Law], ways: Sequence[Way], seed: int, effort: Effort) -> Outcome:
    """The first law that the problem breaks, if there is one."""
    first = run(problem)
    counts = {"fits": 1, "refused": int(first.error is not None), "stopped short": int(stopped_short(first))}
    for law in laws:
        if law(problem, first) is not None:
            return Outcome(found(law.__name__, _by_law(law), problem, effort), counts)
    for way in ways:
        counts["fits"] += 1
        judge = _by_twin(way, seed)
        if judge(problem, first)[0] is not None:
            return Outcome(found(way.__name__, judge, problem, effort), counts)
    return Outcome(None, counts)


def _by_law(law: Law) -> Judge:
    return lambda problem, first: (law(problem, first), (problem,))


def _by_twin(way: Way, seed: int) -> Judge:
    # the same random numbers whenever it is asked, so that a smaller problem has the same twin
    return lambda problem, first: tried(way, problem, first, generator(way.__name__, seed))


def found(name: str, judge: Judge, problem: Problem, effort: Effort) -> Finding:
    """A broken law, with the smallest problem that breaks it."""
    law = name.replace("_", " ")
    sort = sort_of(judge(problem, run(problem))[0])

    def breaks(smaller: Problem) -> bool:
        sentence = judge(smaller, run(smaller))[0]
        return sentence is not None and sort_of(sentence) == sort

    small = shrunk(problem, breaks, effort.shrink_seconds)
    sentence, problems = judge(small, run(small))
    said = sentence or "broken once, and not again: the answer changes from run to run"
    return Finding(law, said, script(problems, law, said))


def sort_of(sentence: str | None) -> str:
    """How a sentence begins, numbers apart: what a smaller problem must say, too, to show the same."""
    return re.sub(r"[-+\d.e]+", "#", sentence or "")[:30]
