import asyncio
import json
import time

import pytest
from rouge_score.rouge_scorer import RougeScorer

from judging.providers import Target, baseline, errors
from tests.judging.providers.conftest import Text

GOLD = "The cat sat on the mat, and it was 7 o'clock."
RESPONSE = "On the mat the cat sat; it was 8 o'clock."


def measure(**parts):
    body = baseline.body(model="any", parameters={"temperature": 1}, prompt=Text(parts=parts))
    return asyncio.run(baseline.ask(None, Target(""), body))


def test_rouge_l_is_that_of_rouge_score_to_the_last_digit():
    expected = RougeScorer(["rougeL"]).score(GOLD, RESPONSE)["rougeL"].fmeasure
    answer = measure(metric="rouge-l", gold=GOLD, response=RESPONSE)
    assert json.loads(answer.text) == {"score": pytest.approx(expected, abs=1e-12)}
    assert answer.text == json.dumps({"score": json.loads(answer.text)["score"]})


def test_the_best_of_several_references_counts():
    answer = measure(metric="rouge-l", gold=["nothing alike", RESPONSE], response=RESPONSE)
    assert json.loads(answer.text) == {"score": 1.0}


def test_the_unicode_metric_sees_words_that_the_other_drops():
    assert json.loads(measure(metric="rouge-l", gold="ЧАС", response="час").text)["score"] == 0
    unicode = measure(metric="rouge-l-unicode", gold="ЧАС", response="час")
    assert json.loads(unicode.text)["score"] == 1


def test_length_counts_characters():
    answer = measure(metric="length", response="नमस्ते!")
    assert json.loads(answer.text) == {"score": len("नमस्ते!")}
    assert (answer.finish, answer.model, answer.tokens_in, answer.tokens_out) == (
        "stop",
        "length",
        0,
        0,
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"metric": "bleu", "response": "x"},
        {"response": "x"},
        {"metric": "rouge-l", "response": "x"},
        {"metric": "rouge-l", "gold": [], "response": "x"},
    ],
)
def test_what_cannot_be_measured_is_rejected(parts):
    with pytest.raises(errors.Rejected):
        measure(**parts)


def test_long_texts_leave_the_event_loop_free():
    words = " ".join(f"word{number % 977}" for number in range(20_000))
    parts = {"metric": "rouge-l", "gold": words, "response": words[::-1]}

    async def longest_pause() -> float:
        body = baseline.body(model="", parameters={}, prompt=Text(parts=parts))
        asked = asyncio.create_task(baseline.ask(None, Target(""), body))
        longest, last = 0.0, time.perf_counter()
        while not asked.done():
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        return longest

    assert asyncio.run(longest_pause()) < 0.5
