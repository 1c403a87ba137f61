"""The list on the desk: five shops, their hours on weekdays, on Saturday and on Sunday."""

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CLOSED = "closed"
SHOPS = {
    "bakery": ("6:30-18:00", "6:30-13:00", "8:00-11:00"),
    "bookshop": ("10:00-19:00", "10:00-16:00", CLOSED),
    "pharmacy": ("8:30-18:30", "9:00-12:30", CLOSED),
    "grocer": ("7:00-21:00", "7:00-20:00", CLOSED),
    "florist": ("9:00-17:30", "9:00-14:00", "10:00-12:00"),
}


def desk() -> str:
    """What the assistant reads."""
    lines = [f"{shop}: Mon-Fri {week}, Sat {saturday}, Sun {sunday}" for shop, (week, saturday, sunday) in SHOPS.items()]
    return "Answer callers in a few words. Opening hours:\n" + "\n".join(lines)


def closing(shop: str, day: str) -> str:
    """The hour as the list spells it, or `closed`."""
    week, saturday, sunday = SHOPS[shop]
    hours = {"Saturday": saturday, "Sunday": sunday}.get(day, week)
    return hours.split("-")[-1]
