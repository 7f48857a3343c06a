"""Free scenes: a piece of a day without a fixed plot, which may begin in the middle of things.

The plots of plots.py always begin at the beginning. These scenes teach the model to go on from any sentence:
somebody does something, something happens, people talk about it, somebody decides. Every part is drawn from a
long list, and subjects change between a name, a pronoun and "the old miller".
"""
import stories
from grammar import lines
import words as W

ACTS = lines("""
opened the door
looked out of the window
put on {his} coat
walked down the [road|path|hill|stairs]
sat down [by the fire|at the table|on a bench|under a {tree}]
picked up the {onoun}
put the {onoun} on the table
lit a [lamp|candle|fire]
closed {his} eyes for a moment
listened to {sound}
took a deep breath
poured a cup of tea
cut the bread into [two|four|thick] [pieces|slices]
[washed|dried] the [dishes|cups|plates]
swept the [floor|yard|steps]
wrote a few words on a piece of paper
counted the [coins|eggs|sacks|boats]
[shook|scratched|turned] {his} head
looked at the [sky|clock|clouds|ground]
smiled at {friend}
waved to {friend}
waited for {friend}
crossed the [bridge|street|field|yard]
leaned against the wall
carried the [basket|water|wood|sack] into the house
folded the letter
hung the {onoun} on a nail
stopped at the [gate|corner|well]
whistled an old tune
went back to work
fed the [hens|horses|{bird.s}|cat]
tied {his} shoes
knocked [twice|three times|softly] on the door
climbed the [ladder|stairs|hill]
turned around
[laughed|sighed|nodded|yawned]
ate a [piece of|bite of|little] {food}
watched the [rain|snow|clouds|people|boats]
read the letter [again|slowly|a second time]
searched {his} pockets
""")
OPENINGS = lines("""
{the_hero} {act} and {act}.
{the_hero} {act}, {act}, and then {act}.
{hero} {act} and {act}.
when {the_hero} {act}, {happening}.
it was [raining|snowing|getting dark|still early|almost noon|late|Sunday|a windy day] when {hero} {act}.
{weather} {hero} {act} and {act}.
"{remark}," said {hero}. {he} {act}.
"{remark}," said {friend}, {a_friend}. {hero} {act} and {act}.
the [door|window|gate|shop|mill] was [open|closed|empty|quiet], and {the_hero} {act}.
for the third time that day, {hero} {act}.
nobody {atplace} was awake yet, except {hero}, {a_hero}.
[last|one] night {hero} could not sleep, so {he} {act} and {act}.
every [morning|evening|Sunday] {hero} {act}, but this time it was different.
on the table [lay|stood] a {obj}. {hero} looked at it and {act}.
there was a {obj} in the middle of the [road|room|garden|table]. {the_hero} {act}.
{hero}, {a_hero}, had [been waiting for hours|not slept well|been walking since sunrise].
{sound_cap} woke {hero}. {he} {act} and {act}.
the [bell|clock] struck [six|seven|eight|nine|ten|eleven|twelve]. {hero} {act}.
somebody had left a {obj} [on the doorstep|on the window sill|under the {tree}].
in the [morning|evening|afternoon] {hero} {act}, as {he} always did.
""")
HAPPENINGS = lines("""
somebody knocked at the door
a {beast} ran across the [road|yard|room]
the wind blew the window open
the lamp went out
a letter came
{friend} came in without knocking
the bell began to ring
the {onoun} fell to the floor
a [cart|boat|train|stranger] stopped [outside|nearby|in front of the house]
a [loud|strange|soft] sound came from [above|the cellar|the garden|the next room]
it began to [rain|snow]
a {bird} flew in through the window
the sun came out from behind the clouds
a child began to [cry|laugh|sing]
everything became very quiet
the [fire|milk|soup] was [almost out|boiling over|cold]
""")
EVENTS = lines("""
just then {happening}.
suddenly {happening}, and {hero} [jumped|turned around|forgot everything else].
a moment later {happening}.
{he} was about to [leave|sit down|go to bed|begin] when {happening}.
{happening}. {hero} [had not expected that|looked up|held {his} breath].
then {happening}, just as {friend} had said.
at that moment {happening}, and {friend}, {a_friend}, [laughed|came running|pointed at it].
while {he} {act_ing}, {happening}.
nobody noticed that {happening}.
""")
ACT_ING = lines("""
was [working|reading|thinking|cooking|resting]
was talking to {friend}
was looking for the {onoun}
was putting on {his} shoes
was standing there
""")
REMARKS = lines("""
it is [late|cold in here|time to go|too quiet|going to rain]
I have seen this [before|somewhere]
something is [wrong|different|missing]
we should [go home|wait a little|ask {friend}|begin]
I do not [understand it|believe it|like the look of it|know what to do]
there is [somebody at the door|no bread left|a {beast} in the garden|nothing we can do]
you are [early|late|right|just in time]
I had almost forgotten the {onoun}
this {onoun} is older than I am
nothing ever happens {atplace}
""")
TALKS = lines("""
"have you heard the news?" asked {friend}. "[the bridge is broken|the miller is going to marry|there will be a fair on Sunday|a {beast} has been seen {atplace}]." {hero} had not heard it.
"where did you get that {onoun}?" asked {friend}. "[I found it|my {carer} gave it to me|I bought it at the market|I made it myself]," {hero} said.
"can you keep a secret?" {hero} asked. "[of course|I think so|that depends]," said {friend}, and came closer.
"do you remember [last winter|the old days|our first day here]?" said {friend}. "how could I forget," {hero} said.
"I need your help," said {friend}. "[my {thing} is broken|I have lost my way|the work is too much for one]." {hero} [did not hesitate|nodded at once|put down the {onoun}].
"what is in the [box|bag|basket]?" {hero} asked. "[look for yourself|only {fruit}|nothing that would interest you]," said {friend} {saidly}.
"you look tired," said {friend}. "[I did not sleep|I have walked all day|it is nothing]," {hero} answered.
"how much is this {onoun}?" asked {friend}. "it is not for sale," {hero} said. "[it belonged to my {carer}|I need it myself]."
"tell me the truth," said {friend}. "[did you take the {onoun}|are you afraid|is it far]?" {hero} [thought about it|was silent|looked away]. "yes," {he} said at last.
"I am leaving tomorrow," said {friend}. "so soon?" {hero} asked. "[I will come back in {season}|I have stayed too long already|my {carer} is waiting for me]."
"listen," said {friend}. "do you hear that?" {hero} listened. it was {sound}.
"you work too much," said {friend}. "[and you talk too much|somebody has to do it|I like it]," {hero} said, and both laughed.
"is it true that [you can play the fiddle|you have seen the sea|there is a treasure {atplace2}]?" {friend} wanted to know. "[so they say|perhaps|every word of it]," {hero} said.
"would you like some {food}?" {hero} asked. "[yes, please|only a little|I thought you would never ask]," said {friend}.
""")
INNER = lines("""
{hero} thought about [the old days|{his} {carer}|the words of {friend}|what to do next].
{he} remembered the day when {he} had come to {place} for the first time.
perhaps it was [nothing|only the wind|time for a change|a sign], {he} thought.
{he} had [never|often|always] wanted to [see the sea|learn to dance|live {atplace2}|own a {obj}].
{his} {carer} used to say that {lesson}.
{he} was not sure whether to [laugh or cry|stay or go|speak or be silent].
it was a small thing, but it [mattered|changed everything|made {him} smile].
{he} felt {good}, although {he} could not say why.
{he} felt {bad}, and [the tea did not help|nobody knew it|it was hard to hide].
the {onoun} [was heavier than it looked|felt warm in {his} hand|smelled of {smell}|had belonged to somebody else once].
time seemed to [stand still|pass more slowly {atplace}|fly].
""")
DECISIONS = lines("""
in the end {he} decided to [go and see|stay|tell {friend} everything|write a letter|try once more].
so {he} took the {onoun} and [went out|followed {friend}|set off for {place2}].
without another word {he} {act} and {act}.
"all right," {hero} said. "[let us go|I will do it|we start tomorrow]."
{both} [looked at each other|shook hands|went out together], and {happening}.
{he} did the only thing {he} could think of: {he} {act}.
there was nothing else to do, so {he} {act}.
{he} [waited until dark|slept on it|asked {friend} for advice], and then {he} {act}.
""")
CLOSINGS = lines("""
after that, nothing was quite the same.
and that was that.
when {he} came home, [the lamp was still burning|it was already dark|the {food} was cold], but {he} did not mind.
the rest of the day was [quiet|ordinary|like any other].
later {he} could never say how long {he} had [stood|sat|waited] there.
{friend} said nothing, but [{fhe} smiled|it was enough].
somewhere [a dog barked|a {bird} sang|a door closed], and the [night|evening|day] went on.
{he} {act}, {act}, and was content.
outside, [the snow|the rain|the wind|the light] [had changed everything|had not stopped|went on as before].
it was only a {onoun}, after all. but {he} kept it for the rest of {his} life.
and the next morning, {happening}.
{end_s}
{end_s}
{moral_s}
""")

