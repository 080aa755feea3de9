"""The index of a series: its frequency, its continuation, its seasons, and errors."""

import copy
import itertools
import pickle
import re

import numpy as np
import pytest

from helpers.damaged_files import round_trip

pd = pytest.importorskip("pandas")

from reservoir._saving import SAVED  # noqa: E402
from reservoir._validation.frequencies import dates_after, first_stray, frequency_text  # noqa: E402
from reservoir.estimators.series.calendar import Calendar  # noqa: E402

OFFSETS = pd.offsets
# offsets, and the seasons of rows enough
FREQUENCIES = {
    "years": (OFFSETS.YearEnd(), ()),
    "years from April": (OFFSETS.YearBegin(month=4), ()),
    "last work days of a year": (OFFSETS.BYearEnd(), ()),
    "quarters": (OFFSETS.QuarterEnd(), (4,)),
    "quarter starts": (OFFSETS.QuarterBegin(startingMonth=1), (4,)),
    "quarters that end in January": (OFFSETS.QuarterEnd(startingMonth=1), None),
    "work days at ends of quarters": (OFFSETS.BQuarterEnd(), None),
    "month ends": (OFFSETS.MonthEnd(), (12,)),
    "month starts": (OFFSETS.MonthBegin(), None),
    "last work days of months": (OFFSETS.BMonthEnd(), (12,)),
    "first work days of months": (OFFSETS.BMonthBegin(), None),
    "two months": (OFFSETS.MonthBegin(2), (6,)),
    "three month ends": (OFFSETS.MonthEnd(3), (4,)),
    "half months": (OFFSETS.SemiMonthEnd(), (24,)),
    "half months from the first": (OFFSETS.SemiMonthBegin(day_of_month=16), None),
    "a day of the month": (pd.DateOffset(months=1), (12,)),
    "weeks": (OFFSETS.Week(weekday=6), (365.25 / 7,)),
    "Wednesdays": (OFFSETS.Week(weekday=2), (365.25 / 7,)),
    "four weeks": (OFFSETS.Week(4, weekday=0), (365.25 / 28,)),
    "work days": (OFFSETS.BusinessDay(), (5, 365.25 * 5 / 7)),
    "days but Sundays": (
        OFFSETS.CustomBusinessDay(weekmask="Mon Tue Wed Thu Fri Sat"),
        (6, 365.25 * 6 / 7),
    ),
    "Sunday to Thursday": (OFFSETS.CustomBusinessDay(weekmask="1111001"), (5, 365.25 * 5 / 7)),
    "every second work day": (OFFSETS.BusinessDay(2), None),
    "days": (OFFSETS.Day(), (7, 365.25)),
    "three days": (OFFSETS.Day(3), (7 / 3, 365.25 / 3)),
    "hours": (OFFSETS.Hour(), (24, 168)),
    "two hours": (OFFSETS.Hour(2), (12, 84)),
    "twenty-four hours": (OFFSETS.Hour(24), None),
    "half hours": (OFFSETS.Minute(30), (48, 336)),
    "quarter hours": (OFFSETS.Minute(15), (96, 672)),
    "minutes": (OFFSETS.Minute(), (60, 1440)),
    "seconds": (OFFSETS.Second(), (60, 3600)),
    "milliseconds": (OFFSETS.Milli(), ()),
    "third Fridays": (OFFSETS.WeekOfMonth(week=2, weekday=4), (12,)),
    "last Fridays": (OFFSETS.LastWeekOfMonth(weekday=4), None),
}
# three rows of these could be something else: a Friday each fourth week, or 15 days
FROM = dict.fromkeys(["half months", "half months from the first"], 4)
FROM |= dict.fromkeys(["third Fridays", "last Fridays"], 13)
FROM |= dict.fromkeys(["days but Sundays", "Sunday to Thursday"], 13)
ZONES = [None, "Europe/Berlin", "America/New_York"]
LENGTHS = (3, 4, 30)
SEASONS = {name: seasons for name, (_, seasons) in FREQUENCIES.items() if seasons is not None}
N = 50


def dates(name, n_rows, zone=None, start="2023-09-15 05:00"):
    return pd.date_range(start, periods=n_rows, freq=FREQUENCIES[name][0], tz=zone)


def bare(index):
    """Return an index that has forgotten its frequency, as after reading a file."""
    return index[np.arange(len(index))]


def series(index):
    return pd.Series(np.arange(len(index), dtype=float), index=index)


