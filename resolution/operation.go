package resolution

import "slices"

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

// SingleRecord lists the operations that answer one identifier with one lead,
// in the order help texts show them.
var SingleRecord = []Operation{
	EmailToHEM, NetworkToHEM, NetworkToPhone, IPToCompany, Enrichment, Deanonymization,
}

// Keyword lists the operations that search: each question has the fields of a
// KeywordSearch.
var Keyword = []Operation{KeywordToLead, KeywordToLeadCount}

// IsKeyword reports whether an operation is one of Keyword.
func (o Operation) IsKeyword() bool { return o == KeywordToLead || o == KeywordToLeadCount }

// FindsPeople reports whether an operation answers with data of a person, and not
// with hashes of the identifier alone.
func (o Operation) FindsPeople() bool {
	return o == NetworkToHEM || o == NetworkToPhone || o == Enrichment || o == Deanonymization
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

// Identifier returns the kind of value a single-record operation is asked
// about, and "" for the keyword operations.
func (o Operation) Identifier() Identifier {
	switch o {
	case EmailToHEM:
		return Email
	case NetworkToHEM, NetworkToPhone, Enrichment:
		return NetworkURL
	case IPToCompany, Deanonymization:
		return IP
	}
	return ""
}

// OperationNames are the names of all operations.
func OperationNames() (names []string) {
	for _, o := range slices.Concat(SingleRecord, Keyword) {
		names = append(names, string(o))
	}
	return names
}

// ParseOperation finds the operation called name.
func ParseOperation(name string) (o Operation, known bool) {
	return Operation(name), slices.Contains(OperationNames(), name)
}
