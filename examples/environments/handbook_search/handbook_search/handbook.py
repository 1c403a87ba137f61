"""The handbook, and the search over it. Plain functions of text."""

import re

ENTRIES: dict[str, str] = {
    "Access cards": "A lost access card is blocked by the front desk. A new one costs 12 euros and is ready the next morning.",
    "Bicycles": "Bicycles stand in the yard behind gate C. The pump hangs beside the gate; its code changes in May.",
    "Coffee": "The machine on floor 3 is cleaned every Friday at 16:00. Beans are ordered on the first Monday of a month.",
    "Fire drill": "The meeting point is the fountain on the east side. Wardens wear orange vests and count by floor.",
    "Guests": "Guests sign at the front desk and are met there. A guest may stay until 20:00 without a warden.",
    "Holidays": "Holidays are asked for two weeks ahead. Five days may be taken into the next year, until the end of March.",
    "Laptops": "A laptop is replaced after 42 months. Broken ones go to room 114, between 9:00 and 11:00.",
    "Meeting rooms": "A room that nobody has entered after 10 minutes is free for everybody. Room Oslo has the large screen.",
    "Parcels": "Parcels are kept in locker 7 for 5 days, then sent back. Large ones stay at the loading ramp.",
    "Travel": "Trains are booked in second class. A journey of more than 6 hours may be flown, if the lead agrees.",
}

QUESTIONS: tuple[tuple[str, str, str], ...] = (
    ("What does a new access card cost?", "12 euros", "Access cards"),
    ("Behind which gate do bicycles stand?", "gate C", "Bicycles"),
    ("When is the coffee machine cleaned?", "Friday at 16:00", "Coffee"),
    ("Where do we meet in a fire drill?", "the fountain", "Fire drill"),
    ("Until when may a guest stay without a warden?", "20:00", "Guests"),
    ("How many days of holiday may be taken into the next year?", "five", "Holidays"),
    ("After how many months is a laptop replaced?", "42", "Laptops"),
    ("Which room has the large screen?", "Oslo", "Meeting rooms"),
    ("In which locker are parcels kept?", "7", "Parcels"),
    ("From how many hours on may a journey be flown?", "6", "Travel"),
)
"""Question, answer, and the entry that it stands in."""

FOUND_MAX = 3


def search(query: str) -> list[str]:
    """Titles of the entries that share most words with the query, best first, at most three."""
    asked = _words(query)
    scored = [(len(asked & _words(f"{title} {text}")), title) for title, text in ENTRIES.items()]
    return [title for score, title in sorted(scored, key=lambda one: (-one[0], one[1])) if score][:FOUND_MAX]


def read(title: str) -> str:
    """An entry's text, whatever the case of its title."""
    known = {name.lower(): text for name, text in ENTRIES.items()}
    return known.get(title.strip().lower(), f"There is no entry {title!r}. Search first.")


def _words(text: str) -> set[str]:
    """Words of three letters or more, without the s of a plural."""
    return {word.removesuffix("s") for word in re.findall(r"[a-z0-9:]{3,}", text.lower())}
