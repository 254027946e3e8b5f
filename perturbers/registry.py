"""All perturbers by name, and the function that makes a perturbed answer with one."""

from dataclasses import dataclass

from perturbers import entities, layout, negation, numbers, order, solutions, spelling, units
from perturbers.changes import Finder, Perturbation, PerturberInput, apply_changes


@dataclass(frozen=True, slots=True)
class Perturber:
    """A perturber for errors of one category, given by its slug; `does` describes the errors."""

    slug: str
    category: str
    find: Finder
    does: str


PERTURBERS = {
    one.slug: one
    for one in (
        Perturber(
            "spelling",
            "spelling",
            spelling.find_words,
            "letters that changed places, or a neighbouring key",
        ),
        Perturber(
            "numbers", "number-errors", numbers.find_numbers, "another number of the same format"
        ),
        Perturber(
            "units",
            "incorrect-units",
            units.find_units,
            "a unit that measures the same sort of thing",
        ),
        Perturber(
            "negation",
            "opposite-fact",
            negation.find_statements,
            "a “not” that comes or goes behind a copula",
        ),
        Perturber("removal", "remove-fact", order.find_removable, "a sentence left out"),
        Perturber(
            "shuffle", "chronology", order.find_swappable, "two sentences that changed places"
        ),
        Perturber(
            "steps",
            "sequence-errors",
            order.find_swappable_steps,
            "two entries of a numbered list that changed places",
        ),
        Perturber(
            "entities",
            "entity",
            entities.find_names,
            "a name replaced by another one of the same text",
        ),
        Perturber("results", "calculations", solutions.find_results, "the result behind a “=”"),
        Perturber(
            "copying",
            "copying-numbers",
            solutions.find_copied_numbers,
            "a number of the prompt, where the answer first uses it",
        ),
        Perturber(
            "final-answer",
            "final-errors",
            solutions.find_final_answer,
            "the last number, or the last one that is boxed",
        ),
        Perturber(
            "layout",
            "formatting",
            layout.find_markup,
            "the marks of headings, lists and bold type, all at once",
        ),
    )
}


def perturb(
    perturber: Perturber, gold: str, *, prompt: str = "", seed: str = "", dose: int = 1
) -> Perturbation | None:
    """The gold answer with `dose` errors, or None if fewer are possible.

    With the same seed, the errors of a smaller dose are among those of a larger one. The result
    differs from the gold answer, and from the result of the same seed for another gold answer.
    """
    source = PerturberInput(gold, prompt, seed)
    return apply_changes(source, perturber.find(source), dose)
