"""Story plots as data. Each plot is a row of stages; every stage offers several sentences, one to a line.

Stages are set apart by blank lines. `---` begins a new paragraph, `?` before a stage makes it optional,
`+name` inserts a filler of that name (see FILLERS). The order is the logic: cause comes before consequence,
and a thing is introduced before it is spoken of. {hero} may be "I", so no sentence uses the hero's name
as a possessive or puts a verb before it.
"""

FILLERS = {
    "scene": """
a [soft|cool|light] breeze moved the leaves of the {tree.s}.
far away {sound} could be heard, and then it was quiet again.
{number} {bird.s} sat on the [roof|fence|wall] and [watched everything|chattered|waited].
[dust danced in the light|drops hung from the leaves|smoke rose from a chimney], and it smelled of {smell}.
an old [cart|boat|bench] stood [there|by the way|in the shade], [forgotten by everyone|covered with {flowers}].
{weather}
the air smelled of {smell}.
somewhere [far away|nearby|outside] {he} could hear {sound}.
a {bird} sang in [the|a] {tree}.
the [path|road|grass] was [still wet|dry and warm|covered with leaves|full of {flowers}].
{weather} the air smelled of {smell}.
from far away came the sound of {sound}.
it was so quiet that {he} could hear {sound}.
the [light|sky] was [soft|clear|pale|golden] and [the shadows were long|nothing moved|the day seemed full of promise].
{flowers} grew along the [path|wall|fence], and a {bird} hopped between them.
""",
    "good": """
{hero} had not felt so {good} for a long time.
"this is [a good day|better than I dreamed]," {he} thought.
a great weight fell from {his} shoulders.
{he} [hummed all the way|danced a few steps|jumped for joy], and {friend} [laughed|joined in].
{hero} looked at {friend}, and both of them began to [laugh|sing|smile].
everything was [all right|well] again, and {hero} felt {good}.
{he} would remember this for the rest of {his} life.
{hero} felt {good}.
{he} felt {good} and [a little|very] {good2}.
{he} could not stop smiling.
it was [one of the best days of {his} life|a day to remember|more than {he} had hoped for].
{his} heart [was light|beat fast with joy|felt warm].
{hero} laughed [out loud|until {his} sides hurt|for the first time in days].
nothing could [have made {him} happier|spoil {his} mood now].
""",
    "bad": """
{hero} had never felt so {bad} in all {his} life.
"[what am I to do|why me|what have I done]?" {he} thought.
{he} swallowed hard and [looked away|tried not to cry|pretended that nothing had happened].
it was as if a cloud had [covered the sun|come down over {place}].
{he} [kicked a stone|bit {his} lip|walked up and down] and felt {bad}.
a cold feeling [crept up {his} back|settled in {his} stomach].
all the joy had gone out of the day.
{hero} felt {bad}.
{he} felt {bad} and [a little|very] {bad2}.
{he} [wanted to cry|did not know what to say|stared at the ground|could not sleep that night].
{his} heart [sank|was heavy|beat fast].
for a [long time|while|moment] {he} said nothing at all.
tears came to {his} eyes, but {he} [wiped them away|did not give up|tried to be brave].
everything seemed [dark|wrong|harder than before].
""",
    "think": """
{he} walked up and down, up and down, until [an idea came|{he} knew what to do].
"if I [wait|give up|run away] now," {he} thought, "[nothing will change|I will be sorry later]."
what had {his} {carer} always said? "begin with what you have."
{he} [closed {his} eyes|looked at the clouds|listened to {sound}] and tried to think clearly.
there were only two ways: to give up or to go on. {hero} went on.
{hero} sat down [on a stone|on a log|by the wall|in the grass] and thought.
"[there must be a way|I must think|I will not give up]," {he} said to {self}.
{he} thought about it [all night|for a long time|again and again].
at first {he} had no idea what to do. then {he} had [an idea|a plan|a better thought].
{he} counted to ten, took a deep breath and [began again|looked around|made up {his} mind].
{he} knew that [waiting would not help|it would not be easy|somebody had to try].
""",
    "moral": """
from that day on, {hero} [knew|never forgot] that [{virtue} is worth more than gold|a good friend is the best treasure|it is never too late to say sorry|even small hands can do great things].
and {he} learned that {lesson}.
"{lesson}," {he} [said|thought], and [it was true|nobody disagreed|everyone nodded].
{hero} had learned something important: {lesson}.
that is how {hero} learned that {lesson}.
and whenever somebody asked about it, {he} [smiled and said|always answered], "{lesson}."
""",
    "end": """
years later {hero} could still [smile|laugh] about it.
{both} [shook hands|hugged each other|bowed], and each went home.
from the window {hero} watched [the first stars|the snow|the lights of {place}] and felt {good}.
since then, {both} have [met every {season}|told the story many times|been seen together everywhere].
they still talk about it {atplace}, especially [on long winter evenings|over a plate of {food}].
and that is the end of the story.
the [lamp|fire] burned low, and {hero} [slept|dreamed|closed {his} eyes] in peace.
on the way home {he} [picked some {flowers}|ate an apple|whistled], and the world seemed [wider|kinder|brighter] than before.
that evening {both} [sat by the fire|ate {food} together|watched the stars|walked home side by side] and [talked until late|were happy|said very little, because nothing needed to be said].
and from then on they were the best of friends.
{hero} went home, ate [a bowl of|some] {food}, and fell asleep [at once|with a smile|before the moon was up].
when the moon rose, everything was [quiet|peaceful|as it should be].
and if you go to {place} today, you may [still hear people tell this story|see them there|hear them laughing].
it had been a long day, but [a good one|{he} would not have changed a minute of it].
that night {he} dreamed of [{sound}|the sea|flying over {place}|{food}].
and they all lived happily ever after.
the end of the day was [golden and still|cool and clear], and so was {his} heart.
the next day the sun came up [as always|over {place}|bright and warm], and [a new story began|life went on|there was work to do].
""",
    "chat": """
"[what are you doing|where are you going|what is the matter|why are you here]?" asked {friend}. "[I will tell you later|it is a long story|come with me and you will see|I am not sure yet]," {he} [said|answered].
"[good morning|hello|well, well]," {friend} said. "[you look {bad}|you are up early|I did not expect to see you here]."
"[do you think it will work|are we nearly there|what shall we do now|is it dangerous]?" {hero} asked. "[I think so|I hope so|we shall see|not if we are careful]," said {friend} {saidly}.
"[do not worry|be patient|never mind|trust me]," said {friend}. "[we will find a way|everything takes time|two heads are better than one|I have seen worse]."
"[thank you|you are very kind|I am glad you came]," {hero} said. "[you are welcome|that is what friends are for|it was nothing]," said {friend}.
""",
}

