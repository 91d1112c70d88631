"""The area of a bed."""


def area(width: float, length: float) -> float:
    """Square metres."""
    return width * length


if __name__ == "__main__":
    print(area(2, 3))
