"""The kinds of events in the audit log, with their titles.

Other packages add their kinds when they are loaded; a test checks that every recorded kind is
listed.
"""

EVENT_TITLES = {
    "ability": "ability set",
    "account": "account",
    "answers": "answers given to prompts",
    "archived": "project archived",
    "ask for adjudication": "adjudication requested",
    "baseline": "human baseline started",
    "bulk change": "many items changed",
    "bulk change undone": "change of many items undone",
    "categories": "categories changed",
    "comment": "comment",
    "correct": "correction",
    "decide now": "no more labels waited for",
    "end baseline": "human baseline ended",
    "flag": "flag set",
    "generation": "items generated",
    "guidelines": "guidelines published",
    "import": "items imported",
    "import cancelled": "import cancelled",
    "import-labels": "labels imported",
    "invitation": "invitation",
    "job cancelled": "job cancelled",
    "known": "correct answer set",
    "known-release": "correct answer removed",
    "label": "label",
    "made": "generated items imported",
    "member": "member",
    "mend gold": "gold answer corrected",
    "pilot begun": "pilot begun",
    "pilot ended": "pilot ended",
    "places given": "held items released",
    "practice": "qualification round finished",
    "practice-again": "another qualification round given",
    "practice-feedback": "feedback on qualification",
    "practice-waived": "exempt from qualification",
    "priority": "priority set",
    "project": "project created",
    "reserve": "items reserved",
    "resolution": "resolution",
    "restored": "project restored",
    "settings": "settings",
    "sign-in link": "link to sign in created",
    "skip": "item skipped",
    "snapshot": "snapshot created",
    "suggestions": "abilities suggested",
    "take back": "reserved items returned",
    "task-type": "task type changed",
    "token": "API token",
    "undo": "label undone",
    "unflag": "flag removed",
    "withdraw comment": "comment withdrawn",
    "withdraw request for adjudication": "request for adjudication withdrawn",
}


def event_title(kind: str) -> str:
    """Return the title of a kind. A kind that is no longer recorded is shown by its own name."""
    return EVENT_TITLES.get(kind) or kind.replace("-", " ")
