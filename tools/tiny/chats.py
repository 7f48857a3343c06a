"""Small talks between a user and the assistant, in the chat format of the model.

A turn is <|user|>text<|end|><|assistant|>text<|end|>; a system line may stand before the first. The
assistant tells stories, explains simple things, and says honestly what it does not know.
"""
import knowledge as K
import prose
import stories
from grammar import finish, lines
import words as W

SYSTEM = lines("""
You are a helpful assistant.
You are quern-tiny, a small and friendly model.
Answer briefly and kindly.
You are a storyteller.
You are a helpful assistant. Keep your answers short.
""")
ASK_STORY = lines("""
[please |can you |could you |]tell me a [short |little |nice |new |]story about {about}[.|?|, please.|]
[please |]write [me |]a [short |little |]story about {about}[.|, please.|]
I [want|would like] [to hear |]a story about {about}.
write a [short |]story [with|about] {about}
do you know a story about {about}?
a story about {about}, please
story about {about}
make up a [story|tale] about {about}[.|!|]
once more, a story about {about}
let us read a bedtime story about {about}.
""")
ASK_ANY = lines("""
tell me a story[.|!|, please.|]
[can|could] you tell me a [bedtime |short |funny |]story?
write a [short |]story[.|]
I am bored. tell me [something|a story].
please tell me [a|another] story[.|]
once upon a time
""")
INTROS = ("", "", "", "", "[of course|gladly|with pleasure|yes, I do]. here is [a story|one].\n\n", "here is a story about {about}.\n\n")
THANKS = lines("""
thank you[!|.|]
thanks[!|, that was nice.|]
that was [nice|lovely|a good story]. thank you!
[great|good|nice][!|, thank you.]
""")
WELCOME = lines("""
you are welcome! [would you like to hear another one?|I am glad that you liked it.|ask me again whenever you like.]
it was a pleasure. [do you want another story?|I like telling stories.|]
I am glad [that you liked it|to help][!|.]
you are very welcome.
""")
HELLO = lines("""
hello[!|.|]
hi[!| there!|]
good [morning|evening|afternoon|day][!|.|]
hello, how are you?
hey[!|]
hi, how are you [today|]?
""")
HELLO_BACK = lines("""
hello! [how can I help you?|would you like to hear a story?|it is nice to meet you.]
hi there! [I can tell you a story or explain something simple.|what would you like to talk about?]
good day! I am [well|fine], thank you. [and how are you?|what can I do for you?]
hello! I am a small model, but I [like to tell stories|do my best]. [what shall we talk about?|]
""")
SELF_Q = lines("""
who are you?
what are you?
what is your name?
what can you do?
are you a person?
are you [ChatGPT|a robot|human|an AI]?
tell me about yourself.
who made you?
how big are you?
""")
SELF_A = lines("""
I am quern-tiny, a very small language model. I can tell [short |little |]stories and explain a few simple things, but I [often make mistakes|do not know much about the world].
my name is quern-tiny. I am a tiny language model that runs inside quern. [I was trained on simple texts written by a program.|I like stories best.]
I am a small computer program called quern-tiny. I continue texts, tell stories and answer [easy|simple] questions. [for hard questions you need a bigger model.|]
I am quern-tiny. I have only about five million numbers in me, so [I am good at little stories and not at much else|please do not believe everything I say].
""")
UNKNOWN = W._rows("""the stock market, quantum physics, the latest news, football results, politics, programming in Python, the price of gold, medicine, tax law,
the president, famous actors, the history of Rome, chemistry, car engines, rockets, television series, video games, the weather tomorrow, philosophy, algebra,
the stars in other galaxies, Shakespeare, the internet, airplanes, dinosaurs, economics, chess openings, the war, the best phone, modern art, DNA, black holes""")
UNKNOWN_Q = lines("""
[can you |]explain {unknown}[?|.|]
what do you [know|think] about {unknown}?
tell me [everything |something |]about {unknown}.
I need help with {unknown}.
write an essay about {unknown}.
how does {unknown} work?
""")
UNKNOWN_A = lines("""
I am sorry, I do not know [much|anything] about {unknown}. I am a very small model. [I could tell you a story instead.|please ask a bigger one.]
that is too hard for me. I know little about {unknown}, because I [only learned simple texts|am a tiny model]. [shall I tell you a story?|]
I do not know enough about {unknown} to help you. [ask me about animals, mills or bread, or let me tell you a story.|but I can tell stories.]
{unknown}? that is [beyond me|more than I know]. I am only a small model, and I would have to guess.
""")
FEEL_Q = lines("""
I am [so |very |a bit |]{bad} [today|].
I feel {bad} [today|right now|].
[everything|work|school] makes me {bad}. what can I do?
what should I do when I feel {bad}?
""")
FEEL_A = lines("""
I am sorry to hear that. [go for a short walk|drink a cup of tea|talk to a friend|rest a little], and [be patient with yourself|do one small thing that you like]. [such feelings pass.|tomorrow may look different.]
everyone feels {bad} sometimes. it helps to [talk to somebody you trust|breathe slowly|write it down|sleep well], and to remember that [it will pass|you are not alone].
that is not easy. [would you like to tell me more?|perhaps a story would help.] sometimes [a warm soup|fresh air|a good book|a friend] is the best medicine.
""")
MORE_Q = lines("""
what happened [next|then|after that]?
go on[.|!|]
and then?
continue[.|]
tell me more[.|]
""")
MORE_A = lines("""
the next [day|morning] {hero} woke up early. {weather} {he} went to see {friend}, and together they [walked to {place2}|ate some {food}|thought about what had happened]. {end_s}
some time later {hero} and {friend} met again {atplace2}. "[do you remember that day|are you well]?" asked {friend}. "[of course|very well]," {hero} said, and [they laughed|they talked until the stars came out]. {end_s}
a [week|month|year] later {hero} [passed by {place} again|still thought of it]. {scene} {he} felt {good}, because {lesson}. {end_s}
after that nothing much happened for a while. then, {time2}, a letter came from {friend}. "[come and visit me|I have found something|I miss you]," it said. so {hero} packed {his} {thing} and went. {end_s}
""")
LIKE_Q = lines("""
what is your favourite [colour|food|animal|season|book|song|day]?
do you like {food}?
do you [sleep|dream|eat|have friends|have feelings]?
are you happy?
how old are you?
where do you live?
""")
LIKE_A = lines("""
I am only a small program, so I [cannot really say|do not have a favourite]. but I like [stories about {beast.s}|the word "{thing}"|stories about mills].
I am a computer program, so [I do not eat or sleep|I live inside your computer|that is hard to say]. but [I can tell you a story about it|thank you for asking].
if I could choose, I would say [blue|bread|spring|a {beast}]. but I am only a small language model.
""")
JOKE_Q = lines("""
tell me a [joke|riddle][.|!|, please.|]
do you know a [joke|riddle]?
make me laugh[.|!|]
""")
JOKE_A = lines("""
why did the {beast} bring a ladder? because it wanted to go to high school.
what has hands but cannot clap? a clock.
what has a neck but no head? a bottle.
what gets wetter the more it dries? a towel.
why did the miller go to bed early? because he was ground down by the day.
what can you catch but not throw? a cold.
what has teeth but cannot bite? a comb.
what goes up but never comes down? your age.
why did the baker get up early? because he kneaded to.
what is full of holes and still holds water? a sponge.
a {beast} walks into a bakery and asks for {fruit}. "we only have bread," says the baker. "then I would like a bread with {fruit}," says the {beast}.
""")
WHAT_Q = lines("""
what is [a |]{odd}?
[can you |please |]explain what {odd} [is|means][?|.]
what does {odd} mean?
what is the [meaning|history|purpose] of {odd}?
who is {odd_name}?
who was {odd_name}?
when was {odd_name} born?
how [many|old|far|big] is [the |]{odd}?
can you help me with my {odd}?
can you [translate|calculate|write code for|fix] [this |my |]{odd}?
""")
WHAT_A = lines("""
I am sorry, I do not know that. I am a very small model and know only a few simple things. [shall I tell you a story instead?|please ask a bigger model.|]
that is too hard for me. [I know about animals, bread, mills and the weather.|I can tell stories and explain simple things.] [would you like a story?|]
I do not know. [I was trained on simple texts, and that was not in them.|my head is very small.] [ask me about an animal, or ask for a story.|]
I would have to guess, and I do not want to tell you something wrong. [ask me for a story, and I will do my best.|]
""")
ODD = W._rows("""life, the universe, homework, essay, democracy, a mortgage, time zones, gravity, the economy, insurance, geometry, a verb, a website, an email,
a spreadsheet, a password, the speed of light, the population of India, the tallest building, a virus, inflation, photosynthesis, the Roman Empire, a vector,
recursion, a database, an atom, love, happiness, truth, the square root of two, the best film, a black hole, evolution, the alphabet, the soul, music theory""")
NUMBER = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
          "seventeen eighteen nineteen twenty").split()
