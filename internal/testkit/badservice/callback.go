package badservice

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// callbacks are the deliveries in progress.
type callbacks struct {
	mu        sync.Mutex
	ended     bool
	quit      chan struct{}
	under     sync.WaitGroup
	delivered int
}

// retryCallback is the wait before a callback is sent again.
const retryCallback = 50 * time.Millisecond

// post sends the finished answer to a question until the receiver accepts it.
func (c *callbacks) post(secret string, q *question, d *decision, envelope map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.under.Go(func() {
		envelope["type"], envelope["timestamp"] = "resolution.completed", timestamp(time.Now())
		body, err := json.Marshal(envelope)
		if err != nil {
			panic(err) // the envelope is always one that can be marshalled
		}
		message := "msg_" + strings.TrimPrefix(q.id(), "res_")
		client := &http.Client{Timeout: 15 * time.Second}
		defer client.CloseIdleConnections()
		wait := time.NewTimer(d.delay)
		defer wait.Stop()
		for again := d.twice; ; {
			select {
			case <-wait.C:
			case <-c.quit:
				return
			}
			taken := deliver(client, q.callback, message, secret, body)
			if taken {
				c.mu.Lock()
				c.delivered++
				c.mu.Unlock()
				if !again {
					return
				}
				again = false
			}
			wait.Reset(retryCallback)
		}
	})
}

// Delivered counts the accepted callbacks. A callback sent twice counts twice.
func (s *Service) Delivered() int {
	s.callbacks.mu.Lock()
	defer s.callbacks.mu.Unlock()
	return s.callbacks.delivered
}

// end ends all deliveries.
func (c *callbacks) end() {
	c.mu.Lock()
	if !c.ended {
		c.ended = true
		close(c.quit)
	}
	c.mu.Unlock()
	c.under.Wait()
}

// deliver makes one attempt.
func deliver(client *http.Client, to, message, secret string, body []byte) (taken bool) {
	r, err := http.NewRequest(http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return false
	}
	at := time.Now()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("webhook-id", message)
	r.Header.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
	r.Header.Set("webhook-signature", sign(secret, message, at, body))
	response, err := client.Do(r)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	return response.StatusCode >= 200 && response.StatusCode < 300
}

// sign signs a callback. Source: Standard Webhooks 1.0.0, signature scheme.
func sign(secret, message string, at time.Time, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic("the secret is not whsec_ followed by base64")
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", message, at.Unix(), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
