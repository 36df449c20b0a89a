"""English sentences with their German translations, made from parts: any number, all different, and real enough to tell their language.

A sentence has six parts of twenty choices each, so two sentences rarely share more than three of them: alike, but no near copies.
"""

import itertools
import random
from collections.abc import Iterator

Pair = tuple[str, str]

TIMES = """on monday|am Montag
last week|letzte Woche
in the morning|am Morgen
after the rain|nach dem Regen
at breakfast|beim Frühstück
at midnight|um Mitternacht
every summer|jeden Sommer
all year long|das ganze Jahr über
during the storm|während des Sturms
at last|endlich
once again|noch einmal
on her birthday|an ihrem Geburtstag
without warning|ohne Vorwarnung
shortly after noon|kurz nach Mittag
in early spring|im frühen Frühling
that evening|an jenem Abend
two days later|zwei Tage später
for the first time|zum ersten Mal
in the dark|im Dunkeln
long after the war|lange nach dem Krieg"""
SUBJECTS = """the old farmer|der alte Bauer
my younger sister|meine jüngere Schwester
a tired teacher|ein müder Lehrer
the new minister|die neue Ministerin
my neighbour|mein Nachbar
the captain of the ship|der Kapitän des Schiffes
a group of children|eine Gruppe von Kindern
nobody in the village|niemand im Dorf
the doctor|die Ärztin
his grandfather|sein Großvater
the young baker|der junge Bäcker
a stranger|ein Fremder
the whole family|die ganze Familie
the night watchman|der Nachtwächter
one of the players|einer der Spieler
the owner of the shop|der Besitzer des Ladens
the famous painter|der berühmte Maler
a very small dog|ein sehr kleiner Hund
the committee|der Ausschuss
their guide|ihre Führerin"""
VERBS = """found|fand
described|beschrieb
sold|verkaufte
remembered|vergaß nie
painted|malte
lost|verlor
carried|trug
discovered|entdeckte
bought|kaufte
repaired|reparierte
forgot|vergaß
stole|stahl
admired|bewunderte
hid|versteckte
broke|zerbrach
cleaned|putzte
photographed|fotografierte
needed|brauchte
opened|öffnete
wanted|wollte"""
OBJECTS = """a wooden box|eine hölzerne Kiste
the golden key|den goldenen Schlüssel
three letters|drei Briefe
an empty bottle|eine leere Flasche
the map of the island|die Karte der Insel
a heavy suitcase|einen schweren Koffer
the broken window|das zerbrochene Fenster
a loaf of bread|einen Laib Brot
the missing report|den fehlenden Bericht
a red bicycle|ein rotes Fahrrad
an unknown song|ein unbekanntes Lied
the silver watch|die silberne Uhr
a basket of apples|einen Korb Äpfel
the oldest book|das älteste Buch
two white horses|zwei weiße Pferde
a strange device|ein seltsames Gerät
the last ticket|die letzte Fahrkarte
a warm coat|einen warmen Mantel
the blue umbrella|den blauen Regenschirm
some useful tools|einige nützliche Werkzeuge"""
PLACES = """behind the church|hinter der Kirche
at the market|auf dem Markt
near the river|in der Nähe des Flusses
in a quiet street|in einer ruhigen Straße
on the bridge|auf der Brücke
opposite the town hall|gegenüber dem Rathaus
on the roof|auf dem Dach
in the middle of the forest|mitten im Wald
between two houses|zwischen zwei Häusern
at the railway station|am Bahnhof
in the cellar|im Keller
on the way home|auf dem Heimweg
next to the school|neben der Schule
in the harbour|im Hafen
at the edge of the field|am Rand des Feldes
in another country|in einem anderen Land
by the lake|am See
on the second floor|im zweiten Stock
in the garden|im Garten
within the city walls|innerhalb der Stadtmauern"""
REASONS = """because the train was late|weil der Zug Verspätung hatte
although it was forbidden|obwohl es verboten war
and told no one about it|und erzählte niemandem davon
while the others were asleep|während die anderen schliefen
before the police arrived|bevor die Polizei eintraf
so that everyone could see it|damit jeder es sehen konnte
but nothing happened|aber nichts geschah
as the newspaper reported|wie die Zeitung berichtete
and laughed loudly|und lachte laut
without saying a word|ohne ein Wort zu sagen
since there was no other choice|da es keine andere Wahl gab
until the sun came up|bis die Sonne aufging
which surprised the mayor|was den Bürgermeister überraschte
and then went home|und ging dann nach Hause
if we may believe the story|wenn wir der Geschichte glauben dürfen
as soon as the music stopped|sobald die Musik aufhörte
and nobody knew why|und keiner wusste warum
for a very good price|zu einem sehr guten Preis
just like many years before|genau wie viele Jahre zuvor
to help an old friend|um einem alten Freund zu helfen"""

PARTS = [[tuple(line.split("|")) for line in part.split("\n")] for part in (TIMES, SUBJECTS, VERBS, OBJECTS, PLACES, REASONS)]
SIZES = [len(part) for part in PARTS]


def sentences(count: int, seed: int = 1) -> list[Pair]:
    """So many different pairs. Lists of one seed begin alike, whatever their length; other seeds give other sentences, mostly."""
    return [_pair(choice) for choice in itertools.islice(_choices(seed), count)]


def apart(count: int, others: list[Pair], seed: int) -> list[Pair]:
    """Pairs that are no near copies of others: they share at most three of the six parts with any of them."""
    near = {four for pair in others for four in _fours(_choice(pair))}
    found = (choice for choice in _choices(seed) if near.isdisjoint(_fours(choice)))
    return [_pair(choice) for choice in itertools.islice(found, count)]


def _choices(seed: int) -> Iterator[tuple[int, ...]]:
    chance, seen = random.Random(seed), set()
    while True:
        choice = tuple(int(chance.random() * size) for size in SIZES)
        if choice not in seen:
            seen.add(choice)
            yield choice


def _fours(choice: tuple[int, ...]) -> list[tuple[tuple[int, int], ...]]:
    """All that leave two parts open."""
    return list(itertools.combinations(enumerate(choice), 4))


def _pair(choice: tuple[int, ...]) -> Pair:
    time, subject, verb, object_, place, reason = (part[i] for part, i in zip(PARTS, choice, strict=True))
    english = f"{time[0]} {subject[0]} {verb[0]} {object_[0]} {place[0]} {reason[0]}."
    german = f"{time[1]} {verb[1]} {subject[1]} {object_[1]} {place[1]}, {reason[1]}."
    return english[0].upper() + english[1:], german[0].upper() + german[1:]


def _choice(pair: Pair) -> tuple[int, ...]:
    """Which parts an English sentence is made of. No part begins another, so the longest that fits is the one."""
    rest, found = pair[0][0].lower() + pair[0][1:-1], []
    for part in PARTS:
        fits = [i for i, (english, _) in enumerate(part) if rest.startswith(english)]
        found.append(max(fits, key=lambda i: len(part[i][0])))
        rest = rest[len(part[found[-1]][0]) :].lstrip(" ")
    assert not rest
    return tuple(found)
