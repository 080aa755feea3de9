"""Summary of a fitted ESNForecaster, as text and as HTML."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

_MODELS = 8  # number of models that are listed for each series, at most
_SERIES = 5  # number of series of a panel that are listed, at most


def summary_of(forecaster: Any) -> str:
    """Return the summary of a fitted ESNForecaster."""
    lines = [_head(forecaster)]
    if forecaster.kind_ == "dynamics":
        return "\n".join(lines + _networks(forecaster))
    return "\n".join(lines + _models(forecaster))


def html_of(forecaster: Any) -> str:
    """Return the summary as a block of HTML."""
    return f"<pre>{escape(summary_of(forecaster))}</pre>"


def _head(forecaster: Any) -> str:
    panel = forecaster._panel
    rows = ", ".join(str(calendar.n_rows) for calendar in panel.calendars[:_SERIES])
    more = ", ..." if len(panel.calendars) > _SERIES else ""
    what = "1 series" if len(panel) == 1 else f"{len(panel)} series"
    columns = panel.containers[0].n_outputs
    joint = f" of {columns} variables" if columns > 1 else ""
    return f"ESNForecaster: {what}{joint}, rows: {rows}{more}"


def _networks(forecaster: Any) -> list[str]:
    results = forecaster.search_results_
    seen = "each row determines the next" if results["observed"] == "all" else "it uses past rows"
    params = ", ".join(f"{key}={value}" for key, value in forecaster.best_params_.items())
    return [
        f'kind_ = "dynamics": the rows follow a rule that networks learn; {seen}',
        f"one-step error: {float(results['noise']):.2g} standard deviations",
        f"tried: {len(results['score'])} combinations of network and penalty, in closed loop",
        f"chosen: {params}",
        f"best_score_ = {forecaster.best_score_:.3f}: "
        f"closed-loop errors of 10^-{forecaster.best_score_:.2f} standard deviations on average",
    ]


def _models(forecaster: Any) -> list[str]:
    seasons = ", ".join(f"{season:g}" for season in forecaster.seasons_) or "none"
    lines = [
        'kind_ = "series": an average of models, compared by forecasts of held-out rows',
        f"rows per season: {seasons}",
        f"mean absolute error of the average: {-forecaster.best_score_:.3f} times the error of the "
        "best naive forecast",
    ]
    results = forecaster.search_results_
    names = results["series"].tolist()
    ids = list(dict.fromkeys(names))
    for each in ids[:_SERIES]:
        if len(ids) > 1:
            lines.append(f"series {each!r}")
        lines += _table(results, np.flatnonzero([name == each for name in names]))
    return lines


def _table(results: dict[str, Any], rows: Any) -> list[str]:
    lines = [f"  {'model':34s}{'scale':7s}{'error':>8s}{'share':>8s}"]
    for i in rows[:_MODELS]:
        error = results["error"][i]
        lines.append(
            f"  {results['model'][i]:34s}{results['scale'][i]:7s}{error:8.3f}"
            f"{100 * results['share'][i]:7.0f}%"
        )
    return lines