LESSONS = {
    "lost": """
what is lost is not always gone
two pairs of eyes see more than one
the best place to look is the one you forgot
a friend is worth more than [gold|a {thing}|any {onoun}]
""",
    "friend": """
a friend is worth more than [gold|a {thing}|any prize]
to have a friend, you must be one
one small hello can change everything
""",
    "storm": """
every storm comes to an end
many hands make light work
it is good to have a friend when the sky is dark
""",
    "make": """
mistakes are the best teachers
slow and careful work lasts the longest
it is better to ask for help than to struggle alone
a gift made by hand is a gift from the heart
""",
    "fear": """
being brave does not mean having no fear
fear grows smaller when you walk towards it
love is stronger than fear
""",
    "quarrel": """
sharing makes a thing twice as good
it is never too late to say sorry
no {onoun} is worth a friend
""",
    "kindness": """
a kindness is never lost
help comes from where you least expect it
nobody is too small to help
""",
    "mystery": """
most ghosts are only {beast2.s} or the wind
things look smaller in the light
it is better to look than to guess
""",
    "journey": """
a long road is short with good company
whoever shares will always find a guide
home looks different when you come back
""",
    "contest": """
there are better things than winning
practice goes further than talent
the best prize is a good friend
""",
    "truth": """
the truth is easier to carry than a lie
a broken {onoun} can be mended sooner than broken trust
honesty takes courage
""",
    "wish": """
you should be careful what you wish for
enough is as good as a feast
the best things cannot be wished for
""",
    "mill": """
a small thing can stop a great wheel
it is best to look for the cause before you begin
many hands make light work
""",
    "fable": """
a clever head is better than a strong arm
pride makes even the strong look foolish
who shares has more friends than who takes
""",
    "grow": """
good things take time
patience is a kind of strength
what you care for will grow
""",
    "rescue": """
a cool head is worth more than a loud voice
courage means doing what must be done
somebody has to take the first step
""",
    "newjob": """
nobody is born a master
whoever asks questions learns quickly
good work begins with good listening
""",
}

PLOTS = {}

PLOTS["lost"] = """
{time}, {hero} [noticed|discovered|saw] that {his} {obj} was gone.
{time}, {hero} reached for {his} {obj}, but it was not there.
{hero} had a {obj} that {he} loved more than anything. {time}, it disappeared.
the {obj} had been a present from {his} {carer}, and {time} it was nowhere to be found.

+bad

"where is my {onoun}?" {he} asked. "[I had it yesterday|it was here this morning|I am sure I left it on the table]."
{he} looked under the bed, behind the door and [inside the cupboard|on every shelf|in all {his} pockets], but found only [dust|an old sock|a forgotten button].
{he} turned the whole house upside down, [but|and yet] there was no {onoun} anywhere.

---

first {he} went to {place}. {scene}
{he} decided to look {atplace}, where {he} had been the day before.
so {he} put on {his} [coat|boots|hat] and walked to {place}. {scene}

there {he} met {friend}, {a_friend}.
on the way {he} met {friend}, {a_friend}, who was [carrying a basket|mending a fence|picking {flowers}|eating {food}].
{friend}, {a_friend}, was already there.

"have you seen a {obj}?" {hero} asked.
"I have lost my {onoun}," {hero} said. "[please help me|I do not know where else to look]."

"no," said {friend}, "but [I will help you look|four eyes see more than two|we could look together]."
{fhe} shook {fhis} head. "I have not, but [let us search together|I know somebody who might have]," {fhe} said.
{friend} thought for a moment. "[When did you last see it|Where did you have it last]?" {fhe} asked. That was a good question.

?+chat

---

they looked [behind every stone|under the bushes|along the path|in every corner] until [the sun was low|their feet hurt|they were hungry].
they searched {atplace2} and {atplace}, [high and low|from one end to the other|without finding anything].
together they followed their own footsteps back, [slowly|step by step|from the beginning].

?+think

then {friend} [pointed|looked up|stopped suddenly]. there, [in the branches of a {tree}|in the nest of a {bird}|between two stones|under a pile of leaves], was the {onoun}!
suddenly {hero} saw something [shining|move|{colour}] [in the grass|under a bench|beside the wall]. it was the {onoun}!
in the end it was {friend} who found it: a {bird} had carried the {onoun} to its nest [and was sitting on it like an egg|because it liked the colour].
and then {hero} put a hand into {his} own [bag|pocket|hood] and [began to laugh|turned red]. the {onoun} had been there all the time.

+good

"thank you," {hero} said. "without you I would have given up."
to say thank you, {he} shared {his} {food} with {friend}.
{he} [held it tight|showed it to everyone|looked at it for a long time] and thanked {friend} [twice|three times|with all {his} heart].

---

?+moral

+end
"""

