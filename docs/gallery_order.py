"""The order of the gallery's pages, which conf.py names."""


class PicturesFirst:
    """Sort pages by file name, behind the two that show at a glance what stability is."""

    first = ("plot_phase_portrait.py", "plot_closed_loop_heart.py")

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __call__(self, filename):
        """Return what the page is sorted by."""
        rank = self.first.index(filename) if filename in self.first else len(self.first)
        return rank, filename
