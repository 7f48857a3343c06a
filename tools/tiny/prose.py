"""Everything that is not a story: descriptions, explanations, steps, letters, diaries, news and verses.

Explanations and steps come from knowledge.py; the rest is made here from short lists of sentences.
Each function takes a Writer and returns unfinished text (grammar.finish puts articles and capitals right).
"""
from grammar import lines, plural
import knowledge as K
import stories
import words as W


def _blocks(text):
    """(wordings, sentences) of each block; the first line holds the wordings, set apart by ' / '."""
    found = []
    for block in text.strip().split("\n\n"):
        head, *rest = lines(block)
        found.append((tuple(head.split(" / ")), tuple(rest)))
    return found


TOPICS = _blocks(K.TOPICS)
STEPS = _blocks(K.STEPS)
ANIMALS = tuple(tuple(f.strip() for f in row.split("/")) for row in lines(K.ANIMALS))
ORDINALS = ("first", "then", "after that", "next", "now", "when that is done", "finally")


def _kept(w, sentences, p=0.6):
    """The sentences to use: those marked ? only sometimes."""
    return [s.lstrip("? ") for s in sentences if not s.startswith("?") or w.chance(p)]


def explain(w, sentences):
    return " ".join(w.raw(s) for s in _kept(w, sentences))


def explanation(w):
    wordings, sentences = w.pick(TOPICS)
    body = explain(w, sentences)
    question = w.pick(wordings)
    return w.pick((f"{question}?\n\n{body}", body, body, f"{question}? {body}"))


def steps(w, sentences, numbered):
    """How-to sentences, numbered on lines of their own or as one running paragraph."""
    kept = [w.raw(s) for s in _kept(w, sentences)]
    if numbered:
        return "\n".join(f"{i}. {s[0].upper()}{s[1:]}" for i, s in enumerate(kept, 1))
    last = len(kept) - 1
    middle = iter(w.rng.sample(ORDINALS[1:6], 5))
    said = []
    for i, s in enumerate(kept):
        if s.startswith(("if ", "never ", "be ", "let ", "after", "when ", "then ")) and i:
            said.append(s)
        elif i == 0:
            said.append("first, " + s)
        elif i == last:
            said.append("finally, " + s)
        else:
            said.append(f"{next(middle)}, {s}" if i % 2 and i < 9 else s)
    return " ".join(said)


def howto(w):
    wordings, sentences = w.pick(STEPS)
    name = w.pick(wordings)
    head = w.raw(w.pick(("how to " + name, f"how to {name} in a few [easy |simple |]steps", "this is how you " + name + ".",
                         f"do you want to {name}? it is not difficult.")))
    if head.startswith(("how", "this")):
        return head + "\n\n" + steps(w, sentences, w.chance(0.6))
    return head + " " + steps(w, sentences, False)


def animal_text(w, row):
    """A paragraph about one animal, in singular or plural, in a changing order."""
    name, cls, home, food, feature, young, sound = row
    many = plural(name)
    group = "a fish" if cls == "fish" else f"a {cls}" if w.chance(0.6) else "an animal"
    if cls == "bird":
        group = "a bird"
    first = w.pick((f"the {name} is {group} that lives {home}.", f"a {name} is {group}. it lives {home}.",
                    f"the {name} lives {home}."))
    eats = w.pick((f"it eats {food}.", f"it feeds on {food}.", f"its food is {food}."))
    has = w.pick((f"it has {feature}.", f"you can recognise it easily: it has {feature}."))
    youngs = young if young in ("fry", "larva") else plural(young)
    baby = w.pick((f"a young {name} is called a {young}.", f"the young of {many} are called {youngs}."))
    rest = [eats, has]
    if w.chance(0.5):
        rest.reverse()
    if w.chance(0.6):
        rest.append(baby)
    if w.chance(0.35):
        rest.append(w.raw(w.pick(("many [stories|fables] are told about it.", f"have you ever seen a {name}?",
                                  f"children [all over the world|everywhere] like {many}.",
                                  "if you are quiet and patient, you may see one.", f"no two {many} are quite the same."))))
    return " ".join([first] + rest)


def animal(w):
    text = animal_text(w, w.pick(ANIMALS))
    if w.chance(0.3):
        text += "\n\n" + animal_text(w, w.pick(ANIMALS))
    return text


