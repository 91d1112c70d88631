"""Canaries: what they look like, where they are planted, and which of a start's values are some. Pure."""

from harness.probing.planting.plant import Planting as Planting
from harness.probing.planting.plant import plant as plant
from harness.probing.planting.start import asked as asked
from harness.probing.planting.start import retold as retold
