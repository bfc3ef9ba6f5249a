package phone

import "strings"

// labels are words behind a number that say what it is for, and those before an extension
// that is missing. Without this list, the library would read their letters as digits.
var labels = map[string]bool{
	"cell": true, "cellphone": true, "cellular": true, "mobile": true, "mob": true, "mobil": true, "handy": true, "home": true,
	"work": true, "office": true, "business": true, "direct": true, "main": true, "fax": true, "tel": true, "phone": true,
	"telephone": true, "landline": true, "voice": true, "sms": true, "text": true, "whatsapp": true, "personal": true,
	"c": true, "h": true, "m": true, "w": true, "o": true, "f": true, "p": true, "t": true,
	"ext": true, "extn": true, "extension": true, "x": true, "#": true,
}

// minLabelled is how many digits precede a label. With fewer, its letters may belong to the
// number: 1-800-CALL HOME.
const minLabelled = 7

// withoutLabel drops labels behind a number: "(cell)", "[home]", "mobile phone", "- fax", and
// "ext" without an extension.
func withoutLabel(s string) string {
	for {
		end := strings.TrimRight(s, " .:;,-)]")
		var label string
		if open := strings.LastIndexAny(end, "(["); open >= 0 && len(end) < len(s) && strings.ContainsAny(s[len(end):], ")]") && countDigits(end[open:]) == 0 {
			end, label = end[:open], "x"
		} else {
			start := len(end)
			for start > 0 && (letter(end[start-1]) || end[start-1] == '#') {
				start--
			}
			end, label = end[:start], strings.ToLower(end[start:])
			if start > 0 && digit(end[start-1]) && label != "x" && label != "#" && !strings.HasPrefix(label, "ext") {
				return s // letters that follow a digit belong to the number
			}
		}
		if !labels[label] || countDigits(end) < minLabelled {
			return s
		}
		s = strings.TrimRight(end, " .:;,-/")
	}
}

func countDigits(s string) (n int) {
	for i := range len(s) {
		if digit(s[i]) {
			n++
		}
	}
	return n
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
