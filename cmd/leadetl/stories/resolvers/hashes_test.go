//go:build unix

package resolvers

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// hashed is a provider that knows people by the MD5 of their addresses alone, and bills 2 for each.
type hashed struct {
	mu     sync.Mutex
	asked  map[string]int
	broken string // it breaks off about this one
}

func (h *hashed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := []string{r.URL.Query().Get("u")}
	if r.Method == http.MethodPost {
		_ = json.NewDecoder(r.Body).Decode(&asked)
	}
	answers := []any{}
	for _, md5 := range asked {
		h.asked[md5]++
		if md5 == h.broken {
			panic(http.ErrAbortHandler)
		}
		answers = append(answers, map[string]any{"md5": md5, "person": map[string]string{"url": "https://linkedin.com/in/p-" + md5}})
	}
	if r.Method == http.MethodPost {
		_ = json.NewEncoder(w).Encode(answers)
	} else {
		_ = json.NewEncoder(w).Encode(answers[0])
	}
}

// most is how often it was asked about one, and all how many it was asked about.
func (h *hashed) most() (most, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.asked {
		most = max(most, n)
	}
	return most, len(h.asked)
}

const hashedPeople = 20

// newHashed is a job about addresses, all their hashes, and an address once more in other words; most
// of them are in different parts.
func newHashed(t *testing.T, ask string) (*order, *hashed, func(i int) (address, md5 string)) {
	person := func(i int) (address, hash string) {
		address = fmt.Sprintf("person%d@x.example", i)
		sum := md5.Sum([]byte(address))
		return address, hex.EncodeToString(sum[:])
	}
	list, hashes := "email\n", ""
	for i := range hashedPeople {
		address, hash := person(i)
		list += address + "\n"
		hashes += hash + "\n"
		if i%7 == 0 {
			list += strings.ToUpper(hash) + "\n"
		}
	}
	x, h := newOrder(t, list+hashes+"Person3@X.example\n"), &hashed{asked: map[string]int{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	x.write("providers.yaml", fmt.Sprintf("hashed:\n  base: %q\n  key: none\n  %s\n  price: {match: 2}\n  answers: [{match: 200 person}, {no_match: 200 !person}]\n  fields: {network_url: person.url}\n", server.URL, ask))
	x.job = "operation: email_to_hem\nwant: [network_url]\nrows_per_part: 9\ncompression: none\n"
	x.resolvers = []string{"hashed: {}"}
	return x, h, person
}

// TestHashes: a provider that is asked by a hash of the address is asked once about an address and its
// hash, in one request or many; both rows have the answer, now and whenever it is read again.
func TestHashes(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]string{
		"one by one": `ask: {email: "GET /p?u={email_md5}"}`,
		"batches":    `batch: {size: 5, ask: "POST /b", each: "{email_md5}", in: ".", answers: ".", echo: md5}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, h, person := newHashed(t, ask)
			requireAsked := func(when string, all, most int) {
				t.Helper()
				if m, a := h.most(); m != most || a != all {
					t.Errorf("%s: it was asked about %d hashes, at most %d times, want %d and %d", when, a, m, all, most)
				}
			}
			if plan := x.executes(cli.ExitDone, x.args("plan")...); !strings.Contains(strings.Join(strings.Fields(plan), " "), "keys 40 stored 0 answered without a call calls 40 credits 80 at most, 2 for each call") {
				t.Errorf("the plan says\n%s", plan)
			}
			x.run(cli.ExitDone)
			requireAsked("a run", hashedPeople, 1)
			requireHashed := func(out string, but ...string) {
				t.Helper()
				d := clitest.ReadDataset(t, out)
				for i, row := range d.Rows {
					key := row[d.Column(t, "key")]
					if slices.Contains(but, key) {
						continue
					}
					if strings.Contains(key, "@") {
						sum := md5.Sum([]byte(key))
						key = hex.EncodeToString(sum[:])
					}
					if url, credits := row[d.Column(t, "network_url")], row[d.Column(t, "credits")]; url != "linkedin.com/in/p-"+key || credits != "2" {
						t.Errorf("row %d has %s for %s credits", i+1, url, credits)
					}
				}
				x.executes(cli.ExitDone, "verify", out)
			}
			requireHashed(x.path("out"))
			x.run(cli.ExitDone, "--out", x.path("again"), "--offline")
			clitest.RequireSameFiles(t, x.path("again"), x.path("out"))
			x.run(cli.ExitDone, "--out", x.path("other"))
			requireAsked("another run", hashedPeople, 1)

			// Forgotten by the address, and by a list that has it, the answer is gone for both keys.
			address, hash := person(4)
			listed, listedHash := person(5)
			x.write("forget.csv", "email\n"+address+"\n")
			x.write("list.csv", "email\n"+listed+"\n")
			for _, by := range [][]string{{"--in", x.path("forget.csv")}, {"--file", x.path("list.csv")}} {
				if said := x.executes(cli.ExitDone, slices.Concat([]string{"answers", "forget", "--state", x.path("state")}, by)...); !strings.Contains(said, "1 identifier forgotten") {
					t.Errorf("%s: %s", by, said)
				}
			}
			for _, text := range []string{hash, listedHash} {
				clitest.RequireNowhere(t, x.path("state"), text)
			}
			x.run(cli.ExitDone, "--out", x.path("gone"), "--offline")
			gone := clitest.ReadDataset(t, x.path("gone"))
			if n := gone.Count(t, "reason", "not_stored"); n != 4 || gone.Count(t, "outcome", "skipped") != n {
				t.Errorf("%d rows have no answer after two people were forgotten, want 4", n)
			}

			// Listed people are not asked about, by address or by hash; the other is asked about again.
			x.run(cli.ExitDone, "--out", x.path("listed"), "--suppress", x.path("list.csv"))
			requireAsked("a run with a list", hashedPeople, 2)
			if d := clitest.ReadDataset(t, x.path("listed")); d.Count(t, "outcome", "suppressed") != 2 || h.asked[hash] != 2 || h.asked[listedHash] != 1 {
				t.Errorf("%d rows are suppressed; the hashes are asked about %d and %d times", d.Count(t, "outcome", "suppressed"), h.asked[hash], h.asked[listedHash])
			}

			// A call that may be billed is one call, of both keys.
			h.broken = listedHash
			x.run(cli.ExitRejects, "--out", x.path("broken"))
			broken := clitest.ReadDataset(t, x.path("broken"))
			if n, listed := broken.Count(t, "reason", "unknown_call"), strings.Count(clitest.Run(t, "answers", "list", "--unknown", "--json", "--state", x.path("state")), `"service":"hashed"`); n != 2 || listed != 1 {
				t.Errorf("%d rows of %d unknown calls, want 2 of 1", n, listed)
			}
			h.broken = ""
			x.run(cli.ExitDone, "--out", x.path("broken"), "--retry-unknown")
			requireHashed(x.path("broken"))
			if h.asked[listedHash] != 3 {
				t.Errorf("it was asked %d times about a hash whose call was unknown once", h.asked[listedHash])
			}
		})
	}
}