def calendar(index):
    return Calendar.of("y", series(index))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", FREQUENCIES)
def test_dates_continue_as_in_pandas(name):
    lengths = [n for n in LENGTHS if n >= FROM.get(name, 3)]
    for zone, n_rows in itertools.product(ZONES, lengths):
        index = dates(name, n_rows + 9, zone).rename("when")
        for begin in (index[:n_rows], bare(index[:n_rows])):
            found = calendar(begin)
            assert found.following(9).equals(index[n_rows:])
            assert found.following(9).name == "when"
            assert found.following(9).dtype == index.dtype
            assert found.index.equals(begin)
            assert found.extended(4).following(5).equals(index[n_rows + 4 :])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_unit_of_dates_is_kept(unit):
    index = bare(dates("month ends", 30)).as_unit(unit)
    following = calendar(index[:20]).following(10)
    assert following.unit == unit
    assert following.equals(index[20:])


@pytest.mark.parametrize("year_start", ["2024-03-20", "2024-10-20"])
@pytest.mark.parametrize("zone", ZONES[1:])
def test_hours_and_days_where_clocks_change(zone, year_start):
    for freq in (OFFSETS.Hour(), OFFSETS.Hour(2), OFFSETS.Minute(30), OFFSETS.Day()):
        index = pd.date_range(year_start, periods=900, freq=freq, tz=zone)
        for n in (100, 160, 250, 330):
            assert calendar(bare(index[:n])).following(500).equals(index[n : n + 500])


def test_a_time_of_day_that_clocks_skip_or_repeat():
    index = pd.date_range("2024-03-20 02:30", periods=9, freq=OFFSETS.Day(), tz="Europe/Berlin")
    following = calendar(index).following(4)
    shown = [str(stamp)[:16] for stamp in following]
    assert shown == [f"2024-03-{day}" for day in ("29 02:30", "30 02:30", "31 03:00")] + [
        "2024-04-01 02:30"
    ]
    index = pd.date_range("2024-10-20 02:30", periods=5, freq=OFFSETS.Day(), tz="Europe/Berlin")
    first_of_two = calendar(index).following(4)[2]
    assert str(first_of_two) == "2024-10-27 02:30:00+02:00"


def test_work_days_with_holidays():
    days = OFFSETS.CustomBusinessDay(holidays=["2024-12-25", "2024-12-26", "2025-01-01"])
    index = pd.date_range("2024-12-02", periods=30, freq=days)
    found = round_trip(calendar(index[:12]))
    assert found.following(18).equals(index[12:])
    assert found.seasons() == (5,)


@pytest.mark.parametrize("freq", ["M", "Q", "Y", "D", "h", "2h", "3M", "W-WED", "min"])
@pytest.mark.parametrize("n_rows", [1, 2, 20])
def test_periods(freq, n_rows):
    freq = {"Y": "A", "h": "H", "2h": "2H", "min": "T"}.get(freq, freq) if OLD else freq
    index = pd.period_range("2020-01-01", periods=n_rows + 9, freq=freq, name="when")
    found = calendar(index[:n_rows])
    assert found.following(9).equals(index[n_rows:])
    assert found.following(9).dtype == index.dtype
    assert found.following(9).name == "when"
    assert found.index.equals(index[:n_rows])


OLD = tuple(map(int, pd.__version__.split(".")[:2])) < (2, 2)


def test_periods_some_steps_apart():
    index = pd.period_range("2020-01", periods=40, freq="M")[::3]
    found = calendar(index[:9])
    assert found.following(5).equals(index[9:])
    assert found.seasons() == (4,)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(N),
        pd.RangeIndex(10, 10 + 3 * N, 3, name="row"),
        pd.Index(np.arange(N) + 1950, name="year"),
        pd.Index(np.arange(N, dtype=np.int32) * 5),
        pd.Index(0.1 * np.arange(N)),
        pd.Index(np.linspace(2, 3, N), name="t"),
        pd.Index(np.arange(N), dtype="Int64"),
    ],
    ids=["rows", "range", "years", "int32", "tenths", "floats", "nullable"],
)
def test_numbers(index):
    found = calendar(index[:30])
    following = found.following(N - 30)
    assert following.dtype == index.dtype
    assert type(following) is type(index)
    assert following.name == index.name
    np.testing.assert_allclose(following.to_numpy(float), index[30:].to_numpy(float), rtol=1e-12)
    assert found.seasons() == ()


