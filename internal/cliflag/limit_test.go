package cliflag

import "testing"

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		limit          string
		rejects, lines int64
		passed         bool
	}{
		{"", 10, 10, false},
		{"0", 0, 10, false},
		{"0", 1, 10, true},
		{"10", 10, 100, false},
		{"10", 11, 100, true},
		{"0%", 0, 0, false},
		{"0%", 1, 100, true},
		{"1%", 1, 100, false},
		{"1%", 2, 100, true},
		{"29%", 29, 100, false}, // 0.29 * 100 is less than 29
		{"29%", 30, 100, true},
		{"0.5%", 1, 100, true},
		{"0.5%", 5, 1000, false},
		{"100%", 100, 100, false},
	} {
		var l Limit
		if c.limit != "" {
			if err := l.Set(c.limit); err != nil {
				t.Errorf("Set(%q): %v", c.limit, err)
			}
		}
		if got := l.Exceeded(c.rejects, c.lines); got != c.passed {
			t.Errorf("%d of %d pass a limit of %q: %v, want %v", c.rejects, c.lines, c.limit, got, c.passed)
		}
		if l.String() != c.limit {
			t.Errorf("%q is printed as %q", c.limit, l.String())
		}
	}
}

func TestLimitIsSetAnew(t *testing.T) {
	var l Limit
	for _, text := range []string{"50%", "3"} { // a job file's, then another
		if err := l.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if !l.Exceeded(4, 100) {
		t.Error("4 of 100 do not pass a limit of 3")
	}
}

func TestNoLimits(t *testing.T) {
	for _, text := range []string{"", "-1", "1.5", "1e3", "many", "%", "101%", "-1%", "NaN%", "1 %", "Inf%"} {
		var l Limit
		if err := l.Set(text); err == nil || l.text != "" {
			t.Errorf("Set(%q) = %v, and %q is kept", text, err, l.text)
		}
	}
}

func TestNoShares(t *testing.T) {
	for _, text := range []string{"", "1", "101%", "-0.1%", "NaN%", "x%"} {
		var p Share
		if err := p.Set(text); err == nil || p.text != "" {
			t.Errorf("Set(%q) = %v, and %q is kept", text, err, p.text)
		}
	}
}
