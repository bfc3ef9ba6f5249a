package request

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/profile"
)

// canary is a value that must be in no answer. It is no valid value of any
// field but the free ones.
const canary = "canary-4711"

// canaries put it, and things like it, where a value may stand. %s is the
// canary with something around it that makes its rule fail.
var canaries = []string{
	`"%s"`, `" %s "`, `"%s@"`, `"%s, %[1]s"`, `"http://%s"`, `"://%s"`, `"https://x.example/company/%s"`, `"%%%s"`,
	`["%s"]`, `[["%s"]]`, `{"a":"%s"}`, `{"a":["%s"]}`, `[{"a":"%s"}]`, `"2026-11-20%s"`, `"res_%s"`,
	`"` + strings.Repeat("%[1]s", 300) + `"`, `["` + strings.Repeat("%[1]s", 300) + `"]`, `{"a":"` + strings.Repeat("%[1]s", 300) + `"}`,
	`{"` + strings.Repeat("%[1]s", 300) + `":1}`, // a name too long to be named
	`[` + strings.Repeat(`"%[1]s",`, 501) + `1]`,
	"47114711", "-47114711e-1", "4711471147114711471147114711", "[47114711]", "true", "[false]", "[null]", "{}", "[]", `""`, `[""]`,
}

var everyField = []string{
	"email", "network_url", "ip", "callback_url", "metadata", "user_agent", "page_url", "referrer", "visited_at", "visitor_id",
	"keywords", "cities", "states", "zips", "lead_type", "date_start", "date_end", "limit", "limit_of_hems", "page",
	"deanonymize", "super_enrichment", "job_title_inclusions", "job_title_exclusions", "resolution_id",
}

// every reads a body as every operation.
func every(o Object) (all []Problem) {
	for _, op := range resolution.SingleRecord {
		_, problems := DefaultLimits().Single(op, o, profile.DefaultRules())
		all = append(all, problems...)
	}
	for _, op := range []resolution.Operation{resolution.KeywordToLead, resolution.KeywordToLeadCount} {
		_, problems := DefaultLimits().Keyword(op, o, today)
		all = append(all, problems...)
	}
	_, _, problems := Result(o)
	return append(all, problems...)
}

func TestProblemsRepeatNoValue(t *testing.T) {
	for _, field := range everyField {
		found := false
		for _, pattern := range canaries {
			v := strings.ReplaceAll(pattern, "%s", "%[1]s")
			if strings.Contains(v, "%") {
				v = fmt.Sprintf(v, canary)
			}
			body := fmt.Sprintf(`{%q:%s}`, field, v)
			for _, p := range every(parse(t, body)) {
				if p.Code == "" || p.Detail == "" {
					t.Errorf("%s: a problem without words: %+v", body, p)
				}
				answer, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(answer), "4711") {
					t.Errorf("%s is repeated: %s", body, answer)
				}
				found = found || strings.HasPrefix(p.Pointer, "/"+field) && p.Code != "required"
			}
		}
		if !found {
			t.Errorf("%s: nothing was wrong with any value", field)
		}
	}
}

// Malformed bodies are not repeated either.
func TestMalformedRepeatsNothing(t *testing.T) {
	for _, body := range []string{
		canary, `"` + canary + `"`, `{"` + canary + `":}`, `{"a":` + canary + `}`, `{"a":"` + canary, `{"` + canary + `":1,"` + canary + `":2}`,
		`{"a":"` + canary + "\xff\"}", `{} ` + canary, `{"` + canary + `":"\ud800"}`, `["` + canary + `"]`,
	} {
		_, err := Parse([]byte(body))
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
