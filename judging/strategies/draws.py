"""What a generator draws for each item, such as the kind of a mistake or the number of errors:
quotas, scripts that find values in the texts of an item, and how shares are written. All functions
are pure.

A share is the percentage of the items that get an option. If one option is drawn for each item, the
shares only need the right proportions: 1, 1 and 1 are a third each.
"""

import datetime
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judging.strategies.schema import Draw, DrawOption, Strategy, fill_template
from stats.lots import draw_number

# What was drawn for an item: by draw, the names of the options, each with the value that a script
# found, "" without a script.
Drawn = dict[str, dict[str, str]]
# Fields of items with this prefix say what was drawn, and are copied to items made of these.
FIELD_PREFIX = "drawn_"
# Sums of larger shares could be infinite.
MAX_SHARE = 1_000_000
# The shares that a lead sets: by draw and option. Options that are left out get 0.
Shares = Mapping[str, Mapping[str, float]]

_LINE = re.compile(r"\s*([a-z][a-z0-9_]*)\s*:\s*(\S.*)")
_SHARE = re.compile(r"([a-z0-9-]+)(?:\s*=\s*([0-9]+(?:\.[0-9]+)?)\s*%?)?")
# A number from 1500 to 2099 is a year unless it counts something, as in "1,600 people" or "1800
# ships"; one from 1000 on is a year after a word such as "in".
_YEAR = re.compile(
    r"(?<![\d.,/$€£])((?:(?<=\b[Ii]n )|(?<=\byear )|(?<=\bsince )|(?<=\buntil )|(?<=\bfrom ))"
    r"1[0-4]\d\d|1[5-9]\d\d|20\d\d)(?![\d%/]|[.,]\d"
    r"|\s+(?!(?:was|is|has|as|its|his|this|thus|plus)\b)(?:[a-z]+s|people|men|women|k?m|kg)\b)"
)
_FRACTION = re.compile(r"(?<![\d.])\d+\s{0,2}/\s{0,2}\d+(?![\d.])")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.(\d+))?")


@dataclass(frozen=True)
class DrawnSource:
    """An item for which something is drawn: its key, and its texts by name."""

    key: str
    texts: Mapping[str, Any]


# ---- shares


def explain_shares(draw: Draw) -> str:
    """Why no quotas follow from the shares of a draw, as a sentence without a capital that says
    what to do; "" if they do."""
    total = sum(option.share for option in draw.options)
    if draw.at_most == 1:
        return "" if total > 0 else f"give an option of {draw.name} a share above 0"
    if over := [option.name for option in draw.options if option.share > 100]:
        return f"give {over[0]} of {draw.name} a share of at most 100"
    least, most = 100 * draw.at_least, 100 * draw.at_most
    if not least <= total <= most:
        return (
            f"each item gets {draw.at_least} to {draw.at_most} options of {draw.name}, so let their"
            f" shares add up to {least} to {most}; they add up to {total:g}"
        )
    return ""


def set_shares(strategy: Strategy, shares: Shares) -> Strategy:
    """The strategy with these shares in place of its own. Raises ValueError, with a sentence for
    the reader, for an unknown draw or option and for shares from which no quotas follow."""
    known = {draw.name: draw for draw in strategy.draws}
    for name, given in shares.items():
        if name not in known:
            listed = f"It draws {', '.join(known)}." if known else "It draws nothing."
            raise ValueError(f"Strategy {strategy.slug} does not draw {name!r}. {listed}")
        names = [option.name for option in known[name].options]
        if unknown := [one for one in given if one not in names]:
            raise ValueError(
                f"Strategy {strategy.slug} has no option {unknown[0]!r} of {name}. Choose from "
                f"{', '.join(names)}."
            )
        if bad := [one for one, share in given.items() if not 0 <= share <= MAX_SHARE]:
            raise ValueError(f"Give {bad[0]} of {name} a share of 0 to {MAX_SHARE:,}.")
        options = tuple(
            replace(option, share=given.get(option.name, 0)) for option in known[name].options
        )
        known[name] = replace(known[name], options=options)
        if problem := explain_shares(known[name]):
            raise ValueError(f"{problem[:1].upper()}{problem[1:]}.")
    return replace(strategy, draws=tuple(known.values())) if shares else strategy


