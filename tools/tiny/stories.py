"""Stories: casts people and things, then walks a plot (plots.py) stage by stage.

The one idea: everything a story will speak of is chosen before its first sentence and kept in the
writer's memory, so a name, a lost kite or the weather stays the same to the end. A story may also be
told by its hero ("I"), which the plots allow for.
"""
from grammar import lines
from plots import FILLERS, LESSONS, PLOTS
from plots_more import MORE_LESSONS, MORE_PLOTS
import words as W

WEATHER = {
    "spring": """the [sun|light] was [soft|mild], and [the first {flowers} were out|buds were on every branch|lambs played in the fields].
a [light|warm] rain had fallen, and everything [smelled of {smell}|was green and new].
a mild wind blew, and [white clouds sailed over the sky|swallows had come back from the south].
it was [fresh|cool] but [sunny|bright], the kind of day when [everything seems possible|nobody wants to stay indoors].""",
    "summer": """the sun [shone|burned] [from a blue sky|on the roofs|over the fields], and it was [hot|warm and still].
it was [so hot that the air trembled|a warm and lazy day], and bees hummed in the {flowers}.
there was not a cloud in the sky.
the [grass|corn] stood high, and crickets sang [everywhere|all day long].""",
    "autumn": """the leaves were [red and gold|falling|turning brown], and a [cool|strong] wind [blew|shook the trees].
[mist|fog] lay over the fields, and [it was cool|spider webs shone with drops|everything was quiet].
it was raining [a little|softly|in long grey lines], and the [paths|roads] were full of puddles.
the days were growing shorter, and [apples lay in the grass|smoke rose from the chimneys].""",
    "winter": """snow [was falling|lay on the roofs|covered everything], and it was [very cold|as quiet as in a church].
it was [freezing|bitterly cold], and [ice covered the pond|their breath made little clouds].
the [trees were bare|fields were white], and the sun [stood low|was pale].
a cold wind blew from the north, and [everyone stayed close to the stove|icicles hung from the roofs].""",
}

INTRO_HUMAN = lines("""
{his} name was {hero}, and {he} was {a_hero} who lived {home}.
many years ago there lived {a_hero} whose name was {hero}. {he} lived {home}.
in those days {hero}, {a_hero}, lived {home} [with two cats|with {his} {carer}|all alone].
{hero}, {a_hero}, had lived {home} for as long as anyone could remember.
they called {him} {hero}. {he} was {a_hero}, and [nobody {atplace} was kinder|everyone {atplace} knew {him}].
somewhere between the hills and the sea, {home2}, lived {hero}, {a_hero}.
once upon a time there was {a_hero} [called|named] {hero}, who lived {home}.
there was once {a_hero} [called|named] {hero} who lived {home}.
{hero} was {a_hero} who lived {home} [with {his} {carer}|with {his} {kin}|].
in a house {home2}, there lived {a_hero} named {hero}.
long ago, {home2}, lived {a_hero} [called|named] {hero}.
{hero} lived {home}. {he} was {a_hero}, and {he} [loved {food}|was known for {his} {thing.s}|had a {obj} that {he} took everywhere].
{a_hero} named {hero} lived {home} and [liked nothing better than {food}|knew every stone of {place}|had many {thing.s} and few worries].
everyone {atplace} knew {hero}, {a_hero} who [always had time for a chat|was never seen without a {thing}|lived {home}].
this is the story of {hero}, {a_hero} who lived {home}.
not so long ago, {a_hero} called {hero} [moved into a house|lived] {home2}.
{hero} was not like the others. {he} was {a_hero} who [would rather listen than talk|collected {thing.s}|asked too many questions].
if you had walked {atplace} in those days, you would have met {hero}, {a_hero}.
""")
INTRO_BEAST = lines("""
one [spring|summer] {a_hero} named {hero} was born {den}, the smallest of {number}.
{his} name was {hero}, and {he} was {a_hero}.
nobody could [run|dig|swim|sing|hide] like {hero}, {a_hero} from [the meadow|the forest|the river bank].
once upon a time there was {a_hero} [called|named] {hero}, who lived {den}.
{hero} was {a_hero} who lived {den}.
there was once {a_hero} named {hero}. {he} lived {den} and [loved {food}|slept most of the day|knew everyone {atplace}].
{den}, there lived {a_hero} called {hero}.
{a_hero} called {hero} lived {den} and [was always hungry|had a {obj}|never went far from home].
of all the animals {atplace}, {hero} was the [smallest|cleverest|kindest|laziest|most curious]. {he} was {a_hero}.
this is the story of {a_hero} called {hero}.
deep {atplace}, where [few people go|the {flowers} grow|the old {tree.s} stand], lived {hero}, {a_hero}.
""")
INTRO_FANTASY = lines("""
once upon a time there was {a_hero} called {hero}.
long ago, when [wishes still came true|stones could still talk|the moon was young], there was {a_hero} called {hero}.
far away {atplace} lived {a_hero} called {hero}.
{hero} was {a_hero}, but not like the others: {he} [loved {food}|was afraid of mice|collected {thing.s}|could not tell a lie].
have you ever met {a_hero}? {hero} was one, and {he} lived {atplace}.
""")
INTRO_SELF = lines("""
when I was [a child|young|ten years old], I lived {home} [with my {carer}|with my {kin}].
I want to tell you about [something that happened to me|the strangest day of my life|how I met {friend}]. I lived {home} in those days.
I am {a_hero}, and my name is {call}. this is what happened to me.
my {carer} often tells this story, but I was there, and I remember it well.
that year I lived {home}. I was {a_hero}, and I [had a {obj} that I loved|knew everybody {atplace}].
""")
HABITS = lines("""
{he} liked {food}, [long walks|old stories|{sound}] and the smell of {smell}.
every day {he} [got up early|fed the {bird.s}|walked to {place}|swept the floor], and every evening {he} [read a book|looked at the stars|ate some {food}].
{his} best friend was {friend}, {a_friend}.
people said that {he} was [too quiet|a bit strange|the kindest {kind} {atplace}], and they were right.
{he} owned very little: a {thing}, a {thing} and a {obj}.
nothing much ever happened there, until one day.
{he} always carried a {obj}, [nobody knew why|even to bed|because it brought good luck].
{he} was good at many things, but not at [waiting|singing|getting up early|telling lies].
""")

