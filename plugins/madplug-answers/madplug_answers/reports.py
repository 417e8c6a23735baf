"""What a reply reports of other agents' answers, and what it says is not the answer.

"Agent 2 says the answer is (B)", "(others chose B)", "according to Agent 1, ...", "the answer is not (B)": none of
these is the author's answer. Reports that the author endorses ("I agree with Agent 2 that the answer is (B)") are.
"""

from __future__ import annotations

import re

from madplug_prompting.patterns import regex

_LABEL = r"(?:[ ]#?(?:[0-9]{1,3}|[A-Z])(?!\w|['’](?!s)))"
_AND_MORE = r"(?:(?:,[ ]|,?[ ](?:and|&)[ ])(?:[Aa]gent[ ])?#?[0-9]{1,3}(?!\w)){0,6}"
_ROLE = (r"(?:[Aa]gent|[Aa]ssistant|[Pp]articipant|[Pp]anell?ist|[Dd]ebater|[Pp]eer|[Oo]pponent|[Ee]xpert|[Ss]peaker"
         r"|[Cc]olleague|[Rr]eviewer|[Mm]odel)s?")
_AGENT = rf"(?:[Aa]gents?(?:[ ]solutions?)?{_LABEL}?{_AND_MORE}|{_ROLE}{_LABEL}|(?:[Oo]ther|[Aa]nother)[ ]{_ROLE})"
_SAYS = (r"(?:says?|said|saying|claim(?:s|ed|ing)?|argu(?:es?|ed|ing)|thinks?|thought|believ(?:es?|ed|ing)"
         r"|stat(?:es?|ed|ing)|writes?|wrote|insist(?:s|ed)?|propos(?:es?|ed|ing)|suggest(?:s|ed|ing)?"
         r"|maintain(?:s|ed)?|assert(?:s|ed)?|ch(?:ose|oose|ooses|oosing)|pick(?:s|ed)?|select(?:s|ed)?|answer(?:s|ed)"
         r"|vot(?:es?|ed|ing)|prefer(?:s|red)?|conclud(?:es?|ed)|respond(?:s|ed)?|repl(?:y|ies|ied)|favou?r(?:s|ed)?"
         r"|opt(?:s|ed)?[ ]for|disagree[sd]?)")
_REACHES = (r"(?:(?:has|have|had)(?=[ ](?:the|an?|chosen|picked|said|\(?[A-Z]\)|[0-9$\\]))"
            r"|gets?|gives?|got|gave|finds?|found|obtain(?:s|ed)?|reach(?:es|ed)?|arriv(?:es?|ed)[ ]at|comes?|came"
            r"|comput(?:es?|ed)|calculat(?:es?|ed)|goes|went|settle[sd]?|provid(?:es?|ed)|offer(?:s|ed)?"
            r"|sticks?|stuck|stay(?:s|ed)?)")
_NOUN = (r"(?:answers?|solutions?|choices?|options?|responses?|repl(?:y|ies)|votes?|views?|opinions?|positions?"
         r"|conclusions?)")
_IS = r"(?=[ ]?(?:[:=(]|(?:is|was|were|are|of|being)(?!\w)))"
_ANSWER = (rf"(?:[ ]that)?[ ](?:it[ ]is|it's|(?:the[ ])?(?:\w{{1,12}}[ ])?{_NOUN}(?![\w'])"
           r"|(?:[Oo]ption[ ])?\(?[A-Z]\)?(?![\w']))")
_PERSON = (r"(?:[Tt]hey|[Ss]?[Hh]e|(?:[Ss]ome|[Ee]very|[Aa]ny)(?:one|body)(?:[ ]else)?|[Ss]ome|[Mm]ost"
           r"|[Tt]he[ ](?:majority|rest))(?:[ ](?:all|also|still|both|then|now)){0,2}")
_NAME = (r"(?!(?:I|We|You|This|That|It|Which|So|As|And|But|Having|Evidence|Analysis|Logic|Theory|Research)[ ])"
         r"[A-Z][a-z]{1,20}(?:[ ](?:also|still|then|now))?"
         r"[ ](?:says|said|claim(?:s|ed)|argue[sd]|thinks|believe[sd]|insist(?:s|ed)|writes|wrote|maintain(?:s|ed)"
         r"|assert(?:s|ed)|replied|answered|proposed|voted)")