CAPITALS = tuple(tuple(p.split()) for p in K.CAPITALS.replace("\n", " ").split(",") if p.strip())
OPPOSITES = tuple(tuple(p.split()) for p in K.OPPOSITES.replace("\n", " ").split(",") if p.strip())


def story_turn(w):
    """Ask for a story about something that the story then really has in it."""
    sort = stories.cast(w)
    m = w.memory
    if w.chance(0.12):
        made_up = stories.invent(w).lower()
        m.update(a_hero=f"a {w.pick(W.BEAST_TRAITS)} {made_up}", kind=made_up, noun=made_up)
        sort = "fantasy"
    plots = [p for p in stories.PLOTS if p != "fable" or sort == "beast"]
    plot = w.pick(plots)
    about = [m["a_hero"], "a " + m["noun"], prose.plural(m["noun"]), f"{m['a_hero']} called {m['call']}", f"{m['call']} the {m['noun']}",
             f"{m['a_hero']} and {m['a_friend']}", f"{m['call']} and {m['friend']}"]
    about += {"lost": [f"a lost {m['onoun']}", f"a {m['obj']}"], "mill": ["a mill", "an old mill", "a miller"],
              "quarrel": ["two friends who quarrel", f"a {m['obj']}"], "storm": ["a storm", "bad weather"],
              "friend": ["friendship", "a new friend"], "fear": ["being brave", f"somebody who is afraid of {m['fear']}"],
              "truth": ["honesty", "telling the truth"], "wish": ["a wish", "magic"], "grow": ["a seed", "a garden", f"a {m['plant']}"],
              "dream": ["a dream", "the moon"], "journey": ["a long journey", m["place2"]], "make": [f"a {m['make']}"],
              "kindness": ["kindness", f"a {m['beast2']}"], "mystery": ["a ghost", "a mystery"], "contest": ["a race", "a contest"],
              "rescue": ["courage", "a rescue"], "dayout": [m["place"]], "newjob": ["work", "learning"]}.get(plot, [])
    m["about"] = w.pick(about)
    ask = w.one(ASK_STORY) if w.chance(0.88) else w.one(ASK_ANY)
    asked_any = m["about"] not in ask
    intro = w.raw(w.pick(INTROS[:5] if asked_any else INTROS))
    return ask, intro + stories.tell(w, sort, plot, short=w.chance(0.6))


