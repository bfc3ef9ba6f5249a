package schema

import "testing"

func TestEscape(t *testing.T) {
	for value, want := range map[string]string{
		"2026-11-20": "2026-11-20", "a b": "a b", "é": "é", "a/b": "a%2Fb", "50%": "50%25", "a=b:c": "a%3Db%3Ac",
		"a\tb\x7f": "a%09b%7F", `"#'*?\{[]^`: "%22%23%27%2A%3F%5C%7B%5B%5D%5E", "": "__HIVE_DEFAULT_PARTITION__",
	} {
		if got := Escape(value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
