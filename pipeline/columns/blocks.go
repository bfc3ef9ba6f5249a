package columns

import (
	"cmp"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/hashed"
	"github.com/leadetl/leadetl/transforms/phone"
)

// block is columns that stand together, and what fills them if there are any.
type block struct {
	columns func(s Settings) []schema.Column
	filler  func(l *Layout) filler
}

// blocksOf are the columns of each operation, after those of fixedColumns.
var blocksOf = map[resolution.Operation][]block{
	resolution.EmailToHEM: {
		hemBlock, profileBlock(hashed.Email),
		valuesBlock([]values.Value{networkURL("profile address of the person with this email, without scheme")}),
		{func(s Settings) []schema.Column {
			if !s.Remote {
				return nil
			}
			return []schema.Column{hashList.Means(meaning{Text: "every hash in the answer: email is the hash, type its algorithm", Null: "none"})}
		}, func(*Layout) filler { return hashedEmailsFiller{} }},
	},
	resolution.NetworkToHEM: {hemBlock, hashBlock,
		valuesBlock([]values.Value{networkURL("the profile's address in canonical form, without scheme")})},
	resolution.NetworkToPhone: {phoneBlock, profileBlock(hashed.Phone)},
	resolution.IPToCompany: {
		{func(Settings) []schema.Column {
			return []schema.Column{
				schema.Repeating("ip_class").Means(meaning{Text: "what the address is for; only public ones are looked up", Null: "the row is rejected", From: "IANA special-purpose registries"}),
				values.Owner[0].Column,
			}
		}, func(*Layout) filler { return newAddressFiller() }},
		companyBlock,
	},
	resolution.Enrichment:      leadBlocks,
	resolution.Deanonymization: append(leadBlocks, valuesBlock(values.Visit[:])),
	resolution.KeywordToLead: slices.Concat([]block{{findColumns, func(l *Layout) filler { return newFindFiller(l) }}}, leadBlocks,
		[]block{valuesBlock([]values.Value{{Column: schema.Repeating("lead_type").Means(meaning{Text: "b2b or b2c"}), Text: resolution.FieldLeadType}})}),
	resolution.KeywordToLeadCount: {{countColumns, func(*Layout) filler { return newCountFiller() }}},
}

var (
	leadBlocks   = []block{valuesBlock(values.Person[:]), phoneBlock, profileBlock(hashed.Phone), hemBlock, hashBlock, companyBlock}
	phoneBlock   = block{columnsOf(values.Phones[:]), func(l *Layout) filler { return newPhoneFiller(l) }}
	companyBlock = block{columnsOf(values.Company[:]), func(l *Layout) filler { return &companyFiller{tables: &l.companies} }}
	hashBlock    = block{func(Settings) []schema.Column { return []schema.Column{hashList} }, func(*Layout) filler { return hashedEmailsFiller{} }}

	hemBlock = block{hemColumns, func(l *Layout) filler { return newHEMFiller(l.settings) }}

	hashList = values.ByName["hashed_emails"].Column
)

func valuesBlock(rows []values.Value) block {
	return block{columnsOf(rows), func(l *Layout) filler { return newValuesFiller(&l.texts, rows) }}
}

func columnsOf(rows []values.Value) func(Settings) []schema.Column {
	return func(Settings) []schema.Column { return values.Columns(rows) }
}

// networkURL is the column in an operation in which it means something else.
func networkURL(means string) values.Value {
	v := *values.ByName["network_url"]
	v.Meaning.Text = means
	return v
}

// blockColumns are the columns of the blocks of an operation.
func blockColumns(s Settings) (columns []schema.Column) {
	for _, b := range blocksOf[s.Operation] {
		columns = append(columns, b.columns(s)...)
	}
	return columns
}

// hashesKeys reports whether hashes follow from the key.
func (s Settings) hashesKeys() bool { return s.Operation.Identifier() == resolution.Email }

func hemColumns(s Settings) (columns []schema.Column) {
	for i, d := range digests {
		if !slices.Contains(s.HEMTypes, d.name) {
			continue
		}
		c := values.Hashes[i].Column
		if s.hashesKeys() {
			c.Meaning.Text, c.Meaning.From = d.algorithm+" of the key, or the input where it is one", "docs/reference/identifiers.md, profile plain"
			c.Meaning.Null = "the row is rejected, or only another hash is known"
		}
		columns = append(columns, c)
	}
	return columns
}

