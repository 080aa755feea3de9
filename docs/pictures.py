"""Give the pictures of gallery pages a text that names them: a Sphinx extension.

sphinx-gallery takes it from the titles of a figure's axes, or, where there are none, from the
name of the script.
"""

from docutils import nodes
from docutils.transforms import Transform
from sphinx_gallery.directives import imgsgnode


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
