"""Questions that arrive together are answered together, each as if it were alone."""

import asyncio
import threading

import pytest

from autosf.app.web.asking import MOST_ITEMS, MOST_TOGETHER, SLICE, Answer, Desk, Question, answered
from autosf.app.web.refusals import Refused


def test_together_or_alone_the_answers_are_the_same(asked):
    questions = [
        Question(absent, first, second, top, hide)
        for absent in ("head", "relation", "tail")
        for first, second, top, hide in ((0, 1, 3, True), (2, 3, 7, False), (4, 5, 1, True))
    ]
    together = answered(asked, asked.calibration(), questions)
    for question, answers in zip(questions, together, strict=True):
        (alone,) = answered(asked, asked.calibration(), [question])
        assert [answer.candidate for answer in answers] == [answer.candidate for answer in alone]
        assert [answer.score for answer in answers] == pytest.approx([answer.score for answer in alone])
        assert len(answers) <= question.top


def test_what_arrives_while_the_desk_is_busy_is_one_batch():
    batches, gate = [], threading.Event()

    def answer_all(questions):
        batches.append(len(questions))
        gate.wait(10)
        return [[Answer(question.first, 0.0, None, None)] for question in questions]

    async def ask_many():
        desk = Desk(answer_all)
        asked = [
            asyncio.ensure_future(desk.ask(Question("tail", place, 0, 1, False))) for place in range(100)
        ]
        await asyncio.sleep(0.05)
        gate.set()
        found = await asyncio.gather(*asked)
        return [answers[0].candidate for answers in found]

    assert asyncio.run(ask_many()) == list(range(100))
    assert batches == [1, MOST_TOGETHER, 99 - MOST_TOGETHER]


def test_who_leaves_disturbs_nobody_and_a_fault_reaches_those_who_wait():
    gate = threading.Event()

    def answer_all(questions):
        gate.wait(10)
        if questions[0].first == 2:
            raise ZeroDivisionError
        return [[Answer(question.first, 0.0, None, None)] for question in questions]

    async def ask_three():
        desk = Desk(answer_all)
        first, second = (asyncio.ensure_future(desk.ask(Question("tail", n, 0, 1, False))) for n in (0, 1))
        await asyncio.sleep(0.02)
        first.cancel()
        gate.set()
        assert (await second)[0].candidate == 1
        with pytest.raises(ZeroDivisionError):
            await desk.ask(Question("tail", 2, 0, 1, False))
        assert (await desk.ask(Question("tail", 3, 0, 1, False)))[0].candidate == 3

    asyncio.run(ask_three())


def test_a_long_call_is_done_in_slices_and_questions_have_their_turns():
    done, gate = [], threading.Event()

    def answer_all(questions):
        done.append("questions")
        return [[] for _ in questions]

    def doubled(items):
        gate.wait(10)
        done.append(len(items))
        return [2 * item for item in items]

    async def ask_and_call():
        desk = Desk(answer_all)
        calls = [asyncio.ensure_future(desk.run(doubled, range(3 * SLICE + 1))) for _ in range(2)]
        await asyncio.sleep(0.02)
        asked = asyncio.ensure_future(desk.ask(Question("tail", 0, 0, 1, False)))
        await asyncio.sleep(0.02)
        gate.set()
        await asked
        return await asyncio.gather(*calls)

    assert asyncio.run(ask_and_call()) == [[2 * item for item in range(3 * SLICE + 1)]] * 2
    assert done == [SLICE, "questions", *[SLICE] * 5, 1, 1]


def test_calls_are_refused_where_too_much_waits_and_done_again_when_it_does_not():
    gate = threading.Event()

    def same(items):
        gate.wait(10)
        return list(items)

    async def call_often():
        desk = Desk(lambda questions: [[] for _ in questions])
        first = asyncio.ensure_future(desk.run(same, range(MOST_ITEMS - 1)))
        last = asyncio.ensure_future(desk.run(same, [1]))
        await asyncio.sleep(0.02)
        with pytest.raises(Refused) as refused:
            await desk.run(same, [2])
        assert refused.value.refusal.status == 429
        gate.set()
        assert [await first, await last] == [list(range(MOST_ITEMS - 1)), [1]]
        assert await desk.run(same, [2]) == [2]

    asyncio.run(call_often())


def test_the_thread_of_a_desk_ends_with_it():
    async def ask():
        await Desk(lambda questions: [[] for _ in questions]).ask(Question("tail", 0, 0, 1, False))
        return [thread for thread in threading.enumerate() if thread.name.startswith("answers")]

    before = set(threading.enumerate())
    for thread in set(asyncio.run(ask())) - before:
        thread.join(10)
        assert not thread.is_alive()
