"""Where labels are, in points."""

from itertools import combinations

from charts.labels import NARROW, place_labels

HEIGHT = 360


def test_labels_of_close_marks_overlap_neither_each_other_nor_a_mark() -> None:
    spots = [(0.5 + 0.03 * n, 0.5 + 0.004 * (n % 3)) for n in range(6)] + [(1, 0), (0, 1)]
    words = [str(10 + n) for n in range(len(spots))]
    middles = [
        (x * NARROW + dx, y * HEIGHT + dy)
        for (x, y), (dx, dy) in zip(spots, place_labels(spots, words, HEIGHT), strict=True)
    ]
    for a, b in combinations(middles, 2):
        assert abs(a[0] - b[0]) >= 14 or abs(a[1] - b[1]) >= 10, (a, b)
    for x, y in middles:
        assert all(abs(x - NARROW * a) >= 10 or abs(y - HEIGHT * b) >= 8 for a, b in spots)
        assert 7 <= x <= NARROW - 7
        assert 5 <= y <= HEIGHT - 5
    # A mark that has room has its label right beside it.
    [alone] = place_labels([(0.5, 0.5)], ["7"], HEIGHT)
    assert abs(alone[0]) < 12
    assert abs(alone[1]) < 12
