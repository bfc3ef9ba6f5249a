// Package fiction makes up values of the same form as those of people, so that an answer can be shown without
// anybody in it.
//
// The one thing to know before using it: a Maker gives the same value for the same one, in every text, spelling
// and case, and another for another one. Its choices are random and are kept nowhere else, so that what it made
// tells nothing of what was there.
package fiction

import (
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/phone"
)

// Maker makes up values. It is used by one goroutine.
type Maker struct {
	hosts  []string // of profiles, which stay
	made   map[string]string
	taken  map[string]bool
	hashes map[string]string // of addresses, in hex
	phones map[string]string // by digits without those of the country, too
}

// New returns a Maker that keeps the hosts of profiles.
func New(hosts []string) *Maker {
	return &Maker{hosts: hosts, made: map[string]string{}, taken: map[string]bool{}, hashes: map[string]string{}, phones: map[string]string{}}
}

// once returns what was made of a value, or makes it: another one for each value, as far as there are enough.
func (m *Maker) once(value string, make func() string) string {
	made, is := m.made[value]
	for try := 0; !is; try++ {
		made = make()
		if is = !strings.HasSuffix(value, " "+made) && !m.taken[made] || try == 100; is {
			m.made[value], m.taken[made] = made, true
		}
	}
	return made
}

func random(n int) int {
	i, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		panic(err) // it never fails
	}
	return int(i.Int64())
}

var tokens = regexp.MustCompile(`[^\s@<>"'(),:;\[\]\\/=?&#|{}%]+@[\pL\pN][\pL\pN.-]*` + // an address
	`|[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]+` + // an IPv6 address, or a time
	`|\b[0-9a-fA-F]{64}\b|\b[0-9a-fA-F]{40}\b|\b[0-9a-fA-F]{32}\b` + // a hash
	`|(?:[\pL\pN](?:[\pL\pN-]*[\pL\pN])?\.)+[\pL\pN][\pL\pN-]*` + // a host, an IPv4 address, or words with dots
	`|\+?\(?[0-9][0-9 ().-]{5,}[0-9]`) // a phone number, or other digits

// Text makes up a text of the same form. Addresses, hosts, numbers, names and all other words are replaced
// wherever they are in it, also with the escapes of a URL.
func (m *Maker) Text(text string) string {
	if plain, escapes := unescaped(text); escapes != nil {
		return escaped(m.Text(plain), escapes)
	}
	var b strings.Builder
	at := 0
	for _, token := range tokens.FindAllStringIndex(text, -1) {
		b.WriteString(m.words(text[at:token[0]]))
		b.WriteString(m.token(text[token[0]:token[1]]))
		at = token[1]
	}
	b.WriteString(m.words(text[at:]))
	return b.String()
}

func (m *Maker) token(text string) string {
	if i := strings.LastIndexByte(text, '@'); i > 0 {
		return m.address(text, i)
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return m.ip(a)
	}
	if len(text) >= 32 && !strings.ContainsFunc(text, isNoHex) {
		return m.hash(text)
	}
	if isHost(text) {
		return m.host(text)
	}
	if digits := digitsOf(text); len(digits) >= 7 && (strings.HasPrefix(text, "+") || m.phones[digits] != "") {
		return m.Phone(text)
	}
	return m.words(text)
}

// unescaped is a text without the escapes of a URL, and the characters that were escaped; nil if there are none.
func unescaped(text string) (plain string, escapes map[rune]bool) {
	plain, err := url.PathUnescape(text)
	if err != nil || plain == text || !utf8.ValidString(plain) {
		return text, nil
	}
	escapes = map[rune]bool{}
	for i := strings.IndexByte(text, '%'); i >= 0; i = strings.IndexByte(text, '%') {
		end := i
		for ; end < len(text) && text[end] == '%'; end += 3 {
		}
		some, _ := url.PathUnescape(text[i:end]) // the whole could be read
		for _, c := range some {
			escapes[c] = escapes[c] || !unicode.IsLetter(c) && !unicode.IsDigit(c)
		}
		text = text[end:]
	}
	return plain, escapes
}