// profileBlock is the columns of the profiles of a kind that are asked for.
func profileBlock(kind hashed.Kind) block {
	return block{func(s Settings) (columns []schema.Column) {
		for _, p := range s.profiles(kind) {
			columns = append(columns, profileColumn(p))
		}
		return columns
	}, func(l *Layout) filler { return &profileFiller{profiles: l.settings.profiles(kind)} }}
}

// profiles are those of a kind that are asked for, in column order.
func (s Settings) profiles(kind hashed.Kind) []hashed.Profile {
	return slices.DeleteFunc(hashed.Of(kind), func(p hashed.Profile) bool {
		return kind == hashed.Email && !slices.Contains(s.HEMProfiles, p.Email) || kind == hashed.Phone && !slices.Contains(s.PhoneProfiles, p.Phone)
	})
}

// HasPhone reports whether the answers of an operation have a phone, and so may have its hashes.
func HasPhone(op resolution.Operation) bool {
	return slices.ContainsFunc(blockColumns(everything(op)), func(c schema.Column) bool { return c.Name == "phone" })
}

func profileColumn(p hashed.Profile) schema.Column {
	m := meaning{Text: "SHA-256 of the address in profile " + p.Name + ", for " + p.Users, Unit: "64 hex digits, lower case", Null: "the address has no such form, or only its hash is known", From: p.Source, Form: "sha256 in hex"}
	if p.Kind == hashed.Phone {
		m.Text, m.Null = strings.Replace(m.Text, "the address", "phone", 1), "there is no phone"
	}
	if p.Base64() {
		m.Unit, m.Form = "44 base64 characters", "sha256 in base64"
	}
	return schema.Random(schema.Text(p.Column)).Means(m)
}

func findColumns(Settings) []schema.Column {
	return []schema.Column{
		schema.Number("search_row", arrow.PrimitiveTypes.Int64).Means(meaning{Text: "row of the search in its file, as source_row", Unit: "rows, from 1", Null: "the search has no leads", From: "the run", Form: "from 1"}),
		schema.Number("page", arrow.PrimitiveTypes.Int32).Means(meaning{Text: "page of the search that the lead was on", Unit: "pages, from 1", Null: "the search has no leads", Form: "from 1"}),
		schema.Text("lead_id").Means(meaning{Text: "the lead's id", Null: "the search has no leads"}),
		schema.Of("matched_keywords", schema.Words).Means(meaning{Text: "keywords of the search that the person searched for", Null: "none is named"}),
		schema.Of("searched_on", arrow.FixedWidthTypes.Date32).Means(meaning{Text: "day of the person's last search", Unit: "days, UTC"}),
	}
}

func countColumns(Settings) []schema.Column {
	return []schema.Column{
		schema.Number("count", arrow.PrimitiveTypes.Int64).Means(meaning{Text: "leads of the search", Unit: "people", Null: "not answered", Form: "from 0"}),
		schema.Number("hashed_email_count", arrow.PrimitiveTypes.Int64).Means(meaning{Text: "hashed emails of those leads", Unit: "hashes", Null: "not answered, or the service does not say", Form: "from 0"}),
		schema.Of("is_approximate", arrow.FixedWidthTypes.Boolean).Means(meaning{Text: "whether the counts are estimates", Null: "not answered"}),
	}
}

// fixedColumns is the first block of the output of every operation, after the kept
// input columns.
func fixedColumns(parts bool) []schema.Column {
	columns := []schema.Column{
		schema.Required(schema.Repeating("source")).Means(meaning{Text: "input file, as it was given", Null: always, From: "the run", Form: "text, never empty"}),
		schema.Required(schema.Number("source_row", arrow.PrimitiveTypes.Int64)).Means(meaning{Text: "data row of that file, malformed lines counted", Unit: "rows, from 1", Null: always, From: "docs/input.md", Form: "from 1"}),
		schema.Text("key").Means(meaning{Text: "the identifier in canonical form: rows with one key are asked once", Null: "the row is rejected or suppressed", From: "docs/reference/identifiers.md", Form: "text, never empty"}),
		schema.Required(schema.Repeating("outcome")).Means(meaning{Text: "what became of the row", Null: always, From: "docs/reference/reasons.md", Form: "one of: matched no_match rejected failed suppressed skipped"}),
		schema.Repeating("reason").Means(meaning{Text: "why the row is not matched", Null: "it is matched", From: "docs/reference/reasons.md", Form: "text, never empty"}),
		schema.Text("resolution_id").Means(meaning{Text: "the service's id of the answer", Null: "none, or the embedded engine answered"}),
		schema.WithStatistics(schema.Of("resolved_at", schema.Instant)).Means(meaning{Text: "when the service's answer was received", Unit: "microseconds, UTC", Null: "the embedded engine answered, or there is no answer", From: "the run"}),
		schema.Repeating("answered_by").Means(meaning{Text: "who answered: service or embedded; of several resolvers the name of the first with a match", Null: "no answer", From: "the run", Form: "text, never empty"}),
		schema.Repeats(schema.Number("credits", arrow.PrimitiveTypes.Int32)).Means(meaning{Text: "cost of the answer, shared by all rows of a key (of a search: of a key and page): SELECT sum(credits) FROM (SELECT max(credits) AS credits FROM leads GROUP BY key) AS once", Unit: "credits", Null: "no answer, or its cost is unknown", Form: "from 0"}),
	}
	if parts {
		columns = append(columns, schema.Required(schema.Repeats(schema.Number("source_part", arrow.PrimitiveTypes.Int32))).Means(meaning{Text: "which identifier of its cell the row has, with --multiple each", Unit: "identifiers, from 1", Null: always, From: "docs/reference/identifiers.md", Form: "from 1"}))
	}
	return columns
}

