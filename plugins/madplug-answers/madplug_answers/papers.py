"""How other projects extract an answer from a reply, for comparing results with theirs.

They reproduce the original code, bugs included: "UNKNOWN" is the letter N in MALLM's code, and Du et al.'s
number has no sign. The rules of
MALLM, SoM, MADC and EoT are those of their code; those of DyLAN, of MMLU-Pro and of the debates of small models
(`slm`) were found from what these projects recorded beside each reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from madplug_answers.marks import boxed

Rule = Callable[[str], str | None]
_INSIDE = r"(?:[^()\n]|\((?:[^()\n]|\([^()\n]{0,200}\)){0,200}\)){1,300}"
"""What is in brackets, with at most two levels of brackets in it."""
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_ANSWER = r"[aA]nswer:\s*([A-J])"


def _last(found: Sequence[str]) -> str | None:
    return found[-1] if found else None


def mallm_choice(text: str) -> str | None:
    """The letter after the first "Final Solution:", else the first capital before a bracket, a colon or the end."""
    found = re.search(r"(?i:Final Solution\s*:\s*([A-Z]))", text) or re.search(r"([A-Z])(?:[)\]:]|$)", text)
    return found[1] if found else None


def som_choice(text: str) -> str | None:
    """The last character in round brackets, else the last number."""
    found = _last(re.findall(r"\((\w)\)", text))
    return found.upper() if found else _last(re.findall(r"\d+\.?\d*", text))


def som_number(text: str) -> str | None:
    """The last braces with nothing but digits, points, commas and dollars, else the last number; never a sign."""
    for inside in reversed(re.findall(r"\{([0-9.,$]*)\}", text)):
        if digits := re.sub(r"[^0-9.]", "", inside):
            return digits
    return _last(re.findall(r"\d+\.?\d*", text))


def madc_choice(text: str) -> str | None:
    """The last capital in round brackets, else the last whole number in them."""
    return _last(re.findall(r"\(([A-Z])\)", text)) or _last(re.findall(r"\((-?\d+)\)", text))


def dylan_choice(text: str) -> str | None:
    """The last letter A to D in round brackets, else the last before a closing one."""
    found = _last(re.findall(r"\(([A-Da-d])\)", text)) or _last(re.findall(r"([A-Da-d])\)", text))
    return found and found.upper()


def dylan_math(text: str) -> str | None:
    """The last LaTeX box, else all that follows the last "he answer is ", else the last number."""
    inside = boxed(text)
    if inside is not None:
        return inside
    _, marker, after = text.rpartition("he answer is ")
    return after.strip().rstrip(".") or None if marker else _last(re.findall(r"-?\d*\.?\d+", text))


def madc_math(text: str) -> str | None:
    """The last LaTeX box with at most two levels of braces in it, without a closing point and the dollars around it.

    Without a box, what is in brackets after the last "answer is": the form that the paper asks for.
    """
    found = _last(re.findall(r"\\boxed\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}", text))
    if found:
        return found.strip().rstrip(".").strip("$ ") or None
    stated = _last(re.findall(rf"(?i)answer is ?:? {{0,3}}\$?\(({_INSIDE})\)", text))
    if stated is None or not stated.strip("$ "):
        return None
    inside: str = stated.strip("$ ")
    return inside if "," not in inside or _THOUSANDS.fullmatch(inside) else f"({inside})"  # pairs keep their brackets


def slm_choice(text: str) -> str | None:
    """The last letter A to D in round brackets, else the last such word near the end, an article included."""
    found = _last(re.findall(r"\(([A-Da-d])\)", text)) or _last(re.findall(r"\b([A-Da-d])\b", text[-200:]))
    return found and found.upper()


def mmlu_pro_choice(text: str) -> str | None:
    """The letter A to J after the first "answer is", else after the last "answer:" of the first line that has one."""
    if found := re.search(r"answer is \(?([A-J])", text):
        return found[1]
    first = re.search(_ANSWER, text)
    return first and (_last(re.findall(_ANSWER, text[first.start():].partition("\n")[0])) or first[1])


def eot_number(text: str) -> str | None:
    """The first number after the last "the answer is", else the last number of the text."""
    return _marked(text.replace(",", ""), r"-?\d+\.?\d*")


def eot_choice(text: str) -> str | None:
    """The same for the letters A to E."""
    return _marked(text, r"A|B|C|D|E")


def eot_yesno(text: str) -> str | None:
    """The same for the words yes and no."""
    return _marked(text.lower(), r"\b(?:yes|no)\b")


def _marked(text: str, wanted: str) -> str | None:
    _, marker, after = text.rpartition("the answer is")
    found = re.findall(wanted, after)
    picked = (found[0] if marker else found[-1]) if found else None
    return picked.rstrip(".") if picked else None


CHOICE: Mapping[str, Rule] = {"mallm": mallm_choice, "som": som_choice, "madc": madc_choice, "eot": eot_choice,
                              "dylan": dylan_choice, "slm": slm_choice, "mmlu_pro": mmlu_pro_choice}
NUMBER: Mapping[str, Rule] = {"som": som_number, "eot": eot_number}
MATH: Mapping[str, Rule] = {"dylan": dylan_math, "madc": madc_math}
YESNO: Mapping[str, Rule] = {"eot": eot_yesno}
