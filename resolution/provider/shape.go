package provider

import _ "embed"

// Schema is the JSON Schema of a file of entries: their shape and bounds. Its descriptions are what messages say
// that a value has to be.
//
//go:embed schema.json
var Schema []byte
