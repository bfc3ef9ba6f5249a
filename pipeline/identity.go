package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// identity is what two runs share exactly when they make the same dataset of
// the same rows.
type identity struct {
	Operation        resolution.Operation `json:"operation"`
	Inputs           []string             `json:"inputs"`
	Column           string               `json:"column"`
	Keep             []string             `json:"keep"`
	DropIdentifier   bool                 `json:"drop_identifier"`
	RowsPerPart      int                  `json:"rows_per_part"`
	Compression      sinks.Compression    `json:"compression"`
	HEMs             []string             `json:"hems,omitempty"` // column names
	DefaultRegion    string               `json:"default_region,omitempty"`
	NetworkHosts     []string             `json:"network_hosts,omitempty"`
	IncludeProviders bool                 `json:"include_providers,omitempty"`
	Partitions       []sinks.Partition    `json:"partitions,omitempty"`
	PartitionBy      string               `json:"partition_by,omitempty"`
	SearchDefaults   map[string]string    `json:"search_defaults,omitempty"`
	AsOf             string               `json:"as_of,omitempty"`
	Answers          string               `json:"answers,omitempty"`      // fingerprint of the directory
	Suppression      string               `json:"suppression,omitempty"`  // fingerprint of the lists
	TellFound        bool                 `json:"drop_answers,omitempty"` // parts remember whom they suppressed
	SchemaVersion    int                  `json:"schema_version"`
	RulesVersion     int                  `json:"rules_version"`
}

func (id identity) encode() (settings json.RawMessage, jobID string, err error) {
	settings, err = json.Marshal(id)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(settings)
	return settings, hex.EncodeToString(sum[:]), nil
}

// identity is the run's if its searches take asOf for today. Its lists are in
// one order, and settings that make no difference to the operation are left out.
func (d *decision) identity(asOf time.Time) identity {
	j, c := d.run.Job, d.columns
	id := identity{
		Operation: j.Operation, Column: c.read[c.identifier], Keep: c.read[:c.kept], DropIdentifier: j.DropIdentifier,
		RowsPerPart: j.RowsPerPart, Compression: j.Compression, Answers: d.run.Answers,
		Suppression: d.run.fingerprint(), TellFound: d.run.TellFound != nil,
		SchemaVersion: columns.SchemaVersion, RulesVersion: columns.RulesVersion,
	}
	for _, input := range d.inputs {
		id.Inputs = append(id.Inputs, input.URI)
	}
	for _, own := range c.layout.Own() {
		switch {
		case strings.HasPrefix(own.Name, "hem_"): // types and profiles, in the columns' order
			id.HEMs = append(id.HEMs, own.Name)
		case own.Name == "phone":
			id.DefaultRegion = j.DefaultRegion
		}
	}
	switch j.Operation.Identifier() {
	case resolution.NetworkURL:
		for _, host := range j.NetworkHosts {
			id.NetworkHosts = append(id.NetworkHosts, strings.ToLower(host))
		}
		slices.Sort(id.NetworkHosts)
	case resolution.IP:
		id.IncludeProviders = j.IncludeProviders
	}
	id.Partitions, id.PartitionBy = j.Partitions, c.layout.Partition()
	id.SearchDefaults, id.AsOf = j.SearchDefaults, formatDay(asOf)
	return id
}
