package request

import (
	"testing"

	"github.com/google/uuid"
)

func TestResult(t *testing.T) {
	const id = "019a9d0c7e5f7b3a8c1d2e3f4a5b6c7d"
	for _, c := range []struct{ name, body, payload, want string }{
		{"as it is given out", `{"resolution_id":"res_` + id + `"}`, `{"resolution_id":"res_` + id + `"}`, ""},
		{"without the prefix", `{"resolution_id":"` + id + `"}`, `{"resolution_id":"` + id + `"}`, ""},
		{"in upper case", `{"resolution_id":"RES_019A9D0C7E5F7B3A8C1D2E3F4A5B6C7D"}`, `{"resolution_id":"RES_019A9D0C7E5F7B3A8C1D2E3F4A5B6C7D"}`, ""},
		{"nothing else is echoed", `{"x":1,"resolution_id":"` + id + `","page":2}`, `{"resolution_id":"` + id + `"}`, ""},
		{"missing", `{}`, "", "/resolution_id required"},
		{"null", `{"resolution_id":null}`, "", "/resolution_id required"},
		{"a number", `{"resolution_id":1}`, "", "/resolution_id wrong_type"},
		{"empty", `{"resolution_id":""}`, "", "/resolution_id invalid_id"},
		{"the prefix alone", `{"resolution_id":"res_"}`, "", "/resolution_id invalid_id"},
		{"another prefix", `{"resolution_id":"org_` + id + `"}`, "", "/resolution_id invalid_id"},
		{"a digit too few", `{"resolution_id":"res_` + id[1:] + `"}`, "", "/resolution_id invalid_id"},
		{"a digit too many", `{"resolution_id":"res_0` + id + `"}`, "", "/resolution_id invalid_id"},
		{"no hex digit", `{"resolution_id":"res_g` + id[1:] + `"}`, "", "/resolution_id invalid_id"},
		{"dashes", `{"resolution_id":"019a9d0c-7e5f-7b3a-8c1d-2e3f4a5b6c7d"}`, "", "/resolution_id invalid_id"},
		{"space", `{"resolution_id":" ` + id + `"}`, "", "/resolution_id invalid_id"},
	} {
		got, payload, problems := Result(parse(t, c.body))
		if short(problems) != c.want || string(payload) != c.payload {
			t.Errorf("%s: got %s, %q; want %s, %q", c.name, payload, short(problems), c.payload, c.want)
		}
		if c.want == "" && FormatID(got) != "res_"+id {
			t.Errorf("%s: got %s", c.name, FormatID(got))
		}
	}
}

func TestID(t *testing.T) {
	for range 100 {
		id, err := uuid.NewV7()
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := ParseID(FormatID(id)); !ok || got != id {
			t.Fatalf("%s became %s", id, got)
		}
	}
}
