// Package job says what a job is: its settings, the columns that it reads and
// writes, and what tells it from other jobs.
package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/profile"
)

// DefaultRowsPerPart gives files of 50 to 200 MB. SearchesPerPart is for
// keyword_to_lead, where one input row gives one output row for each lead.
const (
	DefaultRowsPerPart = 1_000_000
	SearchesPerPart    = 1_000
)

// Job holds the settings that decide the bytes of a dataset. Its input and the
// answers decide the rest. Start from Default.
type Job struct {
	Operation resolution.Operation
	// IDColumn is the input column that holds the identifier, or the keywords of
	// a search; empty means the operation's own request field.
	IDColumn string
	// Select names the columns of the output, in order, as columns.Settings does; nil is all.
	Select []string
	// SnakeNames writes the names of kept columns in lower case with underscores, and
	// Renames gives some of them other names.
	SnakeNames bool
	Renames    []columns.Rename
	// Sample is the number of lines that the dataset is made of, spread over the
	// input; 0 is all.
	Sample int
	// Where selects the rows of the input in which each column has its value; nil selects all.
	Where []Condition
	// SuppressedID is the column with what suppressed rows are told by, in files of their own;
	// empty without them.
	SuppressedID string
	// DropIdentifier leaves the identifier column, key and the raw text of
	// rejects out of every file.
	DropIdentifier bool
	RowsPerPart    int
	Compression    sinks.Compression
	// HEMTypes are the digests of profile plain; HEMProfiles the profiles
	// written beside it (email_to_hem only).
	HEMTypes    []string
	HEMProfiles []email.Profile
	// PhoneProfiles are the forms of the first number whose hashes are written.
	PhoneProfiles []phone.Form
	// DefaultRegion is the region (ISO 3166 alpha-2) of phone numbers that
	// come without a country code.
	DefaultRegion string
	// NetworkHosts are the hosts whose profile addresses are known by form.
	NetworkHosts []string
	// StrictIdentifiers rejects cells that have more than an identifier.
	StrictIdentifiers bool
	// Multiple says what becomes of a cell with several identifiers; empty rejects it.
	Multiple keys.Multiple
	// From are the columns with values of a person, by their names.
	From map[string]string
	// IncludeProviders keeps the records of access providers as companies.
	IncludeProviders bool
	// Partitions are the columns with one value in all rows that are in the
	// path of the dataset, from the outermost folder inwards. Output is what
	// they lead to.
	Partitions []sinks.Partition
	// PartitionBy is a kept input column that the rows of each part are
	// partitioned by: its values are in the path of each file, below Partitions,
	// and not in the file. Empty means that rows are not partitioned.
	PartitionBy string
	// SearchDefaults are used for a search where its column is missing or its
	// cell is empty: the text of a cell by field. Keyword operations only.
	SearchDefaults map[string]string
	// AsOf is the day (UTC) that searches take as today: searches without dates
	// cover the days up to it, and no search may ask for a later day. Zero is
	// the day on which the dataset is begun. Keyword operations only.
	AsOf time.Time
}

// Condition selects rows of the input: those with this text in a column. A null is an empty text.
type Condition struct {
	Column string `json:"column"`
	Value  string `json:"value"`
}

// ParseConditions parses COLUMN=VALUE. The value may have = too.
func ParseConditions(texts []string) (where []Condition, err error) {
	for i, text := range texts {
		column, value, found := strings.Cut(text, "=")
		if column = strings.TrimSpace(column); !found || column == "" {
			return nil, fmt.Errorf("--where number %d has no column and value; write COLUMN=VALUE, such as status=active", i+1)
		}
		where = append(where, Condition{Column: column, Value: value})
	}
	return where, nil
}

// CountsInput reports whether an input row may have several rows, or none, so that both are
// counted.
func (j Job) CountsInput() bool { return j.Multiple == keys.Each || len(j.Where) > 0 }

