import asyncio
import json
import threading

import pytest
from rouge_score.rouge_scorer import RougeScorer

from judging.evaluators.providers import Target, baseline, errors
from tests.judging.providers.conftest import Text

GOLD = "The cat sat on the mat, and it was 7 o'clock."
RESPONSE = "On the mat the cat sat; it was 8 o'clock."


def measure(**parts):
    body = baseline.body(model="any", parameters={"temperature": 1}, prompt=Text(parts=parts))
    return asyncio.run(baseline.ask(None, Target(""), body))


def test_rouge_l_is_that_of_rouge_score_to_the_last_digit():
    expected = RougeScorer(["rougeL"]).score(GOLD, RESPONSE)["rougeL"].fmeasure
    answer = measure(metric="rouge-l", reference=GOLD, response=RESPONSE)
    assert json.loads(answer.text) == {"score": pytest.approx(expected, abs=1e-12)}
    assert answer.text == json.dumps({"score": json.loads(answer.text)["score"]})


def test_the_best_of_several_references_counts():
    answer = measure(metric="rouge-l", reference=["nothing alike", RESPONSE], response=RESPONSE)
    assert json.loads(answer.text) == {"score": 1.0}


def test_the_unicode_metric_sees_words_that_the_other_drops():
    assert json.loads(measure(metric="rouge-l", reference="ЧАС", response="час").text)["score"] == 0
    unicode = measure(metric="rouge-l-unicode", reference="ЧАС", response="час")
    assert json.loads(unicode.text)["score"] == 1


def test_string_match_takes_one_reference_or_several():
    assert json.loads(measure(metric="string-match", reference="Emu", response="an emu").text) == {
        "score": 1.0
    }
    half = measure(metric="string-match", reference=["owl", "Emu Bird"], response="an emu")
    assert json.loads(half.text) == {"score": 0.5}


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
        {"metric": "rouge-l", "reference": [], "response": "x"},
    ],
)
def test_what_cannot_be_measured_is_rejected(parts):
    with pytest.raises(errors.Rejected):
        measure(**parts)


def test_measuring_leaves_the_event_loop_free(monkeypatch):
    freed = threading.Event()
    monkeypatch.setitem(baseline.METRICS, "patient", lambda parts: float(freed.wait(5)))
    body = baseline.body(model="", parameters={}, prompt=Text(parts={"metric": "patient"}))

    async def run():
        asked = asyncio.create_task(baseline.ask(None, Target(""), body))
        await asyncio.sleep(0.01)
        freed.set()
        return await asked

    assert json.loads(asyncio.run(run()).text)["score"] == 1.0