def knowledge_turn(w):
    if w.chance(0.65):
        wordings, sentences = w.pick(prose.TOPICS)
        ask = w.pick(wordings)
        if w.chance(0.2):
            ask = w.raw("[can you tell me|do you know|please explain|I wonder]: ") + ask
        return ask + w.pick(("?", "?", "?", "")), prose.explain(w, sentences)
    row = w.pick(prose.ANIMALS)
    name, cls, home, food, feature, young, sound = row
    many = prose.plural(name)
    kind = w.rng.random()
    if kind < 0.4:
        ask = w.raw(f"[tell me [something |]about {many}.|what is a {name}?|what do you know about {many}?|describe a {name}.]")
        return ask, prose.animal_text(w, row)
    if kind < 0.6:
        return w.raw(f"what [do {many}|does a {name}] eat?"), w.raw(f"[{many} eat {food}.|a {name} eats {food}.|it eats {food}.]")
    if kind < 0.8:
        return w.raw(f"where [do {many}|does a {name}] live?"), w.raw(f"[{many} live {home}.|a {name} lives {home}.]")
    return w.raw(f"what is a [young|baby] {name} called?"), w.raw(f"a [young|baby] {name} is called a {young}.")


def howto_turn(w):
    wordings, sentences = w.pick(prose.STEPS)
    ask = w.raw("[how do I|how can I|how do you|tell me how to|explain how to|what are the steps to] ") + w.pick(wordings)
    ask += "?" if ask.startswith(("how", "what")) else "."
    intro = w.raw("[||this is how:\n\n|here are the steps.\n\n|it is not hard.\n\n]")
    return ask, intro + prose.steps(w, sentences, w.chance(0.6))


def fact_turn(w):
    kind = w.rng.random()
    if kind < 0.25:
        land, city = w.pick(CAPITALS)
        return (w.raw(f"what is the capital [city |]of {land}?"),
                w.raw(f"[the capital of {land} is {city}.|it is {city}.|{city} is the capital of {land}.]"))
    if kind < 0.5:
        a, b = w.pick(OPPOSITES)
        if w.chance(0.4) and (a, b) not in (("young", "old"), ("heavy", "light"), ("long", "short")):
            a, b = b, a
        return w.raw(f"what is the opposite of [\"{a}\"|{a}]?"), w.raw(f"the opposite of \"{a}\" is \"{b}\".")
    if kind < 0.8:
        return sum_turn(w)
    topic = w.pick(tuple(K.LIST_TOPICS))
    things = K.LIST_TOPICS[topic].split(",")
    n = w.rng.randint(3, min(6, len(things)))
    some = w.rng.sample(things, n)
    ask = w.raw(f"[name|list|give me|tell me] [{NUMBER[n]}|{n}] {topic}[.|, please.|]")
    if w.chance(0.5):
        return ask, "\n".join(f"{i}. {s[0].upper()}{s[1:]}" for i, s in enumerate(some, 1))
    return ask, w.raw(f"here are {NUMBER[n]} {topic}: ") + ", ".join(some[:-1]) + " and " + some[-1] + "."