PLOTS["friend"] = """
{hero} had [a warm house, good {food} and many books|everything {he} needed], but {he} did not have a friend.
{hero} was new {atplace}, and {he} did not know anyone there.
every day {hero} [sat by the window|walked along the river|watched the others play] and wished for somebody to talk to.

+bad

---

{time}, {he} [heard|noticed] a small voice [behind the hedge|under the stairs|near the well]. it was {friend}, {a_friend}.
{time}, while {he} was walking {atplace}, {he} met {friend}, {a_friend}.
{time}, somebody knocked at the door. outside stood {friend}, {a_friend}, [wet from the rain|with a basket of {fruit}|holding a {obj}].

?+scene

"hello," said {friend}. "[would you like to play|are you lonely too|may I sit here]?"
"I am {friend}," {fhe} said. "what is your name?" "my name is {call}," {hero} answered.
at first {both} only looked at each other. then {friend} [smiled|held out a {fruit_one}|said hello].

"[I do not know how to make friends|nobody ever asked me that before]," {hero} said [quietly|shyly].
{hero} [did not know what to say|was too shy to answer], so {he} [nodded|smiled|offered {fhim} some {food}].

---

they [climbed a {tree}|built a little dam in the stream|flew a kite|counted the clouds|threw stones into the water] and [told each other stories|sang silly songs|shared some {food}].
{friend} showed {him} [how to whistle with a blade of grass|where the {flowers} grew|a secret path to {place2}|how to catch the wind in a sail].
soon they discovered that they both liked {food}, [rainy days|old stories|the smell of {smell}] and {sound}.

the hours went by like minutes.
before they knew it, the sun was going down.
neither of them noticed how late it was.

?+chat

---

but the next day {friend} did not come. {hero} waited [until noon|the whole morning|by the gate], and {he} began to worry.
the next morning there was a problem: {friend} was ill and had to stay in bed.
a week later they [quarrelled about a small thing|both said something unkind], and each went home alone.

so {hero} took {his} {obj} and [some {food}|a bunch of {flowers}], and went to find {fhim}.
{hero} did not wait any longer. {he} ran to the house of {friend} and knocked.

"I [thought|was afraid] that you had forgotten me," said {friend}. "[never|how could I]," {hero} said. "a friend does not forget."
{friend} was so glad to see {him} that {fhe} [laughed and cried at once|felt better at once|danced around the room].

---

+good

?+moral

+end
"""

PLOTS["storm"] = """
{time}, {both} were {atplace} when the sky turned dark.
it was [a hot and heavy day|strangely quiet {atplace}]. "there will be a storm," said {friend}, and {fhe} was right.
{time}, {hero} set out for {place2} with {friend}, although [clouds were gathering|the wind was rising|the old people had warned them].

[first came the wind|the first drops were as big as coins|a flash of lightning split the sky], and then [the rain poured down|thunder rolled over {place}|the trees began to bend].
the wind [pulled at their clothes|howled like a wolf|blew the leaves from the trees], and [soon they were wet to the skin|they could hardly see the way].

+bad

"we must find shelter!" {hero} [cried|shouted].
"what shall we do?" {hero} [cried|shouted]. "[follow me|hold my hand|keep close]!" {friend} called back.

---

they ran [as fast as they could|hand in hand|through mud and puddles] until they [found|came to] [an old barn|a small cave|a hut with a broken door|the old mill].
at last they saw [a light|a roof|the door of a barn], and they hurried inside.

inside it was [dry|warm|dark], and it smelled of {smell}.
there they found [dry straw|a few logs|an old blanket|a candle], and {friend} [lit a small fire|closed the door|made a bed].
they were not alone: a {jtrait} {beast} had come in before them, [shaking with fear|curled up in a corner|looking at them with round eyes].

they shared the last of the {food}, and [told stories|sang|waited] while the storm [went over them|shook the walls|raged outside].
"storms are loud, but they [do not last|always end]," said {friend} {saidly}.

?+chat

---

in the morning the world was [washed clean|bright and new|full of puddles]. {scene}
when the storm was over, a rainbow stood over {place}.
at last the rain stopped. [Drops hung from every leaf|The birds began to sing again|The river was high and brown].

but the storm had [broken the bridge|torn the roof from the barn|knocked down the fence|blocked the road with a fallen {tree}].
the only damage was [a broken window|a lost {onoun}|one fallen {tree}], and that could be mended.

so everyone [came to help|brought tools|worked together], and by the evening [it was as good as new|the work was done].
{hero} fetched a [hammer|saw|rope], {friend} brought [nails|boards|a ladder], and together they [mended what was broken|cleared the way].

+good

?+moral

+end
"""

