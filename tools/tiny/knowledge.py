"""What the writer knows: small explanations, how-to steps and animal facts, as templates. Data only.

Each explanation is a question (several wordings), then sentences in their order; a line that begins
with ? may be left out. The facts are simple and true; the model is far too small to hold more.
"""

TOPICS = """
how does a mill grind grain / how does a mill work / what does a mill do
a mill [grinds grain into flour|turns grain into flour].
it has two round, heavy stones that lie one on top of the other. the lower stone stays still, and the upper stone turns.
the grain falls through a hole in the middle of the upper stone.
between the stones it is [crushed and cut|broken] into smaller and smaller pieces as it moves to the edge.
? the stones have grooves, which cut the grain and let the flour move outwards.
? the stones are turned by water, by wind, by animals or by a motor.
at the edge the flour falls out and is collected in a sack.

what is a quern / how does a quern work / what is a quern used for
a quern is a small mill that is turned by hand.
it is made of two stones. the upper one has a handle, and the lower one lies still.
you pour a handful of grain into the hole in the middle and turn the handle.
the grain is ground between the stones, and the flour comes out at the edge.
? people have used querns for thousands of years, long before there were water mills and windmills.
? grinding with a quern is slow and hard work, but it needs nothing more than two stones and a strong arm.

why does it rain / where does rain come from / how is rain made
rain begins when the sun warms the water of [seas, lakes and rivers|the sea].
the warm water turns into vapour, a gas that we cannot see, and rises into the air.
high up it is cold, and there the vapour turns into tiny drops of water. many drops together make a cloud.
when the drops join and become too heavy, they fall down as rain.
? the rain fills the rivers, the rivers run to the sea, and everything begins again.

why is there wind / where does the wind come from / what is wind
wind is air that moves.
the sun warms some places more than others. warm air is light and rises.
then cooler air flows in to take its place, and we feel this as wind.
? the bigger the difference, the stronger the wind.
? wind can turn mills, fill sails and dry the washing.

what is snow / why does it snow / where does snow come from
snow is made of tiny crystals of ice.
when it is very cold in the clouds, the water vapour freezes into small crystals with six arms.
the crystals stick together and become flakes, and the flakes fall slowly to the ground.
? snow is white because it throws back all the light that falls on it.
? a blanket of snow keeps the ground warmer than the icy air above it.

how is bread made / how do people make bread / how does flour become bread
bread is made from flour, water, salt and yeast.
first you mix everything and knead the dough until it is smooth.
then the dough must rest in a warm place. the yeast makes little bubbles of gas, and the dough rises.
after that the baker forms a loaf and puts it into a hot oven.
? in the heat the crust becomes brown and crisp, while the inside stays soft.
? fresh bread smells wonderful and tastes best with butter.

how does a clock work / what does a clock do / how can a clock tell the time
a clock shows us the time.
in an old clock a weight or a spring gives the power. it turns many small wheels with teeth.
a pendulum swings to and fro and lets the wheels move only a little at each swing.
so the hands move at an even speed. the short hand shows the hour, and the long hand shows the minutes.
? twice a day the two hands stand together at twelve.

why do boats float / how can a ship float / why does a ship not sink
a boat floats because it pushes water aside.
the water pushes back. the more water is pushed aside, the stronger is the push upwards.
a boat is hollow and full of air, so it is light for its size, and the water can carry it.
? a solid piece of iron sinks, but an iron ship with a big hollow hull swims.
? if too much water comes in, the boat becomes too heavy and goes down.

how does a seed grow / how do plants grow / what does a plant need
a seed holds a tiny plant and some food for its first days.
when the seed gets water and warmth, it swells and opens.
first a root grows down into the earth. then a shoot grows up towards the light.
the green leaves catch the light of the sun and make food for the plant from air and water.
? in the end the plant has flowers and makes new seeds.

how do bees make honey / where does honey come from / what do bees do
bees fly from flower to flower and drink a sweet juice that is called nectar.
they carry it home to the hive and give it to other bees.
these put it into little cells of wax and fan it with their wings until it is thick.
then it is honey. the bees close the cells with wax and keep the honey for the winter.
? on the way the bees carry pollen from one flower to another, and that helps fruit to grow.

how is cheese made / where does cheese come from / how do you turn milk into cheese
cheese is made from the milk of cows, sheep or goats.
the milk is warmed, and something is added that makes it thick. it parts into white lumps and a thin liquid.
the lumps are pressed into a round form and salted.
then the cheese must lie in a cool cellar for weeks or months.
? the longer it lies, the stronger it tastes.

why is the sky blue / what makes the sky blue / why does the sky look blue
the light of the sun holds all colours.
when it comes through the air, the blue part is scattered in all directions more than the red part.
so blue light comes to our eyes from everywhere, and the sky looks blue.
? in the evening the light has a longer way through the air, and mostly red and orange are left.

how does a rainbow form / what is a rainbow / why do we see a rainbow
you can see a rainbow when the sun shines and it rains at the same time.
the light of the sun goes into the drops of rain and is bent and thrown back.
each colour is bent a little differently, so the white light is split into its colours.
they are red, orange, yellow, green, blue and violet.
? to see a rainbow you must have the sun behind you and the rain in front of you.

why is there day and night / what makes day and night / why does it get dark
the earth is a ball that turns around itself once in every twenty-four hours.
the side that looks at the sun has day, and the other side has night.
? because the earth turns, the sun seems to rise in the east and set in the west.
? the sun never goes out. when it is dark here, it is shining for somebody else.

why are there seasons / what makes summer and winter / why is it cold in winter
the earth travels around the sun once in a year, and it stands a little tilted.
in summer our part of the earth leans towards the sun. the sun stands high, and the days are long and warm.
in winter our part leans away from it. the sun stands low, and the days are short and cold.
? spring and autumn lie between them.

what is the moon / why does the moon change its shape / where does the moon get its light
the moon is a big ball of rock that travels around the earth in about a month.
it has no light of its own. it is bright because the sun shines on it.
as it moves, we see more or less of its bright side. that is why it seems to change its shape.
? when we see the whole bright side, we call it a full moon.

why are there tides / what are tides / why does the sea rise and fall
twice a day the sea rises and falls. this is called the tide.
it comes from the moon, which pulls at the water of the sea.
on the side near the moon, and also on the far side, the water stands a little higher.
? when the water is low, you can walk on the beach and find shells and crabs.

how does a candle burn / what happens when a candle burns / why does a candle give light
a candle is made of wax with a wick in the middle.
when you light the wick, the flame melts the wax around it.
the liquid wax climbs up the wick, turns into gas and burns.
? the hot flame gives light and warmth, and the candle slowly becomes shorter.
? never leave a burning candle alone.

what is a wheel / why are wheels useful / how does a wheel help us
a wheel is round and turns around an axle.
it is much easier to roll a heavy thing than to pull it over the ground, because there is less rubbing.
? carts, cars, trains and bicycles all have wheels.
? wheels with teeth can turn each other. we find them in clocks and mills.

what is a lever / how does a lever work / how can you lift a heavy stone
a lever is a strong bar that rests on a point.
if you push down the long end, the short end goes up with much greater force.
so a small person can lift a heavy stone.
? a pair of scissors, a seesaw and a wheelbarrow are levers too.

what is a pulley / how does a pulley work / how do builders lift heavy things
a pulley is a wheel with a rope running over it.
you pull the rope down, and the load on the other end goes up.
with two or more pulleys the work becomes easier, but you must pull more rope.
? builders and sailors use pulleys every day.

what is a map / how do you read a map / what is a map good for
a map is a drawing of a place as a bird would see it from above.
small signs and colours show roads, rivers, forests and houses.
north is usually at the top of the map.
? the scale tells you how far it is from one point to another.
? with a map and a compass you can find your way in a place where you have never been.

how does a compass work / what is a compass / why does a compass point north
a compass has a small needle that can turn freely.
the needle is a magnet, and the earth is like a very big magnet too.
so one end of the needle always points to the north.
? sailors have used the compass for hundreds of years to find their way over the sea.

what is ice / why does water freeze / when does water freeze
ice is frozen water. water freezes when it is colder than zero degrees.
when it freezes, it becomes hard and takes up a little more room.
that is why ice floats on water, and why a full bottle can break in the cold.
? when it gets warm, the ice melts and becomes water again.

what is fire / what does a fire need / why does fire burn
a fire needs three things: something to burn, air, and heat.
if one of them is missing, the fire goes out.
that is why water, sand or a blanket can put out a small fire.
? fire gives us warmth and light, but it can be dangerous, so we must be careful with it.

what is a shadow / why do we have a shadow / where do shadows come from
light goes in straight lines and cannot go through you.
behind you there is a dark place where the light does not come. that is your shadow.
when the sun is low, the shadow is long. when the sun is high, the shadow is short.
? on a cloudy day the light comes from all sides, and you can hardly see a shadow.

what is paper made of / how is paper made / where does paper come from
most paper is made from wood.
the wood is cut into small pieces and cooked in water until it becomes a soft pulp.
the pulp is spread over a fine net, and the water runs off. then it is pressed and dried.
? old paper can be used again to make new paper.

how is glass made / what is glass made of / where does glass come from
glass is made from sand.
the sand is mixed with other things and heated until it melts.
while it is hot and soft, it can be blown or pressed into any shape.
when it cools down, it becomes hard and clear.
? windows, bottles and lenses are made of glass.

where does salt come from / how do we get salt / why is the sea salty
the sea is salty because rivers carry a little salt from the rocks into it, and it stays there when the water rises into the air.
in warm countries people let the sea water stand in flat pools.
the sun dries up the water, and the salt stays behind.
? salt is also found deep in the earth, where there were seas long ago.
? we use it to make food tasty and to keep it fresh.

why do we sleep / why is sleep important / what happens when we sleep
we sleep so that the body and the mind can rest.
while we sleep, the body mends itself and grows, and the brain sorts out what we have learned.
? children need more sleep than grown-ups.
? without enough sleep we become tired, slow and cross.

why do leaves fall / why do trees lose their leaves / what happens to trees in autumn
in autumn the days become shorter and colder.
the trees take the good green stuff back from the leaves, and then we see the yellow and red colours.
at last the leaves fall. without leaves the tree loses less water and can rest through the winter.
? in spring new leaves come out of the buds.

how do birds fly / why can birds fly / what helps a bird to fly
birds have light bones, strong muscles and wings with feathers.
when a bird beats its wings, it pushes the air down and back, and so it goes up and forward.
the shape of the wing helps to hold the bird in the air.
? big birds can glide for a long time without beating their wings.

what is an echo / why do we hear an echo / where does an echo come from
an echo is a sound that comes back.
when you shout towards a wall or a mountain, the sound travels there, is thrown back, and returns to you.
sound needs time for its way, so the echo comes a little later.
? in a room with soft carpets there is no echo, because soft things swallow the sound.

what is thunder / why is there lightning / where does lightning come from
inside a storm cloud, drops and bits of ice rub against each other, and electricity builds up.
when there is too much of it, a huge spark jumps. that is lightning.
the air around it becomes very hot and spreads so fast that it makes a bang. that is thunder.
light is much faster than sound, so we see the lightning first and hear the thunder later.
? in a storm it is best to be in a house or in a car, and not under a tree.

what is an even number / what are odd and even numbers / how do I know if a number is even
an even number can be divided into two equal parts. two, four, six and eight are even.
an odd number always leaves one over. one, three, five, seven and nine are odd.
look at the last digit: if it is 0, 2, 4, 6 or 8, the number is even.

how do you count / what are numbers for / why do we need numbers
numbers tell us how many things there are.
we count one, two, three, four, five, six, seven, eight, nine, ten.
with only ten signs, from 0 to 9, we can write every number, because the place of a sign says what it is worth.
? in 352 the 3 means three hundred, the 5 means fifty, and the 2 means two.

what is a language model / how does a language model work / how do you work
a language model is a program that continues a text.
it has read many texts and learned which words often follow each other.
for every next piece of a word it works out how likely each choice is, picks one, and goes on from there.
? a large model knows a great deal. a small one, like me, knows very little.
? it does not think as a person does, so you should always check what it says.

what is a computer / how does a computer work / what can a computer do
a computer is a machine that follows a list of very small steps.
each step is simple, such as adding two numbers or remembering one.
but it can do billions of steps in a second, and so it can show pictures, play music and answer questions.
? the list of steps is called a program, and people write it.

how does soap work / why do we wash with soap / what does soap do
water alone cannot take away fat and oil.
soap is made of tiny parts with two ends. one end likes water, and the other likes fat.
they take hold of the dirt and carry it away with the water.
? that is why you should wash your hands with soap before you eat.

how does a bridge stand / why does a bridge not fall down / how are bridges built
a bridge carries its own weight and the weight of everything that crosses it.
an arch leads the weight to both sides and down into the ground.
a hanging bridge hangs on strong cables that are held by high towers.
? a simple bridge can be a tree that lies across a stream.

why do we eat / why do we need food / what is food good for
food gives the body what it needs to move, to grow and to stay warm.
bread and potatoes give us strength. milk, eggs, beans and meat help us to grow. fruit and vegetables keep us well.
? it is best to eat many different things, and not too much of one.
"""

