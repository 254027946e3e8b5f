"""Parquet files that are sent: read by a program with limits, then as JSON Lines."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.importing import jobs, preview, upload_files
from annotation.models import Job
from tests.builders import TEXTS, Cast, cast

pytestmark = pytest.mark.django_db
GOOD = {"id": "a", "category": "entity", **TEXTS}


@pytest.fixture
def people(settings: Any, tmp_path: Path) -> Cast:
    settings.VAR_DIR = tmp_path
    return cast()


def packed(*rows: dict[str, Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), stream, **options)
    return stream.getvalue()


def sent(people: Cast, content: bytes, name: str = "items.parquet") -> Any:
    client = Client()
    assert people.lead.account
    client.force_login(people.lead.account)
    page = f"/projects/{people.project.slug}/import/"
    return client.post(page, {"file": SimpleUploadedFile(name, content)}, follow=True)


@pytest.mark.parametrize("name", ["items.parquet", "items.jsonl", "items.csv"])
def test_a_parquet_file_is_told_by_its_content_shown_and_checked(people: Cast, name: str) -> None:
    meta = {"meta": {"tags": ["x"]}, "score": 0.5}
    answer = sent(people, packed(GOOD | meta, GOOD | meta | {"id": "b"}), name)
    job = Job.objects.get(kind=jobs.JOB_KIND)
    assert (job.result["name"], job.result["step"], job.result["form"]) == (name, "ready", "jsonl")
    assert (job.result["report"]["new"], job.result["columns"]["key"]) == (2, "id")
    assert "<ins" in answer.content.decode()
    kept = {path.name for path in upload_files.uploads_folder().iterdir()}
    assert kept == {f"import-{job.pk}.jsonl", f"import-{job.pk}.problems.csv"}


def test_a_value_that_cannot_be_stored_is_a_bad_row_that_comes_back_to_mend(people: Cast) -> None:
    sent(people, packed(GOOD | {"score": 1.0}, GOOD | {"id": "b", "score": float("nan")}))
    job = Job.objects.get(kind=jobs.JOB_KIND)
    [problem] = job.result["report"]["problems"]
    assert (problem["file"], problem["line"]) == ("items.parquet", 2)
    assert "NaN" in problem["reason"]
    assert json.loads(upload_files.rejected_rows_path(job).read_text())["id"] == "b"


def bomb() -> bytes:
    """One text, which two thousand rows hold: written once, and unpacked for each."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000, pa.int32()), ["b" * 900_000])
    stream = io.BytesIO()
    pq.write_table(pa.table({"a": texts}), stream, compression="zstd")
    return stream.getvalue()


NESTED: Any = "deep"
for _ in range(15):
    NESTED = {"in": NESTED}


@pytest.mark.parametrize(
    "content, told",
    [
        (b"PAR1 and no more", "cannot be read as Parquet"),
        (packed(GOOD)[:-9] + b"\xff\xff\xff\x7fPAR1\0", "cannot be read as Parquet"),
        (
            packed(GOOD | {"raw": b"\xff"}),
            "bytes is not text, a number or a list. Leave that column",
        ),
        (packed(GOOD | {"nested": NESTED}), "nested too deeply"),
        (bomb(), "unpacks to more than"),
        (b"key\na\n", "cannot be read as Parquet"),
    ],
)
def test_what_is_made_to_do_harm_is_refused_in_words(
    people: Cast, content: bytes, told: str
) -> None:
    answer = sent(people, content)
    assert (answer.status_code, Job.objects.count()) == (422, 0)
    assert told in answer.content.decode()
    assert list(upload_files.uploads_folder().iterdir()) == []


def test_a_file_whose_first_rows_take_too_long_is_refused(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "LOOK_SECONDS", 0)
    answer = sent(people, packed(GOOD))
    assert "the first rows take longer than 0 seconds" in answer.content.decode()
    assert Job.objects.count() == 0