PLACE_LINES = lines("""
{atplace} it was [quiet|busy|cool|warm|lively|peaceful] [that day|at that hour|in the early morning|towards evening].
{weather}
the air smelled of {smell} and {smell}.
{number} {beast.s} [rested in the shade|crossed the path|looked for something to eat], and a {bird} [called|sang|flew up].
an old {tree} stood [there|in the middle|by the wall], and under it somebody had left a {obj}.
a [man|woman] was [selling {fruit}|mending a {thing}|sweeping the steps|carrying a basket of {vegetable}|feeding the {bird.s}].
two children were [playing with a {toy}|throwing stones into the water|sharing some {food}|running after a {beast}].
from [somewhere|behind a wall|far away] came the sound of {sound}.
the [walls|stones|boards] were [old|grey|warm from the sun|covered with moss], and [{flowers} grew between them|a cat slept on top].
nobody was in a hurry.
later, when the light [changed|grew golden|faded], [the lamps were lit one by one|the shadows became long and blue|people went home].
a [narrow|steep|winding] path led [down to the water|up the hill|between the houses|to {place2}].
whoever came there for the first time [stopped and looked|wanted to stay|forgot the time].
a {colour} [door|boat|flag|roof] stood out against [the grey|the sky|all the green].
""")
ROOM_LINES = lines("""
the room was [small|large|low|bright|warm], with [one window|two windows|a big window] to the [garden|street|river].
on the table lay a {thing}, a {thing} and a half-eaten piece of [bread|cake|pie].
against the wall stood [a bed with a {colour} blanket|a tall shelf full of books|an old cupboard|a wooden bench].
it smelled of {smell}.
a {colour} {thing} hung on a nail beside the door.
[a clock ticked|a fire crackled|a kettle sang|a fly buzzed], and otherwise it was still.
somebody had [swept the floor|left the window open|put {flowers} in a jar|forgotten a {thing} on the chair].
through the window you could see [the roofs of the town|a {tree}|the hills|the harbour with its boats].
in the corner a {beast=pet} [was asleep|watched everything|had made its bed].
it was the kind of room in which you [feel at home at once|lower your voice|want to read a long book].
""")
LISTS = W.LISTS
LISTS["pet"] = ("cat", "dog", "kitten", "puppy", "parrot", "mouse", "spider")


def description(w):
    stories.cast(w)
    return " ".join(w.raw(s) for s in w.several(PLACE_LINES if w.chance(0.65) else ROOM_LINES, 5, 9))


LETTER_NEWS = lines("""
I hope you are well. we are all [fine|well] here, [only the {beast} is ill|apart from a little cold|thank you].
how are you? I [think of you often|have not heard from you for a long time|was so glad to get your letter].
the weather has been [wonderful|terrible|strange] lately. {weather}
last [Sunday|week|Friday] we went to {place}, and [I wished you had been there|it rained all day, but nobody minded|you will not believe whom I met: {name2}].
I have [started to learn|begun to play] [the violin|the flute|chess|a new language]. it is [harder than I thought|great fun], but I practise every day.
the {plant.s} in the garden are [in flower|almost ripe|as tall as I am], and {carer} made {number} jars of jam.
our {beast=pet} has [learned a new trick|run away twice|eaten my {thing}], and everybody [laughed|is still talking about it].
do you remember the {obj}? I [found it|lost it again|still have it] [under the bed|behind the stove|and think of you].
I am sending you a {obj} with this letter. I [made it myself|found it {atplace}|hope you like it].
at the moment I am reading a book about [a {job}|{beast.s}|a journey to {place2}]. [I cannot put it down|you would like it].
work is [hard|going well]. the [new|old] {job} [is very kind|shouts a lot, but means well|has taught me a great deal].
thank you for the {obj}. it is [exactly what I needed|the nicest present I got this year].
""")
LETTER_ASK = lines("""
when will you come to visit us? [there is always a bed for you|I will bake a {dish}|we could go to {place} together].
please write soon and tell me [everything|how you are|about your new home].
could you [lend me|send me] your {thing}? I [promise to take care of it|need it for the fair].
do you still [play the fiddle|go to {place}|have the {obj}]? I would love to know.
I miss you, and [I count the days until summer|I hope to see you soon].
""")


def letter(w):
    stories.cast(w)
    m = w.memory
    m.update(he="I", him="me", his="my", self="myself", name2=w.pick(W.GIRLS + W.BOYS))
    relative = w.raw("{kin=carer}").capitalize()
    to = w.pick((m["friend"], m["friend"], relative, "Aunt " + w.pick(W.GIRLS), "Uncle " + w.pick(W.BOYS)))
    news = [w.raw(s) for s in w.several(LETTER_NEWS, 3, 6)]
    body = " ".join(news)
    close = w.raw("[with love|your friend|yours|many greetings|warm wishes|see you soon|love and kisses]")
    return f"Dear {to},\n\n{body}\n\n{w.one(LETTER_ASK)}\n\n{close[0].upper()}{close[1:]},\n{m['call']}"