FRIENDS = lines("""
{his} best friend was {friend}, {a_friend}.
next door lived {friend}, {a_friend}.
{friend}, {a_friend}, [lived nearby|came to visit almost every day|had been {his} friend for years].
{he} often [talked to|walked with|visited] {friend}, {a_friend}.
""")

MAKING = {
    "bake": (W.DISHES, "[flour, butter and {number} eggs|flour, honey and milk|{fruit}, sugar and flour|{vegetable}, salt and a big pot]",
             "[it was burnt black|it was as hard as a stone|it tasted of salt|it was still raw in the middle|the dough did not rise]",
             "[to be patient|to keep the fire low|to stir slowly|to measure twice|not to open the oven too soon]"),
    "build": (W.BUILDS, "[boards, nails and a hammer|wood, string and glue|a saw, a rope and {number} planks|old boxes and some wire]",
              "[it fell apart at the first touch|one side was longer than the other|it was as crooked as an old {tree}|a strong wind knocked it over]",
              "[to measure twice and cut once|to begin with a drawing|to use dry wood|to tie good knots|not to hurry]"),
}
WISHES = lines("""
a mountain of {food} ~ the {food} filled the rooms, then the street, and nobody could get out of the house.
to be as big as a house ~ {he} could not fit through any door, and the others ran away from {him}.
a purse that is never empty ~ everybody wanted something from {him}, and nobody came just to talk.
to be invisible ~ nobody could see {him}, so nobody spoke to {him} any more.
everything I touch to turn to gold ~ the {food} turned to gold, and so did the {flowers}, and {he} grew hungry.
to fly like a {bird} ~ {he} was alone in the cold sky, and the wind would not let {him} down.
endless summer ~ the rain stopped, the river dried up and the {flowers} hung their heads.
to know everything ~ there were no surprises any more, and no story was new.
to understand all the animals ~ they all talked at once, day and night, and {he} could not sleep.
never to have to work again ~ after a week {he} was so bored that {he} counted the cracks in the wall.
""")
OTHERS = lines("""
a {jtrait} {job}
a {jtrait} {job}
a [girl|boy] from the next [street|village]
an old [man|woman] with a [stick|white dog|long grey coat]
a [traveller|sailor|musician] from far away
a {jtrait} {beast}
a {jtrait} {beast}
""")

