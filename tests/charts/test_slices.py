from dataclasses import replace

from charts import slices

NEAR = slices.SliceRates("Spelling: run 1", 0.5, 0.4, 0.6, 0.3, 0.2, 0.4, 30, 90, True)


def layers(*found):
    return slices.draw_slices(found)["layer"]


def test_a_band_reaches_from_the_rest_to_the_slice_deep_for_a_blind_spot():
    band = layers(NEAR)[0]["encoding"]
    assert (band["x"]["field"], band["x2"]["field"]) == ("rest", "rate")
    assert band["opacity"]["condition"]["value"] > band["opacity"]["value"]


def test_both_rates_have_marks_of_shapes_of_their_own():
    dots = [one["encoding"] for one in layers(NEAR) if "shape" in one["encoding"]]
    assert [one["x"]["field"] for one in dots] == ["rest", "rate"]
    shapes = dots[0]["shape"]["scale"]["range"]
    assert len(set(shapes)) == 2


def test_marks_of_rates_are_filled():
    points = [one["mark"] for one in layers(NEAR) if one["mark"]["type"] == "point"]
    assert [one["filled"] for one in points] == [True, True]


def test_slices_stand_in_their_order():
    other = slices.SliceRates("Units: run 1", 0.9, None, None, 0.3, None, None, 1, 9, False)
    assert layers(NEAR, other)[0]["encoding"]["y"]["sort"] == [NEAR.name, other.name]


def test_a_name_of_three_lines_has_a_higher_row():
    long = replace(NEAR, name="Spelling: under 1 % changed: run 1")
    assert slices.draw_slices([long])["height"] > slices.draw_slices([NEAR])["height"]
    assert layers(long)[0]["encoding"]["y"]["axis"]["labelOffset"] < 0


def test_a_chart_does_not_change_one_that_was_drawn_before():
    before = slices.draw_slices([NEAR])
    slices.draw_slices([replace(NEAR, name="Units: run 2"), NEAR])
    assert [row["name"] for row in before["data"]["values"]] == [NEAR.name]
    assert before["layer"][1]["encoding"]["y"]["sort"] == [NEAR.name]
