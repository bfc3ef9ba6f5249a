package findcmd

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/shellword"
	"github.com/leadetl/leadetl/pipeline/find"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/hashed"
)

// remove adds a command.
func (s *search) remove(place string, words []string, notes ...string) {
	s.removals = append(s.removals, removal{place, shellword.Join(words), strings.Join(notes, "; ")})
}

// subjectFlags name the subjects, as another command takes them.
func (s *search) subjectFlags(flag string) (words []string) {
	for _, file := range s.files {
		words = append(words, flag, file)
	}
	return words
}

// rules are the flags about identifiers that are not at their defaults.
func (s *search) rules() (words []string) {
	usual := job.Default("")
	if !slices.Equal(s.networkHosts, usual.NetworkHosts) {
		words = append(words, "--network-hosts", strings.Join(s.networkHosts, ","))
	}
	if s.defaultRegion != usual.DefaultRegion {
		words = append(words, "--default-region", s.defaultRegion)
	}
	return words
}

// forget adds the command that forgets stored answers.
func (s *search) forget(state string, open, versions bool) {
	words := append([]string{"leadetl", "answers", "forget", "--state", state}, s.subjectFlags("--file")...)
	if s.idColumn != "" {
		words = append(words, "--id-column", s.idColumn)
	}
	words = append(words, s.rules()...)
	var notes []string
	if open {
		words = append(words, "--even-open")
		notes = append(notes, "a call without an answer may have been billed; once forgotten, it may be bought twice")
	}
	if versions {
		words = append(words, "--delete-versions")
	}
	if objects.Is(state) {
		words = append(words, s.s3.Words(false)...)
	}
	s.remove(state, words, notes...)
}

// imports adds the command that imports kinds of reference data anew.
func (s *search) imports(dir string, d *directory.Directory, with map[directory.Kind]bool) {
	if len(with) == 0 {
		return
	}
	words := []string{"leadetl", "directory", "import", "--directory", dir}
	var files []string
	for _, stat := range d.Stat() {
		if with[stat.Kind] {
			words = append(words, "--"+string(stat.Kind), stat.Source)
			files = append(files, stat.Source)
		}
	}
	words = append(words, s.rules()...)
	if with[directory.Searches] {
		words = append(words, "--drop-replaced")
	}
	s.remove(dir, words, fmt.Sprintf("first delete them from %s; give the path of each, and the other flags of that import", strings.Join(files, " and ")))
}

// runs adds the command that makes a dataset again without them.
func (s *search) runs(place string, d *find.Dataset) {
	m := d.Manifest
	if m == nil {
		s.remove(place, nil, "run the command that makes it again, with "+shellword.Join(s.subjectFlags("--suppress"))+" and --overwrite; or delete it")
		return
	}
	var id job.Identity
	if err := json.Unmarshal(m.Job, &id); err != nil {
		id = job.Identity{Operation: resolution.Operation(m.Operation)}
	}
	r := &rerun{search: s, id: id, usual: job.Default(id.Operation), words: []string{"leadetl", "run", string(id.Operation)}}
	r.input()
	r.output(place)
	r.columns()
	r.keys()
	r.answers()
	r.changes(m.Changes)
	r.add(s.subjectFlags("--suppress")...)
	if s.idColumn != "" {
		r.set("suppress_column", s.idColumn)
	}
	if id.Suppression != "" {
		r.notes = append(r.notes, "with the suppression lists that it was made with, too")
	}
	r.add("--overwrite")
	if slices.ContainsFunc(append(id.Inputs, place), objects.Is) {
		r.add(s.s3.Words(true)...)
	}
	s.remove(place, r.words, r.notes...)
}

// rerun writes the run of a dataset from what its manifest says. Settings that may have values of persons, and
// those that it does not know, are in the notes.
type rerun struct {
	*search
	id    job.Identity
	usual job.Job
	words []string
	notes []string
}

func (r *rerun) add(words ...string) { r.words = append(r.words, words...) }

// set adds a key of the job, unless it has no value.
func (r *rerun) set(key, value string) {
	if value != "" {
		r.add("--set", key+"="+value)
	}
}

// flag adds a flag, unless it has no value.
func (r *rerun) flag(name, value string) {
	if value != "" {
		r.add(name, value)
	}
}

// inputsNamed bounds the inputs that are named.
const inputsNamed = 50

