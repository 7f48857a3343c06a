"""More plots, in the form that plots.py explains."""

MORE_LESSONS = {
    "trade": """
a thing is worth what it means to you
it is good to know what you want before you give away what you have
a happy heart cannot be bought
""",
    "invent": """
every great invention begins with a mistake
it is worth trying one more time
simple ideas are often the best
""",
    "king": """
even a king must listen
a wise answer needs few words
the truth may come from the smallest mouth
""",
    "music": """
music can open any door
what we love to do, we learn to do well
a song is best when it is shared
""",
    "stranger": """
you cannot know somebody by the look of a coat
a stranger is a friend you have not met yet
a warm welcome costs nothing
""",
    "animalhome": """
love sometimes means letting go
a home is where somebody waits for you
small animals have great hearts
""",
    "feast": """
a little from everyone is enough for all
food tastes best when it is shared
many small spoons fill a big pot
""",
    "letterlost": """
it is never too late to answer
good words can travel a long way
old friends are like old songs
""",
}

MORE_PLOTS = {}

MORE_PLOTS["trade"] = """
{hero} had a {obj}, but {he} [wanted something better|was tired of it|had no use for it].
{time}, {hero} took {his} {obj} to {place} to [sell it|trade it for something better].

on the way {he} met {friend}, {a_friend}, who was [leading a {beast2}|carrying a {thing}|pushing a cart].
first {he} met {friend}, {a_friend}. "what a fine {onoun}," said {friend}.

"I will give you my {thing} for your {onoun}," said {friend}. {hero} [thought it was a good trade|agreed at once].
"let us trade," said {friend}. "your {onoun} for my {thing}." and [so they did|they shook hands on it].

?+scene

---

a little further on, {he} traded the {thing} for [a basket of {fruit}|a {little} {beast2}|a sack of {vegetable}].
then [a woman|an old man] offered {him} [a {little} {beast2}|a bag of seeds|a whistle] for the {thing}, and {he} took it.

but the {beast} [ate half of it|ran away with it], and soon {he} had [almost nothing|only a button] left.
after {number} trades {he} [looked into {his} bag|stopped to think], and all that was left was [a feather|a button|a piece of string].

+bad

?"I was a fool," {he} said.

---

on the way home {he} met {friend} again, who was [sitting on a stone|looking {bad}]. "your {onoun} [is of no use to me|does not work]," said {friend}. "[would you like it back|will you trade again]?"
then somebody called. it was {friend}. "I need [a feather|a button|a piece of string] more than anything," said {friend}, "and I will give you the {onoun} for it."

{hero} [could hardly believe {his} luck|laughed out loud] and [took back {his} {obj}|agreed].
so in the end {he} had {his} {obj} again, [and nothing more|and a good story besides].

"you are back with the same {onoun}?" {his} {carer} asked. "yes," {hero} said, "but [now I know what it is worth|I like it better than before]."

+good

?+moral

+end
"""

MORE_PLOTS["invent"] = """
{hero} liked to invent things. {time}, {he} had a new idea: a machine that could [peel {vegetable}|make {food}|wake people up with music|catch the wind|sort buttons by colour|brush a {beast}].
"what the world needs," {hero} said {time}, "is a machine for [folding blankets|feeding {bird.s}|finding lost {thing.s}|cutting bread]."

{he} [collected|found] wheels, springs, {number} spoons and an old {thing}, and {he} began to build.
in the shed {he} had [wheels of every size|boxes full of screws|an old bicycle], and {he} worked there day and night.

{friend}, {a_friend}, [came to watch|held the lamp|handed {him} the tools]. "[will it work|is it safe]?" asked {friend}. "[we shall see|almost certainly]," {hero} said.

---

when they turned it on, the machine [shook|hissed|whistled|rattled], and then [there was a loud bang|smoke came out|it ran out of the door|it threw {food} against the ceiling].
the first test was [a surprise|a disaster]: the machine [went backwards|would not stop|made everything worse].

the neighbours [laughed|complained|ran away], and {hero} [was covered with soot|had {food} in {his} hair].

+bad

"what did we learn?" asked {friend}. "that [it needs a smaller wheel|the spring is too strong|I forgot the brake]," {hero} said.

+think

---

{he} took it apart and [left out half of the wheels|put it together again in another way|made it simpler].
again and again {he} changed something, and [at the tenth try|one quiet morning] it [hummed softly|turned without a sound].

and it worked! the machine [did its job perfectly|did something quite different from what {he} had planned, but very useful].

soon everyone {atplace} wanted one, and the same neighbours who had laughed [stood in line|brought {him} {food}].

+good

?+moral

+end
"""

