package resolution

// Operation names one of the questions the interface answers.
type Operation string

// The operations of the Lead Resolution Service Interface.
const (
	EmailToHEM         Operation = "email_to_hem"
	NetworkToHEM       Operation = "network_to_hem"
	NetworkToPhone     Operation = "network_to_phone"
	IPToCompany        Operation = "ip_to_company"
	Enrichment         Operation = "enrichment"
	Deanonymization    Operation = "deanonymization"
	KeywordToLead      Operation = "keyword_to_lead"
	KeywordToLeadCount Operation = "keyword_to_lead_count"
)

// Facts are what the interface says of an operation.
type Facts struct {
	Name Operation
	// Identifier is what it is asked about; "" for a search.
	Identifier Identifier
	Gives      Gives
	// Path is where a service answers it. The result of a search is at Path/result.
	Path     string
	Callback Callback
	// Credits is the price of a match; of a search, that of a lead without more.
	Credits int64
	// Needs are the kinds of reference data of which one must be there; none if there are none.
	Needs []string
	// Found and NotFound are the messages of an answer about one record.
	Found, NotFound string
}

// Operations are the operations of the interface, in the order help texts show them: first those
// that answer one identifier with one lead, then the searches.
var Operations = []Facts{
	{EmailToHEM, Email, GivesHashes, "/lead/resolution/email_to_hem", RequiredCallback, 1, nil, "Email resolved to hashed emails.", "No hashed emails found."},
	{NetworkToHEM, NetworkURL, GivesHashes, "/lead/resolution/network_to_hem", RequiredCallback, 1, []string{"people"}, "Network profile resolved to hashed emails.", "No hashed emails found."},
	{NetworkToPhone, NetworkURL, GivesPhone, "/lead/resolution/network_to_phone", RequiredCallback, 3, []string{"people"}, "Network profile resolved to a phone number.", "No phone number found."},
	{IPToCompany, IP, GivesCompany, "/lead/resolution/ip_to_company", NoCallback, 1, []string{"ip-ranges"}, "IP address resolved to a company.", "No company found."},
	{Enrichment, NetworkURL, GivesPerson, "/lead/enrichment", OptionalCallback, 2, []string{"people"}, "Network profile resolved to a contact.", "No contact found."},
	{Deanonymization, IP, GivesVisitor, "/lead/deanonymization", OptionalCallback, 3, []string{"visits", "ip-ranges"}, "Visitor identified.", "No visitor or company found."},
	{KeywordToLead, "", GivesLeads, "/resolve/keyword_to_lead", OptionalCallback, 1, []string{"searches"}, "", ""},
	{KeywordToLeadCount, "", GivesCount, "/resolve/keyword_to_lead/count", OptionalCallback, 1, []string{"searches"}, "", ""},
}

// Gives is what the answers of an operation have.
type Gives int

// What answers have.
const (
	GivesNothing Gives = iota // no operation
	GivesHashes               // hashed emails, and the profile
	GivesPhone
	GivesCompany
	GivesPerson  // a person with all data, and the company
	GivesVisitor // a person like that, or the company alone
	GivesLeads   // pages of such people
	GivesCount   // the number of them
)

// Callback is whether a request has a callback_url.
type Callback int

// Whether it has one.
const (
	OptionalCallback Callback = iota
	RequiredCallback
	NoCallback // it is answered at once
)

// SingleRecord and Keyword are the operations that answer one identifier with one lead, and those
// that search: each question has the fields of a KeywordSearch.
var SingleRecord, Keyword = named(false), named(true)

func named(search bool) (names []Operation) {
	for _, f := range Operations {
		if search == (f.Identifier == "") {
			names = append(names, f.Name)
		}
	}
	return names
}

// Facts are those of the operation, which must not be changed; zero for another word.
func (o Operation) Facts() *Facts {
	for i := range Operations { // few, and their lengths differ: faster than a map
		if Operations[i].Name == o {
			return &Operations[i]
		}
	}
	return &Facts{}
}

// Gives is that of its Facts.
func (o Operation) Gives() Gives { return o.Facts().Gives }

// Identifier returns the kind of value a single-record operation is asked
// about, and "" for the keyword operations.
func (o Operation) Identifier() Identifier { return o.Facts().Identifier }

// IsKeyword reports whether an operation is one of Keyword.
func (o Operation) IsKeyword() bool { return o.Gives() >= GivesLeads }

// FindsPeople reports whether an operation answers with data of a person, and not
// with hashes of the identifier alone.
func (o Operation) FindsPeople() bool {
	return o.Identifier() == NetworkURL || o.Gives() == GivesVisitor
}

// Identifier is what kind of value an operation is asked about.
type Identifier string

// The kinds of identifier. Each is also the operation's request field, and so
// the default name of the input column.
const (
	Email      Identifier = "email"
	NetworkURL Identifier = "network_url"
	IP         Identifier = "ip"
)

// Person is the kind of what a provider is asked about that finds people by name and company: values in canonical
// form, as JSON. No operation is about it.
const Person Identifier = "person"

// OperationNames are the names of all operations.
func OperationNames() (names []string) {
	for _, f := range Operations {
		names = append(names, string(f.Name))
	}
	return names
}

// ParseOperation finds the operation called name.
func ParseOperation(name string) (o Operation, known bool) {
	o = Operation(name)
	return o, o.Gives() != GivesNothing
}
