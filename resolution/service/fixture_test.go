package service

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/openapi/openapitest"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func TestMain(m *testing.M) {
	var err error
	if sampleFolder, err = os.MkdirTemp("", "service"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(sampleFolder)
		os.Exit(code)
	}))
}

// fixture is a service with one organization on a state of its own.
type fixture struct {
	testing.TB
	options      Options
	store        *sqlite.Store // options.State
	service      *Service
	organization state.Organization
	key          string // an API key of the organization
	secret       callback.Secret
	public       string // address of the listener
	internal     string
	client       *http.Client // holds every answer against the document
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// plenty is what the organization has at the start.
const plenty = 1000

// newFixture makes a service that answers on both handlers, without Serve.
func newFixture(tb testing.TB, change ...func(*Options)) *fixture {
	f := &fixture{TB: tb, client: &http.Client{}}
	f.prepare(change...)
	if t, ok := tb.(*testing.T); ok {
		f.client.Transport = openapitest.Transport(t, f.transport())
	} else {
		f.client.Transport = f.transport()
	}
	public, internal := httptest.NewServer(f.service.Public()), httptest.NewServer(f.service.Internal())
	tb.Cleanup(public.Close)
	tb.Cleanup(internal.Close)
	f.public, f.internal = public.URL, internal.URL
	return f
}

// transport is a client's connections, closed at the end.
func (f *fixture) transport() *http.Transport {
	t := &http.Transport{MaxIdleConnsPerHost: 64}
	f.Cleanup(t.CloseIdleConnections)
	return t
}

func (f *fixture) prepare(change ...func(*Options)) {
	f.Helper()
	pepper, err := credential.LoadPepper(f.Context(), filepath.Join(f.TempDir(), "pepper"), true)
	f.must(err)
	kept, err := sqlite.Serve(f.TempDir())
	f.must(err)
	f.Cleanup(func() { f.must(kept.Close()) })

	f.options = DefaultOptions()
	f.store = kept
	f.options.State, f.options.Pepper = kept, pepper
	f.options.Resolver, f.options.Searcher = embedded.New(sample(f), embedded.Options{}), &searcher{}
	f.options.Callbacks = &callback.Policy{Allow: loopback}
	f.options.SystemKey = secret.New("system")
	f.options.Limits = admission.Limits{ActiveJobs: 5}
	for _, c := range change {
		c(&f.options)
	}
	f.service, err = New(f.options)
	f.must(err)
	f.secret = callback.NewSecret()
	f.organization, f.key = f.newOrganization("Example Customer", plenty)
}

// newOrganization makes an organization with a key.
func (f *fixture) newOrganization(name string, credits int64) (state.Organization, string) {
	f.Helper()
	o, err := f.store.CreateOrganization(f.Context(), name, credits, f.options.Pepper.Seal([]byte(f.secret.Reveal())), time.Now())
	f.must(err)
	return o, f.newKey(state.Key{Organization: o.ID})
}

func (f *fixture) newKey(k state.Key) string {
	f.Helper()
	key := credential.NewKey(false).Reveal()
	k.Label, k.Hash, k.Hint, k.Created = "test", f.options.Pepper.Hash(key), credential.Hint(key), time.Now()
	_, err := f.store.AddKey(f.Context(), k)
	f.must(err)
	return key
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// balance is what the organization has.
func (f *fixture) balance() state.Balance {
	f.Helper()
	b, err := f.store.Balance(context.Background(), f.organization.ID)
	f.must(err)
	return b
}

// answer is one answer, read to its end.
type answer struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any // nil when it is no JSON object
}

// code is the word of an error.
func (a answer) code() string { return a.text("error", "code") }

// text is the string at a path of members, "" without one.
func (a answer) text(path ...string) string {
	s, _ := a.at(path...).(string)
	return s
}

// at is the value at a path of members, nil without one.
func (a answer) at(path ...string) any {
	var v any = a.body
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}

// post asks an operation with the organization's key. Headers come in pairs
// and win over the usual ones; an empty value takes a header away.
func (f *fixture) post(path, body string, headers ...string) answer {
	f.Helper()
	return f.do(http.MethodPost, f.public+path, body, headers...)
}

func (f *fixture) do(method, url, body string, headers ...string) answer {
	f.Helper()
	a, err := f.try(f.Context(), method, url, body, headers...)
	f.must(err)
	return a
}

func (f *fixture) try(ctx context.Context, method, url, body string, headers ...string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+f.key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := f.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	if a.raw, err = io.ReadAll(response.Body); err != nil {
		return answer{}, err
	}
	_ = json.Unmarshal(a.raw, &a.body)
	return a, nil
}

// run starts Serve on loopback. What it returns tells it to end, waits for
// that, and returns its error; it may be called more than once.
func (f *fixture) run() (stop func() error) {
	f.Helper()
	public, internal := listen(f), listen(f)
	f.public, f.internal = "http://"+public.Addr().String(), "http://"+internal.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.service.Serve(ctx, Listeners{Public: public, Internal: internal}) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	f.Cleanup(func() { _ = stop() })
	return stop
}

func listen(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// sample opens the sample directory, imported once for all tests.
func sample(tb testing.TB) *directory.Directory {
	tb.Helper()
	imported.Do(func() {
		from := resolutiontest.Sample(tb)
		_, err := directory.Import(context.Background(), sampleFolder, directory.Files{
			People:    filepath.Join(from, "people.csv"),
			Companies: filepath.Join(from, "companies.csv"),
			IPRanges:  filepath.Join(from, "ip-ranges.csv"),
			Visits:    filepath.Join(from, "visits.csv"),
		}, directory.DefaultOptions())
		if err != nil {
			tb.Fatal(err)
		}
	})
	d, err := directory.Open(sampleFolder)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = d.Close() })
	return d
}

var (
	imported     sync.Once
	sampleFolder string // of all tests; TestMain makes it and takes it away
)

// searcher is a Searcher of three leads, whose methods a test may replace.
type searcher struct {
	edition string
	search  func(context.Context, resolution.KeywordSearch, resolution.SearchPage) (resolution.SearchResult, error)
	count   func(context.Context, resolution.KeywordSearch, int) (resolution.SearchCount, error)
}

var _ resolution.Searcher = (*searcher)(nil)

func (s *searcher) Edition() string { return s.edition }

func (s *searcher) Search(ctx context.Context, k resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
	if s.search != nil {
		return s.search(ctx, k, p)
	}
	return threeLeads(p), nil
}

func (s *searcher) Count(ctx context.Context, k resolution.KeywordSearch, hems int) (resolution.SearchCount, error) {
	if s.count != nil {
		return s.count(ctx, k, hems)
	}
	return resolution.SearchCount{Leads: 3, HashedEmails: 9}, nil
}

func threeLeads(p resolution.SearchPage) resolution.SearchResult {
	r := resolution.SearchResult{Leads: resolution.NewAnswers(), Total: 3}
	for i := range int(r.Total) {
		if i < (p.Number-1)*p.Limit || i >= p.Number*p.Limit {
			continue
		}
		r.Leads.AddFound(&resolution.FoundLead{
			LeadID:          "lead_" + strings.Repeat("0", 31) + string(rune('1'+i)),
			MatchedKeywords: []string{"rockets"},
			SearchedAt:      time.Date(2026, 11, 20-i, 8, 0, 0, 0, time.UTC),
		})
	}
	return r
}

// indent shows JSON to a person.
func indent(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