_REPORT = regex(
    r"(?<!\w)(?:"
    # Agent 2 says; the other participants chose; two agents got
    rf"{_AGENT}(?:[ ](?!(?:I|and|we)[ ])[\w,]{{1,15}}){{0,4}}?[ ](?:{_SAYS}|{_REACHES})(?![\w']|,[ ])"
    # others claim; he thinks that the answer; Ada says it is
    rf"|[Oo]thers(?:[ ]\w{{1,12}}){{0,2}}?[ ]{_SAYS}(?![\w']|,[ ])|{_PERSON}[ ]{_SAYS}{_ANSWER}|{_NAME}{_ANSWER}"
    # Agent 2's answer is; their answer: ; the answer of Agent 2
    rf"|(?:{_AGENT}['’]s?|[Tt]heir|[Yy]our|[Oo]thers['’])[ ](?:[\w-]{{1,15}}[ ]){{0,2}}?{_NOUN}{_IS}"
    rf"|(?:answer|solution|choice)[ ](?:of|from|by|given[ ]by)[ ](?:the[ ])?{_AGENT}{_IS}"
    # according to Agent 2; in Agent 2's view
    rf"|[Aa]ccording[ ]to[ ](?:the[ ]|my[ ])?(?:{_AGENT}|{_ROLE}|others|them|him|her)(?![\w'])"
    rf"|[Ii]n[ ](?:{_AGENT}['’]s?|their|his|her)[ ](?:view|opinion|eyes)s?(?!\w))"
    # a line of a transcript
    rf"|^[^\w\n]{{0,6}}{_AGENT}[ ]{{0,2}}(?:\([^()\n]{{0,40}}\)[ ]?)?:", re.M)
# Each pattern is tried only where the text has one of these: looking for them takes a fraction of the time.
_OF_ROLES = ("gent", "ssistant", "articipant", "anelist", "anellist", "ebater", "eer", "pponent", "xpert", "peaker",
             "olleague", "eviewer", "odel")
_OF_REPORTS = (
    *_OF_ROLES, "thers", "heir ", "our ", "ccording to", " his ", " her ", " say", " said", " claim", " argu", " think",
    " thought", " believ", " states", " stated", " stating", " write", " wrote", " insist", " propos", " suggest",
    " maintain", " assert", " choos", " chose", " pick", " select", " answers", " answered", " vot", " prefer",
    " conclud", " respond", " repl", " favo", " opt for", " opts for", " opted for", " disagree")
_OF_NEGATIONS = ("ot ", "ever ", "either ", "or ", "annot be", "ather than", "nstead of", "n't", "n’t")
_END = regex(
    r"[.!?;](?=\s|\Z|[\"'”’)])|\n|,?[ ](?:but|however|whereas|while|so|therefore|thus|hence|yet|although|though)(?!\w)"
    r"|(?<=[ ,])(?:I|[Mm]y)(?![\w'])|,[ ](?:think|believe|conclude|maintain)(?!\w)"
    r"|(?<=[ ])(?:wrong|incorrect|mistaken|flawed|false)(?!\w)")
_SENTENCE_END = regex(r"[.!?](?=\s|\Z)|\n")
_NEXT_LINE = regex(r"\s*\n[^\n]*")
_ENDORSED = regex(
    r"(?i)(?<!\w)(?:(?<!not )(?<!n't )(?<!n’t )(?:agree|concur|accept|support|confirm|converge)(?:s|d|ed)?"
    r"|(?:has|have|had|got|gave|found|identified|reached|provided|arrived at|came to) the (?:correct|right)"
    r"|(?<!not )(?<!n't )(?<!n’t )(?:correctly|rightly|convincingly"
    r"|(?:correct|right)(?![ ](?:answer|option|choice|solution|response|letter|one)))"
    r"|consensus|unanimous(?:ly)?|same[ ](?:answer|result|conclusion|solution)"
    r"|(?<!not )(?:valid|accurate))(?!\w)")
_LONGEST = 400

_NEGATION = (r"(?<![\w'’])(?:[Nn]ot|[Nn]ever|[Nn]either|[Nn]or|[Cc]annot[ ]be|[Rr]ather[ ]than|[Ii]nstead[ ]of)"
             r"|n['’]t(?:[ ]be)?")
_TOKEN = (r"(?:[(\[\"'${\\]{0,3}(?:[A-Z]{1,2}(?![\w'’])|(?<=[(\[])[a-z](?=[)\]])"
          r"|-?[0-9][0-9,.]{0,40}(?<![,.])(?!\w))[)\]\"'$}]{0,3})")
