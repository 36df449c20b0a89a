"""Weblate's own classes talk to a server: run by the Python of an environment that has Weblate (test_weblate.py makes one).

    python weblate_client.py URL KEY      ->  one line of JSON: what was found, and every request that Weblate sent

Weblate wants a large database, of which these classes need nothing: languages, a project and a unit are made and not saved, and the
glossary lies in the cache, where Weblate itself puts it.
"""
# mypy: ignore-errors

import json
import sys
import tempfile
from types import SimpleNamespace
from unittest.mock import MagicMock

import django
import requests
import weblate.settings_example as settings_example
from django.conf import settings

FOLDER = tempfile.mkdtemp()
CHANGED = {
    "DATABASES": {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    "CACHES": {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
    "SECRET_KEY": "0" * 50,
    "DATA_DIR": FOLDER,
    "CACHE_DIR": FOLDER,
    "CELERY_TASK_ALWAYS_EAGER": True,
    "CELERY_BROKER_URL": "memory://",
    "SITE_DOMAIN": "weblate.example",
}
GLOSSARY = "seven\tSIEBENDING\n"


def main(url: str, key: str) -> None:
    for name in ("cairo", "gi", "gi.repository"):  # they draw letters, and want libraries of the system
        sys.modules.setdefault(name, MagicMock())
    settings.configure(**{name: value for name, value in vars(settings_example).items() if name.isupper()} | CHANGED)
    django.setup()
    recorded = record_requests(url)
    found = {"libretranslate": by_libretranslate(url, key), "deepl": by_deepl(url, key)}
    sys.stdout.write(json.dumps({"found": found, "requests": recorded}) + "\n")


def record_requests(url: str) -> list[dict]:
    """Filled while Weblate works."""
    recorded, send = [], requests.Session.send

    def sends(self, request, **options):
        body = request.body.decode() if isinstance(request.body, bytes) else request.body
        headers = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
        sent = {"method": request.method, "path": request.url.removeprefix(url), "headers": headers, "body": body}
        response = send(self, request, **options)
        recorded.append(sent | {"status": response.status_code})
        return response

    requests.Session.send = sends
    return recorded


def unit_of(text: str, flags: str = ""):
    from django.core.cache import cache
    from weblate.checks.flags import Flags
    from weblate.lang.models import Language
    from weblate.trans.models import Project

    english, german, project = Language(id=1, code="en"), Language(id=2, code="de"), Project(id=7, slug="p", name="p")
    cache.set(project.get_glossary_tsv_cache_key(english, german), GLOSSARY)
    component = SimpleNamespace(project=project, source_language=english)
    translation = SimpleNamespace(component=component, language=german, log_debug=lambda *told: None)
    return SimpleNamespace(all_flags=Flags(flags), translation=translation, source_string=text, get_source_plurals=lambda: [text])


def translated(service, text: str, flags: str = "") -> str:
    """As the automatic translation of a component does it, with its placeholders hidden and put back."""
    unit = unit_of(text, flags)
    pair = service.get_languages(unit.translation.component.source_language, unit.translation.language)
    return service._translate(*pair, [(text, unit)])[text][0]["text"]


def by_libretranslate(url: str, key: str) -> dict:
    from weblate.machinery.libretranslate import LibreTranslateTranslation

    service = LibreTranslateTranslation({"url": url, "key": key})
    service.validate_settings()  # what a person waits for who adds the service
    return {
        "languages": sorted(service.supported_languages),
        "plain": translated(service, "seven"),
        "placeholder": translated(service, "seven %s", "c-format"),
    }


def by_deepl(url: str, key: str) -> dict:
    from weblate.machinery.base import GlossaryDoesNotExistError
    from weblate.machinery.deepl import DeepLTranslation

    service = DeepLTranslation({"url": f"{url}/v2", "key": key, "formality": "default", "context": "numbers"})
    service.validate_settings()
    found = {
        "languages": sorted(map(list, service.supported_languages)),
        "plain": translated(service, "one"),
        "glossary": translated(service, "seven"),
        "placeholder": translated(service, "one %s", "c-format"),
        "glossaries": list(service.get_glossaries(use_cache=False)),
    }
    service.delete_oldest_glossary()
    try:
        service.delete_glossary("00000000-0000-0000-0000-000000000000")
    except GlossaryDoesNotExistError:
        found["unknown"] = "not there"
    return found | {"left": list(service.get_glossaries(use_cache=False))}


if __name__ == "__main__":
    main(*sys.argv[1:])
