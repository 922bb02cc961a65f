"""What came of looking for interactions: every pair of terms, what it was expected to gain, and whether it joined."""

from collections.abc import Iterator
from dataclasses import dataclass

_LISTED = 12  # pairs that a table shows, those that were fitted among them


@dataclass(frozen=True)
class TriedPair:
    """A product of two terms that might have joined the sum."""

    columns: tuple[str | int, ...]
    expected: float | None
    """Nats that it was expected to gain by a look at what the sum leaves unexplained; None where none was taken."""
    gain: float | None
    """Nats that it gained beside the terms that were there when it was fitted; None where it was not."""
    joined: bool
    why: str
    """Why it did not join; empty where it did."""

    @property
    def name(self) -> str:
        """``a * b``."""
        return " * ".join(map(str, self.columns))


@dataclass(frozen=True)
class TriedInteractions:
    """All pairs that there were, best first, and what a pair had to gain; printed as a table."""

    pairs: tuple[TriedPair, ...]
    needed: float
    """Nats."""
    most: int
    """Pairs that might join."""
    rise: float | None = None
    """Nats by which the bound of the fit with those that joined is above that without; None where none did."""

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[TriedPair]:
        return iter(self.pairs)

    def __getitem__(self, which: int) -> TriedPair:
        return self.pairs[which]

    @property
    def joined(self) -> tuple[TriedPair, ...]:
        """Those that are in the sum, in the order in which they joined."""
        return tuple(pair for pair in self.pairs if pair.joined)

    @property
    def note(self) -> str:
        """One sentence."""
        if not self.pairs:
            return "interactions: the sum has no two terms of different columns to multiply"
        joined, count = self.joined, len(self.pairs)
        of = f"{len(joined) or 'none'} of {count} pair{'s' if count > 1 else ''} joined the sum"
        if joined:
            names = ", ".join(pair.name for pair in joined)
            of += f" and raised the bound by {self.rise or 0.0:,.1f} nats: {names}"
        left = next((pair for pair in self.pairs if not pair.joined and pair.expected is not None), None)
        if left is None:
            return of
        which = "the next" if joined else "the best"
        by_itself = " by itself" if left.why.endswith("that joined") else ""
        found = f"would have gained about {_nats(left.expected)} nats{by_itself}"
        if left.gain is not None:
            found = f"gained {_nats(left.gain)} nats"
        return f"{of}; {which}, {left.name}, {found}, where {self.needed:.1f} were asked for" + (
            "" if left.why.endswith("too little") else f": {left.why}"
        )

    def __repr__(self) -> str:
        if not self.pairs:
            return "no pairs of terms to look at"
        shown = self.pairs[: max(_LISTED, sum(pair.gain is not None for pair in self.pairs))]
        rows = [("interaction", "expected (nats)", "gained (nats)", "joined")]
        rows += [
            (pair.name, _nats(pair.expected), _nats(pair.gain), "yes" if pair.joined else f"no: {pair.why}")
            for pair in shown
        ]
        widths = [max(len(row[c]) for row in rows) for c in range(4)]
        lines = [
            f"{name:<{widths[0]}}  {expected:>{widths[1]}}  {gain:>{widths[2]}}  {joined}"
            for name, expected, gain, joined in rows
        ]
        if len(shown) < len(self.pairs):
            lines.append(f"and {len(self.pairs) - len(shown)} more, expected to gain less")
        lines.append(f"a pair joins when it gains {self.needed:.1f} nats, and at most {self.most} do")
        return "\n".join(lines)


def _nats(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 1) + 0.0:,.1f}"  # minus nothing is nothing
