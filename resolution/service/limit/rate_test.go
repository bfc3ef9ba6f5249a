package limit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/limit"
)

func TestParseRate(t *testing.T) {
	for _, c := range []struct {
		text string
		want limit.Rate
	}{
		{"0", limit.None},
		{"600/min", limit.Rate{Events: 600, Per: time.Minute, Burst: 600}},
		{"600/min burst 20", limit.Rate{Events: 600, Per: time.Minute, Burst: 20}},
		{"10/s", limit.Rate{Events: 10, Per: time.Second, Burst: 10}},
		{"1000/h", limit.Rate{Events: 1000, Per: time.Hour, Burst: 1000}},
		{"5000/d burst 1", limit.Rate{Events: 5000, Per: 24 * time.Hour, Burst: 1}},
		{"  1/d   burst  1000 ", limit.Rate{Events: 1, Per: 24 * time.Hour, Burst: 1000}},
	} {
		got, err := limit.ParseRate(c.text)
		if err != nil || got != c.want {
			t.Errorf("ParseRate(%q) = %+v, %v, want %+v", c.text, got, err, c.want)
		}
		if again, err := limit.ParseRate(got.String()); err != nil || again != got {
			t.Errorf("ParseRate(%q) = %+v, %v, want %+v", got, again, err, got)
		}
	}
}

func TestParseRateRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "neither a rate nor a rate with a burst",
		"600":                "a rate needs a unit, such as 10/s",
		"600/":               "a rate needs a unit",
		"600/month":          "a rate needs a unit",
		"600 / min":          "neither a rate",
		"/min":               "is not a whole number",
		"x/min":              "is not a whole number",
		"1.5/s":              "is not a whole number",
		"0/min":              "not between 1 and 1000000",
		"-1/min":             "not between 1 and 1000000",
		"1000001/min":        "not between 1 and 1000000",
		"99999999999999/min": "not between 1 and 1000000",
		"1/s burst":          "neither a rate",
		"1/s bust 2":         "neither a rate",
		"1/s burst 0":        "the burst is not between 1 and 1000 times",
		"1/s burst -1":       "the burst is not between",
		"1/s burst 1001":     "the burst is not between",
		"1/s burst many":     "the burst is not a whole number",
		"0 burst 2":          "a rate needs a unit",
	} {
		got, err := limit.ParseRate(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "write it as 600/min") {
			t.Errorf("ParseRate(%q) = %v, %v, want an error that says %q and what to write", text, got, err, want)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	f.Add("600/min burst 20")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := limit.ParseRate(text)
		if err != nil {
			return
		}
		limit.New(r)
		if again, err := limit.ParseRate(r.String()); err != nil || again != r {
			t.Errorf("%q is %+v, written as %q, which is %+v, %v", text, r, r, again, err)
		}
	})
}

func TestUnmarshalText(t *testing.T) {
	var r limit.Rate
	if err := r.UnmarshalText([]byte("60/min")); err != nil || r.Events != 60 {
		t.Errorf("got %v, %v, want 60/min", r, err)
	}
	if text, err := r.MarshalText(); err != nil || string(text) != "60/min" {
		t.Errorf("got %s, %v, want 60/min", text, err)
	}
	if err := r.UnmarshalText([]byte("often")); err == nil {
		t.Error("often is a rate")
	}
}