PLOTS["make"] = """
{hero} wanted to make a {make} for {friend}, {a_friend}, [whose birthday was near|who had been ill|who had always been kind].
{time}, {hero} decided to make a {make}. "I have never made one before," {he} said, "but [I can learn|I am not afraid of work|I want to try]." only {friend}, {a_friend}, [believed it|knew about the plan].
"I am going to make a {make}," {hero} said [proudly|one day]. everybody [laughed|was surprised], except {friend}, {a_friend}.

{he} [found|gathered|collected] everything {he} needed: {needs}.
first {he} needed {needs}. some of it was in the house, and the rest {he} [bought at the market|borrowed from a neighbour].

+scene

---

{he} began [at once|after breakfast|with great care]. {he} [measured|mixed|cut|counted] and {he} [hummed a little song|did not hurry|worked until noon].
{he} worked all morning, [whistling|with {his} sleeves rolled up|with {his} tongue between {his} teeth].

but the first {make} was a [disaster|failure]: {failure}.
but something went wrong: {failure}.

+bad

?"I will never [learn it|be able to do it]," {he} sighed.

---

then {friend} came by and looked at it. "[what happened here|did you make this yourself]?" asked {friend}.
just then {friend} [looked in at the window|knocked at the door|came around the corner].

"everyone fails the first time," said {friend}. "[let me show you|tell me what you did|try again, and go slowly]."
"the trick is {trick}," said {friend}. "[I had to learn it too|my {carer} taught me that]."

{hero} listened [carefully|well], and [tried again|began once more]. this time {he} [took {his} time|did one thing after another|remembered every word].
so {both} [started again|made a new one] together, [slowly and carefully|laughing at every mistake].

and this time it worked. the {make} was [not perfect, but it was good|perfect|better than anyone had hoped].
by evening the {make} was ready. it was [a little crooked|beautiful|just right], and {hero} was [very|so] proud of it.

---

{he} gave it to {friend}, who [clapped {fhis} hands|did not know what to say|smiled from ear to ear]. "[it is the best present I ever had|nobody ever made me such a present]!" {fhe} said.
when people saw the {make}, they [asked for more|came from far away to look at it|could not believe it].

+good

?+moral

+end
"""

PLOTS["fear"] = """
{hero} was afraid of {fear}. [{he} had never told anyone|everybody knew it|it had always been like that].
[there was only one thing that {hero} feared|{hero} was brave in most things, but not in one]: {he} was afraid of {fear}.

when the others [laughed|played outside|went ahead], {he} [stayed behind|made up excuses|turned away].
even thinking about it made {his} [knees shake|hands cold|heart beat faster].

+bad

---

{time}, {friend}, {a_friend}, [called for help|did not come home|was in trouble] {atplace}.
{time}, {friend}, {a_friend}, came running. "[come quickly|you must help me]!" {fhe} cried. "there is trouble {atplace}!"

[nobody else was near|there was no time to lose]. {hero} [looked around|swallowed hard|closed {his} eyes for a moment].
"I cannot do it," {he} [thought|whispered]. but {he} thought of {friend}, and [took one step|opened the door|went on].

to get there, {he} had to face {fear}, and there was no other way.
and of course it was {fear} that stood between {him} and {friend}.

+think

---

{he} [counted every step|sang a song under {his} breath|held {his} {obj} tight], and [slowly|little by little] {he} went on.
step by step {he} went on, [although {his} legs were shaking|and with every step it became a little easier].

and then [it was over|{he} was through|there was {friend}], [and nothing bad had happened|safe and sound|waiting for {him}].
{he} found {friend} [sitting on a stone|stuck in the mud|behind a fallen {tree}] and helped {fhim} [up|out|home].

"you came," said {friend}. "I know how afraid you were." "I still am," {hero} said, "but [you were more important|not as much as before]."
"were you not afraid?" {friend} asked. "yes," {hero} said. "[but I came anyway|the whole way]."

---

+good

after that, {fear} did not [seem so terrible|stop {him} again|look half as bad].

?+moral

+end
"""

PLOTS["quarrel"] = """
{both} were [good friends|neighbours|always together]. {time}, they found a {obj} [lying on the path|{atplace}|in an old box].
{both} [shared everything|had never quarrelled] until the day when they found a {obj} {atplace}.

"it is mine!" {hero} said. "I saw it first." "no, it is mine," said {friend}. "I picked it up."
"let me have it," said {friend}. "why you?" {hero} asked. "[you already have so many things|I need it more than you]."

they [pulled|argued|shouted] until [the {onoun} broke in two|it fell into the water|they were both red in the face].
neither of them would give in, and [in the end each went home alone|they stopped speaking to each other].

+bad

---

the next day was [long and dull|very quiet]. {hero} [ate {his} {food} alone|had nobody to play with|looked out of the window again and again].
for three days they did not speak. {scene} but what use is a fine day without a friend?
at home, {hero} told {his} {carer} about it. "[was the {onoun} worth it|what is a {onoun} without a friend]?" {his} {carer} asked.

?+think

meanwhile {friend} was [just as unhappy|sitting at home with the same thoughts].

---

{time2}, {hero} [went to find {friend}|knocked at the door of {friend}|saw {friend} by the well]. "I am sorry," {he} said. "I was [selfish|wrong|angry]."
at last {hero} [took a deep breath|put on {his} coat] and went to {friend}. "I miss you," {he} said. "[can we be friends again?|I do not care about the {onoun}.]"

"I am sorry too," said {friend}. "[it was a silly quarrel|I should have shared]."
{friend} [looked at the ground|smiled]. "I was just coming to say the same," {fhe} said.

they decided [to share the {onoun}, one day each|to mend the {onoun} together|to give the {onoun} to somebody who needed it].
so they made a rule: [on even days it belonged to one, and on odd days to the other|whoever had it must lend it when asked].

+good

?+moral

+end
"""