LISTS = W.LISTS
LISTS.update(act=ACTS, happening=HAPPENINGS, act_ing=ACT_ING, remark=REMARKS)


def scene(w):
    """A scene of five to twelve steps; the order of the middle is free."""
    stories.cast(w)
    m = w.memory
    m["the_hero"] = w.pick((m["hero"], m["a_hero"], "the" + m["a_hero"][1:], "the" + m["a_hero"][1:]))
    m["sound_cap"] = w.raw("{sound}")
    opening = w.raw(w.pick(OPENINGS))
    if m["call"] not in opening:
        opening += " " + w.raw(w.pick((f"{{his}} name was {m['call']}.", f"everyone called {{him}} {m['call']}.",
                                       f"{m['call']} was {{his}} name, and {{he}} lived {{home}}.")))
    paragraphs, sentences = [], [opening]
    met = m["friend"] in opening
    if met and m["a_friend"] not in opening:
        sentences[0] += w.raw(" {friend} was {a_friend} [who lived nearby|whom everyone liked|from {place2}|].")
    used = set()
    for _ in range(w.rng.randint(3, 9)):
        part = w.pick((EVENTS, TALKS, INNER, DECISIONS, LISTS["scene"], LISTS["think_s"], TALKS))
        template = w.pick(part)
        if template in used or (met and "{a_friend}" in template):
            continue
        used.add(template)
        sentence = w.raw(template)
        if m["friend"] in sentence and not met:
            met = True
            if m["a_friend"] not in sentence:
                sentences.append(w.raw("[{friend}, {a_friend}, was there too.|{friend}, {a_friend}, came in.|beside {him} sat {friend}, {a_friend}."
                                       "|then {he} saw {friend}, {a_friend}.|{friend}, {a_friend}, was waiting [outside|at the gate|in the kitchen].]"))
        sentences.append(sentence)
        if len(sentences) > 2 and w.chance(0.25):
            paragraphs.append(" ".join(sentences))
            sentences = []
    sentences.append(w.one(CLOSINGS if met else CLOSINGS[:5] + CLOSINGS[6:11]))
    paragraphs.append(" ".join(sentences))
    return stories.introduce_once(w, "\n\n".join(p for p in paragraphs if p))
