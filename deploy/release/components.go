package main

import (
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

// writeComponents writes the modules that a binary is made of, as CycloneDX.
func (r *release) writeComponents(of program, p platform, path string) (err error) {
	generator, err := bin.NewGenerator(path, bin.WithIncludeStdlib(true), bin.WithVersionOverride("v"+r.version.String()), bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return err
	}
	bom, err := generator.Generate()
	if err != nil {
		return err
	}
	bom.Metadata.Timestamp = r.time.Format(time.RFC3339)
	out, err := r.create(r.name(of, p, ".cdx.json"))
	if err != nil {
		return err
	}
	defer func() { err = closed(out, err) }()
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}
