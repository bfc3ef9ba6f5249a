package yamltree

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// maxBytes is the size of a file of provider entries.
const maxBytes = 64 << 10

var bounds = Bounds{maxBytes, 4096}

// shown writes a value as JSON does, with text as quoted text.
func shown(n *Node) string {
	var all []string
	switch n.Kind {
	case Null:
		return "null"
	case Text:
		return fmt.Sprintf("%q", n.Text)
	case List:
		for _, item := range n.Items {
			all = append(all, shown(item))
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	for _, member := range n.Items {
		all = append(all, fmt.Sprintf("%q:", member.Name)+shown(member))
	}
	return "{" + strings.Join(all, " ") + "}"
}

func TestParse(t *testing.T) {
	for _, f := range []struct{ text, want string }{
		{"", `{}`},
		{"# nothing\n", `{}`},
		{"# all\n---\na: 1\n", `{"a":"1"}`},
		{"a: 1\na: 2\n", `{"a":"1" "a":"2"}`},
		{"a: 1\nb: 0x1f\nc: 2024-01-01\nd: yes\ne: null\nf: ~\ng: 'null'\n", `{"a":"1" "b":"0x1f" "c":"2024-01-01" "d":"yes" "e":null "f":null "g":"null"}`},
		{"---\n# all\na: # one\n  b: x # two\n\n  c: y#z\nd:\n", `{"a":{"b":"x" "c":"y#z"} "d":null}`},
		{"a:\n- x\n- y: 1\n  z: 2\n-\n  q: r\n- - s\n  - t\nb:\n  - u\n", `{"a":["x" {"y":"1" "z":"2"} {"q":"r"} ["s" "t"]] "b":["u"]}`},
		{"a: \"x\n  y\"\nb: [x: y]\n", `{"a":"x y" "b":[{"x":"y"}]}`},
		{"a: {b: c, 'd e': \"f\", \"g\":h, i, j: , k: [1, {l: m}, ], n: {}}\n", `{"a":{"b":"c" "d e":"f" "g":"h" "i":null "j":null "k":["1" {"l":"m"}] "n":{}}}`},
		{"a: [x, # one\n  y,\n  z]\nb: {\n  c: d\n  }\n", `{"a":["x" "y" "z"] "b":{"c":"d"}}`},
		{"a: \"q \\\"\\\\\\u00e9\\n\"\nb: 'it''s'\nc: http://x/?a={b}&c=1,2\n'd': e:f\n", `{"a":"q \"\\é\n" "b":"it's" "c":"http://x/?a={b}&c=1,2" "d":"e:f"}`},
		{"a: {email}\nb: 200 !data | 404 x=y\r\nc:\n  d\n", `{"a":{"email":null} "b":"200 !data | 404 x=y" "c":"d"}`},
		{"a:\n  {b: c}\nd:\n  \"e\"\n", `{"a":{"b":"c"} "d":"e"}`},
	} {
		got, err := Parse([]byte(f.text), bounds)
		if err != nil || shown(got) != f.want {
			t.Errorf("%q:\ngot  %v %v\nwant %s", f.text, got, err, f.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, f := range []struct{ text, want string }{
		{"- a\n", "line 1: the file has to consist of"},
		{"a\n", "line 1: the file has to consist of"},
		{"a: 1\n---\nb: 2\n", "line 2: the file has several documents"},
		{"a: 1\n# more\n---\nb: 2\n", "line 3: the file has several documents"},
		{"a: 1\n---\n", "line 2: the file has several documents"},
		{"a: 1\n...\n", "line 2: the file has several documents"},
		{"%YAML 1.2\n---\na: 1\n", "line 1: a directive"},
		{"a: &x 1\nb: *x\n", "line 1: an anchor"},
		{"a: *x\n", "line 1: an alias"},
		{"a: !!str 1\n", "line 1: a tag"},
		{"a:\n  <<: {b: 1}\n", "line 2: a merge key"},
		{"a: |\n  x\n", "line 1: text of several lines"},
		{"a: >-\n  x\n", "line 1: text of several lines"},
		{"a: x\n  y\n", "line 1: text of several lines"},
		{"a:\n- x\n-\nb: y\n", "line 3: an item of a list without a value"},
		{"a: x\n  b: y\n", "line 1: text of several lines"},
		{"a:\n    b: 1\n  c: 2\n", "line 3: this line does not fit the one above"},
		{"  a: 1\nb: 2\n", "line 2: this line does not fit the one above"},
		{"a: 0\t0\n", "line 1: a tab"},
		{"a: {b:c}\n", "line 1: a space is missing"},
		{"a\n: b\n", "line 2: a colon without a key"},
		{"a: 'x\n", "line 1: a quote is not closed; write text that has one in quotes of the other kind"},
		{"a: \"\\q\"\n", "line 1: found unknown escape character"},
		{"a: \"x\" y\n", "line 1: this line does not fit the one above"},
		{"a: x: y\n", "line 1: a key where text is expected"},
		{"a: [x, y\n", "line 1: a bracket is not closed"},
		{"a: {x: y\n  z: 1}\n", "line 2: ',' or '}' must be specified"},
		{"a: [,]\n", "line 1: expected sequence element, but found"},
		{"\ta: 1\n", "line 1: a tab"},
		{"a:\t1\n", "line 1: a space is missing"},
		{"? a\n: b\n", "line 1: ? where text is expected"},
		{"{a: b}: c\n", "line 1: found an invalid key for this map"},
		{"a: 1\n- b\n", "line 2: this line is not of the form"},
		{"a: - b\n", "line 1: an item of a list begins on a line of its own"},
		{"a: \x01\n", "line 1: the character U+0001"},
		{"a: \xff\n", "line 1: the file is not UTF-8"},
		{"a: {b: {c: [x]}}\nb: " + strings.Repeat("[", 17), "line 2: lists and keys are nested"},
	} {
		_, err := Parse([]byte(f.text), bounds)
		if err == nil || !strings.HasPrefix(err.Error(), f.want) {
			t.Errorf("%q: %v, want %s", f.text, err, f.want)
		}
	}
}

// hostile are files that are made to take time or memory.
func hostile() map[string]string {
	all := map[string]string{
		"large":       "a: " + strings.Repeat("x", maxBytes),
		"keys":        manyLines("k%d: x\n", 20_000),
		"maps":        "a:\n" + manyLines("- {a: b, c%d: d}\n", 5_000),
		"same keys":   "a: {" + strings.Repeat("a, ", maxBytes/4) + "}",
		"one line":    "a: [" + strings.Repeat("a,", maxBytes/2-10) + "]",
		"empty items": "a:\n" + strings.Repeat("-\n", maxBytes/2-10),
		"comments":    strings.Repeat("#\n", maxBytes/2),
		"escapes":     `a: "` + strings.Repeat(`\n`, maxBytes/2-10),
		"colons":      strings.Repeat("a:", maxBytes/2),
		"quotes":      "a: '" + strings.Repeat("''", maxBytes/2-10),
		"no line":     strings.Repeat("x", maxBytes),
		"aliases":     "a: &a [x,x]\n" + manyLines("b%[1]d: &b%[1]d [*a,*a]\n", 1000),
	}
	for _, opening := range []string{"[", "{", "{a: ", "- ", "a: [", "? ", "[[],"} {
		all["nested "+opening] = "a:\n " + strings.Repeat(opening, maxBytes/len(opening)-5)
	}
	var deep strings.Builder
	for n := 0; deep.Len() < maxBytes-1000; n++ {
		fmt.Fprintf(&deep, "%*sa:\n", n, "")
	}
	all["indented"] = deep.String()
	return all
}

func manyLines(format string, n int) string {
	var all strings.Builder
	for i := 0; i < n && all.Len() < maxBytes-100; i++ {
		fmt.Fprintf(&all, format, i)
	}
	return all.String()
}

// TestHostile: a hostile file is read in less than 24 megabytes, and so in little time.
func TestHostile(t *testing.T) {
	for name, text := range hostile() {
		var before, after runtime.MemStats
		body := []byte(text)
		runtime.ReadMemStats(&before)
		_, err := Parse(body, bounds)
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 24<<20 {
			t.Errorf("%s: %d bytes, %v", name, bytes, err)
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile() {
		b.Run(name, func(b *testing.B) {
			body := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Parse(body, bounds)
			}
		})
	}
}

// like is what another reader of YAML makes of a value, written as shown does.
func like(n *yaml.Node) string {
	var all []string
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			all = append(all, like(item))
		}
		return "[" + strings.Join(all, " ") + "]"
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			all = append(all, fmt.Sprintf("%q:", n.Content[i].Value)+like(n.Content[i+1]))
		}
		return "{" + strings.Join(all, " ") + "}"
	}
	if n.Value == "" && n.Tag == "!!null" {
		return "null"
	}
	return fmt.Sprintf("%q", n.Value)
}

// FuzzParse: what is read is what another reader of YAML reads.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"a: 1\nb:\n  - x\n  - y: {z: [1, 2]}\n", "a: 'x'\nb: \"y\\n\"\n", "a:\n- b\n- c: d\n  e: f\n", "a: {b, c: }\n", "a: x#y # z\n",
		"a: b:c\n", "a: [b,\n c]\n", "a: {'b':c}\n", "---\na: -1\n", "a: ?x\n", "a: 200 !b | 404\n", "'a': b\n", "a : b\n", "a: [a:b]\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse([]byte(text), bounds)
		if err != nil {
			return
		}
		var other yaml.Node
		if err := yaml.Unmarshal([]byte(text), &other); err != nil || len(other.Content) != 1 {
			return // it refuses what YAML allows, too
		}
		if want := like(other.Content[0]); shown(got) != want {
			t.Errorf("%q:\ngot   %s\nother %s", text, shown(got), want)
		}
	})
}
