"""How alike two texts are, as a number that grows with each character that is put right."""


def likeness(said: str, wanted: str) -> float:
    """Twice the longest common subsequence over both lengths, in [0, 1]: 1 for equal texts, 0 for texts without a common
    character. What is said beyond the wanted text costs as much as what is missing."""
    if not said or not wanted:
        return float(said == wanted)
    row = [0] * (len(wanted) + 1)
    for mine in said:
        before = 0
        for place, theirs in enumerate(wanted, start=1):
            before, row[place] = row[place], before + 1 if mine == theirs else max(row[place], row[place - 1])
    return 2 * row[-1] / (len(said) + len(wanted))
