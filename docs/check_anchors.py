"""Check that every link within the built pages has a page, and a place on it, to go to.

Usage: ``python docs/check_anchors.py docs/_build/html``. Names what leads nowhere, and then exits
with 1.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page has to lead to, and where it leads."""

    def __init__(self, text):
        super().__init__()
        self.places, self.links = {"", "top"}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Note the ids of a tag, and the target of a link."""
        known = dict(attrs)
        self.places |= {known[key] for key in ("id", "name") if known.get(key)}
        if tag == "a" and known.get("href"):
            self.links.append(known["href"])


def lost_links(folder):
    """Return (page, link) of each link within the site that leads nowhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target in pages:
                found = unquote(parts.fragment) in pages[target].places
            else:
                found = target.exists()
            if not found:
                lost.append((path.relative_to(folder).as_posix(), link))
    return lost


if __name__ == "__main__":
    lost = lost_links(Path(sys.argv[1]).resolve())
    for page, link in sorted(set(lost)):
        print(f"{page}: {link} leads nowhere")
    print(f"{len(lost)} links lead nowhere")
    sys.exit(bool(lost))
