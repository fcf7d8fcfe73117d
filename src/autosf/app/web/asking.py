"""Questions to a model by id, many at once: what users ask at the same moment is answered by one product."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from autosf.app.predicting import filled, hidden_answers
from autosf.app.web.refusals import Refused
from autosf.embedding.answering import Hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from autosf.app.predicting import AskableModel
    from autosf.evaluation.calibration import Calibration

S = TypeVar("S")
T = TypeVar("T")
MOST_TOGETHER = 64
MOST_WAITING = 1024  # questions
MOST_ITEMS = 4096  # of calls that wait or are done
SLICE = 32  # items of a call that are done before others have their turn


@dataclass(frozen=True, slots=True)
class Question:
    """Which entities, or relations, stand best in the absent role? `first` and `second` fill the other two."""

    absent: str
    first: int
    second: int
    top: int
    hide: bool  # known answers


@dataclass(frozen=True, slots=True)
class Answer:
    """One candidate: its id, score, how likely its triple is true, and whether the graph has it; None: unknown."""

    candidate: int
    score: float
    probability: float | None
    known: bool | None


def answered(
    asked: AskableModel, curves: Calibration | None, questions: Sequence[Question]
) -> list[list[Answer]]:
    """The answers of all questions, in their order; those for the same role share one product."""
    found: list[list[Answer]] = [[] for _ in questions]
    for absent in sorted({question.absent for question in questions}):
        places = [place for place, question in enumerate(questions) if question.absent == absent]
        some = [questions[place] for place in places]
        for place, answers in zip(places, answered_alike(asked, curves, absent, some), strict=True):
            found[place] = answers
    return found


def answered_alike(
    asked: AskableModel, curves: Calibration | None, absent: str, questions: Sequence[Question]
) -> list[list[Answer]]:
    """The answers of questions for the same role."""
    ids = [
        np.array([question.first for question in questions], np.int32),
        np.array([question.second for question in questions], np.int32),
    ]
    hides = np.array([question.hide for question in questions])
    hidden = only(hidden_answers(asked, absent, ids), hides) if hides.any() else None
    best = asked.best_of(absent, ids, max(question.top for question in questions), hidden)
    triples = filled(absent, ids, best)
    known = asked.are_known(triples).to_list()
    probability = probabilities(asked, curves, triples)
    rows = zip(best.candidate.tolist(), best.score.tolist(), probability, known, strict=True)
    found: list[list[Answer]] = [[] for _ in questions]
    for query, row in zip(best.query.tolist(), rows, strict=True):
        if len(found[query]) < questions[query].top:
            found[query].append(Answer(*row))
    return found


def only(hidden: Hidden, chosen: NDArray[np.bool_]) -> Hidden:
    """The same, with nothing hidden from queries that are not chosen."""
    return Hidden(hidden.starts, np.where(chosen, hidden.ends, hidden.starts), hidden.answers)


def probabilities(
    asked: AskableModel, curves: Calibration | None, triples: NDArray[np.int32]
) -> list[float] | list[None]:
    """How likely each triple is true; None where nothing could be calibrated."""
    if curves is None:
        return [None] * len(triples)
    found: list[float] = curves.probability(asked.scores_of(triples), triples[:, 1]).tolist()
    return found


class Desk:
    """Owns the one thread that answers: what arrives while it is busy waits and is then answered together.

    Questions and calls take turns: who asks a question waits for a slice of a long call, not for all of it.
    """

    def __init__(self, answer_all: Callable[[Sequence[Question]], list[list[Answer]]]) -> None:
        self._answer_all = answer_all
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")
        self._questions: deque[tuple[Question, asyncio.Future[list[Answer]]]] = deque()
        self._slices: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._items = 0  # of all calls
        self._busy = False
        self._slice_was_last = False

    async def ask(self, question: Question) -> list[Answer]:
        """The answers, from the next batch."""
        answer: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._questions.append((question, answer))
        self._begin()
        return await answer

    async def run(self, call: Callable[[Sequence[S]], list[T]], items: Sequence[S]) -> list[T]:
        """What the call gives for all items, of which it is given some at a time."""
        self.refuse_if_crowded(len(items))
        self._items += len(items)
        try:
            found: list[T] = []
            for start in range(0, len(items), SLICE):
                found += await self._run(partial(call, items[start : start + SLICE]))
            return found
        finally:
            self._items -= len(items)

    def refuse_if_crowded(self, items: int = 0) -> None:
        """Refuse questions, or a call with so many items, where too many wait."""
        if len(self._questions) >= MOST_WAITING or self._items + items > MOST_ITEMS:
            raise Refused(429, "too many questions at once; wait a moment")

    async def _run(self, call: Callable[[], T]) -> T:
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._slices.append((call, result))
        self._begin()
        return await result

    def _begin(self) -> None:
        """Give the thread what comes next, unless it is at work."""
        if self._busy or not (self._questions or self._slices):
            return
        self._slice_was_last = bool(self._slices) and not (self._slice_was_last and self._questions)
        if self._slice_was_last:
            call, result = self._slices.popleft()
            work, waiting = lambda: [call()], [result]
        else:
            batch = [self._questions.popleft() for _ in range(min(MOST_TOGETHER, len(self._questions)))]
            work = partial(self._answer_all, [question for question, _ in batch])
            waiting = [answer for _, answer in batch]
        self._busy = True
        done = asyncio.get_running_loop().run_in_executor(self._thread, work)
        done.add_done_callback(lambda done: self._finish(waiting, done))

    def _finish(self, waiting: list[asyncio.Future[Any]], done: asyncio.Future[list[Any]]) -> None:
        self._busy = False
        self._begin()
        error = done.exception()
        for place, answer in enumerate(waiting):
            if answer.done():  # who asked has left
                continue
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(done.result()[place])