PLOTS["kindness"] = """
{time}, {hero} was walking {atplace} when {he} heard a [weak|small|sad] cry.
{time}, on the way to {place}, {hero} [saw|found] something [moving|{colour}|trembling] in the grass.

it was a {little} {beast2}, caught in [a net|the thorns|a trap|the mud].
a {little} {beast2} lay there with a hurt [leg|foot|back], and [looked at {him}|could not move].

"[poor thing|do not be afraid]," {hero} said. "[I will not hurt you|hold still]."
other people [walked past|were in a hurry], but {hero} [stopped|knelt down].

{he} [freed it carefully|cut the ropes|gave it some water], and [shared {his} {food} with it|wrapped it in {his} scarf|carried it home].
{he} took care of the {beast2} for [three days|a week], until it was [strong|well] again.

the {beast2} [looked back once|thanked {him} with its eyes] and [disappeared between the trees|was gone].
"one day I will help you too," said the {beast2}. {hero} [smiled|laughed]. how could such a {little} animal help anyone?

---

[months|weeks|many days] went by, and {hero} [forgot all about it|thought of the {beast2} now and then].
winter came, and then spring.

then, {time2}, {hero} [lost the way {atplace2}|fell into a deep hole|was trapped by the high water|lost {his} {obj} in deep grass].
{time2}, trouble came: {hero} [lost the way in thick fog|got stuck on a high rock|dropped {his} {obj} into a deep well].

+bad

{he} called for help, but [nobody answered|only the echo answered|night was falling].

---

suddenly [there was a rustle|{he} heard a sound], and there was the {beast2}! [it had not forgotten {him}|behind it came all its brothers and sisters].
then somebody [touched {his} hand|called from above]. it was the same {beast2} that {he} had helped.

the {beast2} [showed {him} the way|ran to fetch help|knew exactly what to do], and before long [everything was well|{he} was safe|the trouble was over].

"thank you," {hero} said. "you helped me first," said the {beast2}.

+good

?+moral

+end
"""

PLOTS["mystery"] = """
every night, [at the same hour|when the clock struck twelve|just after dark], a strange [sound|light|smell] came from {place}.
{time}, {hero} found [strange footprints|a trail of crumbs|a row of {colour} feathers] {atplace}.
something strange was happening {atplace}: [every night some {food} disappeared|every morning a {thing} was missing|doors opened by themselves].

nobody knew what it was. [some said it was a ghost|the old people shook their heads|everyone had a different idea].
"[it must be a thief|it is only the wind|it is a ghost]," people said, but {hero} [was not so sure|wanted to know the truth].

{hero} told {friend}, {a_friend}, about it. "[let us find out|we should watch tonight]," {he} said.
"I am going to find out," {hero} told {friend}, {a_friend}. "[will you come with me|are you afraid]?" ^{friend} [nodded|was not afraid|had waited for that question].

---

that night they [hid behind a barrel|waited under a table|climbed into a {tree}] with a lantern and [a blanket|some {food}].
so when it was dark they [put on warm coats|took a lantern] and went to {place}.

they waited. {scene} [an hour passed|nothing happened|{friend} began to yawn].
it was [cold|very dark], and every [shadow|sound] made them jump.

then they [heard|saw] it: [a soft scratching|a low hum|a small light|something moving along the wall].
"[listen|look|there]!" whispered {friend}. [something moved|a board creaked|a light flickered].

?+think

---

{hero} lifted the lantern, and there stood [a {little} {beast2} with a {thing} in its mouth|a {little} {beast2} and {number} young ones].
they crept closer, and {hero} opened the door. it was only [a {little} {beast2}, looking for food|a {little} {beast2} that had lost its way].
what they saw made them laugh: a {little} {beast2} was [dancing in the moonlight|wearing an old hat|eating the last of the {food}].

"so you are our ghost!" {hero} said.
"so that is the answer," said {friend} {saidly}. "[a hungry guest|all that fear for nothing]."

they gave it [something to eat|a warm corner|some milk], and [from then on it came every evening|the noises stopped|it became the pet of everyone there].

the next morning {hero} told everybody the truth, and [they laughed about their fear|nobody believed it until they saw it].

+good

?+moral

+end
"""

PLOTS["journey"] = """
{his} {carer} was ill, and only [the water from a spring {atplace2}|a {colour} flower that grew {atplace2}|honey from {place2}] could help.
{hero} had [heard|dreamed] of {place2}, [far beyond the hills|where nobody had been before], and wanted to see it with {his} own eyes.
{time}, a letter came from {place2}. "[Please come at once|We need your help|Bring the {obj}]," it said.

so {hero} packed [a bag|a basket] with {food}, [a blanket|a rope|a lantern] and a {obj}, and set out [before sunrise|early in the morning].
{he} said goodbye, took {his} {obj}, and [walked down the road|did not look back|set out].

+scene

---

on the first day {he} [came to a wide river|had to cross a dark forest|climbed a steep hill]. there {he} met {friend}, {a_friend}.
after a long walk {he} came to a crossroads, where {friend}, {a_friend}, was sitting on a stone.

"which way is it to {place2}?" {hero} asked. "[left at the {tree}, then always straight on|that is a long way|I am going there too]," said {friend}.
"if you share your {food} with me, I will show you the way," said {friend}. {hero} [gladly shared it|broke the last piece in two].

so they went on together. [the road was long|their shoes wore thin], but [the talk was good|they sang all the way].

?+chat

on the second day [it rained|they lost the path|a bridge was broken], and they [slept in a barn|built a raft|had to go around].
[a {beast} blocked the way|the path ended at a cliff|a thick fog came down], but {friend} [knew a secret way|had a good idea|was not afraid].

?+bad

---

at last, on the third day, they saw {place2} [shining in the sun|below them|in the distance].
and then, one [morning|evening], they [were there|arrived], [tired but happy|with dust on their shoes].

it was [smaller than {he} had thought, but more beautiful|just as the stories said|quite different from what {he} had expected]. {scene}

{hero} [found what {he} was looking for|did what {he} had come to do], and [thanked {friend}|rested for a day].

the way home [seemed much shorter|was easy]. {his} {carer} [was waiting at the door|wept with joy|soon felt better].

+good

?+moral

+end
"""

