// Package orgtype reads the words of providers of IP ranges for the kind of organization that
// has a range. Words that it does not know count as kinds of providers: naming one as the
// company of a visitor is worse than no company.
package orgtype

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/nullword"
)

// The kinds of organizations that have addresses.
const (
	Business   = "business"
	Education  = "education"
	Government = "government"
	ISP        = "isp"
	Hosting    = "hosting"
	Cellular   = "cellular"
	CDN        = "cdn"
	VPN        = "vpn"
	Unknown    = "unknown"
)

// Kinds are the kinds by their code in a file.
var Kinds = []string{Unknown, Business, Education, Government, ISP, Hosting, Cellular, CDN, VPN}

// IsProvider reports whether others use the addresses of this kind of organization, so that
// it is not the company of the visitor. A word that is no kind counts as a provider.
func IsProvider(orgType string) bool {
	switch orgType {
	case Business, Education, Government, Unknown:
		return false
	}
	return true
}

// wordsOf are the words of range files and MMDBs for each kind, in the form of normalWord.
//
// Sources: MaxMind GeoIP2 user_type and connection_type; IPinfo as_type, and its privacy data;
// IP2Location usage type, IP2Proxy proxy type; AbuseIPDB usage type; DB-IP usage type; PeeringDB
// network type; as their documentation lists them.
var wordsOf = map[string]string{
	Unknown: "unknown inactive",
	Business: "business com commercial company corporate corporation enterprise org organization organisation " +
		"nonprofit non_profit not_for_profit bank banking",
	Education:  "education edu educational academic school college university library lib research educational/research",
	Government: "government gov govt military mil",
	// Guests of a café or a hotel do not work for it.
	ISP: "isp internet_service_provider fixed_line_isp fixed_line residential residential_isp home consumer broadband " +
		"cable/dsl cable dsl adsl xdsl fiber fibre dialup satellite satellite_isp satellite_provider router cafe traveler traveller hotel " +
		"wifi public_wifi hotspot telecom telecoms telecommunication telecommunications telco nsp network_service_provider transit",
	Hosting: "hosting hosting_provider web_hosting webhosting host data_center datacenter data_centre datacentre dch " +
		"cloud cloud_provider cloud_hosting colocation colo server vps content search_engine_spider ses search_engine spider crawler bot",
	Cellular: "cellular mobile mob mobile_isp mobile_carrier mobile_network mobile_operator mobile_wireless cellular_isp " +
		"wireless carrier 3g 4g 5g lte",
	CDN: "cdn content_delivery_network content_distribution_network content_delivery",
	VPN: "vpn anonymous_vpn consumer_privacy_network cpn epn privacy relay private_relay icloud_relay icloud_private_relay proxy " +
		"anonymous_proxy public_proxy pub web_proxy web residential_proxy res tor tor_exit tor_node tor_exit_node anonymous anonymizer",
}

// kindOf is the kind of each word of wordsOf.
var kindOf = func() map[string]string {
	kinds := map[string]string{"": Unknown}
	for kind, words := range wordsOf {
		for word := range strings.FieldsSeq(words) {
			kinds[word] = kind
		}
	}
	return kinds
}()

// Other is what files have for a word that may be something else than a kind of organization.
const Other = "other"

const (
	maxWordBytes  = 40
	maxWordDigits = 3
	// maxWords is how many words a vocabulary has. A column with more unknown ones holds
	// something else, such as names.
	maxWords = 64
)

// Word returns a word as files and reasons have it: in lower case, with _ for what separates its
// parts. It returns Other for text that may be personal, such as a number or an address, or
// that is too long.
func Word(text string) string {
	word := normalWord(text)
	digits := 0
	for _, r := range word {
		switch {
		case unicode.IsDigit(r):
			digits++
		case !unicode.IsLetter(r) && !strings.ContainsRune("_/+&", r):
			return Other
		}
	}
	if len(word) > maxWordBytes || digits > maxWordDigits || !strings.ContainsFunc(word, unicode.IsLetter) || strings.HasPrefix(word, "+") {
		return Other
	}
	return word
}

// normalWord brings the spellings of a word into one form. Empty cells and words for a missing
// value are "".
func normalWord(text string) string {
	if nullword.Is(strings.TrimSpace(text)) {
		return ""
	}
	parts := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return unicode.IsSpace(r) || r == '_' || r == '-' })
	return tightSlashes.Replace(strings.Join(parts, "_"))
}

