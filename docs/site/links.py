"""Does every link of the built site lead somewhere, and does nothing come from another host?

problems(Path("dist/docs"))  ->  ["train.html: corpus.html#nowhere: there is no such place"]
"""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("use", "href")}
NO_FETCH = {"canonical", "alternate", "next", "prev", "license"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {value for name in ("id", "name") if (value := found.get(name))}
        for name in ("href", "src"):
            value = found.get(name)
            if value is None:
                continue
            value = value.partition("#")[0] if tag == "iframe" else value  # that is a word for the page in the frame, and no place in it
            fetched = (tag, name) in LOADED and not (tag == "link" and found.get("rel") in NO_FETCH)
            (self.loads if fetched else self.links).append(value)


def problems(site: Path) -> list[str]:
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # is served for every address, so its links are from the root
            continue
        for address in page.links + page.loads:
            if wrong := _problem(address, path, pages, address in page.loads):
                found.append(f"{path.relative_to(site)}: {address}: {wrong}")
    return found


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


def _problem(address: str, path: Path, pages: dict[Path, _Page], fetched: bool) -> str | None:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return "comes from another host" if fetched and parts.scheme != "data" else None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return "there is no such file"
    place = unquote(parts.fragment)
    if place and target in pages and place not in pages[target].places and place != "__top":
        return "there is no such place"
    return None
