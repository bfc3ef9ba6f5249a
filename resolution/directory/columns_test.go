package directory

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

// TestColumns: every column the documentation names is read, in the order it
// is documented in.
func TestColumns(t *testing.T) {
	for _, f := range []struct {
		kind    Kind
		header  string // as documented
		line    string
		find    func(*testing.T, *Directory) any
		holding string // every cell, as the answer writes it
	}{
		{People, "network_url first_name last_name headline job_title seniority department email emails phone phones street zip_code city state company_domain last_seen_at",
			"network.example/in/ada,First,Last,Headline,Title,Senior,Department,a@x.example,b@x.example;a@x.example,+12025550100,+12025550101;+12025550100," +
				"Street,Zip,City,State,x.example,2026-01-02",
			func(t *testing.T, d *Directory) any {
				p, err := d.Person("network.example/in/ada")
				return noError(t, p, err)
			},
			`First Last Headline Title Senior Department "emails":[{"email":"a@x.example"},{"email":"b@x.example"}] ` +
				`"phones":[{"phone":"+12025550100"},{"phone":"+12025550101"}] Street Zip City State "CompanyDomain":"x.example" 2026-01-02`},
		{Companies, "domain name website_url network_url industry revenue employee_count year_founded street zip_code city state about",
			"x.example,Name,Website,network.example/company/x,Industry,Revenue,Count,1987,Street,Zip,City,State,About",
			func(t *testing.T, d *Directory) any {
				c, err := d.Company("x.example")
				return noError(t, c, err)
			},
			"x.example Name Website network.example/company/x Industry Revenue Count 1987 Street Zip City State About"},
		{IPRanges, "cidr range_start range_end company_domain name org_type",
			"192.31.196.0/24,,,x.example,Name,hosting",
			func(t *testing.T, d *Directory) any {
				r, err := d.Range(netip.MustParseAddr("192.31.196.9"))
				return noError(t, r, err)
			},
			"x.example Name hosting"},
		{IPRanges, "cidr range_start range_end company_domain name org_type",
			",192.31.196.0,192.31.196.9,,Name,",
			func(t *testing.T, d *Directory) any {
				r, err := d.Range(netip.MustParseAddr("192.31.196.9"))
				return noError(t, r, err)
			},
			"Name unknown"},
		{Searches, "keyword searched_at network_url email city state zip_code job_title lead_type",
			"tea,2026-01-02,network.example/in/ada,a@x.example,City,CA,Zip,Title,b2b",
			func(t *testing.T, d *Directory) any {
				found, _, err := d.Searches().Find(t.Context(), resolution.KeywordSearch{Keywords: []string{"tea"}}, 0, 10)
				return noError(t, &found, err)
			},
			"tea 2026-01-02T00:00:00Z network.example/in/ada a@x.example City CA Zip Title b2b"},
		{Visits, "ip network_url seen_at confidence",
			"192.31.196.1,network.example/in/ada,2026-01-02,0.25",
			func(t *testing.T, d *Directory) any {
				v, err := d.Visits(netip.MustParseAddr("192.31.196.1"))
				return noError(t, &v, err)
			},
			"network.example/in/ada 2026-01-02 0.25"},
	} {
		t.Run(string(f.kind), func(t *testing.T) {
			header := strings.Fields(f.header)
			for _, read := range ColumnsOf(f.kind) {
				if !strings.Contains(" "+f.header+" ", " "+read+" ") {
					t.Errorf("column %s is read and not documented", read)
				}
			}
			dir := t.TempDir()
			text := strings.Join(header, ",") + "\n" + f.line + "\n"
			mustImport(t, dir, only(f.kind, source(t, "in.csv", text)))
			answer, err := json.Marshal(f.find(t, mustOpen(t, dir)))
			if err != nil {
				t.Fatal(err)
			}
			for _, cell := range strings.Fields(f.holding) {
				if !strings.Contains(string(answer), cell) {
					t.Errorf("%s is not in %s", cell, answer)
				}
			}
		})
	}
}

func noError[T any](t *testing.T, answer *T, err error) *T {
	t.Helper()
	if err != nil || answer == nil || reflect.ValueOf(*answer).IsZero() {
		t.Fatalf("%+v, %v", answer, err)
	}
	return answer
}
