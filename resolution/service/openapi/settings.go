package openapi

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadetl/leadetl/internal/figures"
)

// Settings are what operators may set and the document speaks of. The files
// under document name them in the form @{kind name}.
type Settings struct {
	Prices  map[string]int64   `json:"prices"` // in credits
	Limits  map[string]int64   `json:"limits"` // of requests
	Rates   map[string]string  `json:"rates"`  // in words
	Retired map[string]Retired `json:"-"`      // by operation
}

// Retired is the end of an operation.
type Retired struct{ Deprecated, Sunset time.Time }

// Defaults returns the settings of a service that sets nothing.
func Defaults() Settings {
	text, err := files.ReadFile("document/defaults.json")
	var s Settings
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err))
	}
	return s
}

// Interface is the document of a service.
type Interface struct{ tree *object }

// New makes the document of a service with its settings.
func New(s Settings) *Interface { return &Interface{build(s)} }

// Document returns the document as JSON.
func (i *Interface) Document() []byte {
	text, err := json.Marshal(i.tree, jsontext.EscapeForHTML(true))
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err)) // of embedded files: no test would pass
	}
	return text
}

// usual is the interface with default settings.
var usual = sync.OnceValue(func() *Interface { return New(Defaults()) })

// Document returns the document with default settings.
func Document() []byte { return usual().Document() }

// Pages returns the pages with default settings.
func Pages() map[string][]byte { return usual().Pages() }

// A setting that is a whole string stands for a number.
var (
	settingAlone = regexp.MustCompile(`"@\{limit ([a-z_]+)\}"`)
	setting      = regexp.MustCompile(`@\{([a-z]+) ([a-z_]+)\}`)
)

// fill puts settings into a file.
func (s Settings) fill(text string) string {
	text = settingAlone.ReplaceAllStringFunc(text, func(found string) string {
		return strconv.FormatInt(number(s.Limits, settingAlone.FindStringSubmatch(found)[1]), 10)
	})
	return setting.ReplaceAllStringFunc(text, func(found string) string {
		parts := setting.FindStringSubmatch(found)
		switch parts[1] {
		case "price":
			return figures.Grouped(number(s.Prices, parts[2]))
		case "credits":
			return figures.Plural(number(s.Prices, parts[2]), "credit")
		case "limit":
			return figures.Grouped(number(s.Limits, parts[2]))
		case "rate":
			return s.Rates[parts[2]]
		}
		panic("openapi: " + found + " is no kind of setting")
	})
}

func number(settings map[string]int64, name string) int64 {
	n, known := settings[name]
	if !known {
		panic("openapi: there is no setting " + name)
	}
	return n
}

// retire marks the operations that are to end, or have ended, and their results.
func (s Settings) retire(paths *object) {
	for _, path := range paths.members {
		for _, method := range path.value.(*object).members {
			o := method.value.(*object)
			name := strings.TrimSuffix(strings.TrimSuffix(o.text("operationId"), "_result"), "_resolution")
			r, is := s.Retired[name]
			if !is {
				continue
			}
			o.set("deprecated", true)
			o.set("x-status", "deprecated")
			o.set("description", fmt.Sprintf("Deprecated since %s. It ends on %s, with status 410 from then on. ",
				r.Deprecated.Format(time.DateOnly), r.Sunset.Format(time.DateOnly))+o.text("description"))
		}
	}
}
