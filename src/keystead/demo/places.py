"""Where the people of the town live: cities, their zones, names that are at home there, numbers that nobody has.

Phone numbers come from the ranges that each country keeps for films and novels; a country without one borrows from
North America. Nothing here can reach anybody.
"""

from dataclasses import dataclass
from typing import Final

_AREAS: Final = (201, 206, 212, 213, 303, 305, 312, 404, 415, 503, 512, 602, 617, 702, 713, 773, 808, 816, 907, 917)


@dataclass(frozen=True, slots=True)
class Place:
    """A city. ``weight``: how many of the people live there, compared with the others."""

    city: str
    zone: str
    weight: int
    given: tuple[str, ...]
    family: tuple[str, ...]
    numbers: str = "us"


def phone_number(numbers: str, position: int) -> str:
    """The nth number of a fictional range; after the last of a small range they go on in the North American one."""
    if numbers == "uk" and position < 1000:
        return f"+447700900{position:03d}"
    if numbers == "fr" and position < 10_000:
        return f"+3363998{position:04d}"
    if numbers == "de" and position < 100:
        return f"+49171392{position:04d}"
    if numbers == "se" and position < 95:
        return f"+4670174{605 + position:04d}"
    return f"+1{_AREAS[position // 100 % len(_AREAS)]}55501{position % 100:02d}"


PLACES: Final = (
    Place("Osaka", "Asia/Tokyo", 7, ("Mika", "Haruto", "Yui", "Sora", "Aoi", "Ren"),
          ("Tanaka", "Sato", "Mori", "Kato", "Ito")),
    Place("Seoul", "Asia/Seoul", 5, ("Jisoo", "Minjun", "Hana", "Doyun"), ("Kim", "Lee", "Park", "Choi")),
    Place("Mumbai", "Asia/Kolkata", 7, ("Anaya", "Rohan", "Priya", "Arjun", "Kavya"),
          ("Patel", "Shah", "Rao", "Desai", "Iyer")),
    Place("Kathmandu", "Asia/Kathmandu", 2, ("Asmita", "Bikash", "Sita"), ("Gurung", "Shrestha", "Thapa")),
    Place("Dubai", "Asia/Dubai", 3, ("Layla", "Omar", "Noura"), ("Haddad", "Saleh", "Nasser")),
    Place("Nairobi", "Africa/Nairobi", 4, ("Wanjiru", "Otieno", "Achieng", "Kamau"), ("Mwangi", "Odhiambo", "Njoroge")),
    Place("Lagos", "Africa/Lagos", 5, ("Chioma", "Emeka", "Amaka", "Tunde"), ("Okafor", "Adeyemi", "Balogun")),
    Place("Istanbul", "Europe/Istanbul", 4, ("Elif", "Emre", "Zeynep"), ("Yilmaz", "Demir", "Kaya")),
    Place("Berlin", "Europe/Berlin", 6, ("Lena", "Jonas", "Greta", "Emil", "Frieda"),
          ("Vogel", "Brandt", "Keller", "Lorenz"), "de"),
    Place("Stockholm", "Europe/Stockholm", 3, ("Astrid", "Nils", "Saga"), ("Lind", "Berg", "Holm"), "se"),
    Place("Paris", "Europe/Paris", 6, ("Camille", "Louis", "Manon", "Jules"), ("Moreau", "Girard", "Lambert"), "fr"),
    Place("London", "Europe/London", 7, ("Isla", "Oliver", "Maya", "Harry", "Zadie"),
          ("Clarke", "Hughes", "Okoro", "Walsh"), "uk"),
    Place("Lisbon", "Europe/Lisbon", 3, ("Beatriz", "Tiago", "Marta"), ("Sousa", "Matos", "Neves")),
    Place("Sao Paulo", "America/Sao_Paulo", 6, ("Larissa", "Caio", "Bruna", "Davi"), ("Almeida", "Ramos", "Teixeira")),
    Place("Bogota", "America/Bogota", 4, ("Valentina", "Mateo", "Salome"), ("Rojas", "Cardenas", "Suarez")),
    Place("New York", "America/New_York", 8, ("Ava", "Marcus", "Ruth", "Dante", "Nina"),
          ("Brooks", "Rivera", "Cohen", "Wright")),
    Place("Chicago", "America/Chicago", 5, ("Grace", "Leo", "Tessa"), ("Novak", "Hayes", "Bell")),
    Place("Denver", "America/Denver", 3, ("June", "Wyatt", "Hazel"), ("Stone", "Reyes", "Fox")),
    Place("Los Angeles", "America/Los_Angeles", 7, ("Luna", "Diego", "Ivy", "Kai"), ("Flores", "Nguyen", "Park")),
    Place("Honolulu", "Pacific/Honolulu", 2, ("Leilani", "Keanu", "Malia"), ("Kahale", "Akana")),
    Place("Sydney", "Australia/Sydney", 5, ("Matilda", "Cooper", "Ruby"), ("Ward", "Bennett", "Tran")),
    Place("Auckland", "Pacific/Auckland", 3, ("Aroha", "Nikau", "Mia"), ("Ngata", "Reid", "Walker")),
)