func (r *rerun) input() {
	inputs := r.id.Inputs
	if len(inputs) > inputsNamed {
		inputs = nil
		r.notes = append(r.notes, "with the --in of the job")
	}
	for _, uri := range inputs {
		r.add("--in", uri)
	}
	if r.id.IDColumn != string(r.id.Operation.Identifier()) && !r.id.Operation.IsKeyword() {
		r.flag("--id-column", r.id.IDColumn)
	}
	r.set("encoding", r.id.Encoding)
	if r.id.SkipLines > 0 {
		r.set("skip_lines", strconv.Itoa(r.id.SkipLines))
	}
	if r.id.Sample > 0 {
		r.add("--sample", strconv.Itoa(r.id.Sample))
	}
	for _, c := range r.id.Where {
		r.notes = append(r.notes, "with --where "+c.Column+"=… of the job")
	}
	if len(r.id.SearchDefaults) > 0 {
		r.notes = append(r.notes, "with the search flags of the job")
	}
	if len(r.id.From) > 0 {
		r.notes = append(r.notes, "with from of the job")
	}
	r.flag("--as-of", r.id.AsOf)
}

// output names the folder above those of partitions.
func (r *rerun) output(place string) {
	var by []string
	for _, p := range r.id.Partitions {
		by = append(by, p.Name+"="+p.Value)
	}
	out := strings.TrimSuffix(place, "/")
	for range by {
		out = out[:max(strings.LastIndexByte(out, '/'), 0)]
	}
	if out == "" {
		out = "."
	}
	if r.id.PartitionBy != "" {
		by = append(by, r.id.PartitionBy)
	}
	r.add("--out", out)
	r.flag("--partition-by", strings.Join(by, ","))
}

func (r *rerun) columns() {
	r.flag("--select", strings.Join(r.id.Select, ","))
	for _, name := range slices.Sorted(maps.Keys(r.id.Renamed)) {
		r.add("--rename", r.id.Renamed[name]+"="+name)
	}
	if r.id.DropIdentifier {
		r.add("--drop-identifier")
	}
	if r.id.Select == nil {
		r.hashes()
	}
	var profiles []string
	for _, p := range hashed.Of(hashed.Phone) {
		if slices.Contains(r.id.PhoneHashes, p.Column) {
			profiles = append(profiles, p.Name)
		}
	}
	r.set("phone_profiles", strings.Join(profiles, ","))
}

// hashes are the types and profiles of hashes, if they are not the usual ones.
func (r *rerun) hashes() {
	var types, profiles []string
	for _, name := range r.id.HEMs {
		name = strings.TrimPrefix(name, "hem_")
		if profile, _, other := strings.Cut(name, "_"); other {
			profiles = append(profiles, profile)
		} else {
			types = append(types, name)
		}
	}
	if len(types) > 0 && !slices.Equal(types, r.usual.HEMTypes) {
		r.add("--hem-types", strings.Join(types, ","))
	}
	r.flag("--hem-profiles", strings.Join(profiles, ","))
}

func (r *rerun) keys() {
	if r.id.RowsPerPart != r.usual.RowsPerPart && r.id.RowsPerPart > 0 {
		r.set("rows_per_part", strconv.Itoa(r.id.RowsPerPart))
	}
	if r.id.Compression != r.usual.Compression {
		r.set("compression", string(r.id.Compression))
	}
	if region := r.id.DefaultRegion; region != r.usual.DefaultRegion {
		r.set("default_region", region)
	}
	if hosts := r.id.NetworkHosts; !slices.Equal(hosts, r.usual.NetworkHosts) {
		r.set("network_hosts", strings.Join(hosts, ","))
	}
	if r.id.IncludeProviders {
		r.set("include_providers", "true")
	}
	if r.id.StrictIdentifiers {
		r.set("identifier_text", "strict")
	}
	r.flag("--multiple", string(r.id.Multiple))
	r.set("suppressed_id", r.id.SuppressedID)
}

// answers names the source of answers, as far as it is known.
func (r *rerun) answers() {
	service, is := strings.CutPrefix(r.id.Answers, "service ")
	switch {
	case r.id.Answers == "":
		return
	case r.fingerprints[r.id.Answers] != "":
		r.add("--directory", r.fingerprints[r.id.Answers])
	case is && strings.Contains(service, "://"):
		r.add("--resolver", service)
		r.notes = append(r.notes, "with the API key and the other settings of calls of the job")
	case is || strings.HasPrefix(r.id.Answers, "resolvers "):
		r.notes = append(r.notes, "with the resolvers of the job, best by its file: --job FILE")
	default:
		r.notes = append(r.notes, "with the --directory of the job")
	}
	if len(r.states) == 1 && r.states[0] != wire.DefaultStateDir() {
		r.add("--state", r.states[0])
	}
}

func (r *rerun) changes(made *sinks.Changes) {
	if made == nil || made.From == "" {
		return
	}
	r.add("--changes-from", made.From)
	if made.By != "key" {
		r.set("changes_by", made.By)
	}
	r.set("changes_compare", strings.Join(made.Compare, ","))
	r.set("changes_was", strings.Join(made.Was, ","))
}