LISTS = W.LISTS
LESSONS = LESSONS | MORE_LESSONS
PLOTS = PLOTS | MORE_PLOTS
for _name, _text in FILLERS.items():
    LISTS["scene" if _name == "scene" else _name + "_s"] = lines(_text)
LISTS["lesson"] = tuple(t for some in LESSONS.values() for t in lines(some))
LESSONS = {plot: lines(text) for plot, text in LESSONS.items()}
LISTS["good2"] = ("surprised", "grateful", "lucky", "brave", "warm inside", "shy", "tired", "sleepy")
LISTS["bad2"] = ("foolish", "cold", "lost", "helpless", "alone", "confused", "angry", "hungry")
LISTS["home2"] = W.HOMES
LISTS["fruit_one"] = ("apple", "pear", "plum", "cherry", "peach", "fig")
LISTS["little"] = ("little", "small", "young", "tiny", "brown", "grey", "white", "frightened", "thin")
LISTS["beast2"] = W.BEASTS
WEATHER = {k: "[" + "|".join(lines(v)) + "]" for k, v in WEATHER.items()}


def _compile(text):
    """A plot's text as a list of (optional, templates), filler names and None for a paragraph break."""
    stages = []
    for block in text.strip().split("\n\n"):
        block = block.strip()
        optional = block.startswith("?")
        block = block.lstrip("?")
        if block == "---":
            stages.append(None)
        elif block.startswith("+"):
            stages.append((optional, LISTS["scene" if block == "+scene" else block[1:] + "_s"]))
        else:
            stages.append((optional, lines(block)))
    return stages


PLOTS = {name: _compile(text) for name, text in PLOTS.items()}


def invent(w):
    """A name that is in no list: so that the model learns to copy what it reads, not only what it knows."""
    parts = [w.pick(W.SYLLABLES) for _ in range(w.rng.choice((1, 1, 2)))]
    return ("".join(parts) + w.pick(W.ENDINGS)).capitalize()


def _sex(w, kind):
    if kind in ("king", "prince", "wizard", "knight", "snowman", "fisherman", "postman", "rooster", "ferryman"):
        return True
    if kind in ("queen", "princess", "witch", "mermaid", "hen", "fairy"):
        return False
    return w.chance(0.5)


def _person(w, of=None):
    """Choose a character: (sort, male, name, phrase with article, noun)."""
    r = w.rng.random()
    sort = of or ("child" if r < 0.4 else "adult" if r < 0.62 else "beast" if r < 0.9 else "fantasy")
    if sort == "child":
        male = w.chance(0.5)
        noun = "boy" if male else "girl"
        phrase = f"a {w.pick(W.CHILD_TRAITS)} {noun}"
    else:
        nouns, traits = {"adult": (W.ADULTS, W.ADULT_TRAITS), "beast": (W.BEASTS, W.BEAST_TRAITS),
                         "fantasy": (W.FANTASTIC, W.ADULT_TRAITS)}[sort]
        noun = w.pick(nouns)
        male = _sex(w, noun)
        phrase = f"a {w.pick(traits)} {noun}"
    name = invent(w) if w.chance(0.15) else w.pick(W.BOYS if male else W.GIRLS)
    return sort, male, name, phrase, noun