MORE_PLOTS["king"] = """
the [king|queen] of that land was [sad|bored|ill], and nobody knew how to help. "whoever makes me [laugh|happy|well] shall have [half my kingdom|a chest of gold|whatever he likes]," the message said.
{time}, the [king|queen] asked a question: "[what is the most precious thing in the world|what is stronger than iron|what can you give away and still keep]?" ^nobody knew the answer.

people came from [near and far|every village], with [jokes and music|clever words|rare {thing.s}], but [it was no use|nothing helped].

{hero} heard about it {atplace}. "I will try," {he} said. {friend}, {a_friend}, [laughed|shook {fhis} head|wished {him} luck].
"why should I not try?" {hero} said to {friend}, {a_friend}. {he} [brushed {his} coat|took {his} {obj}] and went to the castle.

---

the guards [did not want to let {him} in|looked at {his} shoes]. "[I have come to help|I know the answer]," {hero} said, and [they stepped aside|something in {his} voice made them listen].
the great hall was [cold and silent|full of gold], and the ruler sat [alone at a long table|on a high chair, looking tired].

"well?" said the ruler. "[what have you brought|what do you say]?" {hero} [took out {his} {obj}|bowed].
{hero} [did not bow very low|was not afraid]. "[may I ask you something first|when did you last take a walk]?" {he} said.

"come with me," {hero} said, and led the ruler [into the garden|to the kitchen|to the mill], where they [baked bread|planted a {plant}|listened to {sound}].
"the answer is [a promise|a friend|time|a kind word]," {hero} said. the ruler was silent for a while. "[nobody told me that before|you are right]."

---

for the first time in years the ruler [laughed|smiled|ate with a good appetite].

"now choose your reward," said the ruler. "I need no gold," {hero} said. "[but the village needs a new well|give the people a holiday|a sack of flour would be enough]."

and so it was done. {hero} went home with [light steps|a song|the thanks of everyone].

+good

?+moral

+end
"""

MORE_PLOTS["music"] = """
{hero} loved music, but {he} had [no instrument|nobody to play with|a voice like a {beast2}].
in the attic {hero} found an old [fiddle|flute|drum|trumpet], covered with dust.

when {he} [played|practised|sang], [the windows shook|the cat hid under the bed|the neighbours closed their doors].
the first notes sounded like [a door that needs oil|a hungry {beast2}|rain in a bucket].

+bad

"[stop that noise|not again]!" people said. only {friend}, {a_friend}, [listened|stayed]. "[it will be good one day|there is a tune in it]," {fhe} said.

---

so {hero} went to {place}, where [nobody could hear {him}|only the {bird.s} listened], and played every day.
every evening {friend} taught {him} [a new note|an old song|how to listen first].

[weeks|months] went by. {scene} slowly the noise became [a tune|music], and even the {bird.s} [stopped to listen|sang along].

then, {time2}, [there was a feast|the fair came|a wedding was held] {atplace2}, but the musician [was ill|had lost the way|had a broken arm].
{time2}, a thick fog came down, and the [fishermen|children|shepherds] could not find their way home.

"I can play," {hero} said [softly|with a red face]. people [looked at each other|did not believe it].
{hero} took a deep breath and began to play [as loudly as {he} could|as {he} had never played before].

---

{he} played, and [everyone began to dance|people forgot the time|they followed the sound and came home safely].

when {he} stopped, it was very still, and then everybody [clapped|cheered|asked for more].

+good

?+moral

+end
"""

MORE_PLOTS["stranger"] = """
{time}, a stranger came to {place}. {fhe_cap} was {friend}, {a_friend}, and {fhe} [wore a strange hat|spoke very little|carried only a {obj}].
one [stormy|cold|dark] night there was a knock at the door. outside stood {friend}, {a_friend}, with a {obj} under {fhis} arm.

people [whispered|closed their shutters|crossed the street]. "[be careful|we do not know that one]," they said.
nobody wanted to [let {fhim} in|talk to {fhim}|give {fhim} a bed].

but {hero} [opened the door|said good morning|made room at the table]. "come in," {he} said. "[there is {food}|you must be tired]."
only {hero} [was curious|was not afraid] and [offered {fhim} a chair|shared {his} {food}].

?+chat

---

{friend} [stayed for a few days|slept in the barn] and [helped with the work|mended the {thing}|told stories of {place2}].
"where do you come from?" {hero} asked. "[from far away|from {place2}|from many places]," said {friend} {saidly}.

{time2}, [the well ran dry|a fire broke out|the river rose|the children fell ill], and nobody {atplace} knew what to do.

"let me help," said {friend}. {fhe} [had seen such things before|knew an old remedy|was stronger than anyone thought], and [worked all night|did not rest until it was done].
then {friend} opened {fhis} bag, and inside was exactly [the tool|the medicine|the rope] that they needed.

---

the next day people came with [{fruit} and {food}|red faces|flowers]. "we were wrong about you," they said.

"[thank {call}|somebody opened a door for me]," said {friend}. "[that was enough|the rest was easy]."

from then on {friend} [stayed|came back every {season}], and nobody called {fhim} a stranger any more.

+good

?+moral

+end
"""