def parse_shares(text: str) -> dict[str, dict[str, float]]:
    """The shares in lines such as "errors: 3=50, 4=50". An option without a share gets 100. Raises
    ValueError, with a sentence for the reader, for anything else."""
    found: dict[str, dict[str, float]] = {}
    for line in filter(str.strip, text.splitlines()):
        matched = _LINE.fullmatch(line.rstrip())
        parts = [_SHARE.fullmatch(one.strip()) for one in matched[2].split(",")] if matched else []
        if matched is None or None in parts:
            raise ValueError(
                f"{line.strip()!r} is not a line of shares. Write the draw, a colon and the options"
                " with their percentages, such as “errors: 3=50, 4=50”."
            )
        if matched[1] in found:
            raise ValueError(f"There are two lines for {matched[1]}. Write one.")
        named = [one[1] for one in parts if one]
        if twice := [one for one in named if named.count(one) > 1]:
            raise ValueError(f"{matched[1]} has {twice[0]} twice. Give it one share.")
        found[matched[1]] = {one[1]: float(one[2] or 100) for one in parts if one}
    return found


def format_shares(draw: Draw) -> str:
    """The shares of a draw as a line that `parse_shares` reads, without options that get none."""
    given = [f"{one.name}={one.share:g}" for one in draw.options if one.share]
    return f"{draw.name}: {', '.join(given)}"


def describe(draw: Draw) -> str:
    """A draw with its shares and its other options, as a sentence."""
    number = f"{draw.at_least} to {draw.at_most}" if draw.at_most > 1 else "one"
    if draw.at_least == draw.at_most > 1:
        number = str(draw.at_least)
    given = [f"{one.name} ({share:.3g} %)" for one, share in draw.percentages if share]
    others = [one.name for one in draw.options if not one.share]
    more = f" (a run can also draw {', '.join(others)})" if others else ""
    return f"Drawn for each item: {number} of {draw.name}: {', '.join(given)}{more}."


def describe_drawn(strategy: Strategy, drawn: Drawn | None) -> str:
    """What was drawn for an item, in words; "" for nothing."""
    return "; ".join(
        f"{name}: "
        + ", ".join(f"{one} ({value})" if value else one for one, value in chosen.items())
        for name, chosen in _sort_drawn(strategy, drawn).items()
    )


def _sort_drawn(strategy: Strategy, drawn: Drawn | None) -> Drawn:
    """What was drawn, in the order of the strategy, since PostgreSQL keeps none; {} for nothing."""
    return {
        draw.name: {
            option.name: drawn[draw.name][option.name]
            for option in draw.options
            if option.name in drawn[draw.name]
        }
        for draw in strategy.draws
        if drawn
    }


# ---- quotas


def draw_for_items(
    strategy: Strategy, items: Sequence[DrawnSource], seed: int, kept: Mapping[str, Drawn]
) -> dict[str, Drawn]:
    """Draw for each item what the strategy draws; by the key of the item.

    The numbers of items are exact: an option gets its share of the items, rounded, and takes it
    among the items that have what it needs. The rest is random, and depends on the seed and the
    keys alone. Items in `kept` keep what they have, and the quotas are for the others. Raises
    ValueError, with a sentence for the reader, if an item would get too few options.
    """
    found: dict[str, Drawn] = {one.key: {} for one in items}
    for draw in strategy.draws:
        fresh = {}
        for one in items:
            if draw.name in kept.get(one.key, {}):
                found[one.key][draw.name] = kept[one.key][draw.name]
            else:
                fresh[one.key] = _find_values(draw, one, seed)
        for key, names in _Quotas(draw, fresh, seed).fill().items():
            chosen = (option.name for option in draw.options if option.name in names)
            found[key][draw.name] = {name: fresh[key][name] for name in chosen}
    return found