def cast(w, hero=None):
    """Fill the writer's memory with a hero, a friend, places and things; returns the sort of hero."""
    m = w.memory
    sort, male, name, phrase, noun = hero or _person(w)
    he, him, his = ("he", "him", "his") if male else ("she", "her", "her")
    m.update(hero=name, call=name, he=he, him=him, his=his, self=him + "self", a_hero=phrase, kind=noun,
             name=name, noun=noun)
    while True:
        if sort == "beast":
            other = _person(w, "beast" if w.chance(0.8) else None)
        else:
            other = _person(w)
        if other[2] != name and other[4] != noun:
            break
    fhe, fhim, fhis = ("he", "him", "his") if other[1] else ("she", "her", "her")
    m.update(friend=other[2], fname=other[2], a_friend=other[3], fhe=fhe, fhe_cap=fhe, fhim=fhim, fhis=fhis,
             both=f"{name} and {other[2]}", a_friend_cap=w.one(OTHERS))
    at, place = w.pick(W.PLACES).split("/")
    at2, place2 = w.pick(W.PLACES).split("/")
    while place2 == place:
        at2, place2 = w.pick(W.PLACES).split("/")
    onoun = w.pick(W.TOYS if w.chance(0.35) else W.THINGS)
    season = w.pick(("spring", "summer", "autumn", "winter"))
    m.update(place=place, atplace=f"{at} {place}", place2=place2, atplace2=f"{at2} {place2}", onoun=onoun,
             obj=f"{w.pick(W.OBJ_TRAITS)} {onoun}" if w.chance(0.85) else onoun, carer=w.pick(W.CARER),
             season=season, weather=WEATHER[season], beast2=w.pick(W.BEASTS), virtue=w.pick(W.VIRTUES),
             food=w.pick(W.FOODS), plant=w.pick(W.PLANTS), fear=w.pick(W.FEARS), little=w.pick(LISTS["little"]),
             thing=w.pick(W.THINGS), pet_name=invent(w), tool=w.pick(W.TOOLS))
    dishes, needs, failure, trick = MAKING["bake" if w.chance(0.5) else "build"]
    wish, bad = w.pick(WISHES).split(" ~ ")
    m.update(make=w.pick(dishes), needs=needs, failure=failure, trick=trick, wish=wish, wish_bad=bad)
    while m["beast2"] in (noun, other[4]):
        m["beast2"] = w.pick(W.BEASTS)
    return sort


def _first_person(w):
    m = w.memory
    m.update(hero="I", he="I", him="me", his="my", self="myself", both=f"{m['friend']} and I")


def tell(w, sort, plot, short=False):
    """Tell one story: an opening, then the stages of the plot. Returns unfinished text."""
    lessons = LESSONS.get(plot)
    if lessons and w.chance(0.8):
        w.memory["lesson"] = w.pick(lessons)
    me = sort in ("child", "adult") and not short and w.chance(0.12)
    if me:
        _first_person(w)
    if me:
        opening = w.one(INTRO_SELF)
    else:
        opening = w.one({"beast": INTRO_BEAST, "fantasy": INTRO_FANTASY}.get(sort, INTRO_HUMAN))
    if w.chance(0.35) and not short:
        opening += " " + w.one(HABITS)
    if plot in ("storm", "quarrel", "dayout") and w.memory["a_friend"] not in opening:
        opening += " " + w.one(FRIENDS)
    paragraphs, sentences = [], [opening]
    # what was said once is not said again: a filler may be drawn twice in one story
    said = {opening}
    for stage in PLOTS[plot]:
        if stage is None:
            if not short and w.chance(0.75):
                paragraphs.append(" ".join(sentences))
                sentences = []
            continue
        optional, choices = stage
        if optional and w.chance(0.75 if short else 0.4):
            continue
        template = w.pick(choices)
        if template in said:
            continue
        said.add(template)
        sentences.append(w.raw(template))
    paragraphs.append(" ".join(sentences))
    return introduce_once(w, "\n\n".join(p for p in paragraphs if p))


def introduce_once(w, text):
    """Several stages may introduce the friend ("Tom, an old miller,"); only the first may stay."""
    name, phrase = w.memory["friend"], w.memory["a_friend"]
    first = text.find(phrase)
    if first < 0:
        return text
    head, tail = text[:first + len(phrase)], text[first + len(phrase):]
    return head + tail.replace(f"{name}, {phrase},", name).replace(f"{name}, {phrase}", name)


TITLES = lines("""
The [Story|Tale|Secret|Adventure] of {call}
{call} and the {onoun}
The {kind} and the {onoun}
{call} and {fname}
The {kind} of {placename}
How {call} [Found a Friend|Learned Something|Changed {his} Mind]
A [Strange|Quiet|Long|Wonderful] Day
The {onoun}
""")


def title(w):
    m = w.memory
    m["placename"] = m["place"]
    small = {"and", "the", "of", "a", "in", "by", "with"}
    found = w.one(TITLES).split()
    return " ".join(t if t in small and i else t[0].upper() + t[1:] for i, t in enumerate(found))


def story(w):
    """A whole story as a document."""
    sort = cast(w)
    plot = w.pick(tuple(PLOTS)) if sort == "beast" or w.chance(0.95) else "fable"
    if plot == "fable" and sort != "beast":
        plot = "rescue"
    head = title(w) + "\n\n" if w.chance(0.2) else ""
    return head + tell(w, sort, plot, short=w.chance(0.3))
