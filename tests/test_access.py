"""Who gets what: every URL, every method, every kind of person, against one table of rules."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.test.client import ClientHandler
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RoutePattern
from django.utils import timezone

from annotation.generation import perturber_jobs
from annotation.generation.perturbers import PerturbRequest
from annotation.importing import jobs as imports
from annotation.items.snapshots import create
from annotation.labelling import bulk_changes
from annotation.models import Account, ApiToken, Item, Membership
from annotation.projects import invitations, sign_in_links
from config.environment import OpenID
from judging.archive import jobs as archives
from judging.evaluators import endpoints
from judging.exporting import jobs
from judging.runs import lifecycle, selection
from judging.webhooks import webhooks
from tests.builders import Cast, cast, make_item, make_resolution

PEOPLE = ("admin", "lead", "researcher", "adjudicator", "annotator", "stranger", "anonymous")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

# Who holds which right. Written out here and not taken from the code, which is under test.
HOLDERS = {
    "anyone": set(PEOPLE),
    "signed in": set(PEOPLE) - {"anonymous"},
    "enter": {"admin", "lead", "researcher", "adjudicator", "annotator"},
    "label": {"lead", "adjudicator", "annotator"},
    "items": {"admin", "lead", "researcher", "adjudicator"},
    "results": {"admin", "lead", "researcher"},
    "run": {"admin", "lead", "researcher"},
    "adjudicate": {"admin", "lead", "adjudicator"},
    "manage": {"admin", "lead"},
    "site": {"admin"},
    "create": {"admin", "lead"},
}

# Every route, the methods that it takes, and the right that each of them needs.
RULES: dict[str, dict[str, str]] = {
    "": {"GET": "signed in"},
    "help/": {"GET": "signed in"},
    "new-project/": {"GET": "create", "POST": "create"},
    "archived/": {"GET": "signed in"},
    "projects/<slug:slug>/archive/": {"POST": "manage"},
    "projects/<slug:slug>/restore/": {"POST": "manage"},
    "patterns/": {"GET": "signed in"},
    "tokens/": {"GET": "signed in", "POST": "signed in"},
    "display/": {"GET": "signed in", "POST": "signed in"},
    "keys/": {"GET": "signed in", "POST": "signed in"},
    "sessions/": {"GET": "signed in", "POST": "signed in"},
    "healthz": {"GET": "anyone"},
    "docs/": {"GET": "anyone"},
    "docs/<slug:document>/": {"GET": "anyone"},
    "docs/<slug:document>.md": {"GET": "anyone"},
    "llms.txt": {"GET": "anyone"},
    "readyz": {"GET": "anyone"},
    # Without a token of its own it is not there; people's sessions open nothing.
    "metrics": {},
    "accounts/login/": {"GET": "anyone", "POST": "anyone"},
    "accounts/logout/": {"GET": "anyone", "POST": "anyone"},
    "accounts/reauthenticate/": {"GET": "signed in", "POST": "signed in"},
    "accounts/two-step/": {"GET": "signed in"},
    "accounts/two-step/sign-in/": {"GET": "anyone", "POST": "anyone"},
    "accounts/two-step/again/": {"GET": "signed in", "POST": "signed in"},
    "accounts/two-step/app/": {"GET": "signed in", "POST": "signed in"},
    "accounts/two-step/app/off/": {"GET": "signed in", "POST": "signed in"},
    "accounts/two-step/passkeys/new/": {"GET": "signed in", "POST": "signed in"},
    "accounts/two-step/passkeys/again/": {"GET": "signed in", "POST": "signed in"},
    "accounts/two-step/passkeys/<int:pk>/remove/": {"GET": "signed in", "POST": "signed in"},
    "accounts/two-step/codes/": {"GET": "signed in"},
    "accounts/two-step/codes/new/": {"GET": "signed in", "POST": "signed in"},
    "accounts/two-step/codes/file/": {"GET": "signed in"},
    # There for who is to come in by another service, which `world` names.
    "accounts/openid/": {"GET": "signed in", "POST": "signed in"},
    "accounts/openid/begin/": {"POST": "anyone"},
    "accounts/openid/back/": {"GET": "anyone"},
    "accounts/inactive/": {"GET": "anyone"},
    "accounts/password/change/": {"GET": "signed in", "POST": "signed in"},
    "accounts/password/set/": {"GET": "signed in", "POST": "signed in"},
    "accounts/password/reset/": {"GET": "anyone", "POST": "anyone"},
    "accounts/password/reset/done/": {"GET": "anyone"},
    "accounts/password/reset/key/done/": {"GET": "anyone"},
    "accounts/password/reset/key/<uidb36>-<key>/": {"GET": "anyone", "POST": "anyone"},
    "endpoints/": {"GET": "run"},
    "endpoints/new/": {"GET": "site", "POST": "site"},
    "endpoints/<path:name>/": {"GET": "run"},
    "endpoints/<path:name>/edit/": {"GET": "site", "POST": "site"},
    "endpoints/<path:name>/test/": {"POST": "run"},
    "endpoints/<path:name>/archive/": {"POST": "site"},
    "endpoints/<path:name>/restore/": {"POST": "site"},
    "endpoints/<path:name>/end-pause/": {"POST": "site"},
    "endpoints/<path:name>/delete/": {"POST": "site"},
    "projects/<slug:slug>/": {"GET": "enter"},
    # Says nothing but where the page is now; that page asks who wants to see it.
    "projects/<slug>/<former>": dict.fromkeys(METHODS, "anyone"),
    "projects/<slug:slug>/label/": {"GET": "label"},
    "projects/<slug:slug>/label/submit/": {"GET": "label", "POST": "label"},
    "projects/<slug:slug>/label/correct/": {"GET": "label", "POST": "label"},
    "projects/<slug:slug>/label/undo/": {"GET": "label", "POST": "label"},
    "projects/<slug:slug>/pace/": {"GET": "manage"},
    "projects/<slug:slug>/pace/work-time.csv": {"GET": "manage"},
    "projects/<slug:slug>/people/<path:alias>/": {"GET": "manage"},
    "projects/<slug:slug>/board/": {"GET": "manage"},
    "projects/<slug:slug>/agreement/": {"GET": "manage"},
    "projects/<slug:slug>/task/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/task/preview/": {"POST": "manage"},
    "projects/<slug:slug>/label/next/": {"GET": "label"},
    "projects/<slug:slug>/label/ahead/": {"GET": "label"},
    "projects/<slug:slug>/label/offline.js": {"GET": "label"},
    "projects/<slug:slug>/label/reopen/": {"GET": "label", "POST": "label"},
    "projects/<slug:slug>/label/skip/": {"GET": "label", "POST": "label"},
    "projects/<slug:slug>/label/flag/": {"GET": "label", "POST": "label"},
    "projects/<slug:slug>/label/hold/": {"POST": "label"},
    "projects/<slug:slug>/label/draft/": {"POST": "label"},
    "projects/<slug:slug>/label/draft/drop/": {"GET": "label", "POST": "label"},
    "projects/<slug:slug>/label/siblings/": {"GET": "label"},
    "projects/<slug:slug>/label/guidelines/": {"GET": "label", "POST": "label"},
    "projects/<slug:slug>/my-items/": {"GET": "label"},
    "projects/<slug:slug>/verify/": {"GET": "label"},
    "projects/<slug:slug>/verify/answer/": {"GET": "label", "POST": "label"},
    "projects/<slug:slug>/verify/undo/": {"GET": "label", "POST": "label"},
    "projects/<slug:slug>/adjudicate/": {"GET": "adjudicate", "POST": "adjudicate"},
    "projects/<slug:slug>/adjudicate/<path:key>/": {"GET": "adjudicate", "POST": "adjudicate"},
    "projects/<slug:slug>/abilities/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/bulk-changes/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/bulk-changes/<int:number>/undo/": {"POST": "manage"},
    "projects/<slug:slug>/pilot/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/assign/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/baseline/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/baseline/rows.csv": {"GET": "manage"},
    "audit/": {"GET": "site"},
    "my-data/": {"GET": "signed in"},
    "my-data/file/": {"GET": "signed in"},
    "projects/<slug:slug>/members/anonymise/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/audit/": {"GET": "manage"},
    "projects/<slug:slug>/import/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/import/<int:number>/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/import/<int:number>/cancel/": {"POST": "manage"},
    "projects/<slug:slug>/import/<int:number>/rows/<int:line>/": {
        "GET": "manage",
        "POST": "manage",
    },
    "projects/<slug:slug>/import/<int:number>/rows/": {"GET": "manage"},
    "projects/<slug:slug>/import/<int:number>/problems.csv": {"GET": "manage"},
    "projects/<slug:slug>/perturb/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/perturb/<int:number>/": {"GET": "manage"},
    "projects/<slug:slug>/members/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/members/invite/": {"GET": "manage", "POST": "manage"},
    "sign-in-links/<str:link>/": {"GET": "anyone", "POST": "anyone"},
    "invitations/<str:invitation>/": {"GET": "anyone", "POST": "anyone"},
    "projects/<slug:slug>/snapshots/": {"GET": "items", "POST": "manage"},
    "projects/<slug:slug>/snapshots/<int:number>/": {"GET": "items"},
    "projects/<slug:slug>/snapshots/<int:number>/cancel/": {"POST": "manage"},
    "projects/<slug:slug>/comments/": {"GET": "enter", "POST": "enter"},
    "projects/<slug:slug>/mentions/": {"GET": "enter"},
    "projects/<slug:slug>/items/": {"GET": "items"},
    "projects/<slug:slug>/items/<path:key>/": {"GET": "items"},
    "projects/<slug:slug>/qualification/": {"GET": "label"},
    "projects/<slug:slug>/qualification/people/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/answer-key/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/control-items/": {"GET": "manage"},
    "projects/<slug:slug>/guidelines/": {"GET": "enter", "POST": "enter"},
    "projects/<slug:slug>/guidelines/edit/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/settings/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/categories/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/categories/file.toml": {"GET": "items"},
    "projects/<slug:slug>/categories/new/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/categories/new-group/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/categories/group/<slug:group>/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/categories/category/<slug:category>/": {
        "GET": "manage",
        "POST": "manage",
    },
    "projects/<slug:slug>/runs/": {"GET": "results"},
    "projects/<slug:slug>/runs/new/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/runs/pilots/": {"GET": "run"},
    "projects/<slug:slug>/runs/<int:number>/": {"GET": "results"},
    "projects/<slug:slug>/runs/<int:number>/pause/": {"POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/resume/": {"POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/retry/": {"POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/cancel/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/runs/derive/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/archive/": {"POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/unarchive/": {"POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/description/": {"POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/clone/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/move/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/again/": {"POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/anew/": {"POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/supplement/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/ask-without/": {"POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/reparse/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/runs/<int:number>/suggestions/": {"POST": "manage"},
    "projects/<slug:slug>/runs/<int:number>/bring-in/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/runs/<int:number>/items/<path:key>/": {"GET": "results"},
    "projects/<slug:slug>/strategies/": {"GET": "results"},
    "projects/<slug:slug>/strategies/<slug:strategy>/": {"GET": "results"},
    "projects/<slug:slug>/strategies/<slug:strategy>/retire/": {"POST": "run"},
    "projects/<slug:slug>/strategies/<slug:strategy>/delete/": {"POST": "run"},
    "projects/<slug:slug>/strategies/<slug:strategy>/back/": {"POST": "run"},
    "projects/<slug:slug>/strategies/<slug:strategy>/copy/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/strategies/<slug:strategy>/import/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/strategies/<slug:strategy>/edit/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/strategies/<slug:strategy>/preview/": {"GET": "run", "POST": "run"},
    "projects/<slug:slug>/strategies/<slug:strategy>/parse/": {"POST": "run"},
    "projects/<slug:slug>/item-keys/": {"GET": "run"},
    "projects/<slug:slug>/generation/": {"GET": "manage"},
    "projects/<slug:slug>/generation/release/": {"POST": "manage"},
    "projects/<slug:slug>/generation/<slug:category>/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/budget/": {"GET": "results", "POST": "manage"},
    "projects/<slug:slug>/results/": {"GET": "results"},
    "projects/<slug:slug>/results/<slug:page>/": {"GET": "results"},
    "projects/<slug:slug>/results/views/": {"GET": "results", "POST": "results"},
    "projects/<slug:slug>/results/<slug:table>.<slug:form>": {"GET": "results"},
    "projects/<slug:slug>/results/methods/": {"GET": "results"},
    "projects/<slug:slug>/results/methods.<slug:text>": {"GET": "results"},
    "projects/<slug:slug>/exports/": {"GET": "results", "POST": "results"},
    "projects/<slug:slug>/exports/<int:number>/": {"GET": "results"},
    "projects/<slug:slug>/exports/<int:number>/cancel/": {"POST": "results"},
    "projects/<slug:slug>/jobs/": {"GET": "results"},
    "projects/<slug:slug>/jobs/<slug:kind>/<int:number>/cancel/": {"POST": "results"},
    "projects/<slug:slug>/jobs/<slug:kind>/<int:number>/again/": {"POST": "results"},
    "projects/<slug:slug>/archives/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/archives/<int:number>/": {"GET": "manage"},
    "projects/<slug:slug>/webhooks/": {"GET": "manage"},
    "projects/<slug:slug>/webhooks/new/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/webhooks/<int:webhook>/": {"GET": "manage"},
    "projects/<slug:slug>/webhooks/<int:webhook>/edit/": {"GET": "manage", "POST": "manage"},
    "projects/<slug:slug>/webhooks/<int:webhook>/on/": {"POST": "manage"},
    "projects/<slug:slug>/webhooks/<int:webhook>/off/": {"POST": "manage"},
    "projects/<slug:slug>/webhooks/<int:webhook>/secret/": {"POST": "manage"},
    "projects/<slug:slug>/webhooks/<int:webhook>/ping/": {"POST": "manage"},
    "projects/<slug:slug>/webhooks/<int:webhook>/again/": {"POST": "manage"},
    "projects/<slug:slug>/webhooks/<int:webhook>/delete/": {"POST": "manage"},
    "projects/<slug:slug>/webhooks/<int:webhook>/deliveries/<uuid:delivery>/again/": {
        "POST": "manage"
    },
    "projects/<slug:slug>/results/<slug:page>/chart.<slug:picture>": {"GET": "results"},
    "projects/<slug:slug>/results/<slug:page>/table.tex": {"GET": "results"},
    "api/v1/schema/": {"GET": "signed in"},
    "api/v1/endpoint-presets/": {"GET": "site"},
    "api/v1/endpoints/": {"GET": "run", "POST": "site"},
    "api/v1/endpoints/<path:name>/": {"GET": "run", "PATCH": "site", "DELETE": "site"},
    "api/v1/endpoints/<path:name>/test/": {"POST": "run"},
    "api/v1/endpoints/<path:name>/archive/": {"POST": "site"},
    "api/v1/endpoints/<path:name>/restore/": {"POST": "site"},
    "api/v1/endpoints/<path:name>/end-pause/": {"POST": "site"},
    "api/v1/projects/": {"GET": "signed in"},
    "api/v1/projects/<slug:slug>/": {"GET": "enter"},
    "api/v1/projects/<slug:slug>/queue/next/": {"POST": "label"},
    "api/v1/projects/<slug:slug>/labels/": {"GET": "items", "POST": "label"},
    "api/v1/projects/<slug:slug>/corrections/": {"POST": "label"},
    "api/v1/projects/<slug:slug>/undo/": {"POST": "label"},
    "api/v1/projects/<slug:slug>/pace/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/board/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/agreement/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/practice/": {"GET": "label"},
    "api/v1/projects/<slug:slug>/practice/people/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/probes/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/verify/": {"GET": "adjudicate"},
    "api/v1/projects/<slug:slug>/verify/next/": {"POST": "label"},
    "api/v1/projects/<slug:slug>/verify/labels/": {"POST": "label"},
    "api/v1/projects/<slug:slug>/adjudications/": {"GET": "adjudicate"},
    "api/v1/projects/<slug:slug>/adjudications/next/": {"POST": "adjudicate"},
    "api/v1/projects/<slug:slug>/adjudications/labels/": {"POST": "adjudicate"},
    "api/v1/projects/<slug:slug>/adjudications/requests/": {"POST": "adjudicate"},
    "api/v1/projects/<slug:slug>/generations/": {"GET": "manage", "POST": "manage"},
    "api/v1/projects/<slug:slug>/generations/<int:number>/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/snapshots/": {"GET": "items", "POST": "manage"},
    "api/v1/projects/<slug:slug>/snapshots/<int:number>/": {"GET": "items"},
    "api/v1/projects/<slug:slug>/snapshots/<int:number>/changes/": {"GET": "items"},
    "api/v1/projects/<slug:slug>/comments/": {"GET": "enter", "POST": "enter"},
    "api/v1/projects/<slug:slug>/comments/withdraw/": {"POST": "enter"},
    "api/v1/projects/<slug:slug>/mentions/": {"GET": "enter"},
    "api/v1/projects/<slug:slug>/baseline/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/settings/": {"GET": "manage", "PATCH": "manage"},
    "api/v1/projects/<slug:slug>/settings/preview/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/guidelines/": {"GET": "enter", "PUT": "manage"},
    "api/v1/projects/<slug:slug>/guidelines/versions/": {"GET": "enter"},
    "api/v1/projects/<slug:slug>/guidelines/read/": {"POST": "enter"},
    "api/v1/projects/<slug:slug>/members/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/members/<path:alias>/": {"PATCH": "manage"},
    "api/v1/projects/<slug:slug>/hand-over/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/invitations/": {"GET": "manage", "POST": "manage"},
    "api/v1/projects/<slug:slug>/invitations/<path:invited>/": {"DELETE": "manage"},
    "api/v1/projects/<slug:slug>/queue/skip/": {"POST": "label"},
    "api/v1/projects/<slug:slug>/resolutions/": {"GET": "items"},
    "api/v1/projects/<slug:slug>/known/": {"GET": "manage", "POST": "manage"},
    "api/v1/projects/<slug:slug>/known/release/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/abilities/": {"GET": "manage", "PATCH": "manage"},
    "api/v1/projects/<slug:slug>/abilities/undo/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/assignments/": {"GET": "manage", "POST": "manage"},
    "api/v1/projects/<slug:slug>/assignments/back/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/priorities/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/archives/": {"GET": "manage", "POST": "manage"},
    "api/v1/projects/<slug:slug>/archives/<int:number>/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/archives/<int:number>/file/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/imports/": {"GET": "manage", "POST": "manage"},
    "api/v1/projects/<slug:slug>/imports/<int:number>/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/imports/<int:number>/columns/": {"PUT": "manage"},
    "api/v1/projects/<slug:slug>/imports/<int:number>/start/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/imports/<int:number>/cancel/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/imports/<int:number>/rows/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/imports/<int:number>/problems/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/items/": {"GET": "items"},
    "api/v1/projects/<slug:slug>/items/<path:key>/": {"GET": "items"},
    "api/v1/projects/<slug:slug>/runs/": {"GET": "results", "POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/": {"GET": "results", "PATCH": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/pause/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/resume/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/move/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/cancel/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/retry/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/estimate/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/pilot/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/derive/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/archive/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/unarchive/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/clone/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/reparse/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/reparse/preview/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/supplement/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/supplement/estimate/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/ask-without/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/canary/": {"GET": "results", "POST": "run"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/suggestions/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/items/": {"GET": "manage", "POST": "manage"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/calls/": {"GET": "results"},
    "api/v1/projects/<slug:slug>/runs/<int:number>/outcomes/": {"GET": "results"},
    "api/v1/projects/<slug:slug>/strategies/": {"GET": "results", "POST": "run"},
    "api/v1/projects/<slug:slug>/strategies/<slug:strategy>/": {"GET": "results"},
    "api/v1/projects/<slug:slug>/strategies/<slug:strategy>/versions/": {
        "GET": "results",
        "POST": "run",
    },
    "api/v1/projects/<slug:slug>/strategies/<slug:strategy>/import/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/strategies/<slug:strategy>/retire/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/strategies/<slug:strategy>/delete/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/strategies/<slug:strategy>/back/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/strategies/<slug:strategy>/preview/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/strategies/<slug:strategy>/parse/": {"POST": "run"},
    "api/v1/projects/<slug:slug>/budget/": {"GET": "results", "PUT": "manage"},
    "api/v1/projects/<slug:slug>/results/<slug:table>/": {"GET": "results"},
    "api/v1/projects/<slug:slug>/methods/": {"GET": "results"},
    "api/v1/projects/<slug:slug>/jobs/": {"GET": "results"},
    "api/v1/projects/<slug:slug>/jobs/<slug:kind>/<int:number>/cancel/": {"POST": "results"},
    "api/v1/projects/<slug:slug>/jobs/<slug:kind>/<int:number>/again/": {"POST": "results"},
    "api/v1/projects/<slug:slug>/webhooks/": {"GET": "manage", "POST": "manage"},
    "api/v1/projects/<slug:slug>/webhooks/<int:webhook>/": {
        "GET": "manage",
        "PATCH": "manage",
        "DELETE": "manage",
    },
    "api/v1/projects/<slug:slug>/webhooks/<int:webhook>/secret/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/webhooks/<int:webhook>/ping/": {"POST": "manage"},
    "api/v1/projects/<slug:slug>/webhooks/<int:webhook>/deliveries/": {"GET": "manage"},
    "api/v1/projects/<slug:slug>/webhooks/<int:webhook>/deliveries/<uuid:delivery>/again/": {
        "POST": "manage"
    },
    "api/v1/projects/<slug:slug>/exports/": {"GET": "results", "POST": "results"},
    "api/v1/projects/<slug:slug>/exports/<int:number>/": {"GET": "results"},
    "api/v1/projects/<slug:slug>/exports/<int:number>/cancel/": {"POST": "results"},
    "api/v1/projects/<slug:slug>/exports/<int:number>/file/": {"GET": "results"},
    "api/v1/projects/<slug:slug>/exports/<int:number>/password/": {"GET": "results"},
}
OF_DJANGO = ("admin/", "accounts/")
# The admin's own pages are many and made by Django: one rule for all but the way in and out.
ADMIN_RULES = {
    "admin/login/": {"GET": "site", "POST": "site"},
    "admin/logout/": {"POST": "anyone"},
}
ADMIN_RULE = {"GET": "site", "POST": "site"}


# Each client makes the chain of middlewares anew at its first request, which takes a millisecond.
HANDLER = ClientHandler(enforce_csrf_checks=False)


@dataclass(frozen=True)
class SignedIn:
    """How a person is known: by a session on pages, by a key in the API; a visitor by neither."""

    session: str = ""
    key: str = ""

    def client(self, route: str) -> Client:
        in_api = self.key and route.startswith("api/")
        client = Client(headers={"Authorization": f"Bearer {self.key}"} if in_api else {})
        client.handler = HANDLER
        if self.session and not in_api:
            client.cookies["sessionid"] = self.session
        return client


def sign_in(account: Account | None) -> SignedIn:
    if not account:
        return SignedIn()
    client = Client()
    client.force_login(account)
    return SignedIn(client.cookies["sessionid"].value, ApiToken.issue(account, "test")[1])


@dataclass(frozen=True)
class World:
    """A project with one of each that an address can name."""

    cast: Cast
    names: dict[str, str]
    signed_in: dict[str, SignedIn] = field(default_factory=dict)

    def address(self, route: str) -> str:
        filled = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: self.names[found[1]], route)
        return f"/{filled}"


@pytest.fixture(scope="module")
def made(module_db: None) -> World:
    """One world for all: each test, and in it each request, is undone to it."""
    return make_world()


@pytest.fixture
def world(made: World, db: None, settings: Any) -> World:
    settings.OPENID = OpenID("http://127.0.0.1:9", "blindspot", "secret", "Lab account")
    return made


def make_world() -> World:
    people = cast()
    make_resolution(make_item(people.project, "a/b"))
    make_run(people)
    create.store_contents(create.enqueue(people.project, None, "v1"))
    jobs.enqueue(people.project, people.lead, jobs.ExportRequest("calls", "csv"))
    archives.enqueue(people.project, people.lead, archives.ArchiveRequest([1]))
    make_import(people)
    items = Item.objects.in_project(people.project)
    bulk_changes.change_items(people.lead, items, "priority", "later", now=timezone.now())
    perturber_jobs.enqueue(people.project, PerturbRequest(perturbers=("spelling",), seed="s"))
    signed_in = {person: sign_in(people.account(person)) for person in PEOPLE}
    return World(people, names_in(people, "a/b"), signed_in)


def names_in(people: Cast, key: str) -> dict[str, str]:
    """What addresses name, by what their routes call it."""
    names = {
        "slug": people.project.slug,
        "key": key,
        "group": "factual",
        "number": "1",
        "line": "2",
        "table": "categories",
    }
    names |= {"form": "csv", "object_id": "1", "content_type_id": "1", "app_label": "annotation"}
    names |= {"name": endpoints.BASELINE, "strategy": "vanilla", "page": "overview"}
    names |= {
        "category": "number-errors",
        "group": "factual",
        "picture": "svg",
        "text": "txt",
        "uidb36": "1",
        "pk": "1",
        "kind": "export",
        "former": "vet/",
        "document": "overview",
    }
    wanted = invitations.InvitationRequest(alias="newcomer", role="annotator")
    names["invitation"] = invitations.create_invitation(people.lead, wanted, now=timezone.now())[1]
    member = Membership.objects.select_related("account").get(pk=people.annotator.pk)
    made = webhooks.create_webhook(
        people.lead, "https://hooks.example.org/", ["runs"], now=timezone.now()
    )
    ping = webhooks.send_ping(made, now=timezone.now())
    names |= {"webhook": str(made.pk), "delivery": str(ping.uid)}
    names["link"] = sign_in_links.create_link(people.lead, member)
    return names | {"url": "nothing", "id": "1", "alias": "annotator", "invited": "newcomer"}


def make_import(people: Cast) -> None:
    told = {"name": "items.csv", "ending": ".csv", "form": "csv", "bytes": 1, "found": []}
    begun = {"columns": {}, "accept": False, "step": "choose"}
    imports.create_import(people.lead, told | begun, timezone.now())


def make_run(people: Cast) -> None:
    endpoint = endpoints.list_all().get(name=endpoints.BASELINE)
    version = selection.get_strategy_version("rouge-l")
    lifecycle.start_run(
        people.project, strategy=version, endpoint=endpoint, config=lifecycle.RunConfig(seed=0)
    )


def routes(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[str]:
    for entry in (resolver or get_resolver()).url_patterns:
        route = prefix + plain(entry)
        if isinstance(entry, URLResolver):
            yield from routes(entry, route)
        else:
            yield route


def plain(entry: URLPattern | URLResolver) -> str:
    """The pattern with its parameters as <name>; of a regular expression, without the rest."""
    text = str(entry.pattern)
    if isinstance(entry.pattern, RoutePattern):
        return text
    return re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", text).strip("^$")


ROUTES = sorted(set(routes()))


def rule_of(route: str) -> dict[str, str]:
    if route.startswith("admin/"):
        return ADMIN_RULES.get(route, ADMIN_RULE)
    return RULES[route]


def test_every_route_has_a_rule_and_every_rule_a_route() -> None:
    assert {route for route in ROUTES if not route.startswith("admin/")} == set(RULES)


@pytest.mark.parametrize("route", ROUTES)
def test_everyone_gets_what_is_theirs_and_nothing_else(world: World, route: str) -> None:
    """The schema of the API takes some seconds, since each person who may have it has it made."""
    for person in PEOPLE:
        for method in rule_of(route) if route.startswith(OF_DJANGO) else METHODS:
            answer = asked(world, person, method, route)
            where = (answer.status_code, answer.headers.get("Location", ""))
            assert is_right(world, route, person, method, where), (person, method, where)


@pytest.mark.parametrize("person", ["admin", "anonymous"])
def test_nobody_keeps_what_is_answered(world: World, person: str) -> None:
    """A list of the API may be kept by its reader, who asks each time whether it changed."""
    for route in [one for one in ROUTES if "GET" in rule_of(one)]:
        answer = asked(world, person, "GET", route)
        kept = answer["Cache-Control"]
        asked_anew = "no-cache" in kept and "ETag" in answer
        assert "private" in kept, route
        assert "no-store" in kept or asked_anew, route


def is_right(world: World, route: str, person: str, method: str, where: tuple[int, str]) -> bool:
    rule = rule_of(route)
    if method not in rule:
        return is_closed(*where)
    if person in HOLDERS[rule[method]]:
        return is_served(route, rule[method], method, *where)
    return where == turned_away(world, route, person)


def asked(world: World, person: str, method: str, route: str) -> Any:
    """What is answered, by a browser on pages, to a program in the API. What it did is undone."""
    client, address = world.signed_in[person].client(route), world.address(route)
    with transaction.atomic():
        answer = client.generic(method, address, content_type=content_type(route))
        transaction.set_rollback(True)
    return answer


def content_type(route: str) -> str:
    return "application/json" if route.startswith("api/") else "application/x-www-form-urlencoded"


def is_served(route: str, right: str, method: str, status: int, location: str) -> bool:
    """Answered, be it by saying what is wrong with an empty form, or with the service. Who asks for
    a page gets it, or the way to another; what is made anew says so in the API alone."""
    if right == "anyone":
        return status < 400 or status in {422, 503}
    if right == "site":
        return status < 500 and not location.startswith("/admin/login")
    known = {200, 302, 409, 422}
    if method != "GET":
        known |= {201, 204} if route.startswith("api/") else {204}
    return status in known and "/login/" not in location


def is_closed(status: int, location: str) -> bool:
    return status in {401, 403, 404, 405} or "/login/" in location


def turned_away(world: World, route: str, person: str) -> tuple[int, str]:
    """401 or the way to sign in for who is not; 404 for strangers; 403 for members."""
    if route == "admin/login/":
        way_in = "/accounts/login/?next=%2Fadmin%2Flogin%2F"
        return (302, way_in) if person == "anonymous" else (403, "")
    if route.startswith("admin/"):
        return 302, f"/admin/login/?next={quoted(world.address(route))}"
    if person == "anonymous" and route.startswith("api/"):
        return 401, ""
    if person == "anonymous":
        return 302, f"/accounts/login/?next={quoted(world.address(route))}"
    return (404 if person == "stranger" else 403), ""


def quoted(address: str) -> str:
    return address.replace(":", "%3A")
