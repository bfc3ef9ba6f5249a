package provider

import (
	"embed"
	"maps"
	"strings"
	"sync"
)

//go:embed shipped/*.yaml
var shipped embed.FS

// Shipped are the entries that the program brings along, one of each file in shipped. Their shape and language are
// checked as those of any other file, which takes longer than a run of few rows: ShippedNames needs none of it.
var Shipped = sync.OnceValue(func() Entries {
	all := Entries{}
	for _, name := range ShippedNames() {
		content, _ := ShippedFile(name)
		entries, err := Parse(name, content)
		if err != nil {
			panic(err) // a test reads them all
		}
		maps.Copy(all, entries)
	}
	return all
})

// ShippedNames are the names of the entries that the program brings along, in order.
func ShippedNames() (names []string) {
	files, _ := shipped.ReadDir("shipped") // it is embedded
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// ShippedFile is the file of an entry that the program brings along; false if there is none.
func ShippedFile(name string) (content []byte, is bool) {
	content, err := shipped.ReadFile("shipped/" + name + ".yaml")
	return content, err == nil
}
