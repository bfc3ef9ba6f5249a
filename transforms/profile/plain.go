package profile

import "strings"

// plainPerson finds the key in an address that needs no rewriting, which is most
// of a list: http(s) or no scheme, one www., a host, /in/ and a slug of lower-case
// letters, digits, - and _. ok is false for any other address, right or wrong:
// Parse reads those.
//
// It was 38% of the time of network_to_phone to bring such addresses through
// Parse; the key is a part of s and costs a pass over its bytes.
func (r Rules) plainPerson(s string) (key string, ok bool) {
	rest, found := strings.CutPrefix(s, "https://")
	if !found {
		rest, _ = strings.CutPrefix(s, "http://")
	}
	rest = strings.TrimPrefix(rest, "www.")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return "", false
	}
	host, slug := rest[:slash], strings.TrimSuffix(rest[slash:], "/")
	if !isPlainHost(host) || strings.HasPrefix(host, "www.") || strings.HasPrefix(host, "m.") {
		return "", false
	}
	for _, known := range r.Hosts {
		if host != known && strings.Contains(host, known) || strings.IndexByte(known, '.') < 0 {
			return "", false
		}
	}
	if len(slug) < len("/in/x") || slug[:len("/in/")] != "/in/" {
		return "", false
	}
	if name := slug[len("/in/"):]; meansNobody(name) || isPageWord(name) {
		return "", false
	}
	for i := len("/in/"); i < len(slug); i++ {
		if c := slug[i]; !isPlain[c] && c != '_' {
			return "", false
		}
	}
	return rest[:slash+len(slug)], true
}

// isPlain are the characters of a host's labels in ASCII.
var isPlain = func() (is [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyz0123456789-" {
		is[c] = true
	}
	return is
}()

// isPlainHost reports whether cleanHost would take an ASCII host as it is.
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
