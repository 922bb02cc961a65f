"""The last batches of rows and no others: a model that follows the times."""

from collections import deque
from functools import reduce
from typing import Any

from vff.estimators.arguments import is_whole
from vff.estimators.regressor import GPRegressor
from vff.estimators.statistics import Statistics
from vff.words import shown


class SlidingWindow:
    """A model of the last ``length`` batches of rows, learnt again after every one at a cost that no row enters.

    The sums of every batch are kept, and those in the window are added up anew each time, so that nothing of an old
    batch is left behind, not even rounding. Give the model a ``domain`` wide enough for all rows to come.

    >>> window = SlidingWindow(GPRegressor(domain=(0, 24)), length=30)
    >>> for X, y in days:
    ...     model = window.push(X, y)
    """

    def __init__(self, model: GPRegressor, length: int) -> None:
        if not is_whole(length, 1):
            raise ValueError(f"length must be a whole number of batches, 1 or more; got {shown(length)}")
        self.model = model
        self.length = int(length)
        self._batches: deque[Statistics] = deque(maxlen=self.length)

    def __len__(self) -> int:
        """Batches in the window."""
        return len(self._batches)

    def push(self, X: Any, y: Any = None, sample_weight: Any = None) -> GPRegressor:
        """Take in a batch, let go of the oldest when there are too many, and return the model, learnt again."""
        first = self._batches[-1].emptied() if self._batches else None
        batch = self.model._collected(X, y, sample_weight, first)
        kept = [*self._batches, batch][-self.length :]
        self.model._learnt_from(reduce(Statistics.merged, kept))
        self._batches.append(batch)
        return self.model
