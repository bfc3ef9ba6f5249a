package provider

import (
	"embed"
	"maps"
	"sync"
)

//go:embed shipped/*.yaml
var shipped embed.FS

// Shipped are the entries that the program brings along, one of each file in shipped.
var Shipped = sync.OnceValue(func() Entries {
	all := Entries{}
	files, err := shipped.ReadDir("shipped")
	for i := 0; i < len(files) && err == nil; i++ {
		var content []byte
		var entries Entries
		name := "shipped/" + files[i].Name()
		if content, err = shipped.ReadFile(name); err == nil {
			entries, err = Parse(name, content)
		}
		maps.Copy(all, entries)
	}
	if err != nil {
		panic(err) // a test reads them all
	}
	return all
})

// ShippedFile is the file of an entry that the program brings along; false if there is none.
func ShippedFile(name string) (content []byte, is bool) {
	content, err := shipped.ReadFile("shipped/" + name + ".yaml")
	return content, err == nil
}
