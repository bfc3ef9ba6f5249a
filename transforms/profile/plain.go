package profile

import "strings"

// plainPerson finds the key in an address of a person that needs no rewriting but lower case,
// which is most of a list: http(s) or no scheme, a host, /in/ and a slug of ASCII letters,
// digits, - and _. What follows the slug may be anything without white space and separators of
// lists on the network, and a fragment elsewhere. The key is a part of s; its first bytes, as
// many as lowered says, have to be brought into lower case. ok is false for any other address,
// right or wrong: Parse reads those.
//
// It was 60% of the time of network_to_phone to bring such addresses through Parse.
func (r Rules) plainPerson(s string) (key string, lowered int, ok bool) {
	s = withoutScheme(s)
	slash := strings.IndexByte(s, '/')
	if slash < 0 || !beginsWith(s[slash:], "/in/") {
		return "", 0, false
	}
	named := slash + len("/in/")
	end := named
	for end < len(s) && (isPlain[s[end]] || s[end] == '_') {
		end++
	}
	host, ok := r.plainHost(s[:slash], s[end:])
	if !ok || !namesOne(s[named:end]) {
		return "", 0, false
	}
	from := slash - len(host)
	if lowered = end; isMember(s[named:end]) {
		lowered = named
	}
	return s[from:end], lowered - from, true
}

func withoutScheme(s string) string {
	for _, scheme := range [...]string{"https://", "http://"} {
		if beginsWith(s, scheme) {
			return s[len(scheme):]
		}
	}
	return s
}

// plainHost returns the part of an ASCII host that is in the key: that of the network, or the
// host without www. and m. ok is false if Parse has to read the address, of which rest is what
// follows the slug.
func (r Rules) plainHost(host, rest string) (key string, ok bool) {
	for {
		n := 0
		if beginsWith(host, "www.") {
			n = len("www.")
		} else if beginsWith(host, "m.") {
			n = len("m.")
		}
		if n == 0 || strings.IndexByte(host[n:], '.') < 0 {
			break
		}
		host = host[n:]
	}
	if !isPlainHost(host) {
		return "", false
	}
	for _, known := range r.Hosts {
		before := len(host) - len(known)
		if before >= 0 && beginsWith(host[before:], known) && (before == 0 || host[before-1] == '.') && len(known) > len(key) {
			key = host[before:]
		}
	}
	if key != "" {
		return key, isPlainRest(rest)
	}
	if rest = strings.TrimPrefix(rest, "/"); rest != "" && rest[0] != '#' || hasCapitals(host) {
		return "", false
	}
	for _, known := range r.Hosts {
		if strings.Contains(host, known) || strings.IndexByte(known, '.') < 0 {
			return "", false
		}
	}
	return host, isPlainRest(rest)
}

// beginsWith reports whether s in lower case begins with a text.
func beginsWith(s, text string) bool {
	if len(s) < len(text) {
		return false
	}
	if s[:len(text)] == text {
		return true
	}
	for i := range len(text) {
		if lowerOf[s[i]] != text[i] {
			return false
		}
	}
	return true
}

// lowerOf is each byte in lower case. Capitals come at random: a table needs no branch.
var lowerOf = func() (of [256]byte) {
	for c := range of {
		of[c] = byte(c)
		if 'A' <= c && c <= 'Z' {
			of[c] += 'a' - 'A'
		}
	}
	return of
}()

func hasCapitals(s string) bool {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return true
		}
	}
	return false
}

// namesOne reports whether a plain slug is the name of a person whatever follows it: n may be
// that of n/a, and a layout that of an address behind another one.
func namesOne(slug string) bool {
	const longest = len("undefined-undefined")
	if slug == "" {
		return false
	}
	// No word of these ends in a digit, or is longer.
	switch last := slug[len(slug)-1]; {
	case '0' <= last && last <= '9':
		return slug != "0"
	case len(slug) > longest && last != '-' && last != '_':
		return true
	}
	// Those with a hyphen begin with n, u or y, or have no letters.
	if strings.IndexByte(slug, '-') > 0 && strings.IndexByte("nNuUyY_", slug[0]) < 0 {
		return true
	}
	word := slug
	if hasCapitals(slug) {
		word = string(appendLower(make([]byte, 0, longest), slug))
	}
	return word != "n" && !meansNobody(word) && !isPageWord(word) && !isLayout(word)
}

// appendLower appends ASCII text in lower case.
func appendLower(to []byte, s string) []byte {
	n := len(to)
	to = append(to, s...)
	for i, c := range to[n:] {
		to[n+i] = lowerOf[c]
	}
	return to
}

// isPlainRest reports whether what follows a slug is ASCII that ends the slug, makes no list of
// the address, and has nothing to trim.
func isPlainRest(s string) bool {
	if s != "" && s[0] != '/' && s[0] != '?' && s[0] != '#' {
		return false
	}
	for i := range len(s) {
		if !isInRest[s[i]] {
			return false
		}
	}
	return true
}

// isInRest are the visible ASCII characters that isSeparator and isSurrounding do not have.
var isInRest = func() (is [256]bool) {
	for c := '!'; c <= '~'; c++ {
		is[c] = !isSeparator(c) && !isSurrounding(c)
	}
	return is
}()

// isPlain are the characters of a host's labels in ASCII.
var isPlain = func() (is [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-" {
		is[c] = true
	}
	return is
}()

// isPlainHost reports whether cleanHost would take an ASCII host as it is, but for its case.
func isPlainHost(host string) bool {
	from, labels, letters := 0, 0, false
	for i := 0; i <= len(host); i++ {
		if i < len(host) && host[i] != '.' {
			if !isPlain[host[i]] {
				return false
			}
			letters = letters || host[i] > '9' || host[i] == '-'
			continue
		}
		if i == from || i-from > 63 || host[from] == '-' || host[i-1] == '-' {
			return false
		}
		if labels++; i < len(host) {
			from, letters = i+1, false // letters is of the last label
		}
	}
	return labels > 1 && letters
}
