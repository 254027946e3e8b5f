from stats.spread import Quartiles, quartiles


def test_quartiles_lie_between_neighbours():
    # 1, 2, 2, 10: places 0.75, 1.5, 2.25 -> 1.75, 2, 2 + 0.25 x 8 = 4.
    assert quartiles({10: 1, 2: 2, 1: 1}) == Quartiles(4, 1.75, 2.0, 4.0)


def test_what_is_beyond_the_limit_is_counted_apart():
    assert quartiles({1: 1, 3: 1, 5000: 2}, limit=1800) == Quartiles(2, 1.5, 2.0, 2.5, beyond=2)


def test_without_values_there_is_none():
    assert quartiles({}) == Quartiles(0, None, None, None)
    assert quartiles({5000: 1}, limit=1800) == Quartiles(0, None, None, None, beyond=1)