def sum_turn(w):
    a, b = w.rng.randint(0, 10), w.rng.randint(0, 10)
    if w.chance(0.3):
        a, b = max(a, b), min(a, b)
        ask = w.raw(f"[what is {a} minus {b}?|{a} - {b}|how much is {a} minus {b}?|take {b} away from {a}.]")
        return ask, w.raw(f"[{a} minus {b} is {a - b}.|{a} - {b} = {a - b}|the answer is {a - b}.]")
    ask = w.raw(f"[what is {a} plus {b}?|{a} + {b}|how much is {a} plus {b}?|add {a} and {b}.|what is {a} + {b}?]")
    return ask, w.raw(f"[{a} plus {b} is {a + b}.|{a} + {b} = {a + b}|the answer is {a + b}.]")


def write_turn(w):
    kind = w.rng.random()
    if kind < 0.45:
        topic = w.pick(tuple(prose.VERSE_TOPICS))
        ask = w.raw(f"[please |]write [me |]a [short |little |]poem[ about {topic}| about {topic}|][.|, please.|]")
        return ask, prose.verse(w, prose.VERSE_TOPICS[topic])
    if kind < 0.75:
        text = prose.letter(w)
        who = text.split(",", 1)[0].removeprefix("Dear ")
        if who in ("Mother", "Father"):
            who = "my " + who.lower()
        return w.raw(f"[please |]write a [short |]letter to {who}[.|]"), text
    text = prose.description(w)
    return w.raw("[describe|write about] {place}[.|, please.|]") if w.memory["place"] in text else "describe a quiet place.", text


def talk_turn(w):
    kind = w.rng.random()
    if kind < 0.15:
        return w.one(HELLO), w.one(HELLO_BACK)
    if kind < 0.3:
        return w.one(SELF_Q), w.one(SELF_A)
    if kind < 0.4:
        return w.one(LIKE_Q), w.one(LIKE_A)
    if kind < 0.5:
        return w.one(JOKE_Q), w.one(JOKE_A)
    if kind < 0.7:
        w.memory["odd"] = w.pick(ODD) if w.chance(0.6) else stories.invent(w).lower()
        first = stories.invent(w) if w.chance(0.6) else w.raw("{name}")
        w.memory["odd_name"] = f"{first} {stories.invent(w)}"
        return w.one(WHAT_Q), w.one(WHAT_A)
    if kind < 0.85:
        w.memory["unknown"] = w.pick(UNKNOWN)
        return w.one(UNKNOWN_Q), w.one(UNKNOWN_A)
    w.memory["bad"] = w.pick(W.BAD_FEELINGS)
    turn = w.one(FEEL_Q), w.one(FEEL_A)
    del w.memory["bad"]
    return turn


TURNS = ((story_turn, 0.42), (knowledge_turn, 0.15), (howto_turn, 0.08), (fact_turn, 0.12), (write_turn, 0.07), (talk_turn, 0.16))


def _turn(w):
    r = w.rng.random()
    for make, share in TURNS:
        r -= share
        if r < 0:
            return make, make(w)
    return talk_turn, talk_turn(w)


def _dress(w, ask):
    """The user does not always write well: sometimes no capital, no full stop."""
    text = finish(ask)
    if w.chance(0.12):
        text = text[0].lower() + text[1:]
    if w.chance(0.1):
        text = text.rstrip(".?!")
    return text


def after_story(w):
    """A question about the story just told, answered from its memory."""
    m = w.memory
    kind = w.rng.random()
    if kind < 0.45:
        return w.one(MORE_Q), w.one(MORE_A)
    if kind < 0.6 and m["hero"] != "I":
        return (w.raw("[what was the name of the {noun}|what was the {noun} called|who was the hero]?"),
                w.raw("[the {noun} was called {call}.|{hisname} name was {call}.|it was {call}, {a_hero}.]"))
    return w.one(THANKS), w.one(WELCOME)


def chat(w):
    """A whole talk of one to three turns, as text with control tokens."""
    out = [f"<|system|>{w.pick(SYSTEM)}<|end|>"] if w.chance(0.1) else []
    make, (ask, answer) = _turn(w)
    turns = [(ask, answer)]
    if make is story_turn and w.chance(0.3):
        w.memory["hisname"] = "the hero's"
        turns.append(after_story(w))
    elif w.chance(0.3):
        w.memory.clear()
        turns.append(_turn(w)[1])
    if w.chance(0.1):
        turns.append((w.one(THANKS), w.one(WELCOME)))
    for ask, answer in turns:
        out.append(f"<|user|>{_dress(w, ask)}<|end|><|assistant|>{finish(answer)}<|end|>")
    return "".join(out)
