"""All perturbers by name, and the function that applies a perturber to an answer."""

from dataclasses import dataclass

from perturbers import entities, layout, negation, numbers, order, solutions, spelling, units
from perturbers.changes import Finder, Perturbation, PerturberInput, apply_changes


@dataclass(frozen=True, slots=True)
class Perturber:
    """A perturber for errors of one category, which is given by its slug. `does` describes the
    errors."""

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
            "swapped letters, or a neighbouring key",
        ),
        Perturber(
            "numbers", "number-errors", numbers.find_numbers, "another number of the same format"
        ),
        Perturber(
            "units",
            "incorrect-units",
            units.find_units,
            "another unit of the same quantity",
        ),
        Perturber(
            "negation",
            "opposite-fact",
            negation.find_statements,
            "“not” added or removed after a form of “be”",
        ),
        Perturber("removal", "remove-fact", order.find_removable, "a sentence removed"),
        Perturber("shuffle", "chronology", order.find_swappable, "two sentences swapped"),
        Perturber(
            "steps",
            "sequence-errors",
            order.find_swappable_steps,
            "two entries of a numbered list swapped",
        ),
        Perturber(
            "entities",
            "entity",
            entities.find_names,
            "a name replaced by another name from the text",
        ),
        Perturber("results", "calculations", solutions.find_results, "the result after a “=”"),
        Perturber(
            "copying",
            "copying-numbers",
            solutions.find_copied_numbers,
            "a number from the prompt, where the answer first uses it",
        ),
        Perturber(
            "final-answer",
            "final-errors",
            solutions.find_final_answer,
            "the last number, or the last boxed number",
        ),
        Perturber(
            "layout",
            "formatting",
            layout.find_markup,
            "all marks of headings, lists and bold type",
        ),
    )
}


def perturb(
    perturber: Perturber, gold: str, *, prompt: str = "", seed: str = "", dose: int = 1
) -> Perturbation | None:
    """Return the gold answer with `dose` errors, or None if fewer errors are possible.

    With the same seed, the errors of a smaller dose are among those of a larger dose. The result
    differs from the gold answer. It also differs from the result of the same seed for another gold
    answer.
    """
    source = PerturberInput(gold, prompt, seed)
    return apply_changes(source, perturber.find(source), dose)