def _find_values(draw: Draw, item: DrawnSource, seed: int) -> dict[str, str]:
    """The options that an item can get, each with its value."""
    found = {}
    for option in draw.options:
        value = VALUES[option.value](item, seed) if option.value else ""
        if value is not None:
            found[option.name] = value
    return found


class _Quotas:
    """Gives options of a draw to items, by exact numbers. `able` has the options that each item
    can get."""

    def __init__(self, draw: Draw, able: Mapping[str, Collection[str]], seed: int) -> None:
        self.draw, self.able, self.seed = draw, able, seed
        self.held: dict[str, set[str]] = {key: set() for key in able}

    def fill(self) -> dict[str, set[str]]:
        """The options of each item. Raises ValueError if an item would get too few."""
        wanted = [option for option in self.draw.options if option.share]
        numbers = Counter(name for names in self.able.values() for name in names)
        # Options that few items can get choose first.
        wanted.sort(key=lambda option: numbers[option.name])
        for place, option in enumerate(wanted):
            self._give(option.name, self._quota(wanted[place:]))
        self._raise_low(wanted)
        return self.held

    def _quota(self, left: Sequence[DrawOption]) -> int:
        """The number of items that get the first of the options that are left."""
        if self.draw.at_most > 1:
            return math.floor(len(self.held) * left[0].share / 100 + 0.5)
        free = sum(not names for names in self.held.values())
        return apportion(free, [option.share for option in left])[0]

    def _give(self, name: str, quota: int) -> None:
        """Give an option to as many items, at random. If too few have room for it, others make
        room: they pass one of their options on."""
        able = [key for key, names in self.able.items() if name in names]
        roomy = self._shuffle((key for key in able if self._has_room(key)), name)
        for key in roomy[:quota]:
            self.held[key].add(name)
        lacking = quota - len(roomy)
        if lacking <= 0:
            return
        takers = self._shuffle((one for one in self.held if self._has_room(one)), name)
        queue = _Queue(takers, self._can_take)
        for key in self._shuffle((one for one in able if name not in self.held[one]), name):
            if lacking and self._pass_on(key, queue):
                self.held[key].add(name)
                lacking -= 1

    def _pass_on(self, key: str, takers: "_Queue") -> bool:
        """Pass an option of a full item on to an item with room; False if none can take one."""
        found = takers.find(self.held[key])
        if found:
            other, moved = found
            self.held[key].remove(moved)
            self.held[other].add(moved)
        return found is not None

    def _can_take(self, key: str, name: str) -> bool:
        return self._has_room(key) and name in self.able[key] and name not in self.held[key]

    def _raise_low(self, wanted: Sequence[DrawOption]) -> None:
        """Give items with too few options one of an item with more than it needs, so that the
        quotas stay; if there is none, one beyond the quotas."""
        least = self.draw.at_least
        low = [key for key, names in self.held.items() if len(names) < least]
        more = self._shuffle((key for key in self.held if len(self.held[key]) > least), "more")
        donors = _Queue(more, self._can_spare)
        for key in self._shuffle(low, "low"):
            while len(self.held[key]) < least:
                if not (self._take(key, donors) or self._add(key, wanted)):
                    break
        lacking = [key for key, names in self.held.items() if len(names) < least]
        if lacking:
            raise ValueError(
                f"{len(lacking)} of the items, such as {lacking[0]}, cannot get {least} of "
                f"{self.draw.name}: their texts lack what {self._list_needs(wanted)} needs. Give "
                "other options a share, or choose other items."
            )

    def _take(self, key: str, donors: "_Queue") -> bool:
        """Give an item an option that another can spare; False if none has one that it can get."""
        lacked = [name for name in self.able[key] if name not in self.held[key]]
        found = donors.find(lacked)
        if found:
            donor, _ = found
            moved = self._shuffle(self.held[donor].intersection(lacked), key)[0]
            self.held[donor].remove(moved)
            self.held[key].add(moved)
        return found is not None

    def _can_spare(self, key: str, name: str) -> bool:
        return name in self.held[key] and len(self.held[key]) > self.draw.at_least

    def _add(self, key: str, wanted: Sequence[DrawOption]) -> bool:
        names = [one for one in wanted if one.name in self.able[key]]
        names = [one for one in names if one.name not in self.held[key]]
        if names:
            self.held[key].add(max(names, key=lambda one: one.share).name)
        return bool(names)

    def _has_room(self, key: str) -> bool:
        return len(self.held[key]) < self.draw.at_most

    def _list_needs(self, wanted: Sequence[DrawOption]) -> str:
        return " or ".join(option.name for option in wanted if option.value)

    def _shuffle(self, keys: Iterable[str], words: str) -> list[str]:
        """The keys in a random order that depends on the seed, the draw and the keys alone."""
        head = f"{self.seed}:{self.draw.name}:{words}"
        return sorted(keys, key=lambda key: (draw_number(f"{head}:{key}"), key))


