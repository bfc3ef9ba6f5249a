// Command leadetl turns lists of identifiers into lead data.
package main

import "github.com/leadetl/leadetl/cmd/leadetl/program"

func main() { program.Main() }
