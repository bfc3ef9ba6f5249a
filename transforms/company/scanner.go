package company

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// maxRangeText bounds a range, in bytes after normalizing.
const maxRangeText = 96

// normalize appends text to dst for a scanner: in lower case, with - for all dashes,
// and with one space for dollar signs, underscores and runs of spaces. ok is false
// if text is too long, not UTF-8, or in another currency than US dollars. It does not
// allocate if dst has room.
func normalize(dst []byte, text string) (normal []byte, ok bool) {
	room := cap(dst)
	for _, r := range text {
		switch {
		case r == utf8.RuneError:
			return nil, false
		case r == '$' || r == '＄' || r == '﹩':
			if otherDollar(dst) {
				return nil, false
			}
			r = ' '
		case r < utf8.RuneSelf:
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			if r == '_' || r <= ' ' {
				r = ' '
			}
		case r == '≤':
			dst, r = append(dst, '<'), '='
		case r == '≥':
			dst, r = append(dst, '>'), '='
		case r == '≈':
			r = '~'
		case r == '’':
			r = '\'' // as in Swiss thousands
		case r == '−' || unicode.Is(unicode.Pd, r):
			r = '-'
		case unicode.Is(unicode.Sc, r):
			return nil, false
		case unicode.IsSpace(r):
			r = ' '
		case unicode.Is(unicode.Cf, r):
			continue
		}
		if r == ' ' && (len(dst) == 0 || dst[len(dst)-1] == ' ') {
			continue
		}
		if len(dst)+utf8.RuneLen(r) > room {
			return nil, false
		}
		dst = utf8.AppendRune(dst, r)
	}
	return bytes.TrimRight(dst, " "), true
}

// otherDollar reports whether the letters in front of a dollar sign make it another
// currency, as in A$, HK$ or R$. A unit may precede it: 1M$.
func otherDollar(before []byte) bool {
	end := len(bytes.TrimRight(before, " "))
	start := end
	for start > 0 && letter(before[start-1]) {
		start--
	}
	switch word := string(before[start:end]); {
	case word == "" || word == "us" || word == "usd":
		return false
	case end == len(before):
		return start == 0 || !digit(before[start-1])
	default:
		return word == "a" || word == "ca" // a space between; other words are read as words
	}
}

// scanner reads a normalized range. It moves a position and not the text, so that the
// text can stay on the stack of the caller.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) rest() []byte { return s.text[s.at:] }

// next returns the next byte, 0 at the end.
func (s *scanner) next() byte {
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// skip reads c if it is the next byte.
func (s *scanner) skip(c byte) {
	if s.next() == c {
		s.at++
	}
}

// end reads the words that may follow, and reports whether nothing else does.
func (s *scanner) end() bool {
	s.noise()
	return s.at == len(s.text)
}

// anyOf reads one of some words or signs. A word must be a whole word of the text.
func (s *scanner) anyOf(words ...string) bool {
	s.skip(' ')
	rest := s.rest()
	for _, w := range words {
		if len(rest) < len(w) || string(rest[:len(w)]) != w {
			continue
		}
		behind := rest[len(w):]
		if letter(w[len(w)-1]) && len(behind) > 0 && (letter(behind[0]) || behind[0] >= utf8.RuneSelf) {
			continue
		}
		s.at += len(w)
		return true
	}
	return false
}

// noiseWords are words around numbers without a meaning. Those of other currencies than US
// dollars are not among them, so that their amounts have no bounds.
var noiseWords = wordSet(
	"employees", "employee", "people", "persons", "person", "staff", "workers", "members", "fte", "ftes", "headcount",
	"team", "company", "size", "revenue", "annual", "annually", "per", "year", "a", "in",
	"approx", "approximately", "about", "around", "circa", "ca", "estimated", "est",
	"usd", "dollar", "dollars", "us",
)

// otherCurrencies are the words in parentheses that make an amount one of another currency.
// Source: ISO 4217, the currencies most traded.
var otherCurrencies = wordSet(
	"aed", "ars", "aud", "bdt", "bgn", "bhd", "brl", "cad", "chf", "clp", "cnh", "cny", "cop", "crc", "czk", "dkk", "egp", "eur",
	"gbp", "ghs", "hkd", "hrk", "huf", "idr", "ils", "inr", "isk", "jod", "jpy", "kes", "krw", "kwd", "kzt", "lkr", "mad", "mxn",
	"myr", "ngn", "nok", "nzd", "omr", "pen", "php", "pkr", "pln", "qar", "ron", "rsd", "rub", "sar", "sek", "sgd", "thb", "tnd",
	"try", "twd", "uah", "uyu", "vnd", "zar", "euro", "euros", "pound", "pounds", "sterling", "yen", "yuan", "renminbi", "rmb",
	"rupee", "rupees", "rs", "franc", "francs", "krona", "kronor", "krone", "kroner", "kr", "zloty", "won", "real", "reais", "rand",
	"peso", "pesos", "lira", "ruble", "rubles", "dirham", "dirhams", "riyal", "shekel", "baht", "ringgit", "rupiah", "canadian",
	"australian", "singapore", "hong", "zealand", "local",
)

func wordSet(words ...string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}

// noise skips noiseWords, a tilde, and parentheses without digits and currencies.
func (s *scanner) noise() {
	for {
		s.skip(' ')
		switch word := s.word(); {
		case len(word) > 0 && noiseWords[string(word)]:
			s.at += len(word)
			s.skip('.')
		case s.next() == '~':
			s.at++
		case s.next() == '(':
			end := bytes.IndexByte(s.rest(), ')')
			if end < 0 || bytes.ContainsAny(s.rest()[:end], "0123456789") || namesCurrency(s.rest()[1:end]) {
				return
			}
			s.at += end + 1
		default:
			return
		}
	}
}

// namesCurrency reports whether a text has one of otherCurrencies among its words.
func namesCurrency(text []byte) bool {
	for len(text) > 0 {
		n := 0
		for n < len(text) && letter(text[n]) {
			n++
		}
		if otherCurrencies[string(text[:n])] {
			return true
		}
		text = text[min(n+1, len(text)):]
	}
	return false
}

// word returns the next word without reading it.
func (s *scanner) word() []byte {
	rest := s.rest()
	n := 0
	for n < len(rest) && letter(rest[n]) {
		n++
	}
	return rest[:n]
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' }

func digit(c byte) bool { return '0' <= c && c <= '9' }