class _Queue:
    """Items in an order, of which `fits` says which can give or take an option. An item that does
    not fit an option must never fit it again, so that each is looked at once for each option."""

    def __init__(self, keys: Sequence[str], fits: Callable[[str, str], bool]) -> None:
        self.keys, self.fits = keys, fits
        self.places: dict[str, int] = {}

    def find(self, names: Iterable[str]) -> tuple[str, str] | None:
        """The first item that fits one of the options, and the option; None if there is none."""
        place, name = min(((self._skip(one), one) for one in names), default=(len(self.keys), ""))
        return (self.keys[place], name) if place < len(self.keys) else None

    def _skip(self, name: str) -> int:
        place = self.places.get(name, 0)
        while place < len(self.keys) and not self.fits(self.keys[place], name):
            place += 1
        self.places[name] = place
        return place


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Divide `total` in proportion to the shares, whose sum is above 0, by the largest remainders;
    of equal remainders, the first get more."""
    exact = [total * share / sum(shares) for share in shares]
    found = [math.floor(one + 1e-9) for one in exact]
    order = sorted(range(len(shares)), key=lambda place: (found[place] - exact[place], place))
    for place in order[: total - sum(found)]:
        found[place] += 1
    return found


# ---- values that scripts find


def _find_date_before_year(item: DrawnSource, seed: int) -> str | None:
    """A day of the year before a year that the item's passage, answer or question names, drawn with
    the seed (study 001, appendix B.3)."""
    said = _join(item, "context", "gold", "prompt", "input")
    years = sorted({int(one) for one in _YEAR.findall(said)})
    if not years:
        return None
    year = years[draw_number(f"{seed}:year:{item.key}") % len(years)] - 1
    day = datetime.date(year, 1, 1) + datetime.timedelta(
        days=draw_number(f"{seed}:day:{item.key}") % 365
    )
    return day.isoformat()


def _find_sorts_in_problem(item: DrawnSource, seed: int) -> str | None:
    return find_number_sorts(_join(item, "prompt", "input"))


def _find_sorts_in_solution(item: DrawnSource, seed: int) -> str | None:
    return find_number_sorts(_join(item, "gold"))


def find_number_sorts(text: str) -> str | None:
    """The sorts of numbers in a text, as words; None without any number (study 001, appendix
    B.1)."""
    rest, fractions = _FRACTION.subn(" ", text)
    places = {len(found[1] or "") for found in _NUMBER.finditer(rest)}
    named = ["integers" if number == 0 else _name_decimals(number) for number in sorted(places)]
    named += ["fractions"] if fractions else []
    return " and ".join([", ".join(named[:-1])] * (len(named) > 1) + named[-1:]) or None


def _name_decimals(places: int) -> str:
    return f"numbers with {places} decimal place{'s' * (places > 1)}"


def _join(item: DrawnSource, *names: str) -> str:
    return "\n".join(join_text(item.texts.get(name) or "") for name in names)


def join_text(text: Any) -> str:
    """A text, or several references as one text."""
    return text if isinstance(text, str) else "\n".join(map(str, text))


# name -> script: the value that an option shows for an item, None if the item has none
VALUES: dict[str, Callable[[DrawnSource, int], str | None]] = {
    "date-before-year": _find_date_before_year,
    "numbers-of-problem": _find_sorts_in_problem,
    "numbers-of-solution": _find_sorts_in_solution,
}


# ---- what was drawn, in prompts, in fields and counted


def render(strategy: Strategy, drawn: Drawn | None) -> dict[str, str]:
    """The texts that a prompt shows of what was drawn for its item, by placeholder; {} for
    nothing."""
    if not drawn:
        return {}
    return {draw.name: _render_draw(draw, drawn[draw.name]) for draw in strategy.draws}


def _render_draw(draw: Draw, chosen: Mapping[str, str]) -> str:
    texts = [
        fill_template(option.text, {"value": chosen[option.name]})
        for option in draw.options
        if option.name in chosen
    ]
    return "\n".join(f"- {text}" for text in texts) if draw.at_most > 1 else "".join(texts)


def build_fields(strategy: Strategy, drawn: Drawn | None) -> dict[str, str | list[str]]:
    """The fields of a generated item that say what was drawn: a name, or a list of names where a
    draw gives several; {} for nothing."""
    names = {name: [*chosen] for name, chosen in _sort_drawn(strategy, drawn).items()}
    return {
        FIELD_PREFIX + draw.name: names[draw.name] if draw.at_most > 1 else names[draw.name][0]
        for draw in strategy.draws
        if drawn
    }


def read_fields(strategy: Strategy, fields: Mapping[str, Any], drawn: Drawn | None = None) -> Drawn:
    """What was drawn for a generated item, from its fields. Values that scripts found are those in
    `drawn`, by the run that generated it. Draws that the fields do not name, and those whose values
    are not known, are left out."""
    found: Drawn = {}
    for draw in strategy.draws:
        said = fields.get(FIELD_PREFIX + draw.name)
        names = [str(name) for name in (said if isinstance(said, list) else [said])]
        there = (drawn or {}).get(draw.name, {})
        values = {
            option.name: there.get(option.name, "")
            for option in draw.options
            if not option.value or there.get(option.name)
        }
        if names and values.keys() >= set(names):
            found[draw.name] = {name: values[name] for name in names}
    return found


def same_plan(strategy: Strategy, other: Strategy) -> bool:
    """True if both strategies draw the same by the same shares, in whatever words."""
    return _list_plan(strategy) == _list_plan(other)


def _list_plan(strategy: Strategy) -> list[Any]:
    return [
        (draw.name, draw.at_least, draw.at_most, option.name, option.share, option.value)
        for draw in strategy.draws
        for option in draw.options
    ]


def count(strategy: Strategy, found: Iterable[Drawn | None]) -> dict[str, dict[str, int]]:
    """The number of items that got each option, by draw; options with a share that nobody got are
    counted as 0."""
    counts = {
        draw.name: {option.name: 0 for option in draw.options if option.share}
        for draw in strategy.draws
    }
    for drawn in found:
        for name, chosen in (drawn or {}).items():
            for option in chosen:
                of_draw = counts.setdefault(name, {})
                of_draw[option] = of_draw.get(option, 0) + 1
    return counts


def describe_counts(strategy: Strategy, found: Sequence[Drawn | None]) -> Iterator[str]:
    """A line for each draw with the number of items that got each option, and one for each option
    that fewer items got than its share asks for, since the others lack what it needs."""
    counts = count(strategy, found)
    for name, of_draw in counts.items():
        numbers = (f"{option} ({n:,} item{'s' * (n != 1)})" for option, n in of_draw.items())
        yield f"{name}: {', '.join(numbers)}"
    for draw in strategy.draws:
        for option, asked in zip(draw.options, _list_quotas(draw, len(found)), strict=True):
            got = counts[draw.name].get(option.name, 0)
            if option.value and got < asked:
                yield (
                    f"{draw.name}: {option.name} for {got:,} items in place of {asked:,}, since no "
                    "other item has what it needs"
                )


def _list_quotas(draw: Draw, items: int) -> list[int]:
    """The number of items that each option would get if all items had what it needs."""
    shares = [option.share for option in draw.options]
    if draw.at_most > 1:
        return [math.floor(items * share / 100 + 0.5) for share in shares]
    return apportion(items, shares)
