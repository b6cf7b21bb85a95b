"""The cities that the agent knows, and what it costs to be there and to get there. All figures are made up."""

from __future__ import annotations

import math
from dataclasses import dataclass

EARTH_RADIUS_KM = 6371.0


@dataclass(frozen=True)
class City:
    """A place, with the price of a night for two in euros."""

    name: str
    latitude: float
    longitude: float
    night: int


CITIES = (
    City("Amsterdam", 52.37, 4.90, 165),
    City("Athens", 37.98, 23.73, 95),
    City("Berlin", 52.52, 13.41, 110),
    City("Copenhagen", 55.68, 12.57, 170),
    City("Istanbul", 41.01, 28.98, 80),
    City("Krakow", 50.06, 19.94, 70),
    City("Lisbon", 38.72, -9.14, 115),
    City("Paris", 48.86, 2.35, 160),
    City("Prague", 50.08, 14.44, 90),
    City("Rome", 41.90, 12.50, 130),
    City("Stockholm", 59.33, 18.07, 150),
    City("Vienna", 48.21, 16.37, 120),
)
BY_NAME = {city.name.casefold(): city for city in CITIES}
NAMES = ", ".join(city.name for city in CITIES)


def distance_km(start: City, end: City) -> float:
    """Along the great circle."""
    lat1, lat2 = math.radians(start.latitude), math.radians(end.latitude)
    turn = math.radians(end.longitude - start.longitude)
    half = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin(turn / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(half))
