"""Personas that a model writes: experts, and Big-Five characters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import ModelName, Options, Persona, PersonaGenerator, Plan
from madplug_personas.markers import (
    EXPERIENCE,
    GENDERS,
    LEVELS,
    MARKERS,
    all_traits,
    describe,
    traits_of,
    with_free_traits,
)
from madplug_personas.names import participant, taken, unique
from madplug_prompting import prompts
from madplug_prompting.layout import IN_TASK
from madplug_prompting.replies import read_json

if TYPE_CHECKING:
    from madplug import Debate

LONGEST_ROLE = 100
LONGEST_DESCRIPTION = 4_000


class GeneratedOptions(Options):
    """What the generators that ask a model have in common."""

    model: ModelName | None = Field(default=None, description="the model to ask; default: the first of the agents'")
    attempts: int = Field(default=5, ge=1, le=50, description=(
        "tries for one persona; after that it is a neutral participant, and the debate's notes say so"))
    task: str = Field(default=(
        "Task:\n{question}\n\n{participants}\n\n{again}Reply with the JSON object only."), description=(
        f"prompt: the task. {IN_TASK}; {{participants}}: who takes part so far; {{again}}: in a second try after a "
        "participant was made twice, `double` or `same_traits`"))
    listed: str = Field(default="Participants so far:\n{participants}", description=(
        "prompt: {participants} of `task`. {participants}: the list"))
    listed_none: str = Field(default="Participants so far: none.", description=(
        "prompt: {participants} of `task` for the first participant"))
    double: str = Field(default='There already is a "{name}": choose someone else. ', description=(
        "prompt: {again} of `task`, where the name is taken. {name}"))
    system: str = Field(description=f"prompt: the system message. {IN_TASK}")


class Generated(PersonaGenerator):
    """Asks a model for one persona after the other; each sees those made before it.

    A reply that cannot be read counts as a try, whatever is wrong with it. A name that is already taken is asked
    for once more, then it gets a number.
    """

    source = "Becker et al. 2025 (MALLM), section 3.1 and appendix G.2; Kaesberg et al. 2025, section 3.1"
    Options = GeneratedOptions
    properties: Mapping[str, Mapping[str, Any]]
    """The fields of a reply, as JSON schema."""

    @abstractmethod
    def read(self, fields: Mapping[str, Any]) -> Persona | None:
        """The persona in a reply's fields, or None."""

    def calls(self, plan: Plan) -> int:
        """As many as there are tries; the host counts them for each persona."""
        return int(self.options.attempts)

    async def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
        """The next persona, or a neutral participant when no try gave one."""
        double: Persona | None = None
        for _ in range(self.options.attempts):
            persona = await self.ask(debate, roster, double)
            if persona is None:
                continue
            if not self.repeats(persona, roster) and (double is not None or not taken(persona.name, roster)):
                return self.numbered(debate, persona, roster)
            double = persona
        if double is not None:
            return self.numbered(debate, self.changed(debate, double, roster), roster)
        note(debate, "persona_fallback", len(roster))
        debate.notes["personas"]["unparsed"] = True
        return participant(roster)

    def repeats(self, persona: Persona, roster: Sequence[Persona]) -> bool:
        """Whether the roster has the same character, whatever its name."""
        return False

    def changed(self, debate: Debate, persona: Persona, roster: Sequence[Persona]) -> Persona:
        """A character that the roster does not have, where every try gave one that it has."""
        return persona

    def again(self, double: Persona, roster: Sequence[Persona]) -> str:
        """What a second try is told."""
        return prompts.fill(self.options.double, name=double.name)

    def numbered(self, debate: Debate, persona: Persona, roster: Sequence[Persona]) -> Persona:
        """The persona under a unique name."""
        if not taken(persona.name, roster):
            return persona
        note(debate, "renamed", len(roster))
        return replace(persona, name=unique(persona.name, roster))

    async def ask(self, debate: Debate, roster: Sequence[Persona], double: Persona | None) -> Persona | None:
        """One try."""
        options, sample = self.options, debate.sample
        people = prompts.fill(options.listed, participants=listing(roster)) if roster else options.listed_none
        task = prompts.fill_task(options.task, sample, beside=options.system, participants=people,
                                 again=self.again(double, roster) if double else "")
        chat = prompts.merged([{"role": "system", "content": prompts.fill_task(options.system, sample)},
                               prompts.user(sample, task)])
        form = {"json_schema": {"type": "object", "properties": self.properties,
                                "required": list(self.properties), "additionalProperties": False}}
        reply = await debate.ask(chat, model=self.options.model, purpose="persona", form=form)
        return self.read(read_json(reply.text) or {})


class Expert(Generated):
    """A model invents an expert for the task who complements those already there."""

    name = "expert"
    properties = {"role": {"type": "string"}, "description": {"type": "string"}}

    class Options(GeneratedOptions):
        """The system prompt."""

        system: str = Field(default=(
            "You choose the participants of a discussion. Read the task and name one expert who helps to "
            "solve it and brings what the participants so far do not. Each participant is different.\n"
            'Reply with one JSON object: {"role": a short title, "description": one or two sentences, to the expert, '
            "about what they know and how they think}.\n\n"
            "Example 1\nTask: Explain why the sky is blue.\nParticipants so far: none.\n"
            '{"role": "Physicist", "description": "You know optics well and explain things from first principles."}\n\n'
            "Example 2\nTask: Should a small town build a tram line?\nParticipants so far:\n- Traffic "
            "Planner: You know how people move through towns and rely on counts.\n"
            '{"role": "City Treasurer", "description": "You look after the money of the town and ask what each choice '
            'costs in the long run."}\n\n'
            "Example 3\nTask: Summarise a report on a new flu vaccine.\nParticipants so far:\n- Virologist: "
            "You study how viruses change.\n- Medical Statistician: You check whether numbers support a "
            "claim.\n"
            '{"role": "Science Journalist", "description": "You write for the public and insist on plain, exact '
            'words."}'), description="prompt: the job, the form of the reply, and three examples")

    def read(self, fields: Mapping[str, Any]) -> Persona | None:
        """Both fields, as text of a sensible length."""
        role, description = short(fields.get("role")), prompts.as_text(fields.get("description"))
        if not role or not 0 < len(description) <= LONGEST_DESCRIPTION:
            return None
        return Persona(role, description)


