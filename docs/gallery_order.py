"""The order of the gallery's sections and pages, and of the tutorials, which conf.py names."""

SECTIONS = (
    "forecasting",
    "classification",
    "online",
    "training",
    "applications",
    "stability",
    "scaling",
)
TUTORIALS = (
    "plot_first_forecast.py",
    "plot_monthly_series.py",
    "plot_known_inputs.py",
    "plot_tune_closed_loop.py",
    "plot_chaotic_system.py",
    "plot_parameter_as_input.py",
    "plot_classify_whole_series.py",
    "plot_labels_at_every_step.py",
    "plot_learn_while_it_runs.py",
    "plot_find_anomalies.py",
    "plot_missing_values.py",
    "plot_stability.py",
    "plot_train_from_least_squares.py",
    "plot_many_series.py",
    "plot_field.py",
    "plot_save_and_serve.py",
)
# Within a section the pages that show at a glance what it is about come first.
FIRST = (
    "plot_sunspots.py",
    "plot_co2.py",
    "plot_mackey_glass.py",
    "plot_speakers.py",
    "plot_teacher_student.py",
    "plot_phase_portrait.py",
    "plot_portraits.py",
    "plot_closed_loop_heart.py",
    "plot_certified_memory.py",
    "plot_certificate.py",
)
RANKS = {name: rank for rank, name in enumerate((*TUTORIALS, *FIRST))}


def section_rank(folder):
    """Return the place of a section; a folder that SECTIONS does not name is an error."""
    return SECTIONS.index(folder.rstrip("/").rpartition("/")[2])


class PageOrder:
    """Sort tutorials by their place in the course, other pages by file name behind the first."""

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __call__(self, filename):
        """Return what the page is sorted by."""
        return RANKS.get(filename, len(RANKS)), filename
