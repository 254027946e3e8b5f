"""Replace a unit with another unit for the same quantity, so that the value no longer fits."""

import re
from collections.abc import Iterator

from perturbers.changes import PerturberInput, TextChange, TextEdit

# Groups of units for the same quantity. Singular and plural forms are in the same positions.
_GROUPS = """
    mm cm m km
    millimeter centimeter meter kilometer
    millimeters centimeters meters kilometers
    millimetres centimetres metres kilometres
    inch foot yard mile
    inches feet yards miles
    mg g kg
    milligram gram kilogram
    milligrams grams kilograms
    ounce pound
    ounces pounds
    ml l
    mL L
    milliliters liters
    millilitres litres
    cups pints gallons
    second minute hour
    seconds minutes hours
    day week month year
    days weeks months years
    mph km/h
    m/s km/h
    W kW
    watts kilowatts
    J kJ
    joules kilojoules
    Joules kilojoules
    V kV
    volts kilovolts
    N kN
    newtons kilonewtons
    Hz kHz MHz
    Pa kPa
    dollars cents
    °C °F
    degrees radians
    bytes kilobytes megabytes
    KB MB GB
    calories kilocalories
"""
_REPLACEMENTS: dict[str, list[str]] = {}
for _group in _GROUPS.strip().splitlines():
    for _unit in _group.split():
        _REPLACEMENTS.setdefault(_unit, []).extend(each for each in _group.split() if each != _unit)

# In a formula, spaces and commands that set text may stand between a number and its unit.
_GAP = r"[~-]?(?:\\[,;: ]|[ \t\u00a0])*(?:\\(?:text|mathrm|textrm)\{ *)?"
_UNIT = re.compile(
    rf"(?P<number>\d[\d.,]{{0,40}}){_GAP}(?P<unit>(?:square |cubic )?"
    rf"(?:{'|'.join(sorted(map(re.escape, _REPLACEMENTS), key=len, reverse=True))}))(?![\w/^²³])"
)


def find_units(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change per unit that follows a number."""
    for found in _UNIT.finditer(source.gold):
        unit = found["unit"]
        kind, _, plain = unit.rpartition(" ")
        after = source.pick(_REPLACEMENTS[plain], found.start(), unit)
        after = f"{kind} {after}" if kind else after
        claim = f"The unit after {found['number']} is changed from “{unit}” to “{after}”."
        yield TextChange((TextEdit(*found.span("unit"), after),), claim)
