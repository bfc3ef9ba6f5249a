package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/hashed"
)

// Identity is what two runs share exactly when they make the same dataset of
// the same rows.
type Identity struct {
	Operation         resolution.Operation `json:"operation"`
	Inputs            []string             `json:"inputs"`
	Encoding          string               `json:"encoding,omitempty"`
	SkipLines         int                  `json:"skip_lines,omitempty"`
	SuppressedID      string               `json:"suppressed_id,omitempty"`
	Where             []Condition          `json:"where,omitempty"`
	Sample            int                  `json:"sample,omitempty"`
	IDColumn          string               `json:"id_column"`
	InputColumns      []string             `json:"input_columns"` // that are selected
	Select            []string             `json:"select,omitempty"`
	DropIdentifier    bool                 `json:"drop_identifier"`
	RowsPerPart       int                  `json:"rows_per_part"`
	Compression       sinks.Compression    `json:"compression"`
	HEMs              []string             `json:"hems,omitempty"` // column names
	PhoneHashes       []string             `json:"phone_hashes,omitempty"`
	DefaultRegion     string               `json:"default_region,omitempty"`
	NetworkHosts      []string             `json:"network_hosts,omitempty"`
	IncludeProviders  bool                 `json:"include_providers,omitempty"`
	StrictIdentifiers bool                 `json:"strict_identifiers,omitempty"`
	Multiple          keys.Multiple        `json:"multiple,omitempty"`
	From              map[string]string    `json:"from,omitempty"`
	Partitions        []sinks.Partition    `json:"partitions,omitempty"`
	PartitionBy       string               `json:"partition_by,omitempty"`
	Renamed           map[string]string    `json:"renamed,omitempty"` // from the name in the output to that in the input
	SearchDefaults    map[string]string    `json:"search_defaults,omitempty"`
	AsOf              string               `json:"as_of,omitempty"`
	Answers           string               `json:"answers,omitempty"`      // fingerprint of the directory
	Suppression       string               `json:"suppression,omitempty"`  // fingerprint of the lists
	ReportSuppressed  bool                 `json:"drop_answers,omitempty"` // parts remember whom they suppressed
	SchemaVersion     int                  `json:"schema_version"`
	RulesVersion      int                  `json:"rules_version"`
}

// Encode is the identity as JSON, and its hash.
func (id Identity) Encode() (settings json.RawMessage, jobID string, err error) {
	settings, err = json.Marshal(id)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(settings)
	return settings, hex.EncodeToString(sum[:]), nil
}