PLOTS["contest"] = """
once a year there was a great [race|contest|fair] {atplace}, and the prize was a {obj}.
"whoever [bakes the best bread|runs the fastest|builds the best boat|tells the best story|sings the best song] will win a {obj}," said the [mayor|king|teacher].

{hero} wanted to [win|take part] more than anything, but so did {friend}, {a_friend}.
{hero} had never won anything. {friend}, {a_friend}, had won [every year|three times].

so {he} practised [every day|before breakfast and after supper], [in sun and rain|even when {he} was tired].
"you will never win," [some people said|people laughed]. {hero} [only smiled|practised even harder].

+scene

---

on the day of the contest [everybody came|flags hung from every window|the whole place was full of people].
the great day came. {weather}

"[good luck|may the best one win]," {hero} said. "[you too|thank you]," said {friend}.
at first {friend} was far ahead, and [it looked hopeless|{hero} almost gave up].

halfway through, {friend} [fell|hurt a foot|dropped everything]. {hero} could have [gone on|won easily], but {he} [stopped|turned back] and helped {fhim}.
{hero} did not [look left or right|hurry]. {he} did [everything as {he} had practised|one thing after another].

?+think

---

so in the end {both} [came in last, side by side|finished together], and [everybody cheered louder than ever|the judges did not know what to say].
and when the judges had [talked for a long time|counted twice], they called out the name of the winner: {call}!
{hero} did not win. the prize went to {friend}. but [{he} had done better than ever before|{he} clapped the loudest].

"[the prize is yours as much as mine|next year we will do it together|you were very good]," said {friend}.

+good

?+moral

+end
"""

PLOTS["truth"] = """
{time}, when nobody was looking, {hero} took the {obj} from [the shelf|the table|the wall] and [dropped it|broke it].
"do not touch the {obj}," {his} {carer} had said. but {time}, {hero} [could not resist|touched it all the same], and it [fell and broke|slipped from {his} hands].

{he} [hid the pieces under the bed|swept the pieces behind the door|put the pieces into a drawer] and said nothing.

+bad

"who broke my {onoun}?" {his} {carer} asked [in the evening|at supper]. "[it was the cat|it was the wind|I do not know]," {hero} said.

---

but the lie [grew heavier every hour|sat in {his} stomach like a stone|would not let {him} sleep].
the poor cat [got no milk that night|was sent outside], and that made it even worse.

?+think

{he} [met {friend}, {a_friend}, and told {fhim} everything|asked {friend}, {a_friend}, what to do]. "[tell the truth|the longer you wait, the harder it gets]," said {friend}.

---

so {hero} went to {his} {carer}. "it was me," {he} said. "I broke the {onoun}, and I [lied|was afraid to tell you]. I am sorry."
the next morning {he} [took the pieces|stood before {his} {carer}] and [told the whole truth|said everything in one breath].

{his} {carer} was quiet for a moment. "[a {onoun} can be mended|things break]," came the answer, "[but trust is harder to mend|and you were brave to tell me]."
"I knew it," said {his} {carer}. "[I was waiting for you to tell me|thank you for being honest]."

together they [glued the pieces|mended it], and [you could hardly see the cracks|it looked almost like new].

and the cat got [a double portion of milk|the best place by the fire].

+good

?+moral

+end
"""

PLOTS["wish"] = """
{time}, {hero} found an old {thing} {atplace}. when {he} [rubbed it|opened it|picked it up], [a thin smoke rose from it|a voice spoke|a tiny figure appeared].
{time}, {hero} helped {a_friend_cap} to cross the road. "because you were kind," said the stranger, "I give you one wish."

"you may make [three wishes|one wish]," said the voice. "[but choose well|think before you speak]."

{hero} [did not think for long|thought of all the things in the world]. "I wish for {wish}!" {he} said.
"I want {wish}," {hero} said [at once|without thinking].

and so it happened. [at first it was wonderful|{hero} could hardly believe it]. {good_s}

---

but soon [there was trouble|it became too much|{he} saw the other side of it]. {wish_bad}

+bad

{he} went to {friend}, {a_friend}, and asked for advice. "[wishes are like salt|be careful what you wish for]," said {friend}. "[a little is enough|every wish has a price]."

?+think

---

so {he} went back to {place} and said, "[please take it back|I want things to be as they were]."
"[have you learned something|are you sure]?" the voice asked. "yes," {hero} said. "[what I had was enough|I will think first next time]."

there was a [flash|puff of smoke|soft sound], and everything was as before. [the old {thing} was only an old {thing}|{he} was back home].

+good

?+moral

+end
"""

