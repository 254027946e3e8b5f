"""What each view of the result pages prints of the tables that it rests on."""

from annotation.templatetags.figures import coefficient, duration, share
from tests.judging.shown_columns import (
    Column,
    below,
    counts,
    distance,
    having,
    judging,
    money,
    of_chance,
    of_field,
    p_value,
    points,
    rates,
    rest,
    short,
    some,
    there,
    two_digits,
)

# Which project is looked at; "fbi" for the other pages.
PROJECTS = {"people": "p", "detector": "errors"}
# What the address says besides, so that every row has its line.
QUERIES = {
    ("people", "items"): "&metric=relatedness",
    ("blind-spots", "slices"): "&show=all",
    # The one that was asked goes on, so that it is shown where it is named.
    ("cost", "runs"): "&run=1&run=7",
}
# Fields of a page stand for rows that a table does not have: none there.
SPARSE = {("by-category", "changes"), ("agreement", "confusion")}
ANY = ".*"
DETECTOR = having(strategy={"mean", "random", "always-error"})
MEAN, RHO = having(strategy="mean"), having(figure="rho")
OVERALL = having(ability=None)
CEILING, EPSILON = having(measure="rho"), having(epsilon=0.1)
SHOWN: dict[tuple[str, str], list[Column]] = {
    ("overview", "abilities"): [
        Column(ANY, "rate", rest, judging),
        Column(ANY, "rate", rest, judging, 1),
    ],
    ("by-category", "rates"): [
        Column(ANY, "rate", rest, judging),
        Column(ANY, "rate", rest, below, 1),
        Column(ANY, "rate", rest, below, 2),
    ],
    ("by-category", "counts"): [
        *counts("total", "missing", "parsed", "detected", "undetected", such=judging),
        Column("Undetected rate", "rate", share, judging),
    ],
    ("by-category", "scores"): [
        *counts("lower", "equal", "higher", such=there("lower")),
        Column("Mean of gold", "mean_gold", two_digits, there("lower")),
        Column("Mean of perturbed", "mean_pert", two_digits, there("lower")),
    ],
    ("by-category", "changes"): [Column(r"0|[+−]\d+", "n")],
    ("by-category", "ends"): [
        Column("At the lowest score", "gold_at_bottom", such=there("gold_at_top")),
        Column("At the highest score", "gold_at_top", such=there("gold_at_top")),
    ],
    ("verdicts", "verdicts"): [
        *counts("parsed", "missing", "mixed"),
        Column("One order missing", "one_order"),
        Column("Gold twice.*", "G"),
        Column("Both good", "both_good"),
        Column("Both bad", "both_bad"),
        Column("Perturbed twice.*", "P"),
        Column("Undetected rate", "rate", share, having(strategy="pairwise"), 1),
    ],
    ("verdicts", "order"): [
        Column("First position twice", "rate", share, having(effect="first_twice")),
        Column("Second position twice", "rate", share, having(effect="second_twice")),
        Column("A tie in one order", "rate", share, having(effect="half_tie")),
    ],
    ("verdicts", "repeats"): [
        Column("Samples", "samples"),
        Column("Undetected, first sample", "first_rate", share),
        Column("Undetected, all samples", "rate", share),
        Column("Changed result", "changing_rate", share),
    ],
    ("reference", "bins"): [
        Column("Lower", "low", such=there("top")),
        Column("Two below the top", "top2", such=there("top")),
        Column("One below the top", "top1", such=there("top")),
        Column("Top", "top", such=there("top")),
        Column("Undetected rate", "rate", share, having(strategy="reference"), 1),
    ],
    ("explanations", "credit-of-words"): [
        Column("Detected by the score", "detected"),
        Column("Equal scores", "equal"),
        Column("Only by the explanation", "found"),
        Column("Not at all", "unnoticed"),
        Column("Equal scores whose explanation names an error", "found_rate", share),
        Column("Undetected rate after credit", "rate_after", share),
    ],
    ("explanations", "false-credit"): [
        Column("Found in perturbed answers", "found_rate", share, there("gold_check")),
        Column("False credit.*", "false_credit", share, there("gold_check")),
    ],
    ("explanations", "audits"): [
        Column("Items", "total"),
        Column("Not audited yet", "missing"),
        *counts("correct", "insufficient", "wrong", "none"),
    ],
    ("detector", "figures"): [
        Column("Items", "n", such=DETECTOR),
        Column("No verdict", "invalid", such=DETECTOR),
        *rates("f1", "precision", "recall", "accuracy", such=DETECTOR),
        Column("MCC", "mcc", two_digits, DETECTOR),
    ],
    ("detector", "kinds"): [
        Column("Errors", "n", such=MEAN),
        Column("Detected", "detected", such=MEAN),
        Column("Recall", "recall", share, MEAN),
    ],
    ("detector", "prompts"): [
        Column(f"{one}{words}", name, write, having(bias="wording", figure=one.lower()))
        for one in ("Recall", "Precision")
        for words, name, write in (
            (", type 1", "first", share),
            (", type 2", "second", share),
            (": difference.*", "difference", points),
        )
    ],
    ("detector", "changes"): [
        Column("Items in both", "n", such=having(figure="f1")),
        *(Column(one, "difference", points, having(figure=one.lower()))
          for one in ("F1", "Precision", "Recall", "Accuracy")),
    ],
    ("people", "correlations"): [
        Column("Items", "n"),
        *counts("missing"),
        Column("Spearman.*", "rho", two_digits),
        Column("Pearson.*", "pearson", two_digits),
        Column("Kendall.*", "tau", two_digits),
    ],
    ("people", "closeness"): [
        Column("RMSE", "rmse", two_digits),
        Column("Mean absolute error", "mae", two_digits),
        Column("Bias", "bias", two_digits),
        Column("Accuracy.*", "accuracy002", two_digits),
    ],
    ("people", "means"): [
        Column("People's mean", "mean_people", share),
        Column("Evaluator's mean", "mean_evaluator", share),
    ],
    ("people", "groups"): [
        Column("All items pooled", "pooled", two_digits, RHO),
        Column("Mean over groups", "mean", two_digits, RHO),
        Column("sd over groups", "sd", two_digits, RHO),
        *counts("groups", "undefined", such=RHO),
    ],
    ("people", "by-score"): [
        Column("People gave", "score", short),
        Column("Same rating", "same"),
        Column("Agreement", "agreement", share),
    ],
    ("people", "scatter"): [
        *rates("people", "evaluator", write=short),
        Column("Items", "n"),
    ],
    ("people", "items"): [
        Column("People", "people", short),
        Column("Mean of labels", "mean", two_digits),
        Column("Evaluator", "evaluator", short),
    ],
    ("people", "ceiling"): [
        Column("Items", "n", such=CEILING),
        Column("The person", "people", two_digits, CEILING),
        Column("The evaluator", "evaluator", two_digits, CEILING),
        Column("Evaluator minus person", "difference", two_digits, CEILING),
    ],
    ("people", "alt-test"): [
        Column("Items", "n", such=EPSILON),
        Column("Evaluator as close", "evaluator", share, EPSILON),
        Column("Annotator as close", "people", share, EPSILON),
        Column("p", "p", p_value, EPSILON),
        Column("q", "q", p_value, EPSILON),
    ],
    ("people", "majority"): [
        Column("Items", "n"),
        Column("With a majority", "decided"),
        *rates("share"),
    ],
    ("people", "ratings"): [
        Column("People", "raters"),
        Column("Mean", "mean", two_digits),
    ],
    ("compare", "pairs"): [
        Column("In both", "n", such=OVERALL),
        Column("Detected only by a", "only_a", such=OVERALL),
        Column("Detected only by b", "only_b", such=OVERALL),
        Column("a minus b.*", "difference", points, OVERALL),
        Column("p", "p", p_value, OVERALL),
        Column("p, adjusted", "p_holm", p_value, OVERALL),
        Column("Smallest difference.*", "shows", distance, OVERALL),
    ],
    ("blind-spots", "slices"): [
        Column("Undetected rate in the slice", "rate", share, judging),
        Column("In the other items", "rest", share, judging),
        Column("Clusters", "clusters", such=judging),
        Column("Difference.*", "difference", points, judging),
        Column("p", "p", p_value, judging),
        Column("q", "q", p_value, judging),
    ],
    ("sensitivity", "plane"): [
        Column("Detection", "detection", share, some),
        Column("False alarms", "false_alarm", share, some),
        Column("J", "j", two_digits, some),
        Column("d′", "d_prime", two_digits, some),
    ],
    **{("sensitivity", one): [
        Column("Items", "parsed", such=judging),
        Column("Questions", "clusters", such=judging),
        Column("Missing", "missing", such=judging),
        Column("Detected", "detection", share, judging),
        Column("Penalty", "penalty", two_digits, judging),
    ] for one in ("doses", "penalties")},
    ("missing", "causes"): [
        *counts("parsed"),
        Column("Items", "n"),
        Column("If all missing were detected", "lowest", share),
        Column("If all missing were undetected", "highest", share),
        Column("By category, p", "p", p_value),
    ],
    ("data-set", "items"): [
        Column("Valid|Score-invariant|Not relevant", "count", such=having(of="label")),
        Column(".*mean words", "mean", such=having(of="words")),
    ],
    ("data-set", "categories"): [
        Column("Share of its ability", "share", share, having(of="category")),
    ],
    ("data-set", "shares"): [
        Column("Items", "count", such=of_field),
        *rates("share", such=of_field),
    ],
    ("agreement", "measures"): [
        Column("Value", "value", share, having(people="", measure="percent", field="choice")),
        Column("Value", "value", coefficient, of_chance),
        Column("Items", "n_items", such=having(people="", field="choice")),
    ],
    ("agreement", "confusion"): [Column("Valid|Invalid", "n")],
    ("agreement", "effort"): [
        Column("Labels", "labels"),
        Column("Median time", "seconds_median", duration),
        Column("25 % under", "seconds_low", duration),
        Column("25 % over", "seconds_high", duration),
    ],
    ("cost", "runs"): [
        Column("Error items", "total"),
        Column("Calls", "calls"),
        Column("Paid by this run", "paid", money),
        Column("Detected", "detected"),
    ],
}  # fmt: skip
