"""Short pieces in the present tense: my dog, our village, the seasons, what I like; and tales with a date.

Stories speak of the past. Without these pieces the model would not know how to go on from "I have a dog" or
"Winter is". Sentences keep their order, and some of them are left out.
"""
import prose
import stories
from grammar import lines
import words as W

PET = lines("""
I have a {pet_kind}. [its name is {call}.|it is called {call}.|we call it {call}.]
[my {carer} gave it to me|I found it {atplace}|it came to us one {season} day], and [we have been friends ever since|at first it was very shy].
it has [soft|brown|grey|white|spotted] [fur|ears|paws] and [bright|round|clever] eyes.
every morning it [wakes me up|waits at the door|jumps onto my bed].
it likes [{food}|to sleep in the sun|to play with a {toy}|to run {atplace}], but it does not like [rain|cold water|loud noises|to be alone].
once it [ran away|ate my {thing}|fell into the pond|stole a {dish}], and [I looked for it all night|we laughed for days].
when I am sad, it [comes and sits beside me|puts its head on my knee].
I [brush it|feed it|take it for a walk] every day, because [it needs me|that is my job].
my friend {friend} says that it is [the cleverest|the laziest|the funniest] {pet_kind} in the world.
I would not give it away for [anything|all the gold in the world].
""")
FAMILY = lines("""
my {carer} [lives {home}|is {number}ty years old|works as a {job}|has a big garden].
my {carer}'s [kitchen|house|garden|workshop] is [full of {thing.s}|the best place in the world|small but warm|always open to everyone].
it smells of {smell} there, and [a clock ticks on the wall|there is always {food} on the table].
on Sundays we [bake a {dish}|walk to {place}|play cards|sit by the stove] together.
my {carer} knows [many old stories|how to mend a {thing}|the name of every bird|all the songs] and [never gets tired of teaching me|is never in a hurry].
"{lesson}," my {carer} often says.
when I was little, I [was afraid of {fear}|broke a {thing}|got lost {atplace}], and my {carer} [was not angry|came to find me|taught me what to do].
in the evening we [look at old photographs|drink tea|listen to {sound}].
I hope that one day I will be [as patient|as wise|as kind] as my {carer}.
""")
PLACE = lines("""
our village [is small|lies in a valley|lies by the sea|has only one street], but I [like it|would not want to live anywhere else].
there is a [mill|church|bakery|well] in the middle, and around it stand [old houses|tall {tree.s}|a few shops].
in [the morning|summer] you can [smell {smell}|hear {sound}|see the boats go out].
everybody knows everybody. the {job} is called {call}, and [{he} tells the best stories|nobody works harder].
on Saturdays there is a market, where people sell {fruit}, {vegetable} and {thing.s}.
the children play [by the river|with a {toy}|in the fields] until [it is dark|their parents call them].
in winter, when [the snow is deep|the roads are closed], we [sit together and tell stories|help each other].
visitors say that [nothing ever happens here|time stands still here], but [they do not look closely|that is why they come].
the oldest house belongs to {friend}, {a_friend}, and [some say there is a treasure in its cellar|its door is never locked].
""")
SEASONS = {
    "spring": """
spring is the time when everything begins again.
the days grow longer, the snow melts, and the first {flowers} come up.
birds come back from the south and build their nests.
farmers [plough the fields|sow grain], and lambs are born.
sometimes it still freezes at night, and the young leaves must be brave.
people open their windows, clean their houses and feel hopeful.
I like spring because [it smells of {smell}|every day brings something new].
""",
    "summer": """
summer is the warmest time of the year.
the days are long, and the nights are short and mild.
the corn turns yellow, and {fruit} grow ripe.
children have holidays and [swim in the lake|sleep in tents|go barefoot].
on hot afternoons [everyone looks for shade|there may be a thunderstorm].
in the evening people sit outside, eat together and listen to the crickets.
I like summer because [I can be outside all day|there are so many {fruit}].
""",
    "autumn": """
autumn is the time of the harvest.
the leaves turn red, yellow and brown and fall from the trees.
people pick apples, dig up potatoes and gather nuts.
the mornings are cool, and fog lies over the fields.
squirrels hide their food, and many birds fly south.
the wind is good for kites, and the mill is busy with the new grain.
I like autumn because [of its colours|it is time for soup and stories].
""",
    "winter": """
winter is the coldest time of the year.
the days are short, and it gets dark early.
often snow covers the ground, and the ponds freeze.
some animals sleep until spring, and others grow a thicker coat.
children build snowmen and ride on sleds.
inside it is warm, and people drink tea, knit and tell stories by the fire.
I like winter because [everything is so quiet|it is the best time for reading].
""",
}
LIKES = lines("""
I like [to read|to cook|to draw|to walk|to sing|to work with wood] more than anything else.
I [learned it from my {carer}|began when I was a child|started last {season}].
at first it was [hard|slow], and I made many mistakes.
now I do it [every day|every evening|whenever I have time].
the best part is [the quiet|when something is finished|that I forget the time|sharing it with {friend}].
last week I [finished a {build}|made a {dish}|found a book about {beast.s}|learned a new song].
{friend} asked me why I like it so much. "[it makes me calm|I do not know|because nobody tells me to]," I said.
you need [patience|a little room|good tools|time] for it, but not much money.
if you want to try it, [begin with something small|do not be afraid of mistakes|come and visit me].
I think everyone should have something that [they love to do|makes them happy].
""")
DAYS = lines("""
[yesterday|last Sunday|last week|this morning] we went to {place}.
{friend} came with us, and [we took the train|we walked the whole way|my {carer} drove].
{weather}
we [ate {food} under a {tree}|looked for shells|fed the {bird.s}|climbed to the top], and [I found a {obj}|my brother fell into the water|nobody wanted to go home].
the best thing was [the view|a {beast} that came very close|the {food}|the way back].
I was so tired that I fell asleep [in my clothes|on the way home|at the table].
next time I want to [stay longer|bring a {thing}|see {place2} too].
""")
WAITING = lines("""
the [train|bus|boat|post] was late, and [nobody knew why|it was cold|people began to talk to each other].
[a woman|an old man|a child] with a {obj} sat on the bench beside {hero}.
"[do you often wait here?" {hero} asked. "every week|where are you going?" {hero} asked. "to see my {carer}|is this seat free?" {hero} asked. "yes, it is]," came the answer.
they talked about [the weather|{food}|{place2}|their children|old times], and the time went by.
{weather}
it turned out that they both [came from the same village|knew {friend}|had lost a {onoun}|liked {food}].
when [the train|the boat|it] came at last, they [were almost sorry|shook hands|sat together].
{he} never learned the stranger's name, but {he} [often thought of that hour|kept the {onoun}|still smiles about it].
""")
OPINION = lines("""
people often ask [what makes a good friend|what makes a good day|why we tell stories|what a home is]. I think the answer is simple.
the most important thing [about bread|in a home|in a friend|in good work] is [time|care|honesty|patience].
there are three kinds of people: those who [talk|run ahead|wait], those who [listen|follow|complain], and those who [help|stay calm|begin].
some people think that [old things are useless|children know nothing|{virtue} is weakness], but [they are wrong|I have seen the opposite].
why do people [hurry|quarrel|travel|keep secrets]? perhaps because [they are afraid|they hope for something better|nobody taught them to wait].
a good [meal|story|friend|tool] does not need to be [loud|new|expensive] to be good.
take a {thing}, for example. it is [plain|small|old], but without it [the day is harder|nothing works].
my {carer} used to say that {lesson}, and I believe it.
we do not need much: {food}, a roof, [a few books|a warm coat|a friend] and something to [do|hope for].
that is what I have learned, and it was not [easy|quick].
in the end {virtue} is what [people remember|stays|matters].
""")
DATED = lines("""
in the year {year}, in the town of {town}, there lived {a_hero} called {hero}.
in {year} a [great storm|hard winter|long war|dry summer] came over {town}, and {a_hero} named {hero} [lost everything|had to leave|helped wherever {he} could].
{town}, {year}. {hero}, {a_hero}, [opened the shutters|walked down to the harbour|could not sleep].
it was the winter of {year}, and {hero}, {a_hero}, was on the way to {town}.
""")
KINDS = (PET, FAMILY, PLACE, LIKES, DAYS, OPINION, WAITING)
LISTS = W.LISTS
LISTS["pet_kind"] = ("dog", "cat", "rabbit", "hamster", "pony", "parrot", "kitten", "puppy", "goat", "hen", "mouse", "turtle")