class Ipip(Generated):
    """A model picks a role and the Big-Five traits, experience and gender of who plays it.

    The description is made of the picked traits without a model: per trait one sentence with every adjective of its
    pole, each "extremely", then one sentence with experience and gender.

    No two have the same traits: the model is asked for others, and after the last try as few traits as possible are
    changed, which the debate's notes say.

    Differs from the paper: the adjectives are compiled from Goldberg's public-domain markers, as many per trait (9, 11,
    10, 10, 12 pairs) as in the authors' code. A trait's name may be misspelt.
    """

    name = "ipip"
    properties = {
        "role": {"type": "string"}, **{trait: {"type": "string", "enum": list(LEVELS)} for trait in MARKERS},
        "experience": {"type": "string", "enum": list(EXPERIENCE)},
        "gender": {"type": "string", "enum": list(GENDERS)}}

    class Options(GeneratedOptions):
        """The system prompt."""

        system: str = Field(default=(
            "You choose the participants of a discussion. Read the task and choose one participant whose "
            "character helps to solve it and differs from the participants so far.\n"
            'Reply with one JSON object with these fields: "role" (a short title); "extraversion", "agreeableness", '
            '"conscientiousness", "neuroticism", "openness" (each "high" or "low"); "experience" ("Expert", "Neutral" '
            'or "Non-Expert"); "gender" ("male", "female" or "non-binary").\n\n'
            "Example 1\nTask: Explain why the sky is blue.\nParticipants so far: none.\n"
            '{"role": "Physics Teacher", "extraversion": "high", "agreeableness": "high", "conscientiousness": "high", '
            '"neuroticism": "low", "openness": "low", "experience": "Expert", "gender": "female"}\n\n'
            "Example 2\nTask: Should a small town build a tram line?\nParticipants so far:\n- "
            "Mayor: You are extremely talkative, extremely warm and extremely calm. You are an expert and a woman.\n"
            '{"role": "Night Porter", "extraversion": "low", "agreeableness": "low", "conscientiousness": "high", '
            '"neuroticism": "high", "openness": "low", "experience": "Non-Expert", "gender": "male"}'),
            description="prompt: the job and the form of the reply, with two examples")
        same_traits: str = Field(default="There already is a participant with these traits: choose others. ",
                                 description="prompt: {again} of `task`, where the traits are taken")

    def repeats(self, persona: Persona, roster: Sequence[Persona]) -> bool:
        """Whether the roster has a character with the same traits, and others are left."""
        used = {traits_of(p.description) for p in roster}
        return traits_of(persona.description) in used and not all_traits() <= used

    def again(self, double: Persona, roster: Sequence[Persona]) -> str:
        """That the traits are taken, or the name."""
        return str(self.options.same_traits) if self.repeats(double, roster) else super().again(double, roster)

    def changed(self, debate: Debate, persona: Persona, roster: Sequence[Persona]) -> Persona:
        """The closest character that is free."""
        if not self.repeats(persona, roster):
            return persona
        note(debate, "changed_traits", len(roster))
        return replace(persona, description=with_free_traits(persona.description, [p.description for p in roster]))

    def read(self, fields: Mapping[str, Any]) -> Persona | None:
        """Every field must be there, with one of its values."""
        found = {name: fields[key] for name in self.properties if (key := closest(name, list(fields)))}
        role = short(found.get("role"))
        picked = {name: choose(found.get(name), schema["enum"])
                  for name, schema in self.properties.items() if name != "role"}
        if not role or None in picked.values():
            return None
        values = {name: str(value) for name, value in picked.items()}
        return Persona(role, describe(values, values["experience"], values["gender"]))


def listing(roster: Sequence[Persona]) -> str:
    """Who takes part so far, a line each."""
    return "\n".join(f"- {p.name}: {p.description}" if p.description else f"- {p.name}" for p in roster)


def short(value: object) -> str:
    """A role on one line; empty when it is too long to be one."""
    role = " ".join(prompts.as_text(value).split()) if isinstance(value, str) else ""
    return role if len(role) <= LONGEST_ROLE else ""


def closest(name: str, keys: Sequence[object]) -> str | None:
    """The key that is this name, or nearly."""
    known = {str(key).strip().lower()[:40]: str(key) for key in keys[:50]}
    found = get_close_matches(name, known, n=1, cutoff=0.8)
    return known[found[0]] if found else None


def choose(value: object, allowed: Sequence[str]) -> str | None:
    """The allowed value that this is, whatever its case and hyphens."""
    plain = {one.lower().replace("-", ""): one for one in allowed}
    said = value.lower() if isinstance(value, str) and len(value) < 40 else ""
    return plain.get("".join(c for c in said if c.isalpha()))


def note(debate: Debate, what: str, position: int) -> None:
    """Note what happened to the persona at this position."""
    debate.notes.setdefault("personas", {}).setdefault(what, []).append(position)