STEPS = """
make a cup of tea / brew tea
boil fresh water in a kettle.
warm the teapot with a little hot water and pour it out.
put one spoon of tea into the pot for each person.
pour the boiling water over the tea.
let it stand for [three|four|five] minutes.
? add milk, honey or a slice of lemon if you like.
pour it into a cup and enjoy it while it is hot.

bake bread / make a simple loaf of bread
mix flour, water, yeast and a little salt in a big bowl.
knead the dough for ten minutes, until it is smooth.
cover the bowl and let the dough rise for an hour in a warm place.
form a loaf and let it rest for half an hour.
heat the oven.
bake the bread until the crust is brown and it sounds hollow when you knock on it.
? let it cool before you cut it.

make vegetable soup / cook a soup
wash the {vegetable} and cut them into small pieces.
fry an onion in a big pot with a little oil.
add the vegetables and stir for a few minutes.
pour in water until everything is covered.
add salt and cook it slowly for half an hour.
? put in some fresh herbs at the end.
serve the soup hot, with a piece of bread.

plant a seed / grow a plant from a seed
fill a pot with earth.
make a small hole with your finger.
put the seed into the hole and cover it.
water it, but not too much.
put the pot in a warm and sunny place.
keep the earth moist and wait. after a week or two you will see a green shoot.

wash your hands / get clean hands
hold your hands under warm water.
take some soap and rub your hands together.
wash between the fingers and under the nails, while you count slowly to twenty.
rinse the soap off with clean water.
dry your hands with a clean towel.

make a paper boat / fold a boat from paper
take a sheet of paper and fold it in the middle.
fold the two upper corners to the middle, so that it looks like a roof.
fold up the strips at the bottom, one on each side.
open it like a hat and press it flat the other way, into a square.
fold the lower corners up on both sides and open it again.
pull the two points gently apart, and there is your boat.

make a kite / build a kite
cross two thin sticks and tie them together.
stretch a string around the four ends.
cut a piece of light paper a little bigger than the frame.
fold the edges over the string and glue them down.
tie a long string to the middle and add a tail of ribbons.
take it to an open field on a windy day and run.

grind flour with a quern / use a hand mill
clean the stones with a dry brush.
put the quern on a cloth, so that no flour is lost.
pour a small handful of grain into the hole.
turn the handle slowly and evenly.
add more grain when the hole is empty.
collect the flour from the edge and sift it.
? grind it a second time if you want it finer.

cook porridge / make porridge
put one cup of oats and two cups of water or milk into a pot.
add a little salt.
heat it slowly and stir all the time.
let it cook for about five minutes, until it is thick.
serve it with honey, nuts or fruit.

boil an egg / cook an egg
bring water to the boil in a small pot.
put the egg in carefully with a spoon.
let it cook for [five minutes if you like it soft, or ten minutes if you like it hard|six minutes].
take it out and hold it under cold water.
peel it and add a little salt.

mend a sock / darn a hole
find wool of the same colour and a thick needle.
put something round, such as a wooden egg, into the sock.
sew long stitches across the hole in one direction.
then weave the thread over and under them in the other direction.
cut the thread, and the hole is gone.

pack a bag for a trip / pack for a journey
make a list of what you need.
put heavy things, such as shoes and books, at the bottom.
roll your clothes, so that they take up less room.
keep water, some food and a map where you can reach them.
lift the bag to see if it is too heavy, and take something out if it is.

fall asleep / sleep better
go to bed at the same time every evening.
put away bright screens an hour before.
open the window for a few minutes.
lie down, close your eyes and breathe slowly.
think of a quiet place, and do not worry if sleep takes its time.

clean a room / tidy up a room
open the window and let in fresh air.
pick up everything from the floor and put it in its place.
dust the shelves from top to bottom.
sweep or vacuum the floor.
take out the rubbish, and enjoy the clean room.

light a fire / make a campfire
choose a safe place, away from trees and dry grass, and lay a ring of stones.
gather dry grass, small twigs and bigger branches.
build a little tent of twigs over the dry grass.
light it from the side where the wind comes from.
add bigger pieces slowly.
never leave it alone, and put it out with water at the end.

draw a cat / draw a simple cat
draw a circle for the head and a bigger oval below it for the body.
put two triangles on the head for the ears.
draw two eyes, a small nose and a mouth.
add long whiskers on both sides.
draw four paws and a curved tail.
? colour it in any way you like.

take care of a dog / look after a dog
give it fresh water and good food every day.
take it for a walk at least twice a day.
brush its coat and look for ticks.
teach it with patience and praise.
let it sleep in a quiet place, and take it to the vet once a year.

learn something new / learn a new skill
choose one thing and begin with the easiest part.
practise a little every day instead of a lot once a week.
watch somebody who can do it well.
do not be afraid of mistakes, because they show you what to practise next.
teach it to somebody else when you can do it.

make a friend / find new friends
smile and say hello.
ask a question and listen to the answer.
find out what you both like.
share something or offer your help.
be patient. good friendships grow slowly.

make pancakes / cook pancakes
mix flour, milk, two eggs and a little salt until there are no lumps.
let it rest for ten minutes.
melt some butter in a hot pan.
pour in a thin layer and wait until the edge is brown.
turn it over and bake the other side.
eat it with sugar, jam or {fruit}.

cross a road safely / cross the street
stop at the edge of the road.
look left, look right, and look left again.
listen for cars and bicycles.
wait until the road is free or the light is green.
walk straight across, and do not run.
"""

