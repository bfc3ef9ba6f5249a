package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

const (
	mostWords         = 31_360 // of README.md and docs
	mostSentenceWords = 25     // of nine sentences in ten
)

// TestPagesAreShort: README.md and docs have few words and short sentences. Words are counted as wc
// does, but of what a test or make bench writes; sentences in prose alone.
func TestPagesAreShort(t *testing.T) {
	words := 0
	var lengths []int
	for _, page := range pages(t) {
		if !strings.HasPrefix(page, clitest.ModuleRoot+"/docs/") && !strings.HasSuffix(page, "/README.md") || strings.HasSuffix(page, "/docs/benchmarks.md") {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\n<<<<<<< ") {
			t.Errorf("%s has two versions of a passage", page)
		}
		ours, _, _ := strings.Cut(string(text), written)
		words += len(strings.Fields(ours))
		for _, sentence := range sentences(ours) {
			lengths = append(lengths, len(strings.Fields(sentence)))
		}
	}
	if words > mostWords {
		t.Errorf("README.md and docs have %d words, at most %d are wanted: cut what another page says", words, mostWords)
	}
	slices.Sort(lengths)
	if len(lengths) == 0 {
		t.Fatal("the pages have no sentence")
	}
	if got := lengths[len(lengths)*9/10]; got > mostSentenceWords {
		t.Errorf("one sentence in ten has %d words or more, at most %d are wanted", got, mostSentenceWords)
	}
	t.Logf("%d words; %d sentences, of which nine in ten have at most %d words", words, len(lengths), lengths[len(lengths)*9/10])
}

var (
	listItem    = regexp.MustCompile(`^\s*([-*]|\d+\.) +`)
	linkTarget  = regexp.MustCompile(`\]\([^)]*\)`)
	sentenceEnd = regexp.MustCompile(`[.!?][*)]* +`)
)

// sentences are those of a page's paragraphs and list items. Code, tables and headings have none.
func sentences(page string) (found []string) {
	var paragraph []string
	end := func() {
		text := linkTarget.ReplaceAllString(strings.Join(paragraph, " "), "]")
		for _, sentence := range sentenceEnd.Split(text, -1) {
			if sentence != "" {
				found = append(found, sentence)
			}
		}
		paragraph = nil
	}
	for line := range strings.Lines(fence.ReplaceAllString(page, "\n")) {
		text := strings.TrimSpace(line)
		switch item := listItem.FindString(line); {
		case text == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, "|"), strings.HasPrefix(line, "    "):
			end()
		case item != "":
			end()
			paragraph = append(paragraph, strings.TrimSpace(line[len(item):]))
		default:
			paragraph = append(paragraph, text)
		}
	}
	end()
	return found
}

func TestSentences(t *testing.T) {
	page := "# A title. Of a page\n\nOne two\nthree. Four [five six](a/b.md#c. d).\n\n| a cell. | another. |\n```sh\nno. sentence.\n```\n- **Five.** Six, e.g. seven:\n  eight\n2. nine\n\n    code. Of a block.\n"
	want := []string{"One two three", "Four [five six].", "**Five", "Six, e.g", "seven: eight", "nine"}
	if got := sentences(page); !slices.Equal(got, want) {
		t.Errorf("sentences = %q, want %q", got, want)
	}
}
