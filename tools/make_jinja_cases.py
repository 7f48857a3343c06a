#!/usr/bin/env python3
"""make_jinja_cases.py - writes tests/data/jinja_cases.jsonl: templates of ours with what jinja2 makes of them.

    pip install jinja2 (in an environment of its own), then: make_jinja_cases.py > tests/data/jinja_cases.jsonl

Each line is {"t": template, "v": variables, "out": text} or, where jinja2 fails, {"t", "v", "error": true}. jinja2 is set up
as Hugging Face does for chat templates: immutable sandbox, trim_blocks, lstrip_blocks, loop controls, a plain tojson,
raise_exception and strftime_now (fixed here), and {% generation %}."""

import json
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

CHAT = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <|im_end|> there"},
                     {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello!"}, {"role": "user", "content": "Who?"}],
        "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", "tools": None}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a \"place\" <now>",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Größe & Ort"},
                       "unit": {"type": "string", "enum": ["C", "F"]}, "n": {"type": "integer", "default": 3}}, "required": ["city"]}}}
TOOLS = {"messages": [{"role": "user", "content": "Weather?"},
                      {"role": "assistant", "content": "", "tool_calls": [{"id": "call_0001", "type": "function", "function": {
                          "name": "get_weather", "arguments": {"city": "Ulm", "n": 1.5, "on": True, "x": None}}}]},
                      {"role": "tool", "content": "12 C", "name": "get_weather", "tool_call_id": "call_0001"},
                      {"role": "tool", "content": "13 C", "name": "get_weather", "tool_call_id": "call_0002"},
                      {"role": "assistant", "content": "It is cold."}, {"role": "user", "content": "Thanks"}],
         "tools": [TOOL], "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
DATA = {"n": 7, "f": 2.5, "s": "Hello, World", "u": "żółć ß 日本 😀", "b": True, "z": None, "e": "", "l": [3, 1, 2], "ll": [[1, 2], [3, 4]],
        "d": {"b": 2, "a": 1, "C": 3}, "words": ["banana", "Apple", "cherry", "apple"], "lines": "one\ntwo\n\n  three\n",
        "people": [{"name": "Ann", "age": 30, "tags": {"x": 1}}, {"name": "bob", "age": 25, "tags": {"x": 3}}, {"name": "Cid", "age": 30}],
        "html": "<b>\"x\" & 'y'</b>", "big": 12345678901234567, "pad": "  \t x y \n ", "obj": {"items": "shadow", "x": {"y": [10, 20]}}}

# (template, variables or None for DATA)
CASES = []


def add(variables, *templates):
    for t in templates:
        CASES.append((t, variables))


def expressions(*texts):
    add(DATA, *["{{ " + t + " }}" for t in texts])


# ---- values and printing
expressions("1", "-1", "+5", "1.0", "1.5e3", "1e16", "1e-5", "0.1", "1e100", "1.0e15", "123456789.123", "1_000", "0x1f", "0b101", "0o17",
            "true", "True", "none", "None", "false", "'a'", '"a"', "'a' 'b' \"c\"", "[]", "[1, 'a', none, true, 1.5]", "(1,)", "()", "(1, 2)", "1, 2",
            "{}", "{'a': 1, 'b': [1]}", "{1: 'x', none: 2, true: 3}", "[[], {}, ()]", "['it\\'s']", "['\"']", "['a\\nb\\t\\\\']", "['\\x00\\x7f\\u00e9']",
            "['ż', '😀', '\\u200b']", "'\\u00e9\\x41\\101\\n\\q\\U0001F600'", "u", "[u]", "big", "-0.0", "1/3", "100000000000000000000.0", "1e22", "5e-324",
            "2.5|string", "z", "b", "l", "d", "people[0]", "range(3)", "range(1, 10, 3)", "d.items()", "d.keys()", "d.values()")
# ---- arithmetic
expressions("1 + 2", "7 / 2", "6 / 2", "7 // 2", "-7 // 2", "7 // -2", "7 % 3", "-7 % 3", "7 % -3", "7.5 // 2", "7.5 % 2", "-7.5 % 2", "2 ** 10", "2 ** -1",
            "2 ** 3 ** 2", "-2 ** 2", "2 * 3 + 4", "2 + 3 * 4", "(2 + 3) * 4", "10 - 3 - 2", "1 - -1", "not 1", "not 0 == 1", "true + 1", "'a' + 'b'", "'ab' * 3",
            "3 * 'ab'", "[1] + [2]", "[1, 2] * 2", "(1,) + (2,)", "'a' ~ 1 ~ none ~ 2.5 ~ [1]", "1 ~ 2 + 3", "'x' ~ undefined_name ~ 'y'", "1 / 0", "1 // 0", "1 % 0",
            "'a' + 1", "1 + 'a'", "'a' - 'b'", "none + 1", "undefined_name + 1", "[1] + (2,)", "10 ** 9", "7 and 3", "0 and 3", "0 or 'x'", "'' or none", "n if b else f",
            "n if not b", "n if z else f if e else s", "'%s is %d' % ('a', 3)", "'%5.2f|%-5s|%05d|%x|%r' % (3.14159, 'ab', 42, 255, 'q')", "'%s' % 5", "'%s' % [1]",
            "'%(a)s-%(b)s' % {'a': 1, 'b': 2}", "'100%%' % ()", "'%s %s' % ('a',)", "'%d' % 'a'", "'%+d % d' % (1, 2)", "'%e %g' % (12345.678, 0.00001)", "'%c' % 'x'", "'%.3s' % 'abcdef'",
            "5 * -1", "-n", "- n + 1", "f * 2", "n * 1.0", "1 == 1.0", "true == 1", "'1' == 1")
# ---- comparison
expressions("1 < 2", "1 < 2 < 3", "1 < 3 < 2", "3 > 2 >= 2", "1 == 1 == 1", "1 != 2", "'a' < 'b'", "'a' < 'B'", "[1, 2] < [1, 3]", "(1, 2) == (1, 2)", "[1] == (1,)", "1 < 'a'", "none < 1",
            "none == none", "undefined_name == undefined_name", "undefined_name == none", "undefined_name < 1", "1 in [1, 2]", "3 not in l", "'a' in 'abc'", "'' in 'abc'", "'a' in d",
            "1 in 'abc'", "'x' in undefined_name", "not 'x' in d", "1 in d.values()", "'a' in ('a', 'b')", "{'a': 1} == {'a': 1}", "2 in range(3)", "1 in 5", "1.5 in [1.5]", "none in [none]",
            "b and not z", "not (b and z)", "1 < 2 and 2 < 3 or false", "s == 'Hello, World'")
# ---- lookups
expressions("l[0]", "l[-1]", "l[5]", "l[5] is defined", "l.0", "s[0]", "s[-1]", "s[100]", "u[0]", "u[-1]", "u[8]", "d['a']", "d.a", "d['zz']", "d.zz", "d.zz.y", "undefined_name.x", "undefined_name['x']",
            "undefined_name", "obj.items()", "obj['items']", "obj.x.y[1]", "obj['x']['y'][0]", "obj.x.y.1", "people[1].name", "(1, 2)[1]", "{'a': 5}.a", "{'a': 5}['a']", "'abc'.upper", "s.nothing", "n.nothing",
            "l[1:]", "l[:-1]", "l[::-1]", "l[::2]", "l[5:]", "l[-2:]", "s[1:4]", "s[::-1]", "s[-5:]", "s[:-1]", "u[1:6]", "u[::-1]", "u[7:9]", "s[::3]", "s[10:2:-2]", "s[2:10:3]", "l[::0]", "l['a':]", "(1,2,3)[1:]", "range(10)[2:4]|list",
            "range(5)[1]", "range(10)[2:7:2]", "range(5)[::-1]", "range(2, 20, 3)[1:3]", "range(5)[9:]", "range(5)[-1]", "range(5)[9]", "range(5)|length", "d[l]", "none.x", "none['x']", "none.x.y", "n['x']", "l.x", "true.x", "d[none]", "{none: 1}[none]", "ll[1][0]", "l[1:][0]")
# ---- the sandbox
expressions("s.__class__", "s.__class__.__mro__", "s.__class__()", "l.append", "l.append(1)", "l.pop()", "d.update({'a': 1})", "d.pop('a')", "d.setdefault('a', 1)", "l.sort()", "l.insert(0, 1)", "l.extend([1])",
            "l.clear()", "l.remove(1)", "l.reverse()", "d.clear()", "lipsum_", "self_.x", "s['__class__']", "d['__class__']", "d.__class__ is defined", "s.__len__()", "range.__class__", "namespace.__init__.__globals__",
            "range(100001)", "range(1000000000)", "range(10**9)|list", "range(0)", "range(5, 0, -2)|list", "range()", "range(1, 2, 0)", "range('a')")
# ---- filters on text
expressions("s|upper", "s|lower", "u|upper", "u|lower", "s|capitalize", "'hELLO wORLD'|capitalize", "'hello wORLD-foo (bar)'|title", "\"it's a dog\"|title", "pad|trim", "'xxaxx'|trim('x')", "'abcba'|trim('ab')", "n|trim", "z|trim", "undefined_name|trim",
            "s|replace('l', 'L')", "s|replace('l', 'L', 1)", "s|replace('', '-')", "s|replace('zz', 'q')", "'aaa'|replace('aa', 'b')", "n|replace(7, 8)", "html|escape", "html|e", "html|forceescape", "html|striptags", "html|safe", "lines|indent", "lines|indent(2)", "lines|indent(2, true)",
            "lines|indent(2, first=true, blank=true)", "lines|indent('> ')", "''|indent", "'a'|indent(2, true)", "'a\\n\\nb'|indent(2)", "s|wordcount", "'%s-%s'|format(1, 'b')", "'%(x)s'|format(x=2)", "s|length", "u|length", "s|count", "''|length", "n|length", "z|length", "undefined_name|length",
            "s|first", "s|last", "s|list", "s|reverse", "u|reverse", "s|center(20)", "'ab'|center(7)", "'abc'|center(6)", "s|truncate(8)", "s|truncate(8, true)", "'foo bar baz qux'|truncate(9)", "'foo bar baz qux'|truncate(9, False, '..', 0)", "'foo bar baz qux'|truncate(11)", "s|string", "n|string", "z|string", "undefined_name|string")
# ---- numbers
expressions("'42'|int", "'  42 '|int", "'-7'|int", "'3.7'|int", "3.7|int", "-3.7|int", "'x'|int", "'x'|int(5)", "'ff'|int(0, 16)", "'0xff'|int(base=16)", "true|int", "none|int", "undefined_name|int", "'1_000'|int", "''|int", "'3.5'|float", "'x'|float", "'x'|float(1.5)", "3|float", "'1e3'|float", "none|float", "'inf'|float",
            "2.5|round", "3.5|round", "2.567|round(2)", "2.561|round(2, 'ceil')", "2.569|round(2, 'floor')", "7|round", "1234|round(-2)", "2.675|round(2)", "-3|abs", "-3.5|abs", "'a'|abs", "n|float|string", "1.0|int", "[1, 2, 3]|sum", "[1.5, 2]|sum", "people|sum('age')", "people|sum(attribute='age', start=10)", "[]|sum", "[[1], [2]]|sum(start=[])", "['a']|sum",
            "l|min", "l|max", "[]|min", "words|min", "words|max", "people|max(attribute='age')", "words|min(case_sensitive=true)", "['b', 'B']|max")
# ---- lists
expressions("l|sort", "l|sort(reverse=true)", "words|sort", "words|sort(case_sensitive=true)", "people|sort(attribute='age')|map(attribute='name')|list", "people|sort(attribute='age,name')|map(attribute='name')|list", "people|sort(reverse=true, attribute='name')|map(attribute='name')|join(' ')", "[1, 'a']|sort", "words|unique|list", "words|unique(true)|list",
            "people|unique(attribute='age')|map(attribute='name')|list", "l|reverse|list", "l|reverse|length", "l|reverse is iterable", "l|join", "l|join(', ')", "people|join('; ', attribute='name')", "people|join('+', 'age')", "words|join(1)", "s|join('-')", "undefined_name|join", "[1, [2], none]|join('|')", "l|first", "l|last", "[]|first", "[]|last", "[]|first is defined", "undefined_name|first",
            "d|list", "d|items|list", "d.items()|list", "d|dictsort", "d|dictsort(true)", "d|dictsort(by='value')", "d|dictsort(false, 'value', true)", "d|dictsort(by='x')", "l|dictsort", "undefined_name|items|list", "l|items", "d|length", "d|first", "range(7)|batch(3)|list", "range(7)|batch(3, 'x')|list", "range(7)|slice(3)|list", "range(7)|slice(3, 'x')|list", "l|map('string')|list", "words|map('upper')|join(',')",
            "words|map('replace', 'a', 'o')|list", "people|map(attribute='tags.x')|list", "people|map(attribute='tags.x', default=0)|list", "ll|map(attribute=1)|list", "ll|map(attribute='0')|list", "ll|map('first')|list", "ll|map('sum')|sum", "l|map('nope')|list", "l|map", "l|select('odd')|list", "l|select('gt', 1)|list", "l|select('>', 1)|list", "[0, 1, '', 'a', none]|select|list", "[0, 1, '', 'a', none]|reject|list", "l|reject('odd')|list",
            "people|selectattr('age', 'equalto', 30)|map(attribute='name')|list", "people|selectattr('tags')|list|length", "people|selectattr('tags', 'defined')|list|length", "people|rejectattr('tags', 'defined')|map(attribute='name')|list", "people|rejectattr('age', 'eq', 30)|list", "people|selectattr('age', '==', 30)|first", "l|select('odd')|length", "l|select('odd')|first", "l|select('odd')|last", "l|select('nope')|list", "l|select('in', [1, 9])|list",
            "people|groupby('age')|length", "words|groupby('0')|list", "l|list is sequence", "l|map('string') is string", "'abc'|list", "5|list", "none|list", "words|select('string')|list", "[1, 2]|attr('x')", "d|attr('a')", "d|attr('keys') is callable", "l|length", "(1, 2)|list", "[1,2,3]|last", "[3]|min", "[none]|first")
# ---- json
expressions("d|tojson", "people|tojson", "s|tojson", "u|tojson", "html|tojson", "z|tojson", "b|tojson", "1.5|tojson", "1.0|tojson", "[]|tojson", "{}|tojson", "[[], {}]|tojson(indent=2)", "people|tojson(indent=4)", "d|tojson(indent=2)", "d|tojson(sort_keys=true)", "d|tojson(indent=1, sort_keys=true)", "d|tojson(separators=(',', ':'))", "u|tojson(ensure_ascii=true)",
            "'a\\n\\t\\r\\b\\f\\\\\\\"/\\x01\\x7f'|tojson", "(1, 2)|tojson", "{1: 2, none: 3, true: 4, 1.5: 5}|tojson", "undefined_name|tojson", "range(3)|tojson", "d.items()|tojson", "l|map('string')|tojson", "d|tojson(indent='--')", "d|tojson(true)", "big|tojson", "1e100|tojson", "'😀'|tojson(ensure_ascii=True)")
# ---- default, tests
expressions("undefined_name|default('x')", "undefined_name|d('x')", "e|default('x')", "e|default('x', true)", "z|default('x')", "z|default('x', true)", "d.zz|default('x')", "undefined_name|default", "undefined_name.x|default('a')", "n is defined", "undefined_name is defined", "undefined_name is undefined", "undefined_name is not defined", "d.zz is defined", "z is none", "n is none", "z is not none",
            "s is string", "n is string", "n is number", "f is number", "b is number", "s is number", "n is integer", "b is integer", "f is integer", "f is float", "n is float", "b is boolean", "n is boolean", "d is mapping", "l is mapping", "l is sequence", "s is sequence", "d is sequence", "n is sequence", "undefined_name is sequence", "l is iterable", "s is iterable", "n is iterable", "z is iterable", "d is iterable", "undefined_name is iterable",
            "range is callable", "n is callable", "s.upper is callable", "n is odd", "n is even", "n is divisibleby 7", "n is divisibleby(3)", "n is eq 7", "n is eq(7)", "n is equalto 7", "n is ne 7", "n is lt 8", "n is gt 8", "n is le 7", "n is ge 8", "n is lessthan 8", "n is greaterthan 8", "n is in [7]", "n is not in [7]", "1 is in l", "b is true", "z is false", "b is sameas true", "n is sameas 7", "none is sameas none", "'a' is lower", "'A1' is upper",
            "'a1' is upper", "'' is lower", "'upper' is filter", "'nope' is filter", "'odd' is test", "'nope' is test", "n is nope", "n|nope", "n is odd and b", "n is odd or x.y", "not n is odd", "n is not odd", "n is defined and n is number", "(n is odd) == true", "n is odd == true", "1 if n is odd else 2", "d.a is defined and d.a == 1", "n is divisibleby n", "s is escaped", "l[0] is integer", "'a' 'b' is string", "n is number and not s is number")
# ---- methods of strings
expressions("pad.strip()", "pad.lstrip()", "pad.rstrip()", "'xxaxx'.strip('x')", "'xyaxy'.lstrip('yx')", "'xyaxy'.rstrip('yx')", "s.split(',')", "s.split(', ')", "s.split()", "pad.split()", "'a,b,c'.split(',', 1)", "'a,b,c'.rsplit(',', 1)", "' a  b c '.split(None, 1)", "' a  b c '.rsplit(None, 1)", "' a  b c '.rsplit()", "''.split()", "''.split(',')", "s.split('')", "'a,b,c'.split(sep=',', maxsplit=1)", "lines.splitlines()",
            "lines.splitlines(true)", "'a\\r\\nb\\rc\\x0bd\\u2028e'.splitlines()", "s.startswith('Hello')", "s.startswith(('x', 'He'))", "s.endswith('World')", "s.endswith(('x', 'y'))", "s.startswith('World', 7)", "s.endswith('Hello', 0, 5)", "s.startswith(1)", "s.upper()", "s.lower()", "s.title()", "\"it's\".title()", "'hello world'.title()", "s.capitalize()", "s.swapcase()", "'ß'.upper()", "s.replace('l', 'L')", "s.replace('l', 'L', 2)", "s.replace('o', '')",
            "s.find('o')", "s.find('o', 5)", "s.find('zz')", "s.rfind('o')", "s.index('W')", "s.index('zz')", "u.find('日')", "u.rfind('ó')", "s.count('l')", "'aaaa'.count('aa')", "''.count('')", "'-'.join(['a', 'b'])", "'-'.join([1])", "', '.join(words)", "''.join(d)", "'{} {}'.format(1, 'a')", "'{1} {0}'.format(1, 'a')", "'{x}-{y:>5}|{y:<5}|{y:^5}|'.format(x=1, y='ab')", "'{:05d} {:.2f} {:,} {:x} {:+d} {:*^9}'.format(42, 3.14159, 1234567, 255, 5, 'mid')",
            "'{!r} {!s}'.format('a', 'b')", "'{{}} {}'.format(1)", "'{0.x} {0[x]}'.format(d)", "'{d[a]}'.format(d=d)", "'{'.format()", "'{}'.format()", "'{:d}'.format('a')", "'{:>{}}'.format(1)", "'{:%}'.format(0.25)", "'{:10.3f}|'.format(f)", "'{:e}'.format(12345.6789)", "'{:g}'.format(0.00001234)", "'{:s}'.format('x')", "'{:5}|{:5}|'.format(1, 'a')", "'{}'.format(none)", "'{}'.format(1.0)", "'{:b} {:o} {:#x}'.format(5, 8, 255)", "'123'.isdigit()", "'12a'.isdigit()", "''.isdigit()", "'abc'.isalpha()",
            "'ab1'.isalnum()", "' \\n'.isspace()", "'ABC'.isupper()", "'abc'.islower()", "'Ⅷ'.isnumeric()", "'abc'.removeprefix('a')", "'abc'.removesuffix('c')", "'abc'.removeprefix('x')", "'a-b-c'.partition('-')", "'a-b-c'.rpartition('-')", "'abc'.partition('-')", "'abc'.rpartition('-')", "'7'.zfill(3)", "'-7'.zfill(4)", "'a'.ljust(3) + '|'", "'a'.rjust(3, '*')", "s.nope()", "s.upper(1)", "'a'.join", "s.split(',')[1].strip()", "'ab'.split('b')[-1]", "s.encode", "'a' in s.lower()", "'%s' % s.upper()", "u.upper()", "u.split(' ')|length", "s.casefold()", "'A-b'.lower().split('-')|last", "'x=1;y=2'.split(';')|map('replace', '=', ':')|list")
# ---- methods of dictionaries and lists
expressions("d.get('a')", "d.get('zz')", "d.get('zz', 5)", "d.get('zz', default=5)", "d.items()|list", "d.keys()|list", "d.values()|list", "d.keys()|join(',')", "d.items()[0]", "d.items()|length", "d.copy()", "l.index(2)", "l.index(9)", "l.count(1)", "(1, 2).count(1)", "d.get()", "d.get('a', 'b', 'c')", "dict(a=1, b=2)", "dict([('a', 1)])", "dict({'a': 1}, b=2)", "dict(d).a", "dict(**d)", "d.keys() is sequence", "d.items() is iterable", "d.values()|sum", "d.values()|list|sort", "namespace(a=1).a", "namespace(a=1).b", "namespace(a=1)", "namespace({'a': 2}).a", "raise_exception('boom')", "strftime_now('%d %b %Y')", "strftime_now('%Y-%m-%d')", "strftime_now('%B %d, %Y %%')")

# ---- statements
add(DATA,
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in [] %}x{% else %}empty{% endfor %}", "{% for x in undefined_name %}x{% else %}none{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for c in 'abc' %}[{{ c }}]{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}", "{% for (a, b) in ll %}{{ a }}{{ b }}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for i, (a, b) in [(1, (2, 3))] %}{{ i }}{{ a }}{{ b }}{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}", "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}", "{% for x in range(5) %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in l %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}", "{% for x in l %}{{ loop.nope }}{% endfor %}", "{{ loop.index }}",
    "{% for x in range(10) if x is odd %}{{ x }}{% endfor %}", "{% for x in range(10) if x > 20 %}{{ x }}{% else %}no{% endfor %}", "{% for x in range(10) if x is odd %}{{ loop.index }}/{{ loop.length }} {% endfor %}", "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in range(3) %}{% for y in range(3) %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}", "{% break %}", "{% for x in l %}{% set y = x %}{% endfor %}{{ y }}", "{% set y = 1 %}{% for x in l %}{% set y = x %}{{ y }}{% endfor %}{{ y }}", "{% set y = 1 %}{% for x in l %}{{ y }}{% set y = y + x %}{{ y }} {% endfor %}{{ y }}",
    "{% set ns = namespace(n=0) %}{% for x in l %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b }}", "{% set d.a = 1 %}", "{% set q.a = 1 %}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set a, b = [1] %}", "{% set a %}x{{ n }}y{% endset %}[{{ a }}]", "{% set a | upper %}x{{ s }}y{% endset %}[{{ a }}]", "{% set ns = namespace(a=1) %}{% set ns.a %}blk{% endset %}{{ ns.a }}", "{% set ns = namespace(i=0) %}{% for x in range(6) if ns.i < 2 %}{% set ns.i = ns.i + 1 %}{{ x }}{% endfor %}", "{% if b %}yes{% endif %}", "{% if z %}yes{% else %}no{% endif %}", "{% if z %}1{% elif n == 7 %}2{% else %}3{% endif %}", "{% if z %}1{% elif e %}2{% elif l %}3{% endif %}", "{% if undefined_name %}1{% else %}2{% endif %}", "{% if b %}{% set q = 5 %}{% endif %}{{ q }}", "{% if undefined_name.x %}1{% endif %}",
    "{% for i in [1,2] %}{% for j in [3,4] %}{{ i }}{{ j }}{{ loop.index }} {% endfor %}{{ loop.index }};{% endfor %}", "{% for i in [1,2] %}{% set outer = loop %}{% for j in [3,4] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}", "{% for x in [[1,[2,[3]]]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth }} {% endif %}{% endfor %}", "{% for x in l %}{{ loop(l) }}{% endfor %}", "{% for x in l|reverse %}{{ x }}{% endfor %}", "{% for i in [1, 2] %}{% for j in l if loop.index == 1 %}{{ j }}{% endfor %};{% endfor %}", "{% for x in l|sort %}{{ x }}{{ ',' if not loop.last }}{% endfor %}", "{% for g in people|groupby('age') %}{{ g.grouper }}:{{ g.list|length }} {% endfor %}", "{% for age, ps in people|groupby('age') %}{{ age }}:{% for p in ps %}{{ p.name }}{% endfor %} {% endfor %}", "{% set g = l|map('string') %}{{ g|list }}{{ g|list }}", "{% for k in obj %}{{ k }}{% endfor %}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% set a = 1 %}{% with a = 2, c = a %}{{ a }}{{ c }}{% endwith %}{{ a }}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(c=2) }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "{% macro box(t) %}[{{ t }}:{{ caller() }}]{% endmacro %}{% call box('x') %}body{{ n }}{% endcall %}", "{% macro each(l) %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(y) each(l) %}<{{ y }}>{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ q }}{% endmacro %}{% set q = 5 %}{{ m() }}", "{% macro a() %}{{ c() }}{% endmacro %}{% macro c() %}C{% endmacro %}{{ a() }}", "{% macro m() %}x{% endmacro %}{{ m.name }}{{ m is callable }}", "{% macro m(x) %}{% set q = x %}{{ q }}{% endmacro %}{{ m(1) }}{{ q }}", "{% set q = 1 %}{% macro m() %}{% set q = 2 %}{{ q }}{% endmacro %}{{ m() }}{{ q }}", "{% macro m() %}  x  {% endmacro %}{{ m()|trim }}|", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}", "{{ undefined_name() }}", "{{ n() }}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter upper|replace('A', 'b') %}aa{% endfilter %}", "{% filter nope %}a{% endfilter %}", "{% if false %}{{ 1|nope }}{% endif %}ok", "{% if true %}{{ 1|nope }}{% endif %}", "{% raw %}{{ x }}{% y %}{# z #}{% endraw %}", "a {%- raw -%}  {{ x }}  {%- endraw -%} b", "{% raw %}\n  a\n{% endraw %}\nb", "{# comment #}a{#- c -#} b", "a\n  {# c #}\nb", "{% generation %}a{{ n }}{% endgeneration %}b", "{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}", "{{ 0|map('upper')|list }}", "{{ none|select|list }}", "{{ 5|map('upper')|list }}", "{{ n[1:] }}", "{{ d[1:] }}", "{{ undefined_name[1:] }}", "{{ ll|unique|list }}", "{{ n|indent }}", "{{ n|truncate }}", "{{ l|truncate }}", "{% for m in l %}{% generation %}{{ m }}{% endgeneration %}{% endfor %}", "{% do 1 %}", "{% nope %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% endif %}", "{% if %}{% endif %}", "{% if b %}", "{% for %}{% endfor %}", "{{ }}", "{{ 1 2 }}", "{{ (1 }}", "{{ 1", "{% if b", "{# x", "{{ 'a }}", "{{ ] }}", "{{ a. }}", "{{ 1 + }}", "{{ a | }}", "{{ a is }}", "{% set %}", "{% set a = %}", "{% for x in l %}{% else %}{% else %}{% endfor %}", "{{ not }}", "{{ $ }}", "{{ a b }}", "{{ [1, }}", "{{ {1} }}", "{{ {'a': } }}", "{% macro %}{% endmacro %}", "{{ f(a=1, 2) }}", "{{ '}}' }}", "{{ '%}' ~ '{{' }}", "{{ {'a': {'b': 1}}['a'] }}", "{{ {'a': {'b': 1}} }}", "{% set x = {'a': {'b': 1}} %}{{ x.a.b }}", "{{- 1 -}}", "{ { % }", "}} %} #}", "{{'a'}}{{'b'}}", "", "\n", "a\n", "a\n\n", "\n\na", "a\r\nb\rc\n")