var tightSlashes = strings.NewReplacer("_/_", "/", "/_", "/", "_/", "/")

// Vocabulary knows the kinds of words.
type Vocabulary struct {
	own map[string]string // kinds of words in their normal form; they go before ours
}

// Kind returns the kind of a word, or of several such as ISP/MOB: a provider if one of them is.
// Of a word that is not known, it returns Word.
func (v Vocabulary) Kind(text string) string {
	if kind, known := v.kind(text); known { // most are written like this
		return kind
	}
	word := normalWord(text)
	if kind, known := v.kind(word); known {
		return kind
	}
	first, known := "", true
	for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return strings.ContainsRune("/,;|+&", r) }) {
		kind, ok := v.kind(strings.Trim(part, "_"))
		if ok && IsProvider(kind) {
			return kind
		}
		known = known && ok && kind != Unknown
		if first == "" {
			first = kind
		}
	}
	if known && first != "" {
		return first
	}
	return Word(text)
}

// Flag returns the kind of provider that a yes-or-no field names, such as vpn or
// is_hosting_provider; "" if it names none.
func (v Vocabulary) Flag(field string) string {
	var word strings.Builder
	for i, r := range field { // isTorExit as is_tor_exit
		if i > 0 && unicode.IsUpper(r) {
			word.WriteByte('_')
		}
		word.WriteRune(r)
	}
	for _, spelled := range []string{field, word.String()} {
		if kind, known := v.kind(strings.TrimPrefix(normalWord(spelled), "is_")); known && IsProvider(kind) {
			return kind
		}
	}
	return ""
}

func (v Vocabulary) kind(word string) (kind string, known bool) {
	if kind, known = v.own[word]; known {
		return kind, true
	}
	kind, known = kindOf[word]
	return kind, known
}

// NewVocabulary returns the known words, and before them those in own with their kinds.
func NewVocabulary(own map[string]string) Vocabulary {
	v := Vocabulary{map[string]string{}}
	for word, kind := range own {
		v.own[normalWord(word)] = kind
	}
	return v
}

// Count is a word that is no known kind, and the number of its rows.
type Count struct {
	Word string `json:"word"`
	Rows int64  `json:"rows"`
}

// ReasonPrefix begins the reason of an address of a provider. The kind follows.
const ReasonPrefix = "org_type:"

// InReasons returns the words among the reasons of rows that are no kind, most rows first.
func InReasons(reasons map[string]int64) []Count {
	words := Counts{}
	for reason, rows := range reasons {
		if word, ok := strings.CutPrefix(reason, ReasonPrefix); ok && !slices.Contains(Kinds, word) {
			words[word] = rows
		}
	}
	return words.List()
}

// Notable returns the rows of words that are no kind. worth is false if they are less than 1% of
// all rows.
func Notable(words []Count, all int64) (rows int64, worth bool) {
	for _, w := range words {
		rows += w.Rows
	}
	return rows, rows > 0 && rows*100 >= all
}

// shownWords is how many words a list names.
const shownWords = 6

// Names names words with their rows.
func Names(words []Count) string {
	var list []string
	for _, w := range words[:min(len(words), shownWords)] {
		list = append(list, w.Word+" "+figures.Grouped(w.Rows))
	}
	if more := len(words) - shownWords; more > 0 {
		list = append(list, figures.Plural(int64(more), "more word"))
	}
	return strings.Join(list, ", ")
}

// Counts counts the rows of words that are no kind. Make one before adding.
type Counts map[string]int64

// Add counts a row with a kind, or with a word that is none.
func (c Counts) Add(orgType string) {
	switch _, met := c[orgType]; {
	case slices.Contains(Kinds, orgType):
	case met || len(c) <= maxWords:
		c[orgType]++
	default:
		c[Other]++
	}
}

// List returns the words, most rows first.
func (c Counts) List() (list []Count) {
	if len(c) > maxWords {
		rows := int64(0)
		for _, n := range c {
			rows += n
		}
		return []Count{{Other, rows}}
	}
	for word, rows := range c {
		list = append(list, Count{word, rows})
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Word, b.Word)) })
	return list
}