def _some(w, templates, always=1):
    """The first `always` sentences and most of the others, in order."""
    return " ".join(w.raw(t) for i, t in enumerate(templates) if i < always or w.chance(0.62))


def essay(w):
    """One piece; half of the time it may begin with any of its sentences."""
    stories.cast(w)
    m = w.memory
    r = w.rng.random()
    if r < 0.12:
        season = w.pick(tuple(SEASONS))
        m.update(season=season)
        return _some(w, lines(SEASONS[season]), 2)
    if r < 0.27:
        m["year"] = str(w.rng.randint(1500, 1990))
        m["town"] = w.pick(prose.TOWN_START) + w.pick(prose.TOWN_END)
        told = stories.tell(w, "adult", w.pick([p for p in stories.PLOTS if p != "fable"]), short=w.chance(0.5))
        if m["hero"] == "I":
            return told
        return w.one(DATED) + " " + told.split(". ", 1)[-1]
    kind = w.pick(KINDS)
    if kind not in (PLACE, WAITING):
        m.update(his="my", him="me", he="I", hero="I", self="myself")
    if kind is PET:
        m.update(pet_kind=w.pick(LISTS["pet_kind"]))
    if kind is PLACE:
        m.update(job=m["noun"] if m["noun"] in W.ADULTS else w.pick(W.ADULTS))
    if kind is OPINION:
        return " ".join(w.raw(t) for t in w.several(kind, 4, 7))
    return _some(w, kind[w.rng.randint(0, 2) if w.chance(0.3) and kind not in (PET, WAITING) else 0:])