def test_arrays_have_no_index():
    found = Calendar.of("y", np.zeros((20, 2)))
    assert found.following(3) is None
    assert found.index is None
    assert found.extended(5).n_rows == 25
    assert found.seasons() == ()
    assert Calendar.of("y", [1.0, 2.0, 3.0]).n_rows == 3


@pytest.mark.parametrize("name", SEASONS)
def test_seasons(name):
    found = calendar(dates(name, 20))
    np.testing.assert_allclose(found.seasons(100_000), SEASONS[name], rtol=1e-12)
    if len(SEASONS[name]) > 1:
        first, second = SEASONS[name]
        assert found.seasons(np.ceil(1.5 * first) - 1) == ()
        assert len(found.seasons(np.ceil(1.5 * first))) == 1
        assert len(found.seasons(np.ceil(1.5 * second) - 1)) == 1
        assert len(found.seasons(np.ceil(1.5 * second))) == 2


@pytest.mark.parametrize(
    ("freq", "seasons"),
    [("M", (12,)), ("Q", (4,)), ("D", (7, 365.25)), ("W", (365.25 / 7,)), ("3M", (4,))],
)
def test_seasons_of_periods(freq, seasons):
    found = calendar(pd.period_range("2020", periods=20, freq=freq))
    np.testing.assert_allclose(found.seasons(100_000), seasons)


def test_one_row_continues_where_its_index_has_a_frequency():
    index = dates("month starts", 4)
    assert calendar(index[:1]).following(3).equals(index[1:])
    for n in (1, 2):
        with pytest.raises(ValueError, match="fewer than 3"):
            calendar(bare(index[:n]))
        like = calendar(bare(dates("month starts", 9, start="2020-01-01")))
        found = Calendar.of("y", series(bare(index[:n])).rename("x"), like=like)
        assert found.index.equals(index[:n])
    with pytest.raises(ValueError, match="fewer than 3"):
        Calendar.of("y", series(bare(dates("days", 2))), like=like)


def test_too_far_for_the_unit_of_the_dates():
    index = dates("years", 5, start="2250-12-31").as_unit("ns")
    with pytest.raises(OverflowError, match="as_unit"):
        calendar(index).following(30)


# --- what is refused ---------------------------------------------------------------------------


def without(index, *rows):
    return index[np.setdiff1d(np.arange(len(index)), rows)]


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("name", ["month starts", "days", "hours", "work days", "days but Sundays",
                                  "a day of the month", "quarters"])  # fmt: skip
@pytest.mark.parametrize("n_before", [1, 3, 20, 45])
def test_a_gap_is_named(name, n_before):
    index = dates(name, 60, "Europe/Berlin" if name == "hours" else None)
    around = (str(index[i]).removesuffix(" 00:00:00") for i in (n_before - 1, n_before + 1))
    told = "has a gap: between {}.*{}.*1 row is missing.*asfreq".format(*map(re.escape, around))
    with pytest.raises(ValueError, match=told):
        calendar(without(index, n_before))


def test_a_frequency_that_reaches_beyond_the_last_date():
    years = dates("years", 20, start="2200-12-31").as_unit("ns")
    steps = np.random.default_rng(0).integers(1, 9, 60)
    events = years[-1] + pd.to_timedelta(np.cumsum(steps), "h")
    index = pd.DatetimeIndex(years.append(events)).as_unit("ns")
    with pytest.raises(ValueError, match=r"irregular.* from 2219-12-31 \(row 19\) to"):
        calendar(index)
    for n in (2, 5, 21):
        assert first_stray(years[:n], "YE" if not OLD else "A") is None
    assert first_stray(years.insert(20, pd.Timestamp("2262-04-01")), "21YE") == 1


