package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/openapi"
	"github.com/leadetl/leadetl/resolution/service/openapi/openapitest"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// inventions are the examples that nobody can make the sample directory
// answer: of a suppressed person, of searches that fail or are not over yet.
var inventions = map[string]bool{
	"/lead/resolution/email_to_hem no_match":               true,
	"/resolve/keyword_to_lead/result unfinished":           true,
	"/resolve/keyword_to_lead/count/result unfinished":     true,
	"/resolve/keyword_to_lead/result failed":               true,
	"/resolve/keyword_to_lead/count/result failed":         true,
	"/resolve/keyword_to_lead/result cancelled":            true,
	"/resolve/keyword_to_lead/count/result cancelled":      true,
	"callback of /resolve/keyword_to_lead failed":          true,
	"callback of /resolve/keyword_to_lead/count cancelled": true,
}

const receiverInExamples = "https://hooks.customer.example/leads"

// TestExamplesAreTrue asks a service on the sample directory what the examples
// show, and receives the callbacks: it says the same, but for ids.
func TestExamplesAreTrue(t *testing.T) {
	d, err := openapi3.NewLoader().LoadFromData(openapi.Document())
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t)
	started := make(map[string]string) // path of a creation: id
	for _, path := range d.Paths.InMatchingOrder() {
		op := d.Paths.Value(path).Post
		if op == nil || strings.HasSuffix(path, "/result") || strings.HasPrefix(path, "/account/") {
			continue
		}
		for name, want := range examples(t, op.Responses.Status(200).Value.Content) {
			if inventions[path+" "+name] {
				continue
			}
			payload := want["payload"].(map[string]any)
			got := s.post(t, path, payload)
			if id := resolutionOf(got); id != "" {
				started[path] = id
				if payload["callback_url"] != nil {
					s.receive(t, path, id)
				}
			}
			same(t, path+" "+name, got, want)
		}
		if op.Callbacks["finished"] == nil {
			continue
		}
		asked := op.Callbacks["finished"].Value.Value("{$request.body#/callback_url}").Post.RequestBody.Value.Content
		for name, want := range examples(t, asked) {
			if where := "callback of " + path + " " + name; !inventions[where] {
				got := s.post(t, path, want["payload"].(map[string]any))
				same(t, where, s.receive(t, path, resolutionOf(got)), want)
			}
		}
	}
	for creation, id := range started {
		if item := d.Paths.Value(creation + "/result"); item != nil {
			for name, want := range examples(t, item.Post.Responses.Status(200).Value.Content) {
				if where := creation + "/result " + name; !inventions[where] {
					same(t, where, s.post(t, creation+"/result", map[string]any{"resolution_id": id}), want)
				}
			}
		}
	}
}

func examples(t *testing.T, c openapi3.Content) map[string]map[string]any {
	t.Helper()
	all := make(map[string]map[string]any)
	for name, e := range c["application/json"].Examples {
		all[name] = e.Value.Value.(map[string]any)
	}
	if len(all) == 0 {
		t.Fatal("no examples")
	}
	return all
}

func resolutionOf(body map[string]any) string {
	r, _ := body["resolution"].(map[string]any)
	id, _ := r["id"].(string)
	return id
}

// same compares an answer with an example, ids and moments apart.
func same(t *testing.T, where string, got, want map[string]any) {
	t.Helper()
	if g, w := masked(got), masked(want); !reflect.DeepEqual(g, w) {
		show := func(v any) string {
			text, _ := json.MarshalIndent(v, "", "  ")
			return string(text)
		}
		t.Errorf("%s: got\n%s\nthe example is\n%s", where, show(g), show(w))
	}
}

// masked is a body without what is new in each: moments, and the ids of
// resolutions.
func masked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			switch name {
			case "requested_at", "timestamp", "resolution_id":
				member = "…"
			case "resolution":
				r := masked(member).(map[string]any)
				r["id"] = "…"
				member = r
			default:
				member = masked(member)
			}
			out[name] = member
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = masked(v[i])
		}
		return out
	}
	return v
}

// served is a service on the sample directory, and a receiver of callbacks.
type served struct {
	url, key  string
	client    *http.Client
	receiver  string
	callbacks chan received
	early     map[string]received // by resolution: those not waited for yet
}

type received struct {
	header http.Header
	body   []byte
}

func serve(t *testing.T) *served {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &served{callbacks: make(chan received, 100), early: make(map[string]received)}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			s.callbacks <- received{r.Header, body}
		}
	}))
	t.Cleanup(receiver.Close)
	s.receiver = receiver.URL + "/leads"

	from, folder := resolutiontest.Sample(t), t.TempDir()
	_, err := directory.Import(t.Context(), folder, directory.Files{
		People: filepath.Join(from, "people.csv"), Companies: filepath.Join(from, "companies.csv"), IPRanges: filepath.Join(from, "ip-ranges.csv"),
		Searches: filepath.Join(from, "searches.csv"), Visits: filepath.Join(from, "visits.csv"),
	}, directory.DefaultOptions())
	must(err)
	sample, err := directory.Open(folder)
	must(err)
	t.Cleanup(func() { _ = sample.Close() })
	engine := embedded.New(sample, embedded.Options{})

	o := service.DefaultOptions()
	o.Pepper, err = credential.LoadPepper(t.Context(), filepath.Join(t.TempDir(), "pepper"), true)
	must(err)
	kept, err := sqlite.Serve(t.TempDir())
	must(err)
	t.Cleanup(func() { must(kept.Close()) })
	o.State = kept
	o.Resolver, o.Searcher, o.Limits = engine, engine, admission.Limits{}
	o.Callbacks = &callback.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	running, err := service.New(o)
	must(err)

	now := time.Now()
	organization, err := kept.CreateOrganization(t.Context(), "customer", 10_000, o.Pepper.Seal([]byte(callback.NewSecret().Reveal())), now)
	must(err)
	s.key = credential.NewKey(false).Reveal()
	_, err = kept.AddKey(t.Context(), state.Key{
		Organization: organization.ID, Label: "test", Hash: o.Pepper.Hash(s.key), Hint: credential.Hint(s.key), Created: now,
	})
	must(err)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	s.url = "http://" + listener.Addr().String()
	connections := &http.Transport{}
	s.client = &http.Client{Transport: openapitest.Transport(t, connections)}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- running.Serve(ctx, service.Listeners{Public: listener}) }()
	t.Cleanup(func() {
		connections.CloseIdleConnections()
		stop()
		must(<-ended)
	})
	return s
}

// post asks with the receiver of this test in the place of the examples', and
// puts theirs into the answer.
func (s *served) post(t *testing.T, path string, body map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte(receiverInExamples), []byte(s.receiver))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s\n%s", path, response.Status, text)
	}
	return s.read(t, text)
}

func (s *served) read(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(s.receiver), []byte(receiverInExamples)), &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// receive waits for the callback about a resolution, and holds it against the
// document as what the operation at path posts.
func (s *served) receive(t *testing.T, path, id string) map[string]any {
	t.Helper()
	for {
		c, here := s.early[id]
		if !here {
			c = <-s.callbacks
			if of := resolutionOf(s.read(t, c.body)); of != id {
				s.early[of] = c
				continue
			}
		}
		r := httptest.NewRequest(http.MethodPost, "/leads", nil)
		r.Header = c.header
		openapitest.Callback(t, path, r, c.body)
		return s.read(t, c.body)
	}
}