MORE_PLOTS["animalhome"] = """
{time}, {hero} found a {little} {beast2} [under a bush|in a box|on the doorstep]. it was [cold and hungry|all alone].
it was [raining|snowing] when {hero} heard a sound [behind the house|in the shed]. there sat a {little} {beast2}.

"may I keep it?" {he} asked. "[only until it is well|if you take care of it]," said {his} {carer}.
{he} [carried it inside|wrapped it in a scarf] and gave it some [milk|water|bread].

{he} called it {pet_name}, and it [slept in an old hat|followed {him} everywhere|ate from {his} hand].

+good

---

but as {pet_name} grew, it [looked out of the window more and more|became restless|stopped eating].
{pet_name} grew [bigger every day|strong and quick], and soon the house was [too small|full of broken cups].

"it is a wild animal," said {friend}, {a_friend}. "[it misses the forest|it needs to be free]."

+bad

?+think

---

so, {time2}, {hero} took {pet_name} to {place}, [opened the basket|set it down] and [stepped back|waited].
it was the hardest thing {he} had ever done. {he} [opened the gate|said goodbye] and let it go.

{pet_name} [looked back once|touched {his} hand] and then [ran|was gone] between the trees.

the house was very quiet after that. but {time2}, [when the snow melted|early in the morning], there was a scratching at the door.
months later, when {he} was walking {atplace}, [something touched {his} leg|{he} heard a sound {he} knew].

it was {pet_name}, and behind it came [two|three|four] little ones. it had come to show them to {him}.

+good

?+moral

+end
"""

MORE_PLOTS["feast"] = """
it had been a bad year {atplace}, and nobody had much to eat. {hero} had only [one onion|a few {vegetable}|a stone and a pot].
winter was long, and the cupboards were empty. {hero} looked at {his} last [potato|onion|handful of flour] and had an idea.

{he} put a big pot on the fire in the middle of {place} and [filled it with water|began to stir].
"I am making a soup for everyone," {he} [said|called]. "[it is almost perfect|it only needs a little something]."

people came out of their houses. {friend}, {a_friend}, was the first. "what is in it?" {fhe} asked. "[not much yet|water and hope]," {hero} said.

---

"I have a carrot," said {friend}, and [put it in|ran to fetch it].
{friend} [went home and came back with|found] a bag of beans. "[will this help|it is all I have]," {fhe} said.

then others came. one brought {vegetable}, another brought [salt|herbs|a bone], and a child brought [one small egg|a handful of mushrooms].
the baker brought [yesterday's bread|a loaf], the farmer brought {vegetable}, and [an old woman|the {job}] brought [salt|butter].

soon the soup smelled [so good that nobody wanted to leave|of {smell} and summer].
{scene} the pot was full to the brim.

---

they [sat down together|fetched bowls and spoons], and there was enough for everyone, even for the [cat|dogs|{bird.s}].

"how did you do that?" asked {friend}. "you had nothing." "[nobody had much|we all had a little]," {hero} said, "but [together it was a feast|a little and a little is a lot]."

somebody [played the fiddle|told a story|began to sing], and they [stayed until midnight|forgot the cold].

+good

?+moral

+end
"""

MORE_PLOTS["letterlost"] = """
{time}, while {hero} was [cleaning|looking for {his} {onoun}], {he} found a letter [behind a drawer|in an old {thing}|under a loose board].
the postman brought a letter that was [ten|twenty|many] years late. it was addressed to {hero}.

it was from {friend}, {a_friend}, whom {he} [had not seen for years|had almost forgotten|had once quarrelled with].

"[I am sorry for what I said|I am going away|meet me {atplace}]," it said. "[please answer soon|I will wait for you|do not forget me]."

+bad

"all this time I thought that {friend} [was angry|did not care|had forgotten me]," {he} said.

---

{he} [did not wait an hour|packed a bag|took the first train]. {he} had to find {friend}.
{his} {carer} said, "[it is too late|so many years]." but {hero} [was already at the door|shook {his} head].

first {he} asked at the old address. "[{friend} moved away long ago|nobody lives here now]," said [a neighbour|a woman with a {beast}]. "[try {place2}|ask the {job}]."

?+think

{he} asked {atplace} and {atplace2}. {scene} [at last|on the third day] somebody [nodded|pointed to a small house].

---

{hero} knocked. the door opened, and there stood {friend}, [older, but with the same smile|with grey hair|looking surprised].

"I got your letter," {hero} said. "[it took a long time|the post was slow]." {friend} [began to laugh|could not speak|wiped {fhis} eyes].

they [drank tea|sat in the garden] and talked [all night|until the candle was gone], and [it was as if no time had passed|there was so much to tell].

+good

?+moral

+end
"""