# name / class / home / food / feature / young / sound
ANIMALS = """
fox / mammal / in forests and fields, in a den under the ground / mice, birds, insects and berries / a thick red coat and a bushy tail / cub / bark
rabbit / mammal / in meadows, in a burrow / grass, herbs and leaves / long ears and a short white tail / kit / squeak
bear / mammal / in forests and mountains / berries, fish, roots and honey / thick fur and strong paws / cub / growl
mouse / mammal / in fields and houses / seeds, grain and crumbs / round ears and a long thin tail / pup / squeak
hedgehog / mammal / in gardens and hedges / beetles, worms and snails / a back full of spines / hoglet / snort
squirrel / mammal / in trees / nuts, seeds and buds / a bushy tail and sharp claws for climbing / kit / chatter
otter / mammal / by rivers and lakes / fish, frogs and crabs / thick waterproof fur and webbed feet / pup / whistle
owl / bird / in hollow trees and old barns / mice and other small animals / big round eyes and soft feathers, so that it flies without a sound / owlet / hoot
crow / bird / in fields, woods and towns / seeds, insects and almost anything else / black feathers and a clever mind / chick / caw
duck / bird / on ponds and rivers / water plants, snails and insects / webbed feet and feathers that keep out the water / duckling / quack
goose / bird / on meadows and lakes / grass and grain / a long neck and strong wings / gosling / honk
swan / bird / on lakes and slow rivers / water plants / white feathers and a long curved neck / cygnet / hiss
hen / bird / on farms / grain, worms and green leaves / a red comb and soft feathers / chick / cluck
frog / amphibian / near ponds and streams / flies, worms and slugs / long back legs for jumping and a sticky tongue / tadpole / croak
cat / mammal / with people, in houses and on farms / meat, fish and mice / soft paws, sharp claws and eyes that see well in the dark / kitten / meow
dog / mammal / with people all over the world / meat and other food / a very good nose and good ears / puppy / bark
horse / mammal / on farms and grassland / grass, hay and oats / long legs, hooves and a flowing mane / foal / neigh
cow / mammal / on farms and meadows / grass and hay / four parts to its stomach, and it gives milk / calf / moo
sheep / mammal / on farms and hills / grass and herbs / a thick coat of wool / lamb / bleat
goat / mammal / on farms and rocky mountains / leaves, grass and bark / horns, a beard and very sure feet / kid / bleat
pig / mammal / on farms / roots, grain and vegetables / a flat snout with which it digs in the earth / piglet / grunt
donkey / mammal / on farms and in dry hills / grass and hay / long ears and great patience / foal / bray
wolf / mammal / in forests and wild country, in a pack / deer and other animals / strong legs and a fine nose / pup / howl
deer / mammal / in woods and meadows / grass, leaves and buds / long thin legs, and the males carry antlers / fawn / bark
mole / mammal / under the ground, in long tunnels / worms and insects / broad paws like shovels and tiny eyes / pup / squeak
beaver / mammal / by rivers, in a house of branches / bark, twigs and water plants / strong orange teeth and a flat tail, and it builds dams / kit / splash
bat / mammal / in caves, hollow trees and attics / moths and other insects / wings of thin skin, and it finds its way by echoes / pup / click
seal / mammal / by cold seas / fish / a smooth round body and flippers / pup / bark
whale / mammal / in the sea / fish and tiny sea animals / a huge body, and it must come up to breathe / calf / song
dolphin / mammal / in the sea, in groups / fish and squid / a smooth body and a curved mouth that seems to smile / calf / whistle
elephant / mammal / in Africa and Asia, in herds / grass, leaves, bark and fruit / a long trunk, big ears and a good memory / calf / trumpet
lion / mammal / on the plains of Africa, in a group that is called a pride / zebras and antelopes / great strength, and the males have a mane / cub / roar
tiger / mammal / in the forests of Asia / deer and wild pigs / orange fur with black stripes / cub / roar
giraffe / mammal / on the plains of Africa / leaves from high trees / the longest neck of all animals / calf / hum
zebra / mammal / on the plains of Africa / grass / black and white stripes / foal / bark
camel / mammal / in deserts / dry grass and thorny plants / a hump full of fat and broad feet for the sand / calf / grunt
monkey / mammal / in warm forests / fruit, leaves and insects / clever hands, and it climbs very well / infant / chatter
kangaroo / mammal / in Australia / grass and leaves / strong back legs for jumping and a pouch for its young / joey / grunt
panda / mammal / in the mountains of China / bamboo / black and white fur / cub / bleat
penguin / bird / in the cold south / fish and small sea animals / wings that cannot fly but swim very well / chick / bray
parrot / bird / in warm forests / seeds, nuts and fruit / bright feathers and a curved beak, and it can copy sounds / chick / squawk
eagle / bird / on high cliffs and tall trees / fish, rabbits and birds / very sharp eyes and strong claws / eaglet / scream
turtle / reptile / in the sea or in ponds / plants, jellyfish and small animals / a hard shell on its back / hatchling / hiss
crocodile / reptile / in warm rivers / fish and other animals / a long mouth full of teeth and a thick skin / hatchling / hiss
snake / reptile / in many places, from deserts to forests / mice, frogs and eggs / a long body without legs / snakelet / hiss
lizard / reptile / on warm stones and walls / insects / a long tail that it can leave behind / hatchling / hiss
fish / fish / in rivers, lakes and the sea / plants, worms and smaller fish / fins for swimming and gills for breathing / fry / splash
shark / fish / in the sea / fish and seals / many rows of sharp teeth / pup / splash
crab / crustacean / on the shore and in the sea / plants and small animals / a hard shell and two claws, and it walks sideways / larva / click
octopus / mollusc / in the sea, between rocks / crabs and shells / eight arms and a clever brain / larva / splash
snail / mollusc / in gardens and damp places / leaves / a house on its back, and it is very slow / snailet / rustle
bee / insect / in a hive / nectar and pollen / a sting, and it makes honey and wax / larva / buzz
ant / insect / in a nest under the ground, with thousands of others / seeds, insects and sweet juice / great strength for its size / larva / rustle
butterfly / insect / in meadows and gardens / nectar from flowers / four bright wings / caterpillar / flutter
spider / arachnid / in corners, bushes and under stones / flies and other insects / eight legs, and it spins a web of silk / spiderling / rustle
"""