_NEGATED = regex(
    rf"(?P<not>{_NEGATION})(?P<what>[ ]{{1,2}}(?:the[ ])?(?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer|[Ll]etter)[ ])?{_TOKEN}"
    rf"(?:[ ]?(?:,|or|nor|and)[ ]{_TOKEN}){{0,6}}(?P<but>,?[ ]but(?:[ ]rather)?(?![\w']))?)")
_REFUTED = regex(
    r"(?:\(?(?<!\w)[A-Z]\)(?:,[ ]|[ ](?:and|or)[ ]|,[ ](?:and|or)[ ])){0,9}\(?(?<!\w)[A-Z]\)[ ]"
    r"(?=(?:is|are|was|were|looks?|seems?|would[ ]be|can(?:not|['’]t)[ ]be)[ ]"
    r"(?:(?:also|clearly|therefore|both|all)[ ]){0,2}"
    r"(?:wrong|incorrect|false|impossible|implausible|eliminated|excluded|ruled[ ]out"
    r"|not[ ](?:the[ ]|a[ ])?(?:right|correct|answer|best|true|valid|possible|it(?!\w))))")
_NUMBERED = regex(r"(?<!\w)(?:[Aa]gent|[Aa]ssistant|[Pp]articipant|[Pp]anell?ist|[Dd]ebater|[Ee]xpert|[Ss]peaker)"
                  rf"s?(?:[ ]solutions?)?{_LABEL}{_AND_MORE}")
_VISIBLE = regex(r"[^\s*`]")


def blank(text: str) -> str:
    """Spaces for everything but spaces, line ends and Markdown emphasis."""
    return _VISIBLE.sub(" ", text)


def blank_reports(text: str) -> str:
    """The text with others' answers, and what is said not to be the answer, blanked; positions stay."""
    text = _blank_clauses(text)
    if _has(text, _OF_ROLES):
        text = _NUMBERED.sub(lambda match: re.sub("[0-9]", " ", match[0]), text)
    if ") " in text:
        text = _REFUTED.sub(lambda match: blank(match[0]), text)
    return _NEGATED.sub(_without_negated, text) if _has(text, _OF_NEGATIONS) else text


def _has(text: str, signs: tuple[str, ...]) -> bool:
    return any(sign in text for sign in signs)


def _without_negated(match: re.Match[str]) -> str:
    """`not B but A` leaves A; `not B` leaves the negation, so that what follows is not taken for the answer."""
    return blank(match[0]) if match["but"] else match["not"] + blank(match["what"])


def _blank_clauses(text: str) -> str:
    if not _has(text, _OF_REPORTS):
        return text
    parts, at = [], 0
    first_line = len(text) - len(text.lstrip())
    while report := _REPORT.search(text, at):
        own_name = report[0].endswith(":") and report.start() <= first_line
        if own_name or _is_endorsed(text, report):
            parts.append(text[at:report.end()])
            at = report.end()
            continue
        end = _end_of_clause(text, report)
        parts += [text[at:report.start()], blank(text[report.start():end])]
        at = end
    return "".join([*parts, text[at:]])


def _is_endorsed(text: str, report: re.Match[str]) -> bool:
    """Whether the author shares what the sentence reports."""
    start = max(0, report.start() - _LONGEST)
    before = [end.end() for end in _SENTENCE_END.finditer(text, start, report.start())]
    start = before[-1] if before else start
    end = _SENTENCE_END.search(text, report.end(), report.end() + _LONGEST)
    return _ENDORSED.search(text, start, end.start() if end else report.end() + _LONGEST) is not None


def _end_of_clause(text: str, report: re.Match[str]) -> int:
    """Where a report ends: at its closing bracket, or where the clause does."""
    limit = min(len(text), report.end() + _LONGEST)
    if text[max(0, report.start() - 3):report.start()].rstrip(" ").endswith("("):
        return _closing_bracket(text, report.end(), limit)
    end = _END.search(text, report.end(), limit)
    if end is None:
        return limit
    if end[0] == "\n" and text[report.start():end.start()].rstrip().endswith(":"):
        line = _NEXT_LINE.match(text, end.start())  # what is reported stands in the next line
        return line.end() if line else end.start()
    return end.start()


def _closing_bracket(text: str, start: int, limit: int) -> int:
    depth = 1
    for bracket in re.finditer(r"[()]", text[start:limit]):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return start + bracket.start()
    return limit
