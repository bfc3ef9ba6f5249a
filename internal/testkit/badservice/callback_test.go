package badservice

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// TestCallback: the answer comes later, signed, until it is taken, and then
// once more.
func TestCallback(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var ids []string
	done := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || verifier.Verify(body, r.Header) != nil {
			t.Errorf("the signature does not hold: %v", err)
		}
		var said struct {
			Type       string
			Resolution struct{ ID, Status string }
			Lead       map[string]any
			Payload    struct{ Metadata map[string]string }
		}
		if err := json.Unmarshal(body, &said); err != nil || said.Type != "resolution.completed" || said.Resolution.Status != "completed" || said.Lead["first_name"] == nil || said.Payload.Metadata["client_ref"] != "ref" {
			t.Errorf("callback %s", body)
		}
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, r.Header.Get("webhook-id")+" "+said.Resolution.ID)
		switch len(ids) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2: // taken
		case 3:
			close(done)
		default:
			t.Error("it came a fourth time")
		}
	}))
	defer receiver.Close()
	s, url := listen(t, certain(func(o *Options) { o.Secret, o.Faults.Later, o.Faults.Twice = secret, 1, 1 }))
	question := strings.Replace(enrich(1), callback, receiver.URL, 1)
	question = strings.TrimSuffix(question, "}") + `,"metadata":{"client_ref":"ref"}}`
	status, _, body := ask(t, url, "/lead/enrichment", question)
	if status != 200 || !strings.Contains(body, `"processing"`) || strings.Contains(body, "first_name") || s.Fates()[Later] != 1 {
		t.Errorf("%d, %s", status, body)
	}
	<-done
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if ids[0] != ids[1] || ids[1] != ids[2] || !strings.Contains(body, strings.Fields(ids[0])[1]) {
		t.Errorf("%v, and the answer was %s", ids, body)
	}
	if s.Billed("network.example/in/person-1") != 1 || s.Delivered() != 2 {
		t.Errorf("ledger %v, %d delivered", s.Ledger(), s.Delivered())
	}
}

// TestNoCallbackAddress: who has none gets the answer at once.
func TestNoCallbackAddress(t *testing.T) {
	s, url := listen(t, certain(func(o *Options) { o.Faults.Later = 1 }))
	ask(t, url, "/lead/enrichment", `{"network_url":"network.example/in/a"}`)
	ask(t, url, "/lead/resolution/ip_to_company", `{"ip":"192.31.196.1","callback_url":"`+callback+`"}`)
	if s.Fates()[Answered] != 2 {
		t.Errorf("fates %v", s.Fates())
	}
}