// NewIdentity is the identity of a job as far as its settings and columns decide
// on it. Its lists are in one order, and settings that make no difference to the
// operation are left out.
func NewIdentity(j Job, c Columns) Identity {
	id := Identity{
		Operation: j.Operation, Where: j.Where, From: j.From, SuppressedID: j.SuppressedID, Sample: j.Sample, IDColumn: c.Read[c.Identifier], InputColumns: c.Layout.Kept(), DropIdentifier: j.DropIdentifier, Select: c.Layout.Selected(),
		RowsPerPart: j.RowsPerPart, Compression: j.Compression, Partitions: j.Partitions, PartitionBy: c.Layout.Partition(), Renamed: c.Layout.Renamed(),
		SearchDefaults: j.SearchDefaults, SchemaVersion: columns.SchemaVersion, RulesVersion: columns.RulesVersion,
	}
	for _, own := range c.Layout.Own() {
		switch {
		case strings.HasPrefix(own.Name, "hem_"): // types and profiles, in the columns' order
			id.HEMs = append(id.HEMs, own.Name)
		case strings.HasPrefix(own.Name, "phone"):
			id.DefaultRegion = j.DefaultRegion
			if slices.ContainsFunc(hashed.Of(hashed.Phone), func(p hashed.Profile) bool { return p.Column == own.Name }) {
				id.PhoneHashes = append(id.PhoneHashes, own.Name)
			}
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
	if !j.Operation.IsKeyword() {
		id.StrictIdentifiers, id.Multiple = j.StrictIdentifiers, j.Multiple
	}
	return id
}

// settingNames are the settings of an identity as users know them, in the order
// in which differences are told. Inputs are compared one by one.
var settingNames = []struct{ field, name string }{
	{"operation", "operation"}, {"encoding", "encoding"}, {"skip_lines", "skip_lines"}, {"suppressed_id", "suppressed_id"}, {"where", "--where"}, {"sample", "--sample"}, {"id_column", "--id-column"}, {"select", "--select"}, {"input_columns", "list of input columns, by --select,"}, {"drop_identifier", "--drop-identifier"},
	{"rows_per_part", "rows_per_part"}, {"compression", "compression"}, {"hems", "list of HEM columns, by --hem-types and --hem-profiles,"}, {"phone_hashes", "list of hashed phones, by phone_profiles,"},
	{"default_region", "default_region"}, {"network_hosts", "network_hosts"}, {"include_providers", "include_providers"}, {"strict_identifiers", "identifier_text strict"}, {"multiple", "--multiple"}, {"from", "from"},
	{"partitions", "--partition-by"}, {"partition_by", "--partition-by"}, {"renamed", "--rename"}, {"search_defaults", "search flags"}, {"as_of", "--as-of"},
	{"answers", "source of answers"}, {"suppression", "suppression lists"}, {"drop_answers", "--drop-answers"},
	{"schema_version", "version of the columns"}, {"rules_version", "version of the rules"},
}

// withoutValues are settings whose values are not shown: conditions and search flags may be
// about people, and fingerprints say nothing.
var withoutValues = []string{"where", "search_defaults", "suppression"}

// Differences says how the identity now differs from an earlier one, in words.
func Differences(before, now json.RawMessage) string {
	var was, is map[string]json.RawMessage
	var compact bytes.Buffer // a manifest is indented
	if json.Compact(&compact, before) != nil || json.Unmarshal(compact.Bytes(), &was) != nil || json.Unmarshal(now, &is) != nil {
		return otherSettings
	}
	var all []string
	for _, s := range settingNames {
		switch old, changed := was[s.field], is[s.field]; {
		case bytes.Equal(old, changed), slices.Contains([]string{"hems", "phone_hashes", "input_columns"}, s.field) && !bytes.Equal(was["select"], is["select"]): // they follow from it
		case s.field == "answers" && orderDifferences(old, changed) != "":
			all = append(all, orderDifferences(old, changed))
		case slices.Contains(withoutValues, s.field), s.field == "answers" && !isService(old) && !isService(changed):
			all = append(all, s.name+" changed")
		default:
			all = append(all, fmt.Sprintf("%s was %s and is %s", s.name, settingText(old), settingText(changed)))
		}
	}
	if text := inputDifferences(was["inputs"], is["inputs"]); text != "" {
		all = append(all, text)
	}
	if len(all) == 0 {
		return otherSettings
	}
	return strings.Join(all, "; ")
}

// otherSettings is the message if the differences are unknown.
const otherSettings = "other settings, inputs, reference data or suppression lists"

// orderDifferences says how the order of several resolvers differs from an earlier one; "" if
// one of both is none.
func orderDifferences(before, now json.RawMessage) string {
	var was, is string
	if json.Unmarshal(before, &was) != nil || json.Unmarshal(now, &is) != nil {
		return ""
	}
	words, _ := order.Differences(was, is)
	return strings.Join(words, "; ")
}

// isService reports whether answers come from a service, or from several resolvers. Others have a
// fingerprint.
func isService(answers json.RawMessage) bool {
	return bytes.HasPrefix(answers, []byte(`"service `)) || bytes.HasPrefix(answers, []byte(`"resolvers `))
}

// settingText is a value of a setting as a user would write it.
func settingText(value json.RawMessage) string {
	var partitions []sinks.Partition
	var list []string
	var renamed map[string]string
	var text string
	switch {
	case value == nil || bytes.Equal(value, []byte("null")) || bytes.Equal(value, []byte("[]")):
		return "not set"
	case json.Unmarshal(value, &text) == nil && len(text) == 2*sha256.Size:
		return "a directory"
	case json.Unmarshal(value, &text) == nil:
		if names, several := order.Named(text); several {
			return names
		}
		return text
	case json.Unmarshal(value, &list) == nil:
		return strings.Join(list, ",")
	case json.Unmarshal(value, &renamed) == nil:
		for _, name := range slices.Sorted(maps.Keys(renamed)) {
			list = append(list, renamed[name]+"="+name)
		}
		return strings.Join(list, ",")
	case json.Unmarshal(value, &partitions) == nil:
		for _, p := range partitions {
			list = append(list, p.Name+"="+p.Value)
		}
		return strings.Join(list, ",")
	}
	return string(value) // a number or true
}

// inputsShown bounds the inputs that are named: a list may have thousands.
const inputsShown = 3

func inputDifferences(before, now json.RawMessage) string {
	var was, is []string
	if json.Unmarshal(before, &was) != nil || json.Unmarshal(now, &is) != nil {
		return "other inputs"
	}
	var all []string
	for _, c := range []struct {
		word       string
		some, less []string
	}{{"added", is, was}, {"gone", was, is}} {
		only := slices.DeleteFunc(slices.Clone(c.some), func(uri string) bool { return slices.Contains(c.less, uri) })
		if len(only) == 0 {
			continue
		}
		more := ""
		if len(only) > inputsShown {
			more = fmt.Sprintf(" and %d more", len(only)-inputsShown)
		}
		all = append(all, "inputs "+c.word+": "+strings.Join(only[:min(len(only), inputsShown)], ", ")+more)
	}
	if len(all) == 0 && !slices.Equal(was, is) {
		return "inputs in another order"
	}
	return strings.Join(all, "; ")
}