CAPITALS = """
France Paris, Germany Berlin, Italy Rome, Spain Madrid, Portugal Lisbon, England London, Ireland Dublin, Norway Oslo, Sweden Stockholm,
Finland Helsinki, Denmark Copenhagen, Poland Warsaw, Austria Vienna, Greece Athens, Turkey Ankara, Egypt Cairo, Russia Moscow,
China Beijing, Japan Tokyo, Hungary Budapest, Canada Ottawa, Australia Canberra, Belgium Brussels, Peru Lima, Cuba Havana, Kenya Nairobi
"""
OPPOSITES = """
hot cold, big small, tall short, old new, young old, fast slow, happy sad, light dark, day night, up down, left right, open closed, full empty,
wet dry, hard soft, loud quiet, strong weak, early late, near far, clean dirty, rich poor, brave afraid, thick thin, sweet bitter,
first last, high low, heavy light, long short, win lose, push pull, begin end, love hate, question answer, summer winter, true false
"""
LIST_TOPICS = {
    "fruits": "apples,pears,plums,cherries,grapes,oranges,lemons,bananas,strawberries,peaches,melons,figs",
    "vegetables": "carrots,potatoes,onions,peas,beans,cabbages,leeks,tomatoes,cucumbers,pumpkins",
    "animals": "dogs,cats,horses,foxes,bears,lions,elephants,rabbits,owls,whales,frogs,bees",
    "birds": "sparrows,robins,owls,crows,swans,eagles,ducks,geese,parrots,penguins",
    "colours": "red,blue,green,yellow,white,black,brown,orange,purple,pink",
    "trees": "oaks,willows,birches,beeches,pines,elms,maples,chestnuts",
    "flowers": "roses,tulips,daisies,lilies,poppies,violets,bluebells,sunflowers",
    "tools": "a hammer,a saw,an axe,a spade,a rake,a chisel,a screwdriver,a ladder",
    "things in a kitchen": "a kettle,a pot,a pan,a knife,a spoon,a bowl,a stove,a plate",
    "musical instruments": "a violin,a piano,a flute,a drum,a trumpet,a guitar,a harp,a bell",
    "jobs": "a baker,a farmer,a teacher,a doctor,a carpenter,a miller,a nurse,a sailor",
    "things to do on a rainy day": "read a book,bake a cake,draw a picture,write a letter,build a tent from blankets,play a board game,tell stories,sort your photographs",
    "kinds of weather": "sunshine,rain,snow,fog,wind,hail,thunder and lightning,frost",
    "ways to travel": "on foot,by bicycle,by train,by boat,by car,by bus,on a horse,by plane",
    "days of the week": "Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday",
    "kinds of grain": "wheat,rye,barley,oats,rice,maize,millet",
}