PLOTS["mill"] = """
the old mill by the river had two great stones, and {hero} [loved the sound of them|helped there every day|had known it all {his} life].
the mill {atplace} ground the grain for the whole village. {time}, it stopped.

{time2}, the wheel [stopped turning|groaned and stood still], and [there was no more flour|the whole village was quiet].
without the mill there was no flour, and without flour there was no bread.

"what is the matter with it?" {hero} asked. {friend}, {a_friend}, [scratched {fhis} head|did not know].
people came with their sacks of [wheat|rye|barley] and went home [with nothing|again].

+bad

---

{hero} [took a lantern|climbed down] and looked at [the wheel|the stones|the shaft] [from every side|for a long time].
"let us look at it step by step," {hero} said. "first the water, then the wheel, then the stones."

the water was high enough. the wheel was whole. but between the stones [there was a pebble|something was stuck|sat a frightened {beast2}].
at last {he} found the reason: [a branch was caught in the wheel|a tooth of the big gear was broken|a nest had been built in the channel].

?+chat

together they [lifted the upper stone|pulled with all their strength|carved a new tooth of hard oak], and [it took the whole day|their arms ached].
{he} [reached in|bent down] and [carefully pulled it out|cleared the way], while {friend} held the lantern.

---

then they opened the gate. the water [rushed in|fell on the wheel], and slowly, very slowly, the stones began to turn.
"[stand back|now]!" {hero} called. the wheel [turned once, then twice|creaked and turned], and white flour ran down into the sack.

that evening the whole village [smelled of {smell}|smelled of fresh bread|ate warm bread], and [everyone thanked them|nobody went to bed hungry].

+good

?+moral

+end
"""

PLOTS["fable"] = """
a {jtrait} {beast2} and {hero} lived {atplace}. the {beast2} was strong, but {hero} was clever.
one dry summer there was [almost no water|little to eat] {atplace}. the {beast2}, who was [big and strong|proud and loud], kept everything for itself.

"I am the strongest," said the {beast2}. "[nobody may drink here|everything here belongs to me]."
"why should I share?" said the {beast2}. "[the strong take what they want|I was here first]."

{friend}, {a_friend}, was [afraid|thirsty|too small to fight], and so were all the others.

---

but {hero} had a plan. {he} went to the {beast2} and said, "[I believe that you are strong|everyone says that you are the greatest]. but can you [count the stars|hold the wind|carry water in a net|catch your own shadow]?"
"I have heard of somebody even stronger than you," {hero} told the {beast2}. "[he lives in the well|he lives behind the hill]."

"of course I can!" [cried|roared] the {beast2}, and it [tried all day and all night|ran until it could run no more].
the {beast2} [was too proud to say no|wanted to see that at once], and it [set off|began to try].

while it was busy, the others [drank as much as they wanted|filled their baskets|ate in peace].
in the end the {beast2} was so tired that it [fell asleep|lay down in the shade] and could not say a word.

---

"you are strong," {hero} said, "but [strength without sense is like a cart without wheels|a strong friend is better than a strong enemy]. [share with us, and we will share with you.|why should we not live together?]"
when it woke up, {hero} brought it [some water|some {food}]. "[even the strong need friends|nobody can do everything alone]," {he} said.

the {beast2} was [ashamed|quiet for a long time], and [from then on it shared everything|it never boasted again].

+moral
"""

PLOTS["grow"] = """
{his} {carer} gave {hero} a [tiny|small|plain brown] seed. "[plant it and be patient|take good care of it]," {his} {carer} said.
{time}, {hero} found a seed [in {his} pocket|{atplace}|on the window sill]. "I wonder what you will become," {he} said.

{he} [made a hole in the ground|filled a pot with earth], put the seed inside and [covered it|gave it some water].

every morning {he} [watered it|looked at it|sang to it], but nothing [happened|came up].
the first week nothing happened. the second week nothing happened either.

+bad

"[it is dead|it does not like me]," {hero} said. "wait," said {friend}, {a_friend}. "[it is working under the ground|roots come before leaves|good things take time]."

---

then, {time2}, there was a [tiny green leaf|small green point|crack in the earth].
and one day, when {he} had almost forgotten it, [two green leaves|a pale shoot] looked out of the earth.

{hero} [called everyone|ran to tell {friend}|danced around the pot]. {good_s}

it grew [day by day|as tall as a {beast}|higher than the fence]. {he} [tied it to a stick|pulled out the weeds|kept the snails away], and {friend} [helped with the watering|built a little fence].

?one night [a storm|the frost|a hungry {beast}] nearly [destroyed|killed] it, but {hero} [covered it with {his} coat|sat beside it until morning].

---

by the end of summer it was a [strong|beautiful|splendid] {plant}, and everyone came to look.
in the end it became a {plant}, the finest one {atplace}.

{he} [shared what it gave with everyone|gave the first {fruit_one} to {friend}|kept a handful of seeds for the next year].

+good

?+moral

+end
"""