DIARY = lines("""
today I got up [early|late|before the sun]. {weather}
for breakfast there was {food}, [as always|and I ate too much of it|but I was not hungry].
in the morning I [went to {place}|helped my {carer} with the {thing.s}|cleaned my room|worked in the garden].
I met {friend}, and we [talked for an hour|walked to {place2}|laughed about old times|repaired a {thing}].
something [funny|strange|nice] happened: a {beast} [looked in at the window|followed me home|stole my {food2}].
at school we learned about [{beast.s}|the moon|the sea|old {thing.s}|numbers].
I [lost|found|broke|mended] my {obj} today, and I [was {bad}|felt {good}].
in the afternoon it [rained|was warm|snowed a little], so I [read a book|wrote a letter to {friend}|sat by the stove|took a nap].
{carer} [told me a story|taught me a song|was in a good mood|fell asleep in the chair].
I think that {lesson}.
now I am tired. tomorrow I want to [visit {friend}|go to {place}|begin something new|sleep longer].
before I went to bed, I [looked at the stars|listened to {sound}|drank some milk]. good night.
""")


def diary(w):
    stories.cast(w)
    m = w.memory
    m.update(he="I", him="me", his="my", self="myself", hero="I", carer="my " + m["carer"])
    day = w.pick(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"))
    head = w.pick((f"{day}\n\n", "Dear diary,\n\n", f"{day}, in {m['season']}\n\n", ""))
    m["carer"] = m["carer"].removeprefix("my ")
    return head + " ".join(w.raw(s.replace("{carer} [", "my {carer} [")) for s in w.several(DIARY, 5, 9))


NEWS = lines("""
{a_hero} from {town} [has found|found] a {obj} {atplace} [last week|on Sunday|yesterday].
the people of {town} were surprised when {number} {beast.s} [walked through the market square|appeared {atplace}] [yesterday|on Monday].
the old mill of {town} is [working again|to be repaired]. {a_hero} called {call} [gave the money|did most of the work].
this year's [fair|race|contest] in {town} was won by {call}, {a_hero}.
a storm [broke many windows|knocked down an old {tree}] in {town} last night, but nobody was hurt.
""")
NEWS_MORE = lines("""
"[I have never seen anything like it|I could not believe my eyes|we are all very proud]," said {friend}, {a_friend}.
{weather}
many people came to [look|help|listen], and [the baker gave away free {food}|the band played until midnight].
nobody knows [how it happened|why|where it came from], but [there are many ideas|everyone talks about it].
the mayor said that {town} would [be glad of visitors|remember the day|plant {number} new trees].
the children of {town} [were given the day off|drew pictures of it|hope that it will happen again].
next [week|month|Sunday] there will be a [meeting|small feast|concert] {atplace}, and everyone is welcome.
""")
TOWN_START = W._rows("Ash, Brook, Elm, Fern, Green, Hazel, High, Kings, Long, Mill, North, Oak, Old, River, Salt, Stone, Sun, West, White, Wind, Wood")
TOWN_END = W._rows("bury, bridge, by, dale, field, ford, ham, haven, hill, ley, mouth, port, stead, ton, wick, worth")


def news(w):
    stories.cast(w)
    w.memory["town"] = w.pick(TOWN_START) + w.pick(TOWN_END)
    return " ".join([w.one(NEWS)] + [w.raw(s) for s in w.several(NEWS_MORE, 3, 5)])


RHYMES = tuple(tuple(r.split()) for r in lines("""
day way play grey say stay
night light bright sight white
tree see free sea me bee
sky high fly by dry
stone alone grown home
rain again lane plain grain
snow go slow glow know
spring sing ring wing bring
moon soon tune noon June
bed red head said bread
ground round sound found
hill still will mill
deep sleep keep sheep
"""))
VERSE = {
    "day": "[I watched|I loved|we shared] the [bright and|long and|warm and] [golden|quiet|windy] day", "way": "[the river|a little bird|the wind] [will find|knows] its way",
    "play": "[the children|the lambs] come out to play", "grey": "[the sky|the sea|the hill] is [wide and|soft and|cold and] grey",
    "say": "[there is no more|and that is all I want] to say", "stay": "[I wish|I hope] that you could stay",
    "night": "[the owl calls softly|a lamp is burning] in the night", "light": "[the window is full of|the morning brings its|we walk towards the] light",
    "bright": "[the stars above are|your eyes are|the snow is cold and] bright", "sight": "[the harbour|the little house] comes into sight",
    "white": "[the fields are|the frost is|the roofs are] [cold and|clean and] white", "tree": "[a blackbird sings|I sit and read] [up in the|under the] tree",
    "see": "[there is so much|how much there is] to see", "free": "[the clouds are|the wind is] [light and|wild and] free",
    "sea": "[the ships go out|the river runs] [into the|across the] sea", "me": "[you are|the day is] [kind and|good and] dear to me",
    "bee": "[a flower|the garden] waits for the bee", "sky": "[a kite|a swallow] climbs [into the|across the] sky",
    "high": "[the lark is singing|the sun is standing] high", "fly": "[I wish|I dream] that I could fly", "by": "[a cart|the summer|an hour] goes slowly by",
    "dry": "[we sit inside|the barn is warm] where it is dry", "stone": "[the mill|the quern] is turning, stone on stone",
    "alone": "[nobody here needs|I do not like] to be alone", "grown": "[how tall|how fast] the [corn|seed|wheat] has grown", "home": "[the road|the evening star] will lead us home",
    "rain": "[the garden|the old roof] [shines|drums] in the rain", "again": "[the swallows|the sunny days] come back again", "lane": "[a pony trots|we walk along|the leaves blow] down the lane",
    "plain": "[the answer|the bread] is [good and|simple,] plain", "grain": "[the miller pours|we bring|the field is full of] golden grain",
    "snow": "[the world|the village] is quiet under the snow", "go": "[now it is late|the bell has rung], and I must go", "slow": "[the snail|the old clock] is [happy and|steady and] slow",
    "glow": "[the coals|the little lamps] [still|softly] glow", "know": "[there is so little|how much there is] that I know",
    "spring": "[the hill is green|the snow has gone], and it is spring", "sing": "[the thrush|my mother] begins to sing", "ring": "[the bells of the village|all the bells] begin to ring",
    "wing": "[a feather falls|the moth has dust] [from a|upon its] wing", "bring": "[who knows what tomorrow|see what the waves] will bring",
    "moon": "[the fox|the hare] looks up [to see|and greets] the moon", "soon": "[the winter|the long night] will be over soon", "tune": "[he plays|she hums] [a small and|an old and] [merry|gentle] tune",
    "noon": "[the cat|the village] sleeps at noon", "June": "[the roses|the evenings] are [warm|sweet] in June", "bed": "[the child|the puppy] is warm and safe in bed",
    "red": "[the apples|the leaves] are [turning|shining] red", "head": "[a hundred thoughts|a little song] [run|goes] through my head", "said": "[remember|think of] what [the old man|your mother] said",
    "bread": "[the kitchen|the morning] smells of bread", "ground": "[the leaves lie deep|the seed is sleeping] in the ground", "round": "[the wheel|the world] goes round and round",
    "sound": "[the snow|the owl] comes down without a sound", "found": "[the thing you lost|a friend] [can still be|may soon be] found", "hill": "[the sheep|the shadows] come down from the hill",
    "still": "[the pond|the evening] is [deep and|clear and] still", "will": "[a patient heart|the smallest seed] has a [strong|good] will", "mill": "[the water turns|the wind moves] the old mill",
    "deep": "[the lake|the forest] is dark and deep", "sleep": "[now all the|the little] [birds|lambs] are fast asleep", "keep": "[a promise made|a secret told] is one to keep",
    "sheep": "[the dog|the shepherd] [counts|brings home] the sheep",
}


VERSE_TOPICS = {
    "the moon": "moon", "the sea": "sea", "spring": "spring", "the snow": "snow", "winter": "snow", "the rain": "rain", "a mill": "mill",
    "the night": "night", "sleep": "sleep", "a tree": "tree", "bread": "bread", "home": "home", "the sky": "sky", "summer": "June",
    "the day": "day", "light": "light", "a hill": "hill", "sheep": "sheep", "a bee": "bee", "grain": "grain", "a stone": "stone",
}


def verse(w, about=None):
    """One to three verses in pairs or crossed rhymes; the first ends a line on the word asked for."""
    out = []
    for i in range(w.rng.choice((1, 2, 2, 3))):
        ends = w.rng.sample(w.pick(RHYMES), 2) + w.rng.sample(w.pick(RHYMES), 2)
        if about and i == 0:
            group = [r for row in RHYMES if about in row for r in row if r != about]
            ends[:2] = w.rng.sample([about, w.pick(group)], 2)
        if w.chance(0.4):
            ends[1], ends[2] = ends[2], ends[1]
        marks = (",", ".", ",", ".") if w.chance(0.7) else (",", ",", ",", ".")
        out.append("\n".join(w.raw(VERSE[e]) + m for e, m in zip(ends, marks)))
    return "\n\n".join("\n".join(s[0].upper() + s[1:] for s in v.split("\n")) for v in out)