// ownColumns are the columns that are not kept from the input.
func (s Settings) ownColumns() []schema.Column {
	return slices.Concat(fixedColumns(s.Parts), blockColumns(s), originColumns(s))
}

// Every lists all columns that an operation can have with any settings, in order and
// without those kept from the input; of them only the chosen ones in the order of their
// names, unless there are none. own are the columns of a dataset: those that say which of
// several resolvers answered are in the list if they are among own.
func Every(op resolution.Operation, chosen []string, own []schema.Column) []schema.Column {
	settings := everything(op)
	settings.noteOrigins(own)
	settings.Parts = true
	all := settings.ownColumns()
	if chosen != nil {
		var named []schema.Column
		for _, name := range chosen {
			if i := slices.IndexFunc(all, func(c schema.Column) bool { return c.Name == name }); i >= 0 {
				named = append(named, all[i])
			}
		}
		all = named
	}
	return Describe(op, all, nil)
}

// Describe adds their meanings to the columns of a dataset. inputs are the names in the input of
// those that are kept from it.
func Describe(op resolution.Operation, columns []schema.Column, inputs map[string]string) []schema.Column {
	described, known := slices.Clone(columns), slices.Concat(fixedColumns(true), blockColumns(everything(op)))
	for i, c := range described {
		input, kept := inputs[c.Name]
		switch described[i].Meaning = keptMeaning; {
		case !kept:
			described[i].Meaning = meaningOf(c.Name, known)
		case input != c.Name:
			described[i].Meaning.Text = "the input's column " + input + ", as text"
		}
	}
	return described
}

// meaningOf is the meaning of a column by its name, among the columns of its operation.
func meaningOf(column string, all []schema.Column) meaning {
	m, known := originMeaning(column)
	if i := slices.IndexFunc(all, func(c schema.Column) bool { return c.Name == column }); i >= 0 {
		m, known = all[i].Meaning, true
	}
	if !known {
		return keptMeaning // of the input, or of a later version
	}
	if m.Null = cmp.Or(m.Null, "unknown"); m.Null == always {
		m.Null = ""
	}
	m.From = cmp.Or(m.From, "answer")
	return m
}

// everything are the settings with all columns of an operation.
func everything(op resolution.Operation) Settings {
	return Settings{Operation: op, HEMTypes: HEMTypes, HEMProfiles: []email.Profile{email.UID2, email.Google}, PhoneProfiles: []phone.Form{phone.E164, phone.Digits}, Remote: true}
}

type meaning = schema.Meaning

// keptMeaning is the meaning of columns kept from the input.
var keptMeaning = meaning{Text: "the input's column of that name, as text", Null: "a Parquet input has no value; an empty CSV cell is an empty text", From: "docs/input.md"}

// RejectsColumns are the columns of a file of malformed lines. The last is left out if
// identifiers are dropped.
func RejectsColumns() []schema.Column {
	return []schema.Column{
		schema.Required(schema.Text("source")), schema.Required(schema.Of("line", arrow.PrimitiveTypes.Int64)),
		schema.Required(schema.Text("reason")), schema.Required(schema.Text("raw_line")),
	}
}

// SuppressedColumns are the columns of a file of the ids of suppressed rows.
func SuppressedColumns() []schema.Column {
	return []schema.Column{
		schema.Required(schema.Text("source")), schema.Required(schema.Of("source_row", arrow.PrimitiveTypes.Int64)), schema.Required(schema.Text("reason")), schema.Text("id"),
	}
}

// always makes a column that is never null.
const always = "never"