PLOTS["rescue"] = """
{time}, a [loud cry|call for help] came from {place}.
{time}, {hero} heard somebody calling {atplace}.

it was {friend}, {a_friend}, who [had climbed too high and could not get down|was stuck in the mud|had fallen into a ditch|was caught on a ledge above the water].
a {little} {beast2} was [stuck in a tall {tree}|floating down the river on a board|trapped on a rock], and {friend}, {a_friend}, [could not reach it|was calling for help].

"[help|please be quick|I cannot hold on much longer]!" came the cry.

people [stood around and talked|shook their heads|ran here and there], but nobody [knew what to do|did anything].

---

{hero} [thought quickly|looked around|did not lose {his} head]. nearby lay [a ladder|a long rope|a strong branch|an old boat].
"we need [a rope|a ladder|a long pole]!" {hero} called.

?+think

{he} [tied one end to a {tree} and threw the other|pushed it over the gap|held it firmly], and [slowly|inch by inch|very carefully] {he} [went closer|climbed up|pulled].
the first try failed, [the rope was too short|the branch broke]. the second time {he} [tied two ropes together|chose a thicker one], and it held.

"[hold tight|do not look down|give me your hand]!" {he} said. [one more step|one more pull], and [it was done|they were safe].

---

everyone [cheered|clapped|breathed again]. {friend} was [pale|wet and cold|shaking], but [not hurt|smiling].

"you saved us," said {friend}. "[how can I ever thank you?|I will never forget it.]" "[anyone would have done it|next time be more careful]," {hero} said {saidly}.

they [drank something hot|wrapped themselves in blankets|sat by the stove] and [told the story again and again|laughed about it].

+good

?+moral

+end
"""

PLOTS["dream"] = """
one night {hero} [could not sleep|woke up suddenly]. the moon [shone through the window|was round and bright], and something [tapped at the glass|called {his} name].

outside sat {friend}, {a_friend}. "[come|hurry]," {fhe} said. "[the night is short|they are waiting for us|I want to show you something]."

{hero} [opened the window|took {fhis} hand|put on {his} slippers], and [suddenly they were flying|the wall became a door|a stair of light appeared].

---

they flew over {place} and {place2}. below them [the roofs were small as crumbs|the river shone like a ribbon|lights twinkled].
they came to a land where [everything was upside down|the {tree.s} were blue|clouds were made of wool|animals could talk]. {scene}

there they [danced with the stars|drank tea with a {jtrait} {beast}|rode on a {beast} as big as a house|ate {food} from silver plates].
"who are you?" asked a {jtrait} {beast}. "I am {call}," {hero} answered, "and [I am only visiting|I think I am dreaming]."

?+chat

but then a clock struck [five|six], and [everything began to fade|{friend} grew pale|the light changed]. "[you must go home|it is time]," said {friend}.

---

{hero} opened {his} eyes. it was morning, and {he} was [in {his} own bed|at home]. "it was only a dream," {he} said.
when {he} woke up, the sun was shining. {scene}

but on the pillow lay a [small {colour} feather|silver leaf|tiny {thing}].
but {his} slippers were [wet with dew|full of sand|covered with silver dust], and {hero} smiled.

?+good

+end
"""

PLOTS["dayout"] = """
{time}, {both} went to {place}. [they had waited for it all week|it was their first visit|nobody had told them what to expect].
"[let us go to {place}|I would like to see {place} today]," said {friend}, and {hero} [agreed at once|packed some {food}].

{weather}

on the way they [counted {bird.s}|sang songs|talked about everything and nothing|passed a field full of {flowers}].
they [walked|went by train|rode on an old cart|took the long way round], and it took [an hour|the whole morning].

---

{atplace} there was so much to see: [a man selling {fruit}|a woman with a talking parrot|{number} {beast.s} in a row|a fountain|a band with trumpets], and [a shop full of {thing.s}|children with balloons|boats of every colour|a very old {tree}].
first they [looked at everything|ate some {food}|climbed up to the highest point]. the air smelled of {smell}.

{hero} liked [the {bird.s}|the {beast.s}|the music|the little shops] best. {friend} liked the {food}.

then {hero} [saw|discovered] a {obj} [in a shop window|on a stall]. it cost {number} coins, and {he} had [exactly that|only one].
then something funny happened: a {beast} [stole the hat of {friend}|ran off with the {food}|followed them wherever they went].

?+chat

in the afternoon [it began to rain|the sun came out|they were tired], so they [sat under a {tree}|had a cup of tea|fed the {bird.s}] and [ate their {food}|watched the people].

---

they came home [late|after dark|with sand in their shoes], [tired and happy|sunburnt and hungry].

"[what did you like best|shall we go again]?" asked {friend}. "[everything|of course|the way home]," {hero} said.

?+good

+end
"""

PLOTS["newjob"] = """
{hero} had always wanted to learn a trade, and {time} {he} became the helper of {friend}, {a_friend}.
{time}, {friend}, {a_friend}, needed help, and {hero} said, "[I will do it|I can start tomorrow]."

on the first day {he} [did everything wrong|was nervous|came too early]. {he} [dropped a {thing}|forgot the {tool}|mixed up the {thing.s}], and {friend} [sighed|only laughed].
the work was [harder than {he} had thought|not easy]: {he} had to [get up before sunrise|carry heavy sacks|sweep the floor|count {number} boxes of {thing.s}].

+bad

"[watch my hands|look first, then do]," said {friend}. "[nobody is born a master|I broke many things when I was young]."

---

so {hero} [watched|listened|asked questions], and [day by day|week by week] {he} learned [how to hold a {tool}|to work without hurry|the names of all the tools].

{time2}, {friend} was [ill|called away], and {hero} was alone when [a customer came in|a great order arrived|something broke].
then came the day when everything depended on {him}: {friend} was away, and [the whole village was waiting|the work had to be done by evening].

?+think

{he} remembered [what {he} had been taught|every lesson], took the {tool}, and [went to work|did it well, step by step].

when {friend} came back, {fhe} [looked at the work from all sides|said nothing for a while]. "[I could not have done it better|now you are no longer a beginner]," {fhe} said.

+good

?+moral

+end
"""
