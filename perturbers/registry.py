"""Every perturber by its name, and how one is asked for a perturbed answer."""

from dataclasses import dataclass

from perturbers import entities, layout, negation, numbers, order, solutions, spelling, units
from perturbers.changes import Find, Perturbation, Source, choose


@dataclass(frozen=True, slots=True)
class Perturber:
    """What makes errors of one category, by its slug in the taxonomy."""

    slug: str
    category: str
    find: Find


PERTURBERS = {
    one.slug: one
    for one in (
        Perturber("spelling", "spelling", spelling.find),
        Perturber("numbers", "number-errors", numbers.find),
        Perturber("units", "incorrect-units", units.find),
        Perturber("negation", "opposite-fact", negation.find),
        Perturber("removal", "remove-fact", order.removed),
        Perturber("shuffle", "chronology", order.swapped),
        Perturber("steps", "sequence-errors", order.steps),
        Perturber("entities", "entity", entities.find),
        Perturber("results", "calculations", solutions.results),
        Perturber("copying", "copying-numbers", solutions.copied),
        Perturber("final-answer", "final-errors", solutions.final),
        Perturber("layout", "formatting", layout.find),
    )
}


def perturb(
    perturber: Perturber, gold: str, *, prompt: str = "", seed: str = "", dose: int = 1
) -> Perturbation | None:
    """The gold answer with `dose` errors, or None if it does not offer so many.

    By one seed the errors of a smaller dose are among those of a larger one. What comes out
    differs from the gold answer, and from what the same seed makes of another one.
    """
    source = Source(gold, prompt, seed)
    return choose(source, perturber.find(source), dose)