DAYS, MONTH_ENDS = dates("days", 40), dates("month ends", 60)
MONTHS = pd.period_range("2020-01", periods=60, freq="M")
MOVED = DAYS + np.where(np.arange(40) == 17, np.timedelta64(3, "h"), np.timedelta64(0, "h"))
HOURS = pd.date_range("2020-01-01", periods=60, freq="60min")
OFF_THE_HOUR = HOURS[:40].append(HOURS[45:] + pd.Timedelta("30min"))
EVENTS = HOURS[0] + pd.to_timedelta(np.random.default_rng(0).integers(1, 9, 60).cumsum(), "h")
LABELS = r"labels.*{}\).*to_datetime.*reset_index"
RAISE = {
    "four months": (without(MONTH_ENDS, 10, 11, 12, 13), "4 rows are missing"),
    "two at the start": (without(MONTH_ENDS, 2, 3), r"gap: between 2023-10-31 05:00:00 \(row 1\)"),
    "events": (EVENTS, r"irregular.* different steps in total.*resample"),
    "one moved": (MOVED, r"irregular.*2023-10-02 08:00.*to_period"),
    # rows between those that would be filled in
    "off the hour": (OFF_THE_HOUR, r"^(?!.*asfreq).*irregular: .* 2020-01-02 15:00:00"),
    "quarters": (without(MONTHS[::3], 4, 5), r"gap: .* 2020-10 \(row 3\) and 2021-07"),
    "odd": (pd.Index([0, 2, 4, 6, 7, 9, 11, 13]), r"irregular.* from 6 to 7 \(row 4\) is 1.* 2\."),
    "months": (without(MONTHS[:30], 7), r"between 2020-07 \(row 6\) and 2020-09"),
    "numbers": (without(pd.RangeIndex(30), 7), r"between 6 .* and 8.*reindex.*reset_index"),
    "tenths": (pd.Index([0, 0.1, 0.2, 0.35, 0.45]), r"irregular.* from 0\.2 to 0\.35 \(row 3\)"),
    "one year": (pd.Index([1950]), r"1 row and no frequency.*fewer than 2.*RangeIndex"),
    "no date": (DAYS.insert(4, pd.NaT), r"no date in row 4 \(NaT\)"),
    "no period": (MONTHS.insert(4, pd.NaT), r"no date in row 4 \(NaT\)"),
    "text": (DAYS.astype(str), LABELS.format("'2023-09-15 05:00:00'")),
    "objects": (pd.Index(DAYS.date), LABELS.format(r"datetime.date\(2023, 9, 15\)")),
    "letters": (pd.Index(list("abcdefghi")), LABELS.format("'a'")),
    "clock": (pd.Index(dates("hours", 9).time), LABELS.format(r"datetime.time\(5, 0\)")),
    "pairs": (pd.Index([(1, row) for row in range(9)], tupleize_cols=False),
              LABELS.format(r"\(1, 0\)")),
    "durations": (DAYS - DAYS[0], r"durations.*total_seconds"),
    "no number": (pd.Index([0.0, 1.0, np.nan, 3.0]), r"is nan in row 2.*reset_index"),
    "level": (pd.MultiIndex.from_product([["a"], DAYS]), r"2 levels.*droplevel"),
    "levels": (pd.MultiIndex.from_product([["a", "b"], DAYS]), r'2 levels.*panel="each"'),
}  # fmt: skip


@pytest.mark.parametrize("name", RAISE)
def test_an_index_without_a_regular_step_raises(name):
    index, told = RAISE[name]
    with pytest.raises(ValueError, match=told):
        calendar(index)


@pytest.mark.parametrize(
    "index",
    [dates("days", 9), pd.period_range("2020", periods=9, freq="D"), pd.RangeIndex(9)],
    ids=["dates", "periods", "numbers"],
)
def test_order_and_double_stamps(index):
    stamp = re.escape(str(index[4]).removesuffix(" 00:00:00"))
    told = f"{stamp} twice, in rows 4 and 5.*Keep one.*sequence_column"
    with pytest.raises(ValueError, match=told):
        calendar(index[[0, 1, 2, 3, 4, 4, 5]])
    with pytest.raises(ValueError, match=f"{stamp} twice, in rows 0 and 3"):
        calendar(index[[4, 5, 6, 4, 7]])
    with pytest.raises(ValueError, match=rf"increasing: row 3 \({stamp}\) .*sort_index"):
        calendar(index[[0, 1, 5, 4, 6]])


def test_the_hour_that_clocks_repeat():
    index = pd.date_range("2024-10-26", periods=60, freq=OFFSETS.Hour(), tz="Europe/Berlin")
    with pytest.raises(ValueError, match=r"2024-10-27 02:00:00 twice.*tz_localize"):
        calendar(bare(index.tz_localize(None)))
    again = index.tz_localize(None).tz_localize("Europe/Berlin", ambiguous="infer")
    assert calendar(again).index.equals(index)


# --- later rows, and other tables --------------------------------------------------------------