# ---- whitespace
add(DATA,
    "{% if b %}\n  a\n{% endif %}\nb", "  {% if b %}\n    x\n  {% endif %}\n", "a {% if b %} b {% endif %} c", "a {%- if b %} b {%- endif %} c", "a {% if b -%} b {% endif -%} c", "a\n\n  {%- if b -%}\n\n  b\n  {%- endif %}\nc", "  {%+ if b %}x{% endif %}", "{% if b +%}\nx{% endif %}", "{{ n }}\n{{ n }}\n", "{{ n -}}\n  x", "x  {{- n }}", "  {{ n }}  ", "  {{- n -}}  ", "a\n{% set q = 1 %}\nb", "a\n  {% set q = 1 %}  \nb", "a\n  {% set q = 1 -%}  \nb", "a\n\t{% if b %}\n\tb\n\t{% endif %}\nc", "{% for x in l %}\n{{ x }}\n{% endfor %}\n", "{% for x in l -%}\n{{ x }}\n{%- endfor %}\n", "x {# c #} y", "x\n  {# c #}  \ny", "x\n  {#- c -#}  \ny", "x\n{# c #}\n{# d #}\ny", "  {% if b %}a{% endif %}{% if b %}b{% endif %}", "{% if b %}\n\nx\n\n{% endif %}", "a{% if b %}\n{% endif %}b", "{%- if b -%} x {%- else -%} y {%- endif -%}", "{{ 1 }}\n\n{%- if b %}x{% endif %}", "\n  {{ n }}", "{% if b %}  {{ n }}  {% endif %}", "\u00a0{%- if b %}x{% endif %}", "a  \n {%- set x = 1 %}\n b", "{%-if b-%}x{%-endif-%}", "{%if b%}x{%endif%}", "{{n}}{{-n}}{{+n}}", "{% if b %}{# a #}\n{% endif %}\nz", "  {# a #}{% if b %}\n  q{% endif %}")

