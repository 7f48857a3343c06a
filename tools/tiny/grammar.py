"""The writer's small template language: how one line of text becomes many different sentences.

A template is plain English with two marks.
  [a|b|c]      one of these, chosen at random; they nest, and an empty choice is fine
  {key}        a remembered word (the hero's name, the lost object) or, when nothing is remembered under
               that name, a random entry of the word list of that name
  {key=list}   the same, but the choice is remembered, so that a thing can come back later in the text
  {key.s}      the plural of it
Coherence comes from the memory: a story sets up its people and things once, and every later sentence
speaks of the same ones. Articles (a/an) and capitals are put right at the end, over the whole text.
"""
import re

from words import LISTS

IRREGULAR = {
    "mouse": "mice", "goose": "geese", "foot": "feet", "tooth": "teeth", "child": "children", "man": "men",
    "woman": "women", "sheep": "sheep", "fish": "fish", "deer": "deer", "wolf": "wolves", "leaf": "leaves",
    "loaf": "loaves", "knife": "knives", "shelf": "shelves", "calf": "calves", "ox": "oxen", "trout": "trout",
    "salmon": "salmon", "scarf": "scarves", "half": "halves", "potato": "potatoes", "tomato": "tomatoes",
    "thief": "thieves", "bison": "bison", "grown-up": "grown-ups", "squid": "squid",
}


def plural(noun):
    """The plural of a noun phrase; only its last word changes."""
    head, _, last = noun.rpartition(" ")
    if last in IRREGULAR:
        word = IRREGULAR[last]
    elif last.endswith("man"):
        word = last[:-3] + "men"
    elif re.search(r"(s|x|z|ch|sh)$", last):
        word = last + "es"
    elif re.search(r"[^aeiou]y$", last):
        word = last[:-1] + "ies"
    else:
        word = last + "s"
    return f"{head} {word}" if head else word


def lines(text):
    """The non-empty lines of a block, as a tuple: templates are written one to a line."""
    return tuple(s for s in (line.strip() for line in text.split("\n")) if s)


def _parse(text, at, stop):
    """Parse until one of the characters in `stop`; a node is a str, a tuple of choices or a slot."""
    nodes, start = [], at
    while at < len(text) and text[at] not in stop:
        c = text[at]
        if c not in "[{":
            at += 1
            continue
        if at > start:
            nodes.append(text[start:at])
        if c == "{":
            end = text.index("}", at)
            nodes.append(_slot(text[at + 1:end]))
            at = end + 1
        else:
            choices, at = [], at + 1
            while True:
                choice, at = _parse(text, at, "|]")
                choices.append(choice)
                at += 1
                if text[at - 1] == "]":
                    break
            nodes.append(tuple(choices))
        start = at
    if at > start:
        nodes.append(text[start:at])
    return nodes, at


class _slot:
    """A {key}, {key=list} or {key.s} inside a template."""
    __slots__ = ("key", "source", "many")

    def __init__(self, text):
        text, self.many = (text[:-2], True) if text.endswith(".s") else (text, False)
        self.key, _, self.source = text.partition("=")


_parsed = {}


def parse(text):
    """The parsed form of a template; each is parsed once per process."""
    nodes = _parsed.get(text)
    if nodes is None:
        nodes, at = _parse(text, 0, "")
        if at != len(text):
            raise ValueError(f"template does not close: {text!r}")
        _parsed[text] = nodes
    return nodes


class Writer:
    """One text in the making: a random source and what has been remembered so far."""

    def __init__(self, rng, **memory):
        self.rng = rng
        self.memory = memory

    def pick(self, items):
        return items[int(self.rng.random() * len(items))]

    def chance(self, p):
        return self.rng.random() < p

    def several(self, items, low, high):
        """Between low and high different items, in their own order (what comes first stays first)."""
        n = min(len(items), self.rng.randint(low, high))
        return [items[i] for i in sorted(self.rng.sample(range(len(items)), n))]

    def _expand(self, nodes, out):
        for node in nodes:
            kind = type(node)
            if kind is str:
                out.append(node)
            elif kind is tuple:
                self._expand(node[int(self.rng.random() * len(node))], out)
            else:
                out.append(self._fill(node))

    def _fill(self, slot):
        value = self.memory.get(slot.key)
        if value is None:
            value = self.pick(LISTS[slot.source or slot.key])
        if "[" in value or "{" in value:
            value = self.raw(value)
        if slot.source:
            self.memory[slot.key] = value
        return plural(value) if slot.many else value

    def raw(self, template):
        """A template filled in, before articles and capitals are put right."""
        out = []
        self._expand(parse(template), out)
        return "".join(out)

    def one(self, templates):
        return self.raw(self.pick(templates))

    def paragraph(self, *parts):
        """Join the parts that are not empty with spaces; a part is a template or a tuple to choose from."""
        texts = (self.one(p) if isinstance(p, tuple) else self.raw(p) for p in parts if p)
        return " ".join(t for t in texts if t)


_SPACES = re.compile(r"  +")
_BEFORE = re.compile(r" +([,.!?;:])")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiAEI]|[oO](?!ne\b|nce\b)|[uU](?!ni|se|su)|hour|honest)")
_CAPITAL = re.compile(r'((?:^|[.!?] |\.\) |[.]" |[,:] "|[.!?]" "|\^)["(]?)([a-z])', re.M)
_RESUMED = re.compile(r'(," [^".!?\n]{1,60}, )(")')


def finish(text):
    """Put spaces, a/an and capitals right. ^ asks for a capital where no rule would give one."""
    text = _BEFORE.sub(r"\1", _SPACES.sub(" ", text))
    text = _ARTICLE.sub(r"\1n ", text)
    text = _RESUMED.sub(r"\1\\\2", text)  # speech that goes on after "he said," keeps its small letter
    text = _CAPITAL.sub(lambda m: m[1] + m[2].upper(), text)
    return text.replace("^", "").replace("\\", "").replace(" \n", "\n").strip()