INDEXES = {
    "month ends": dates("month ends", 60),
    "hours": dates("hours", 60, "Europe/Berlin"),
    "months": pd.period_range("2020-01", periods=60, freq="M"),
    "years": pd.Index(np.arange(60) + 1950),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_later_rows_must_follow(kind):
    index = bare(INDEXES[kind])
    before = calendar(index[:40])
    for n in (1, 2, 20):
        assert before.check_follows("y", series(index[40 : 40 + n])) == before.extended(n)
    assert before.check_follows("y", np.zeros(7)) == before.extended(7)
    assert before.check_follows("y", pd.Series(np.zeros(7))) == before.extended(7)
    ended, due = (re.escape(str(index[i])) for i in (39, 40))
    with pytest.raises(ValueError, match=f"ended at {ended}, so that {due} is due.*NaN"):
        before.check_follows("y", series(index[41:50]))
    with pytest.raises(ValueError, match="Its first 3 rows are known already"):
        before.check_follows("y", series(index[37:50]))
    with pytest.raises(ValueError, match="in row 4, where"):
        before.check_follows("y", series(without(index[40:], 4)))
    with pytest.raises(ValueError, match="twice"):
        before.check_follows("y", series(index[[40, 40, 41]]))


def test_few_work_days_look_like_days():
    index = bare(pd.bdate_range("2024-01-01", periods=30))
    joined = calendar(index[:5]).check_follows("y", series(index[5:9]))
    assert joined == calendar(index[:9])


@pytest.mark.parametrize("kind", INDEXES)
def test_tables_must_be_at_the_same_times(kind):
    index = INDEXES[kind]
    found = calendar(index[:40])
    found.check_matches("exog", series(bare(index[:40])), "y")
    found.check_matches("exog", series(bare(index)), "y")
    found.check_matches("exog", series(bare(index[40:])), "y", following=True)
    found.check_matches("exog", np.zeros((5, 1)), "y")
    found.check_matches("exog", pd.DataFrame({"a": np.zeros(9)}), "y", following=True)
    for following, rows in ((False, index[1:41]), (True, index[41:50])):
        due = re.escape(str(index[40 if following else 0]))
        with pytest.raises(ValueError, match=f"row 0 is .*, but {due} is due.*none for {due}"):
            found.check_matches("exog", series(rows), "y", following=following)
    with pytest.raises(ValueError, match="row 7 is"):
        found.check_matches("exog", series(without(index[:40], 7)), "y")


def test_other_kinds_of_stamps():
    index = dates("month ends", 30)
    found = calendar(index)
    for other, told in (
        (
            index.to_period("M"),
            r"periods \(period\[M\]\), but .* of y contains dates.*to_timestamp",
        ),
        (index.tz_localize("UTC"), "with a time zone, but the index of y contains dates without"),
    ):
        with pytest.raises(ValueError, match=told):
            found.check_matches("exog", series(other), "y")
    with pytest.raises(ValueError, match=r"numbers, but .* the rows before it contains dates"):
        found.check_follows("y", series(pd.Index([1950, 1951])))
    rows = Calendar.of("y", np.zeros(30))
    rows.check_matches("exog", series(index), "y")
    assert rows.check_follows("y", series(index)).n_rows == 60


def test_times_in_another_zone_or_unit_are_equal():
    index = dates("hours", 40, "Europe/Berlin")
    other = index.tz_convert("UTC").as_unit("ns")
    calendar(index[:30]).check_matches("exog", series(other), "y")
    assert calendar(index[:30]).check_follows("y", series(other[30:])).index.equals(index)


# --- saving ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index", [*INDEXES.values(), pd.RangeIndex(5), pd.Index(0.5 * np.arange(9))]
)
def test_a_calendar_can_be_saved(index):
    assert SAVED["Calendar"] is Calendar
    found = calendar(index.rename("when"))
    for again in (round_trip(found), pickle.loads(pickle.dumps(found)), copy.copy(found)):
        assert again == found
        assert again.following(7).equals(found.following(7))


def test_frequencies_under_the_names_of_other_versions_of_pandas():
    last = pd.DatetimeIndex(["2024-12-31"])
    for names in (("M", "ME"), ("A-DEC", "YE-DEC"), ("Q-DEC", "QE-DEC"), ("2H", "2h")):
        one, other = (dates_after(last, 5, name) for name in names)
        assert one.equals(other)
    assert frequency_text(last) is None
    # half months, or a row behind a gap: three dates do not tell
    assert frequency_text(pd.DatetimeIndex(["2024-01-01", "2024-01-08", "2024-02-01"])) is None