CHATML = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
THINK = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Functions\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or reasoning) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls or [] %}
            {%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{%- endif %}
            {%- set call = tool_call.function if tool_call.function else tool_call %}
            {{- '<tool_call>\\n{"name": "' ~ call.name ~ '", "arguments": ' }}
            {{- call.arguments if call.arguments is string else call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + content + '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""
INST = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}{{- '"' + key + '": "' + val + '"' }}
                    {%- else %}{{- '"' + key + '": ' + val|tojson }}{%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}{{- raise_exception("ids have 9 characters") }}{%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool" %}
        {%- set content = message.content.content if message.content is mapping and message.content.content is defined else message.content %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("only user, assistant and tool") }}
    {%- endif %}
{%- endfor %}"""
R1 = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<|User|>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{%- if message['content'] is none %}{{'<|Assistant|><|calls|>' + tool['type'] + '<|sep|>' + tool['function']['name'] + '\\n' + '```json' + '\\n' + tool['function']['arguments']|tojson + '\\n' + '```'}}{%- else %}{{'<|Assistant|>' + message['content'] + '<|calls|>' + tool['type'] + '<|sep|>' + tool['function']['name']}}{%- endif %}{%- set ns.is_first = true -%}{%- endif %}{%- endfor %}{{'<|end|>'}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{%- if ns.is_tool %}{{'<|outs end|>' + message['content'] + '<|end|>'}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<|Assistant|>' + content + '<|end|>'}}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<|outs|><|out|>' + message['content'] + '<|out end|>'}}{%- set ns.is_output_first = false %}{%- else %}{{'\\n<|out|>' + message['content'] + '<|out end|>'}}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'<|outs end|>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<|Assistant|><think>\\n'}}{% endif %}"""
COMMAND = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}
{%- macro json_to_python_type(json_spec) %}
    {%- set basic = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"} %}
    {%- if json_spec.type in basic %}{{- basic[json_spec.type] }}
    {%- elif json_spec.type == "array" %}{{- "List[" + json_to_python_type(json_spec.items) + "]" }}
    {%- elif json_spec.type is iterable and json_spec.type is not string %}{{- "Union[" }}{%- for t in json_spec.type %}{{- json_to_python_type({"type": t}) }}{%- if not loop.last %},{%- endif %}{%- endfor %}{{- "]" }}
    {%- else %}{{- "Any" }}{%- endif %}
{%- endmacro %}
{%- macro tool_parser(tools) %}
    {%- for tool in tools %}
        {%- if tool.type is not defined or tool.type == "function" %}{%- set tool = tool.function %}{%- endif %}
        {{- "def " + tool.name + "(" }}
        {%- for param_name, param_fields in tool.parameters.properties|items %}
            {{- param_name }}: {% if not param_name in tool.parameters.required %}{{ "Optional[" + json_to_python_type(param_fields) + "] = None" }}{% else %}{{ json_to_python_type(param_fields) }}{% endif %}
            {%- if not loop.last %}{{- ", " }}{%- endif %}
        {%- endfor %}
        {{- ") -> List[Dict]:\\n    \\"\\"\\"" + tool.description + "\\n\\n    Args:\\n" }}
        {%- for param_name, param_fields in tool.parameters.properties.items() %}
            {{- "        " + param_name + " (" + json_to_python_type(param_fields) + "): " + (param_fields.description | default("-") | trim) + "\\n" }}
        {%- endfor %}
        {{- "    \\"\\"\\"\\n    pass\\n" }}
    {%- endfor %}
{%- endmacro %}
{%- if tools %}{{ tool_parser(tools) }}{% endif %}
{%- for message in loop_messages %}
{%- if message.role|lower == 'user' %}{{ '<|USER|>' + message.content.strip() }}{% elif message.role|lower in ['assistant', 'chatbot'] %}{{ '<|BOT|>' }}{% if message.tool_calls %}Action: ```json
[{% for tc in message.tool_calls %}{"tool_name": "{{ tc.function.name }}", "parameters": {{ tc.function.arguments|tojson(indent=4)|indent(4) }}}{% if not loop.last %},{% endif %}{% endfor %}]```{% else %}{{ message.content.strip() }}{% endif %}{% elif message.role == 'tool' and (loop.previtem is not defined or loop.previtem.role != 'tool') %}{{ '<|RESULTS|>' }}{% for m in loop_messages[loop.index0:] if m.role == 'tool' %}
document {{ loop.index0 }}: {{ m.content }}{% endfor %}{% endif %}
{%- endfor %}"""
for template in (CHATML, THINK, INST, R1, COMMAND):
    add(CHAT, template)
    add(TOOLS, template)
    add(dict(CHAT, messages=CHAT["messages"][1:3], add_generation_prompt=False), template)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body).set_lineno(line)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def strftime_now(fmt):
    import datetime
    return datetime.datetime(2024, 7, 26, 12, 0, 0).strftime(fmt)


def main():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    print(json.dumps({"vars": {"DATA": DATA, "CHAT": CHAT, "TOOLS": TOOLS}}, ensure_ascii=False))
    names = {id(DATA): "DATA", id(CHAT): "CHAT", id(TOOLS): "TOOLS"}
    for template, variables in CASES:
        line = {"t": template, "v": names.get(id(variables), variables)}
        try:
            line["out"] = env.from_string(template).render(**variables)
        except Exception as e:  # whatever jinja2 or Python raises is a refusal
            line["error"] = True
            print(f"{template[:60]!r}: {type(e).__name__}: {e}", file=sys.stderr)
        if "<generator object" in line.get("out", "") or "<built-in" in line.get("out", "") or " at 0x" in line.get("out", ""):
            continue  # prints an address
        print(json.dumps(line, ensure_ascii=False))


main()