// escaped is a text with some of its characters escaped, and all that are not ASCII.
func escaped(text string, escapes map[rune]bool) string {
	var b strings.Builder
	for _, c := range text {
		if c <= unicode.MaxASCII && !escapes[c] {
			b.WriteRune(c)
			continue
		}
		for _, x := range []byte(string(c)) {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{x})))
		}
	}
	return b.String()
}

// address makes up an email address, and makes known what its hashes are.
func (m *Maker) address(text string, at int) string {
	host := strings.TrimRight(text[at+1:], ".-")
	made := m.words(text[:at]) + "@" + m.host(host)
	was, err := email.Read([]byte(text[:at+1] + host))
	is, err2 := email.Read([]byte(made))
	if err == nil && err2 == nil {
		from, to := email.Sum(was.AppendKey(nil)), email.Sum(is.AppendKey(nil))
		m.hashes[hex.EncodeToString(from.MD5[:])] = hex.EncodeToString(to.MD5[:])
		m.hashes[hex.EncodeToString(from.SHA1[:])] = hex.EncodeToString(to.SHA1[:])
		m.hashes[hex.EncodeToString(from.SHA256[:])] = hex.EncodeToString(to.SHA256[:])
	}
	return made + text[at+1+len(host):]
}

func isNoHex(c rune) bool {
	return (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F')
}

// hash makes up a hash: that of the made-up address, if it is one of an address that is known.
func (m *Maker) hash(text string) string {
	lower := strings.ToLower(text)
	made, known := m.hashes[lower]
	if !known {
		made = m.once("hash "+lower, func() string {
			sum := make([]byte, len(lower)/2)
			_, _ = rand.Read(sum) // it never fails
			return hex.EncodeToString(sum)
		})
	}
	return inCase(made, text)
}

// inCase is a text in upper case if another one is.
func inCase(made, as string) string {
	if as == strings.ToUpper(as) && as != strings.ToLower(as) {
		return strings.ToUpper(made)
	}
	return made
}

// special are top-level domains of RFC 2606, which nobody has.
var special = []string{"example", "test", "invalid"}

// isHost reports whether a text with dots is a host.
func isHost(text string) bool {
	suffix, official := publicsuffix.PublicSuffix(strings.ToLower(text))
	return strings.Contains(text, ".") && (official || slices.Contains(special, suffix))
}

// host makes up a host below .example. Those of profiles stay.
func (m *Maker) host(text string) string {
	lower := strings.ToLower(text)
	if slices.ContainsFunc(m.hosts, func(h string) bool { return lower == h || strings.HasSuffix(lower, "."+h) }) {
		return text
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(lower)
	if err != nil {
		domain = lower
	}
	name, _, _ := strings.Cut(domain, ".")
	made := m.words(name) + ".example"
	for _, label := range slices.Backward(strings.Split(strings.TrimSuffix(strings.TrimSuffix(lower, domain), "."), ".")) {
		switch label {
		case "":
		case "www":
			made = "www." + made
		default:
			made = m.words(label) + "." + made
		}
	}
	return inCase(made, text)
}

// documented are the networks of RFC 5737 and 3849, which nobody has.
var documented = []string{"192.0.2.", "198.51.100.", "203.0.113."}

func (m *Maker) ip(a netip.Addr) string {
	return m.once("ip "+a.String(), func() string {
		if a.Is6() {
			return "2001:db8::" + hex.EncodeToString([]byte{byte(1 + random(255)), byte(random(256))})
		}
		return documented[random(3)] + strconv.Itoa(random(254)+1)
	})
}

// Phone makes up a number of the same region and type, in the same writing. A text that is none is one with
// other digits.
func (m *Maker) Phone(text string) string {
	digits := digitsOf(text)
	if made := m.phones[digits]; made != "" {
		return inForm(made, text)
	}
	n, err := phone.Parse(text, "")
	if err != nil {
		n, err = phone.Parse(text, "US")
	}
	whole := strings.TrimPrefix(n.E164, "+")
	if err != nil || !strings.HasSuffix(digits, whole) && !strings.HasSuffix(whole, digits) {
		return m.words(text)
	}
	made := m.once("phone "+whole, func() string { return strings.TrimPrefix(phone.Fictional(n.E164, random), "+") })
	if made == "" {
		return m.words(text)
	}
	m.phones[whole] = made
	for i := 1; i <= 4 && len(whole)-i >= 7; i++ { // without the code of the country, whichever that is
		if made[:i] == whole[:i] {
			m.phones[whole[i:]], m.phones["0"+whole[i:]] = made[i:], "0"+made[i:]
		}
	}
	if at := strings.LastIndex(digits, whole); at > 0 { // behind 00
		made = digits[:at] + made
	} else if at < 0 {
		made = made[max(len(made)-len(digits), 0):]
	}
	return inForm(made, text)
}

// inForm writes digits in the places of others; one after another if they are not as many.
func inForm(digits, form string) string {
	if len(digits) != len(digitsOf(form)) {
		if strings.HasPrefix(form, "+") {
			return "+" + digits
		}
		return digits
	}
	made := []byte(form)
	for i, c := range made {
		if c >= '0' && c <= '9' {
			made[i], digits = digits[0], digits[1:]
		}
	}
	return string(made)
}

func digitsOf(text string) string {
	return strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, text)
}

// words makes up a text without addresses: each word and each number in it becomes another one as long, and all
// else stays.
func (m *Maker) words(text string) string {
	var b strings.Builder
	runes := []rune(text)
	for i := 0; i < len(runes); {
		kind := kindOf(runes[i])
		end := i + 1
		for end < len(runes) && kindOf(runes[end]) == kind {
			end++
		}
		switch some := runes[i:end]; kind {
		case letter:
			b.WriteString(m.word(some))
		case digit:
			b.WriteString(m.number(some))
		default:
			b.WriteString(string(some))
		}
		i = end
	}
	return b.String()
}

// What a character is.
const (
	other = iota
	letter
	digit
)

func kindOf(c rune) int {
	switch {
	case unicode.IsLetter(c) || unicode.IsMark(c):
		return letter
	case unicode.IsDigit(c):
		return digit
	}
	return other
}

// kept are words that say where in an address something is, and who not.
var kept = []string{"http", "https", "www", "in", "pub", "company", "school", "showcase", "mailto", "tel"}

func (m *Maker) word(as []rune) string {
	lower := strings.ToLower(string(as))
	if slices.Contains(kept, lower) {
		return string(as)
	}
	made := []rune(m.once("word "+lower, func() string { return newWord([]rune(lower)) }))
	for i, c := range as {
		if i < len(made) && unicode.IsUpper(c) {
			made[i] = unicode.ToUpper(made[i])
		}
	}
	return string(made)
}

// alphabets are letters in the place of those of a script, by whether a vowel is due.
var alphabets = []struct {
	of      *unicode.RangeTable
	letters [2]string
}{
	{unicode.Cyrillic, [2]string{"бвгдклмнпрст", "аеиоу"}},
	{unicode.Greek, [2]string{"βγδκλμνπρστ", "αειου"}},
	{unicode.Han, [2]string{"山川田石林木水火土金", "山川田石林木水火土金"}},
	{unicode.Latin, [2]string{"bdfgklmnprstvz", "aeiou"}},
}

func newWord(as []rune) string {
	made := make([]rune, len(as))
	for i, c := range as {
		letters := []rune("bdfgklmnprstvz")
		for _, a := range alphabets {
			if unicode.Is(a.of, c) {
				letters = []rune(a.letters[(i+len(as))%2])
			}
		}
		if c > unicode.MaxASCII && unicode.Is(unicode.Latin, c) {
			letters = []rune("áéíóú")
		}
		made[i] = letters[random(len(letters))]
	}
	return string(made)
}

// number makes up digits. The first one is 0 if it was.
func (m *Maker) number(as []rune) string {
	return m.once("number "+string(as), func() string {
		made := make([]byte, len(as))
		for i, c := range as {
			made[i] = byte('0' + random(10))
			if i == 0 && len(as) > 1 {
				made[i] = byte('1' + random(9))
				if c == '0' {
					made[i] = '0'
				}
			}
		}
		return string(made)
	})
}
