package openlineage

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/webhook"
)

const (
	// timeout bounds the sending of an event.
	timeout = 10 * time.Second
	// lastWait bounds how long Close waits for unsent events.
	lastWait = 2 * time.Second
	// waiting is how many events may wait to be sent; further ones are dropped.
	waiting = 8
)

// Sender sends events to a collector, in order, in the background.
type Sender struct {
	log    *slog.Logger
	client *webhook.Client

	events chan []byte // as JSON
	done   chan struct{}
	cancel context.CancelFunc
	warn   sync.Once
}

// Address returns the address for events of a collector at a URL:
// /api/v1/lineage below it, unless the URL ends in that already.
func Address(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", errors.New("not an address; write one such as http://marquez.example:5000") // url.Parse's error would repeat the text
	case u.User != nil:
		return "", errors.New("the address names a user; put a key into OPENLINEAGE_API_KEY")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the address has a query or a fragment; leave them out")
	}
	if !strings.HasSuffix(u.Path, "/lineage") {
		u = u.JoinPath("api/v1/lineage")
	}
	return u.String(), nil
}

// NewSender starts a Sender to an Address. key, if not empty, is sent as a
// bearer token. Call Close at the end.
func NewSender(address string, key secret.Text, log *slog.Logger) *Sender {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sender{
		log: log, client: webhook.New(secret.New(address), key),
		events: make(chan []byte, waiting), done: make(chan struct{}), cancel: cancel,
	}
	go func() {
		defer close(s.done)
		for event := range s.events {
			s.report(s.post(ctx, event))
		}
	}()
	return s
}

// report warns of the first error.
func (s *Sender) report(err error) {
	if err != nil {
		s.warn.Do(func() {
			s.log.Warn("events cannot be sent to openlineage_url; the run continues without", "reason", err)
		})
	}
}

// Send queues an event with its current content. It never waits: if the queue is
// full, the event is dropped.
func (s *Sender) Send(e Event) {
	body, err := json.Marshal(e)
	if err != nil {
		s.report(err)
		return
	}
	select {
	case s.events <- body:
	default:
	}
}

// Close sends a last event, waits a moment for unsent events, and ends.
func (s *Sender) Close(last Event) {
	timer := time.AfterFunc(lastWait, s.cancel)
	defer timer.Stop()
	body, err := json.Marshal(last)
	s.report(err)
	select {
	case s.events <- body:
	case <-time.After(lastWait):
	}
	close(s.events)
	<-s.done
	s.cancel()
	s.client.Close()
}

func (s *Sender) post(ctx context.Context, body []byte) error {
	ctx, done := context.WithTimeout(ctx, timeout)
	defer done()
	return s.client.Post(ctx, body)
}
