"""What an entry of the audit can be about: kinds of events, in words.

Other packages add theirs when they are loaded; a test finds every kind that is written anywhere.
"""

EVENT_TITLES = {
    "ability": "ability set",
    "account": "account",
    "answers": "answers given to prompts",
    "ask for adjudication": "adjudication asked for",
    "baseline": "human baseline begun",
    "comment": "comment",
    "correct": "correction",
    "end baseline": "human baseline ended",
    "flag": "flag set",
    "generation": "items made here",
    "guidelines": "guidelines published",
    "import": "items imported",
    "import cancelled": "import cancelled",
    "import-labels": "labels imported",
    "invitation": "invitation",
    "job cancelled": "job cancelled",
    "known": "right answer set",
    "known-release": "right answer taken away",
    "label": "label",
    "made": "items made here brought in",
    "member": "member",
    "mend gold": "gold answer mended",
    "places given": "waiting items given to people",
    "practice": "practice round ended",
    "practice-again": "practice asked for again",
    "practice-feedback": "feedback on practice",
    "practice-waived": "practice waived",
    "priority": "priority of items",
    "project": "project made",
    "reserve": "items kept for people",
    "resolution": "resolution",
    "settings": "settings",
    "skip": "item skipped",
    "snapshot": "snapshot made",
    "suggestions": "abilities suggested",
    "take back": "kept items given to all",
    "task-type": "task type changed",
    "token": "API token",
    "undo": "label undone",
    "unflag": "flag taken back",
    "withdraw comment": "comment withdrawn",
    "withdraw request for adjudication": "request for adjudication withdrawn",
}


def event_title(kind: str) -> str:
    """A kind for people to read; one that nobody writes any more by its own name."""
    return EVENT_TITLES.get(kind) or kind.replace("-", " ")