// Default is a job of op with every setting at its default.
func Default(op resolution.Operation) Job {
	rows := DefaultRowsPerPart
	if op.Gives() == resolution.GivesLeads {
		rows = SearchesPerPart
	}
	return Job{
		Operation:     op,
		RowsPerPart:   rows,
		Compression:   sinks.Snappy,
		HEMTypes:      columns.HEMTypes,
		DefaultRegion: "US",
		NetworkHosts:  []string{"linkedin.com"},
	}
}

// Validate joins every problem of the job.
func (j Job) Validate() error {
	var errs []error
	if !slices.Contains(resolution.SingleRecord, j.Operation) && !j.Operation.IsKeyword() {
		errs = append(errs, fmt.Errorf("operation %q cannot be run", j.Operation))
	}
	if j.RowsPerPart < 1 {
		errs = append(errs, fmt.Errorf("rows per part is %d; it must be at least 1", j.RowsPerPart))
	}
	if _, err := sinks.ParseCompression(string(j.Compression)); err != nil {
		errs = append(errs, err)
	}
	if len(j.HEMTypes) == 0 {
		errs = append(errs, errors.New("no HEM type is given; name at least one of md5, sha1, sha256"))
	}
	for _, t := range j.HEMTypes {
		if !slices.Contains(columns.HEMTypes, t) {
			errs = append(errs, fmt.Errorf("unknown HEM type %q%s", t, suggest.OneOf(t, []string{"md5", "sha1", "sha256"})))
		}
	}
	if len(j.HEMProfiles) > 0 && j.Operation.Identifier() != resolution.Email {
		errs = append(errs, fmt.Errorf("HEM profiles are for email_to_hem only; the operation is %s", j.Operation))
	}
	if len(j.PhoneProfiles) > 0 && !columns.HasPhone(j.Operation) {
		errs = append(errs, fmt.Errorf("phone_profiles are for operations with a phone; the operation is %s", j.Operation))
	}
	if len(j.SearchDefaults) > 0 && !j.Operation.IsKeyword() {
		errs = append(errs, fmt.Errorf("defaults of searches are for keyword operations only; the operation is %s", j.Operation))
	}
	if !j.AsOf.IsZero() && !j.Operation.IsKeyword() {
		errs = append(errs, fmt.Errorf("the day that searches take as today is for keyword operations only; the operation is %s", j.Operation))
	}
	switch kind := j.Operation.Identifier(); {
	case j.Multiple == "":
	case j.Operation.IsKeyword():
		errs = append(errs, fmt.Errorf("a choice among several identifiers of a cell is for the other operations; the operation is %s, whose cells are lists anyway", j.Operation))
	case j.Multiple == keys.FirstPublic && kind != resolution.IP:
		errs = append(errs, fmt.Errorf("the first public address of a cell is for operations on IP addresses; the operation is %s", j.Operation))
	}
	if _, identifies := keys.KindOfColumn(j.SuppressedID); identifies || j.SuppressedID != "" && strings.EqualFold(j.SuppressedID, j.IDColumn) {
		errs = append(errs, fmt.Errorf("suppressed rows cannot be told by column %q: it identifies the person; name the column of your own id", j.SuppressedID))
	}
	if j.SuppressedID != "" && j.Operation.IsKeyword() {
		errs = append(errs, fmt.Errorf("ids of suppressed rows are for the other operations; a row of %s is a search, and has no person's id", j.Operation))
	}
	errs = append(errs, checkPartitions(j.Partitions)...)
	if err := phone.CheckRegion(j.DefaultRegion); err != nil {
		errs = append(errs, fmt.Errorf("default_region %q: %w", j.DefaultRegion, err))
	}
	if len(j.NetworkHosts) == 0 {
		errs = append(errs, errors.New("no network host is given; name at least one"))
	}
	return errors.Join(errs...)
}

// Reading says how the cells of identifiers are read.
func (j Job) Reading() keys.Reading {
	return keys.Reading{Profiles: profile.Rules{Hosts: j.NetworkHosts}, Strict: j.StrictIdentifiers, Multiple: j.Multiple}
}

// Error says that a job's settings contradict each other or its input. The
// author of the job has to correct them.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }
