"""Give the pictures of gallery pages a text that names them: a Sphinx extension.

sphinx-gallery takes it from the titles of a figure's axes, or, where there are none, from the
name of the script. Animations are shown, too: `plot_NAME.py` saves its own as NAME.gif.
"""

import shutil
from pathlib import Path

from docutils import nodes
from docutils.transforms import Transform
from sphinx_gallery.directives import imgsgnode
from sphinx_gallery.scrapers import figure_rst


def animation(block, block_vars, gallery_conf):
    """Show the animation that a script has just saved: a scraper of sphinx-gallery."""
    script = Path(block_vars["src_file"])
    saved = script.with_name(script.stem.removeprefix("plot_") + ".gif")
    if not saved.exists():
        return ""
    path = Path(next(block_vars["image_path_iterator"])).with_suffix(".gif")
    shutil.move(saved, path)
    return figure_rst([path], gallery_conf["src_dir"])


class NamePictures(Transform):
    """Put the title of the page before what sphinx-gallery says of a picture."""

    default_priority = 900

    def apply(self):
        """Rename the pictures of one page."""
        pictures = list(self.document.findall(imgsgnode))
        if not pictures:
            return
        title = next(self.document.findall(nodes.title)).astext()
        for number, picture in enumerate(pictures, 1):
            told = "" if picture["alt"].startswith("plot ") else f", {picture['alt']}"
            picture["alt"] = f"{title}: picture {number}{told}"


def setup(app):
    """Register the transform."""
    app.add_transform(NamePictures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
