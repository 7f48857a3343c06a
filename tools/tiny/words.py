"""Word lists of the writer: data only. An entry may itself be a template (see grammar.py)."""


def _rows(text):
    return tuple(w.strip() for w in text.replace("\n", ",").split(",") if w.strip())


GIRLS = _rows("""Ada, Agnes, Alma, Amy, Anna, Beth, Bella, Cara, Clara, Daisy, Dora, Edith, Ella, Elsa, Emma, Erin, Esther,
Eva, Faye, Fern, Flora, Freya, Grace, Greta, Hana, Hazel, Heidi, Helen, Ida, Ines, Iris, Isla, Ivy, Jana, Jane, Jill, Joan, Josie,
Julia, June, Kate, Kira, Lara, Lena, Lily, Lina, Lola, Lotte, Lucy, Luna, Mabel, Maisie, Maja, Mara, Martha, Mary, Maya, Mia, Mila,
Mina, Molly, Nadia, Nell, Nina, Nora, Olga, Olive, Pearl, Petra, Polly, Rosa, Rose, Ruby, Ruth, Sally, Sara, Selma, Sofia, Stella,
Sue, Tess, Tilda, Tina, Una, Vera, Wanda, Willa, Yara, Zara, Zoe, Amina, Priya, Mei, Yuki, Leila, Aisha, Carmen, Lucia, Ingrid""")
BOYS = _rows("""Adam, Alan, Albert, Alex, Anton, Arlo, Arthur, Axel, Ben, Bert, Bill, Boris, Bruno, Carl, Chris, Colin, Cyril, Dan,
Daniel, David, Derek, Dylan, Eddie, Edgar, Eli, Emil, Eric, Evan, Felix, Finn, Frank, Fred, George, Gus, Hans, Harry, Hector, Henry,
Hugo, Ian, Ivan, Jack, Jacob, James, Jan, Jasper, Joe, John, Jonas, Karl, Ken, Lars, Leo, Leon, Liam, Lionel, Louis, Luke, Magnus, Marco,
Mark, Martin, Max, Miles, Milo, Ned, Neil, Nico, Nils, Noah, Oliver, Oscar, Otto, Owen, Paul, Pavel, Peter, Pip, Ralph, Robin, Roger,
Rory, Rufus, Sam, Simon, Stan, Sven, Ted, Theo, Tim, Tobias, Tom, Toby, Victor, Walter, Wilfred, Will, Yusuf, Omar, Ravi, Kenji, Chen,
Mateo, Diego, Kofi, Amir""")

SYLLABLES = _rows("""ba, be, bri, bro, da, del, do, dra, fa, fen, flo, ga, gil, gor, gra, ha, hol, il, jo, ka, kel, kor, la, len, lo,
ma, mel, mi, mo, na, nel, no, ol, or, pa, per, pim, ra, rel, ri, ro, sa, sel, sho, ta, tam, tel, ti, tor, tul, va, vel, vi, wen, wil, ya,
zan, zel, zi""")
ENDINGS = _rows("a, an, as, by, da, el, en, ett, ia, ik, in, is, ka, la, lo, mir, na, ne, o, on, or, ra, ric, sha, ta, us, wyn, y")

CHILD_TRAITS = _rows("""little, young, small, quiet, curious, clever, brave, cheerful, shy, kind, busy, dreamy, stubborn, lively, patient,
careful, restless, gentle, serious, funny, tall, red-haired, freckled, thoughtful, bold, playful, polite, impatient, helpful""")
ADULTS = _rows("""miller, baker, farmer, fisherman, sailor, shepherd, gardener, carpenter, blacksmith, weaver, tailor, clockmaker, teacher,
doctor, painter, baker, cook, potter, librarian, beekeeper, cobbler, woodcutter, ferryman, lighthouse keeper, postman, musician, shopkeeper,
nurse, candle maker, boat builder, glassblower, toymaker, mapmaker, builder, inventor, bus driver, train driver, cheese maker, innkeeper""")
ADULT_TRAITS = _rows("""old, kind, tired, clever, grumpy, careful, poor, cheerful, lonely, hard-working, quiet, honest, proud, patient,
forgetful, young, busy, wise, gentle, lazy, famous, tall, round, thin, stubborn, friendly, silent, absent-minded""")
BEASTS = _rows("""fox, rabbit, bear, mouse, hedgehog, squirrel, badger, otter, owl, crow, duck, goose, frog, toad, cat, dog, puppy, kitten,
goat, lamb, donkey, pony, pig, hen, rooster, wolf, deer, mole, beaver, turtle, snail, bat, sparrow, robin, swan, seal, penguin, elephant,
lion, tiger, monkey, giraffe, zebra, camel, parrot, whale, dolphin, crab, octopus, hamster, lizard, raccoon, hare, weasel, magpie, heron,
stork, cricket, bee, spider, ant, beetle, butterfly, caterpillar, worm, kangaroo, koala, panda, hippo, rhino, crocodile, fish""")
BEAST_TRAITS = _rows("""little, young, old, small, clever, hungry, brave, shy, sleepy, curious, lazy, proud, kind, grey, brown, white, black,
spotted, greedy, gentle, noisy, quiet, lonely, cheerful, grumpy, fluffy, quick, slow, wise, playful, tiny, big""")
FANTASTIC = _rows("""dragon, giant, robot, ghost, wizard, witch, fairy, elf, troll, knight, prince, princess, king, queen, goblin, unicorn,
mermaid, snowman, scarecrow, monster, pirate, gnome, magician, cloud, star, puppet, toy soldier, train, boat, astronaut, teapot, broom""")

