"""Questions to a model by id, many at once: what users ask at the same moment is answered by one product."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from autosf.app.predicting import filled, hidden_answers
from autosf.embedding.answering import Hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from autosf.app.predicting import AskableModel
    from autosf.evaluation.calibration import Calibration

P = ParamSpec("P")
T = TypeVar("T")
MOST_TOGETHER = 64
MOST_WAITING = 1024


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
    """Owns the one thread that answers: what arrives while it is busy waits and is then answered together."""

    def __init__(self, answer_all: Callable[[Sequence[Question]], list[list[Answer]]]) -> None:
        self._answer_all = answer_all
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")
        self._waiting: deque[tuple[Question, asyncio.Future[list[Answer]]]] = deque()
        self._busy = False

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    @property
    def is_crowded(self) -> bool:
        return len(self._waiting) >= MOST_WAITING

    async def ask(self, question: Question) -> list[Answer]:
        """The answers, from the next batch."""
        answer: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if not self._busy:
            self._begin()
        return await answer

    async def run(self, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """What the call gives, done by the same thread when its turn comes."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, partial(call, *arguments, **options)
        )

    def _begin(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(MOST_TOGETHER, len(self._waiting)))]
        questions = [question for question, _ in batch]
        loop = asyncio.get_running_loop()
        self._busy = True
        done = loop.run_in_executor(self._thread, self._answer_all, questions)
        done.add_done_callback(lambda done: self._finish([answer for _, answer in batch], done))

    def _finish(
        self, waiting: list[asyncio.Future[list[Answer]]], done: asyncio.Future[list[list[Answer]]]
    ) -> None:
        self._busy = False
        if self._waiting:
            self._begin()
        error = done.exception()
        for place, answer in enumerate(waiting):
            if answer.done():  # who asked has left
                continue
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(done.result()[place])
