"""How well the product does on real servers with known faults, and on benign ones: `docs/score.md`."""