TOYS = _rows("""kite, ball, drum, doll, toy boat, toy train, spinning top, puppet, teddy bear, whistle, marble, jigsaw puzzle, yo-yo, rocking horse,
skipping rope, wooden horse, paper lantern, flute, music box, bicycle, sled, scooter, hoop, picture book, tin soldier""")
THINGS = _rows("""key, hat, scarf, coat, book, basket, lantern, bucket, spoon, clock, bell, ring, coin, map, letter, mirror, umbrella, ladder,
blanket, pillow, cup, bowl, jar, box, bottle, hammer, needle, button, feather, shell, stone, rope, candle, lamp, chair, broom, knife, kettle,
pen, pencil, notebook, violin, watch, glove, shoe, boot, bag, purse, cushion, plate, teapot, saw, brush, comb, telescope, compass, wheel,
barrel, sack, axe, spade, net, fishing rod, acorn, locket, crown, fiddle, trumpet, chest, seed, egg, pie, cake, pot, painting, photograph""")
COLOURS = _rows("red, blue, green, yellow, white, black, brown, grey, golden, silver, purple, pink, orange")
OBJ_TRAITS = _rows("""old, new, small, big, little, shiny, wooden, heavy, broken, beautiful, plain, tiny, round, favourite, strange, rusty, painted,
soft, striped, pretty, dusty, smooth, red, blue, green, yellow, white, black, brown, golden, silver, purple, pink, orange, wonderful, special""")

PLACES = _rows("""in/the village, in/the forest, by/the river, at/the old mill, on/the farm, in/the garden, at/the harbour, on/the hill,
in/the market square, by/the sea, in/the valley, at/the lake, in/the town, on/the island, in/the meadow, at/the school, in/the library,
in/the kitchen, by/the pond, on/the beach, in/the mountains, at/the bridge, in/the orchard, in/the castle, at/the lighthouse, in/the park,
at/the railway station, in/the city, in/the old house, in/the barn, in/the workshop, at/the bakery, on/the moor, in/the desert, in/the jungle,
by/the waterfall, in/the cave, at/the crossroads, in/the museum, at/the inn, in/the vineyard, by/the canal, on/the cliff, in/the tower""")
HOMES = _rows("""in a small house, in a stone cottage, at the edge of the forest, in a tall house by the river, on a farm, above a bakery,
in a village by the sea, in a busy town, at the end of a long lane, in a house with a blue door, near the old mill, on top of a green hill,
beside a quiet lake, under a big oak tree, in a narrow street, in a valley between two mountains, behind the church, in a little wooden hut,
at the foot of a mountain, on a small island, in a house full of books, next to the railway station, in a sleepy village""")
DENS = _rows("""in a hole under an oak tree, in a hollow log, in a cosy den, near a quiet pond, in a deep green forest, in an old barn, under a hedge,
by a bend in the river, in a nest of dry leaves, behind a farmhouse, at the edge of a field, in a warm burrow, among the reeds, on a rocky hill""")

