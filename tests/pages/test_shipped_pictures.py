"""Pictures on the pages are those that docs/shipped_pictures.py draws, with the same texts.

Here those of benchmarks, from records; `python docs/shipped_pictures.py --check` runs the examples,
too.
"""

import sys

import pytest

from helpers import pages

pytest.importorskip("matplotlib")
sys.path.append(str(pages.ROOT / "docs"))
shipped = pytest.importorskip("shipped_pictures", reason="needs the checkout")

OF_BENCHMARKS = ("states.png", "growth.png")


def test_each_picture_is_drawn_by_the_script_and_shown_on_a_page():
    there = {path.name for path in shipped.STATIC.glob("*.png")}
    assert there == set(shipped.PICTURES)
    text = "".join(page.read_text(encoding="utf-8") for page in pages.pages(".md"))
    assert [name for name in there if f"_static/{name}" not in text] == []


@pytest.mark.parametrize("name", sorted(shipped.PICTURES))
def test_each_picture_has_its_texts_and_an_opaque_background(name):
    assert shipped.shipped_texts(name)
    with shipped.Image.open(shipped.STATIC / name) as image:
        assert image.convert("RGBA").getextrema()[3] == (255, 255)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name", OF_BENCHMARKS)
def test_pictures_of_benchmarks_show_what_was_recorded(name):
    figure = shipped.draw(name)
    assert shipped.differences(name, figure) == []
    figure.axes[0].set_ylabel("something else")
    assert shipped.differences(name, figure) != []
    shipped.plt.close(figure)


def test_an_animation_is_moved_to_the_pictures_of_its_page(tmp_path):
    scrape = pytest.importorskip("pictures", reason="needs sphinx-gallery").animation
    (tmp_path / "wave.gif").write_bytes(b"GIF89a")
    paths = iter([str(tmp_path / "sphx_glr_plot_wave_001.png")])
    told = {"src_file": str(tmp_path / "plot_wave.py"), "image_path_iterator": paths}
    for shown in (True, False):  # a later block has saved no other
        assert ("plot_wave_001.gif" in scrape(None, told, {"src_dir": str(tmp_path)})) == shown
    assert [path.name for path in tmp_path.iterdir()] == ["sphx_glr_plot_wave_001.gif"]
