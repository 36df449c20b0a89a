"""The settings of a server hold its limits, queue, desk and addresses, each with a default."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from limelight.config import Settings

LOOPBACK = ("127.0.0.1", "::1", "localhost")


MemoryUse = Literal["use", "tell"]  # of the same text, or also of similar ones


class Limits(Settings):
    """Limits bound what one request may be, and how long it may take to arrive."""

    header_bytes: int = Field(default=16 << 10, ge=1 << 10, le=1 << 20, description="Request line and headers.")
    body_bytes: int = Field(default=1 << 20, ge=1 << 10, le=1 << 30, description="Body of a request without a file.")
    file_bytes: int = Field(default=8 << 20, ge=1 << 10, le=32 << 20, description="Body of a request with a file.")
    keyless_bytes: int = Field(
        default=64 << 10,
        ge=1 << 10,
        le=1 << 30,
        description="Body of a request that shows no key in a header, where keys are asked for.",
    )
    bodies_bytes: int = Field(default=256 << 20, ge=1 << 10, le=1 << 40, description="Bodies of all requests under way together.")
    header_seconds: float = Field(default=10.0, gt=0, le=3600, description="From the first byte to the last header.")
    body_seconds: float = Field(default=30.0, gt=0, le=3600, description="From the last header to the end of the body.")
    idle_seconds: float = Field(default=15.0, gt=0, le=3600, description="A connection without a request.")
    write_seconds: float = Field(default=30.0, gt=0, le=3600, description="A client that does not read its answer.")
    connections: int = Field(default=1000, ge=1, le=100_000, description="Open at once; one more takes the place of the longest idle.")
    address_connections: int = Field(
        default=250,
        ge=1,
        le=100_000,
        description="Of one address (version 6: one /64), unless FORWARDED_ALLOW_IPS names it as a proxy.",
    )
    characters: int = Field(default=5_000, ge=1, le=1_000_000, description="Of one text.")
    texts: int = Field(default=128, ge=1, le=10_000, description="Of one request.")
    alternatives: int = Field(default=8, ge=0, le=64, description="Translations of one text beside the best.")
    beam: int = Field(default=16, ge=1, le=64, description="Largest beam that a request may ask for.")
    terms: int = Field(default=1_000, ge=0, le=100_000, description="Of a glossary that comes with a request.")
    glossary_work: int = Field(
        default=20_000_000,
        ge=0,
        description="Terms of a glossary that comes with a request, times characters of texts.",
    )


class QueueSettings(Settings):
    """These settings say what waits for the engine, and for how long."""

    wait_seconds: float = Field(
        default=5.0,
        gt=0,
        le=600,
        description="Longest wait before a request begins; if it would be more, it is refused at once.",
    )
    timeout_seconds: float = Field(
        default=60.0, gt=0, le=3600, description="Longest time from a request to its answer, unless it asks for less."
    )
    requests: int = Field(default=1_000, ge=1, le=100_000, description="In the queue at once.")
    window_ms: float = Field(
        default=5.0,
        ge=0,
        le=1000,
        description="How long a busy server waits for company before it translates a batch that is not full.",
    )
    batch_pieces: int | None = Field(
        default=None,
        ge=16,
        le=1_000_000,
        description="Source pieces of a batch. None: what the engine is fastest with.",
    )


class DeskSettings(Settings):
    """Traces and rankings of heads run beside the queue of translations, in threads of their own."""

    on: bool = Field(default=True, description="Are there traces at all?")
    pieces: int = Field(default=256, ge=1, le=4096, description="Of a text that is traced, and of its translation.")
    at_once: int = Field(default=2, ge=1, le=64, description="Traces made at the same time.")
    waiting: int = Field(default=32, ge=0, le=10_000, description="Traces that wait; more are refused.")
    kept: int = Field(
        default=64,
        ge=1,
        le=1024,
        description="Traces of a caller that can be asked for again: what was sent, no more. Without keys, four times as many.",
    )
    answer_bytes: int = Field(
        default=16 << 20, ge=1 << 10, le=1 << 30, description="Numbers of one answer, before they are written as JSON."
    )
    jobs: int = Field(default=8, ge=1, le=1024, description="Rankings of heads that wait and run; one runs at a time.")
    sentences: int = Field(default=64, ge=1, le=10_000, description="Of one ranking of heads.")


class ServeSettings(Settings):
    """ServeSettings() listens on loopback, for everybody on this machine, without keys."""

    host: str = Field(default="127.0.0.1", min_length=1, max_length=255)
    port: int = Field(default=5000, ge=0, le=65535, description="0: any that is free.")
    public: bool = Field(default=False, description="Listen wide although no key is asked for.")
    keys: Path | None = Field(default=None, description="File with the keys of callers, as hashes.")
    state: Path | None = Field(default=None, description="Folder in which what keys have used up outlives a restart.")
    store: str | None = Field(
        default=None,
        max_length=1_000,
        description="Database for what outlives a restart: sqlite:///limelight.db, postgresql://... None: none.",
    )
    memory: MemoryUse | None = Field(
        default=None,
        description="use: what the store's memory has of the same text is its translation, for clients that cannot ask for it. "
        "tell: models that were taught it are told what it has for similar ones, too.",
    )
    keep_days: float = Field(default=365.0, gt=0, le=36_500, description="How long the store keeps what people sent.")
    hosts: tuple[str, ...] = Field(default=(), max_length=100, description="Names by which the server is called, beside its address.")
    cors: Literal["compatible", "off"] = Field(
        default="compatible",
        description="May pages of other sites call the two public dialects? As their own servers allow, or never.",
    )
    open_languages: bool = Field(default=True, description="GET /languages answers without a key, as Mastodon and Weblate ask for it.")
    page: bool = True
    metrics: bool = False
    files: bool = True
    suggestions: Path | None = Field(default=None, description="File that receives what people suggest. None: refused.")
    key_url: str | None = Field(default=None, max_length=1000, description="Where people without a key are sent.")
    prefix: str = Field(default="", pattern=r"^(/[A-Za-z0-9_-]+)*$", description="Path that a proxy puts before ours.")
    drain_seconds: float = Field(default=30.0, gt=0, le=3600, description="For what is under way when it is to stop.")
    watchdog_seconds: Annotated[float, Field(ge=1, le=3600)] | Literal["off"] = Field(
        default=30.0, description="A server whose event loop is silent for so long ends itself, to be started again."
    )
    threads: int | None = Field(default=None, ge=1, le=1024)
    limits: Limits = Limits()
    queue: QueueSettings = QueueSettings()
    desk: DeskSettings = DeskSettings()

    @property
    def wide(self) -> bool:
        """Can anybody but this machine reach it?"""
        return self.host not in LOOPBACK

    @property
    def knows_callers(self) -> bool:
        """Nothing is kept for strangers: it could neither be bounded for each, nor deleted with who sent it."""
        return self.keys is not None or not self.wide

    @model_validator(mode="after")
    def _safe(self) -> Self:
        if self.wide and self.keys is None and not self.public:
            raise ValueError(
                f"host={self.host} lets other machines in, and no key is asked for; give --api-key-file, or --public if that is meant"
            )
        if self.memory is not None and self.store is None:
            raise ValueError(f"memory={self.memory} needs a store whose memory is used; give --store, or leave memory out")
        if self.store is not None and self.state is not None:
            raise ValueError("store and state keep the same, usage and glossaries, and what one has the other does not read; leave one out")
        return self