FOODS = _rows("""bread, soup, apple pie, cheese, porridge, honey cake, pancakes, plum jam, roast potatoes, noodles, rice, stew, biscuits, strawberries,
pears, nuts, blackberries, carrots, fresh rolls, hot chocolate, warm milk, cherry tart, buttered toast, dumplings, baked beans, oatcakes""")
DISHES = _rows("""loaf, honey cake, apple pie, plum tart, pot of soup, pot of stew, batch of biscuits, stack of pancakes, chocolate cake, carrot cake,
cheese pie, pot of jam, tray of buns, gingerbread house, walnut loaf""")
BUILDS = _rows("""bird house, tree house, little boat, raft, chair, table, kite, wooden bridge, cart, sled, bookshelf, lantern, garden bench, swing,
scarecrow, dam, puppet theatre, model ship, toy windmill, water wheel, fence, rabbit hutch""")
PLANTS = _rows("""sunflower, pumpkin, apple tree, rose, bean, tomato, cherry tree, tulip, oak tree, pea, lemon tree, strawberry plant, lily, carrot, pear tree""")
FLOWERS = _rows("daisies, poppies, bluebells, roses, violets, tulips, primroses, buttercups, lilies, snowdrops, marigolds, dandelions")
TREES = _rows("oak, willow, birch, beech, pine, apple tree, chestnut, elm, maple, ash, cherry tree, linden")
FEARS = _rows("""the dark, deep water, thunder, big dogs, high places, spiders, speaking in front of people, strangers, the cellar, the dentist,
being alone, loud noises, the forest at night, making mistakes, heights, geese, the wind, the old bridge, shadows""")

BIRDS = _rows("blackbird, robin, sparrow, crow, swallow, thrush, lark, wren, starling, cuckoo, woodpecker, seagull, owl, pigeon")
SMELLS = _rows("""fresh bread, wet grass, pine needles, wood smoke, salt, warm hay, apples, old books, flowers, rain, coffee, soap, cinnamon,
mushrooms, seaweed, lavender, honey, candle wax, damp earth""")
SOUNDS = _rows("""a bell, a dog barking, the wind in the trees, the river, somebody singing, footsteps, a clock ticking, birds, rain on the roof, a cart
on the road, distant thunder, children laughing, the creak of a gate, the hum of bees, a whistle, an owl""")
ADVERBS_SAID = _rows("quietly, softly, kindly, at last, happily, slowly, firmly, gently, with a smile, with a sigh, with a laugh, after a while")

GOOD_FEELINGS = _rows("""happy, proud, glad, pleased, cheerful, excited, calm, thankful, delighted, content, relieved, hopeful, peaceful""")
BAD_FEELINGS = _rows("""sad, worried, lonely, cross, tired, afraid, ashamed, disappointed, unhappy, nervous, upset, miserable, discouraged""")
SPEEDS = _rows("quickly, slowly, carefully, quietly, at once, as fast as {he} could, without a sound, without looking back, step by step")
TIMES = _rows("""one morning, one day, one afternoon, one evening, one fine day, early one morning, one Saturday, on Monday morning,
one Sunday afternoon, on {his} birthday, shortly after lunch, one {season} day, one {season} morning, one day in {season},
early one {season} morning, at the end of {season}, on the first day of {season}, one quiet afternoon, last week, on market day""")
LATER = _rows("""one day, one morning, a few days later, the following week, not long after that, some time later, one evening, after a while,
on the third day, a month later, when nobody expected it""")

VIRTUES = _rows("""kindness, patience, honesty, courage, sharing, friendship, hard work, listening, trust, hope, forgiveness, generosity, curiosity""")
FRUITS = _rows("apples, pears, plums, cherries, grapes, oranges, lemons, bananas, strawberries, peaches, melons, figs")
VEGETABLES = _rows("carrots, potatoes, onions, peas, beans, cabbages, leeks, tomatoes, cucumbers, pumpkins, beetroots, turnips")
TOOLS = _rows("hammer, saw, axe, spade, rake, knife, needle, plane, file, chisel, pair of pliers, screwdriver, broom, ladder, wheelbarrow")
NUMBERS = _rows("two, three, four, five, six, seven, eight, nine, ten, twelve, twenty")
KIN = _rows("mother, father, grandmother, grandfather, aunt, uncle, older sister, older brother, cousin, neighbour")
CARER = _rows("mother, father, grandmother, grandfather, aunt, uncle")

LISTS = {
    "girl": GIRLS, "boy": BOYS, "place_entry": PLACES, "food": FOODS, "food2": FOODS, "flowers": FLOWERS, "tree": TREES,
    "bird": BIRDS, "smell": SMELLS, "sound": SOUNDS, "colour": COLOURS, "thing": THINGS, "toy": TOYS, "beast": BEASTS,
    "good": GOOD_FEELINGS, "bad": BAD_FEELINGS, "virtue": VIRTUES, "number": NUMBERS, "tool": TOOLS, "fruit": FRUITS,
    "vegetable": VEGETABLES, "kin": KIN, "carer": CARER, "saidly": ADVERBS_SAID, "speed": SPEEDS, "time": TIMES, "time2": LATER, "dish": DISHES,
    "build": BUILDS, "plant": PLANTS, "fear": FEARS, "otrait": OBJ_TRAITS, "job": ADULTS, "jtrait": ADULT_TRAITS,
    "home": HOMES, "den": DENS, "fantastic": FANTASTIC, "name": GIRLS + BOYS,
}
