"""A store remembers in a database what a server was told: corrections, translation memory, glossaries, and what keys have used up.

    store = open_store("sqlite:///limelight.db")             # limelight.store.store; or postgresql://user@host/name
    store.corrections.add("en", "de", source, translation, correction, key="forum", model="en-de")   ->  its id
    store.corrections.list(("en", "de"), after=last_id)      ->  [Correction(id, source_language, ..., created)], oldest first
    store.memory.add(("en", "de"), pairs);  store.memory.find(("en", "de"), text)   ->  [MemoryMatch(score, source, target, ...)]
    store.glossaries, store.usage                            ->  what `serving` keeps for callers
    store.delete_by_key("forum");  store.expire(days=90)     ->  how many were deleted

It needs the extra `store`, and a PostgreSQL the extra `postgres`: only `cli` opens a store, and hands it down. Every method waits for the
database, so an event loop calls it on a thread. A new table or column is a new function at the end of `migrations.MIGRATIONS`.
"""
