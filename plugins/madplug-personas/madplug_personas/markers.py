"""The Big Five in words: pairs of adjectives for the two poles of each trait, and the description made of them.

The adjectives are markers from Goldberg's public-domain lists and the International Personality Item Pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import product

Pairs = tuple[tuple[str, str], ...]

MARKERS: dict[str, Pairs] = {
    "extraversion": (
        ("introverted", "extraverted"), ("unenergetic", "energetic"), ("silent", "talkative"), ("timid", "bold"),
        ("inactive", "active"), ("inhibited", "spontaneous"), ("unassertive", "assertive"),
        ("unadventurous", "adventurous"), ("unsociable", "sociable")),
    "agreeableness": (
        ("cold", "warm"), ("unkind", "kind"), ("uncooperative", "cooperative"), ("selfish", "unselfish"),
        ("rude", "polite"), ("disagreeable", "agreeable"), ("distrustful", "trustful"), ("stingy", "generous"),
        ("inflexible", "flexible"), ("unfair", "fair"), ("unsympathetic", "sympathetic")),
    "conscientiousness": (
        ("disorganized", "organized"), ("irresponsible", "responsible"), ("undependable", "reliable"),
        ("negligent", "conscientious"), ("impractical", "practical"), ("careless", "thorough"),
        ("lazy", "hardworking"), ("extravagant", "thrifty"), ("rash", "cautious"), ("frivolous", "serious")),
    "neuroticism": (
        ("calm", "angry"), ("relaxed", "tense"), ("at ease", "nervous"), ("contented", "discontented"),
        ("stable", "unstable"), ("secure", "insecure"), ("unemotional", "emotional"), ("steady", "moody"),
        ("patient", "irritable"), ("guilt-free", "guilt-ridden")),
    "openness": (
        ("unintelligent", "intelligent"), ("imperceptive", "perceptive"), ("unanalytical", "analytical"),
        ("unreflective", "reflective"), ("uninquisitive", "curious"), ("unimaginative", "imaginative"),
        ("uncreative", "creative"), ("uncultured", "cultured"), ("unrefined", "refined"),
        ("unsophisticated", "sophisticated"), ("shallow", "deep"), ("unartistic", "artistic")),
}
"""(low, high) pairs by trait, in the order of a description: 9, 11, 10, 10 and 12, which is 52."""

LEVELS = ("high", "low")
EXPERIENCE = {"Expert": "an expert", "Neutral": "neither an expert nor a beginner", "Non-Expert": "not an expert"}
GENDERS = ("male", "female", "non-binary")


def describe(traits: Mapping[str, str], experience: str, gender: str) -> str:
    """One sentence a trait with every adjective of its pole, then one with experience and gender."""
    sentences = []
    for trait, pairs in MARKERS.items():
        words = [f"extremely {pair[LEVELS[::-1].index(traits[trait])]}" for pair in pairs]
        sentences.append(f"You are {', '.join(words[:-1])} and {words[-1]}.")
    return " ".join([*sentences, f"You are {gender} and, in the matter of the task, {EXPERIENCE[experience]}."])


def traits_of(description: str) -> str:
    """What a description says about the five traits: all sentences but the last."""
    return description.rpartition(" You are ")[0]


def all_traits() -> Set[str]:
    """What descriptions can say about the traits: 32 texts."""
    return _BY_TRAITS.keys()


def with_free_traits(description: str, used: Iterable[str]) -> str:
    """The description with the fewest traits changed that gives traits that no other one has.

    used: the other descriptions, which must leave traits free.
    """
    own, taken = _BY_TRAITS[traits_of(description)], {traits_of(other) for other in used}
    free = {text: levels for text, levels in _BY_TRAITS.items() if text not in taken}
    closest = min(free, key=lambda text: sum(a != b for a, b in zip(free[text], own, strict=True)))
    return closest + description.removeprefix(traits_of(description))


def _combinations() -> Iterator[tuple[str, tuple[str, ...]]]:
    for levels in product(LEVELS, repeat=len(MARKERS)):
        traits = dict(zip(MARKERS, levels, strict=True))
        yield traits_of(describe(traits, "Expert", "female")), levels


_BY_TRAITS = dict(_combinations())
