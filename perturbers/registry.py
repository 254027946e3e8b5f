"""Every perturber by its name, and how one is asked for a perturbed answer."""

from dataclasses import dataclass

from perturbers import entities, layout, negation, numbers, order, solutions, spelling, units
from perturbers.changes import Find, Perturbation, Source, choose


@dataclass(frozen=True, slots=True)
class Perturber:
    """What makes errors of one category, by its slug in the taxonomy; `does` says which."""

    slug: str
    category: str
    find: Find
    does: str


PERTURBERS = {
    one.slug: one
    for one in (
        Perturber(
            "spelling",
            "spelling",
            spelling.find,
            "letters that changed places, or a neighbouring key",
        ),
        Perturber("numbers", "number-errors", numbers.find, "another number of the same format"),
        Perturber(
            "units", "incorrect-units", units.find, "a unit that measures the same sort of thing"
        ),
        Perturber(
            "negation", "opposite-fact", negation.find, "a “not” that comes or goes behind a copula"
        ),
        Perturber("removal", "remove-fact", order.removed, "a sentence left out"),
        Perturber("shuffle", "chronology", order.swapped, "two sentences that changed places"),
        Perturber(
            "steps",
            "sequence-errors",
            order.steps,
            "two entries of a numbered list that changed places",
        ),
        Perturber(
            "entities", "entity", entities.find, "a name replaced by another one of the same text"
        ),
        Perturber("results", "calculations", solutions.results, "the result behind a “=”"),
        Perturber(
            "copying",
            "copying-numbers",
            solutions.copied,
            "a number of the prompt, where the answer first uses it",
        ),
        Perturber(
            "final-answer",
            "final-errors",
            solutions.final,
            "the last number, or the last one that is boxed",
        ),
        Perturber(
            "layout",
            "formatting",
            layout.find,
            "the marks of headings, lists and bold type, all at once",
        ),
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
