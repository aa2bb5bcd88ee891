"""A small shopping cart."""


def total(prices: list[int]) -> int:
    """Sum of prices, in cents."""
    return sum(prices)


def discount(pieces: int, cents: int) -> int:
    """A tenth off from ten pieces on."""
    return cents - cents // 10 if pieces >= 10 else cents
