import asyncio
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.services.scripted_evaluator import Script, running
from tests.services.scripted_judge import judge_from

SERVER = Path(__file__).with_name("scripted_evaluator.py")
PAIR = """[BEGIN RESPONSE A]
{}
[END RESPONSE A]

[BEGIN RESPONSE B]
{}
[END RESPONSE B]

- "A": A is better
- "B": B is better
- "both good": tie
- "both unacceptable": none

{{"verdict": "..."}}"""


def single(response, reference=None):
    given = f"[BEGIN REFERENCE ANSWER]\n{reference}\n[END REFERENCE ANSWER]\n" if reference else ""
    asked = '{"explanation": "...", "score": N}'
    return f"{given}[BEGIN RESPONSE]\n{response}\n[END RESPONSE]\nfrom 1 (bad) to 5 (good): {asked}"


def bodies(count, model="m"):
    messages = [[{"role": "user", "content": f'{n} {{"score": N}}'}] for n in range(count)]
    return [json.dumps({"model": model, "messages": each}).encode() for each in messages]


async def post(address, body, patience=5.0):
    async with (
        asyncio.timeout(patience),
        aiohttp.ClientSession() as session,
        session.post(f"{address}/chat/completions", data=body) as response,
    ):
        return response.status


@contextmanager
def process(*options):
    command = [sys.executable, str(SERVER), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            yield json.loads(server.stdout.readline())["address"], server
        finally:
            server.terminate()


def lines_of(log, count):
    until = time.monotonic() + 5
    while time.monotonic() < until:
        found = [json.loads(line) for line in log.read_bytes().splitlines()]
        if len(found) >= count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"the log has {len(found)} lines, not {count}")


@pytest.mark.processes
def test_the_log_of_a_process_survives_its_being_killed(tmp_path):
    log, body = tmp_path / "log.jsonl", bodies(1)[0]
    with process("--log", str(log), "--fault", "server_error=first:1") as (address, server):
        statuses = [asyncio.run(post(address, body)) for _ in range(2)]
        lines_of(log, 2)
        os.kill(server.pid, signal.SIGKILL)
    entries = lines_of(log, 2)
    assert statuses == [500, 200]
    assert [entry["status"] for entry in entries] == [500, 200]
    assert {entry["digest"] for entry in entries} == {hashlib.sha256(body).hexdigest()}
    assert all(entry["received"] <= entry["answered"] for entry in entries)


def test_a_client_that_goes_away_is_logged_as_not_answered(tmp_path):
    log = tmp_path / "log.jsonl"
    with running(Script(latency=1.0), log) as evaluator:
        with pytest.raises(TimeoutError):
            asyncio.run(post(evaluator.address, bodies(1)[0], patience=0.1))
        entry = lines_of(log, 1)[0]
    assert (entry["answered"], entry["status"]) == (None, None)


def test_a_share_of_faults_is_kept_and_repeats():
    script = Script().but(["server_error=0.2"])
    due = [script.fault(f"body {number}", 1) for number in range(1000)]
    assert 150 < due.count("server_error") < 250
    assert due == [script.fault(f"body {number}", 1) for number in range(1000)]


def test_the_first_times_of_every_body_fail_and_then_no_more():
    script = Script().but(["rate_limited=first:2"])
    assert [script.fault("body", attempt) for attempt in (1, 2, 3)] == ["rate_limited"] * 2 + [""]


def test_the_faults_of_a_model_come_before_those_of_the_script():
    script = Script().but(["server_error"]).but(["hang", "latency=0.5"])
    assert (script.fault("body", 1), script.latency) == ("hang", 0.5)


def test_the_script_can_be_replaced_while_serving():
    async def run(address):
        async with aiohttp.ClientSession() as session:
            script = {"faults": {"rejected": ""}}
            await session.post(address.replace("/v1", "/script"), json=script)
        return await post(address, bodies(1)[0])

    with running() as evaluator:
        assert asyncio.run(run(evaluator.address)) == 400


def test_the_digest_judge_gives_what_the_prompt_asks_for():
    judge = judge_from("digest")
    said = [json.loads(judge.answer(single(f"text {number}"))) for number in range(200)]
    assert {each["score"] for each in said} == {1, 2, 3, 4, 5}
    assert all(each["explanation"] for each in said)
    verdicts = {json.loads(judge.answer(PAIR.format(n, n)))["verdict"] for n in range(200)}
    assert verdicts == {"A", "B", "both good", "both unacceptable"}


def test_the_digest_judge_answers_in_the_form_that_is_asked_for():
    judge = judge_from("digest")
    marked = "Feedback: ... [RESULT] (a whole number from 1 to 5)"
    assert re.fullmatch(r"Feedback: .* \[RESULT\] [1-5]", judge.answer(marked))
    sentences = 'Close with "Therefore, it is valid." or "Therefore, it is not valid."'
    assert judge.answer(sentences).endswith(
        ("Therefore, it is valid.", "Therefore, it is not valid.")
    )
    metrics = "s1 (Class): Is it?\n-1 = no\n1 = yes\n\ns2 (Family): Is it?\n0 = no\n"
    form = '{"explanation": "...", "s1": N, "s2": N}'
    said = json.loads(judge.answer(f"{metrics}\n{form}"))
    assert (said["s1"] in {-1, 1}, said["s2"]) == (True, 0)
    tagged = judge.answer(f"{metrics}\n<RESULT>s1: 1, s2: 0</RESULT>")
    assert re.search(r"<RESULT>s1: -?1, s2: 0</RESULT>$", tagged)
    assert json.loads(judge.answer('{"flag": true} or {"flag": false}')).keys() == {"flag"}


def test_a_form_that_only_the_judged_text_holds_is_not_answered():
    assert json.loads(judge_from("digest").answer(single("[RESULT] (a whole number from 1 to 5)")))


def test_the_oracle_sees_what_is_wrong():
    judge = judge_from("oracle:1", ["wrong"])
    assert json.loads(judge.answer(single("right")))["score"] == 5
    assert json.loads(judge.answer(single("wrong")))["score"] < 5
    assert json.loads(judge.answer(single("other", reference="right")))["score"] < 5
    pairs = [("right", "wrong"), ("wrong", "right"), ("right", "right"), ("wrong", "wrong")]
    verdicts = [json.loads(judge.answer(PAIR.format(*pair)))["verdict"] for pair in pairs]
    assert verdicts == ["A", "B", "both good", "both unacceptable"]


def test_the_oracle_misses_its_share():
    wrong = [f"wrong {number}" for number in range(1000)]
    judge = judge_from("oracle:0.7", wrong)
    seen = sum(json.loads(judge.answer(single(text)))["score"] < 5 for text in wrong)
    assert 650 < seen < 750
