package callback

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/secret"
)

func mustSecret(t testing.TB, s string) Secret {
	secret, err := ParseSecret(s)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestSignKnownAnswer is the example that implementations of the scheme share.
func TestSignKnownAnswer(t *testing.T) {
	secret := mustSecret(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	got := Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), []Secret{secret})
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSignWithSeveral(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	at := time.Unix(1700000000, 999)
	one, two := Sign("msg_1", at, nil, []Secret{a}), Sign("msg_1", at, nil, []Secret{b})
	if got, want := Sign("msg_1", at, nil, []Secret{a, {}, b}), one+" "+two; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Sign("msg_1", at, nil, []Secret{{}}); got != "" {
		t.Errorf("signed with no secret: %q", got)
	}
}

// TestIndependentLibrary signs here and verifies there, and the other way
// round.
func TestIndependentLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := Secret{secret.New(string(rapid.SliceOfN(rapid.Byte(), minSecretBytes, maxSecretBytes).Draw(t, "key")))}
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		id := rapid.StringMatching(`msg_[0-9a-f]{32}`).Draw(t, "id")
		now := time.Now()
		other, err := standardwebhooks.NewWebhook(key.Reveal())
		if err != nil {
			t.Fatal(err)
		}

		ours := http.Header{}
		ours.Set("webhook-id", id)
		ours.Set("webhook-timestamp", timestamp(now))
		ours.Set("webhook-signature", Sign(id, now, body, []Secret{NewSecret(), key}))
		if err := other.Verify(body, ours); err != nil {
			t.Fatalf("the library refuses ours: %v", err)
		}

		signature, err := other.Sign(id, now, body)
		if err != nil {
			t.Fatal(err)
		}
		theirs := ours.Clone()
		theirs.Set("webhook-signature", signature)
		if got, err := Verify(theirs, body, []Secret{NewSecret(), key}, now); err != nil || got != id {
			t.Fatalf("Verify of the library's: %q, %v", got, err)
		}
		if _, err := Verify(theirs, append(body, ' '), []Secret{key}, now); !errors.Is(err, ErrSignature) {
			t.Fatalf("another body: %v", err)
		}
	})
}

func TestVerify(t *testing.T) {
	secret, old := NewSecret(), NewSecret()
	now := time.Unix(1700000000, 0)
	const id = "msg_0123"
	body := []byte(`{"type":"resolution.completed"}`)
	signed := func(at time.Time) http.Header {
		return http.Header{
			"Webhook-Id":        {id},
			"Webhook-Timestamp": {timestamp(at)},
			"Webhook-Signature": {Sign(id, at, body, []Secret{secret})},
		}
	}
	with := func(name string, values ...string) http.Header {
		h := signed(now)
		h[name] = values
		return h
	}
	svix := func() http.Header {
		h := http.Header{}
		for name, values := range signed(now) {
			h["Svix"+strings.TrimPrefix(name, "Webhook")] = values
		}
		return h
	}
	both := with("Svix-Id", "msg_other")
	mixed := svix()
	mixed["Webhook-Id"] = []string{id}
	good := signed(now).Get(HeaderSignature)
	for _, c := range []struct {
		name   string
		header http.Header
		want   error
	}{
		{"as sent", signed(now), nil},
		{"older spelling", svix(), nil},
		{"both spellings: the standard one decides", both, nil},
		{"half of each", mixed, ErrSignature},
		{"5 minutes old", signed(now.Add(-5 * time.Minute)), nil},
		{"5 minutes ahead", signed(now.Add(5 * time.Minute)), nil},
		{"older", signed(now.Add(-5*time.Minute - time.Second)), ErrStale},
		{"further ahead", signed(now.Add(5*time.Minute + time.Second)), ErrStale},
		{"signed by the old secret", with(HeaderSignature, Sign(id, now, body, []Secret{old})), nil},
		{"among others", with(HeaderSignature, "v1a,AAAA v1,AAAA junk "+good+" v2,BBBB"), nil},
		{"not signed", http.Header{"Content-Type": {"application/json"}}, ErrUnsigned},
		{"no id", with(HeaderID), ErrSignature},
		{"empty id", with(HeaderID, ""), ErrSignature},
		{"another id", with(HeaderID, "msg_0124"), ErrSignature},
		{"two ids", with(HeaderID, id, id), ErrSignature},
		{"an id that holds the time", with(HeaderID, id+".1"), ErrSignature},
		{"no time", with(HeaderTimestamp), ErrSignature},
		{"another time", with(HeaderTimestamp, timestamp(now.Add(time.Second))), ErrSignature},
		{"time with a sign", with(HeaderTimestamp, "+1700000000"), ErrSignature},
		{"time with a zero", with(HeaderTimestamp, "01700000000"), ErrSignature},
		{"time with a fraction", with(HeaderTimestamp, "1700000000.0"), ErrSignature},
		{"time of no clock", with(HeaderTimestamp, "99999999999999999999"), ErrSignature},
		{"time of a far clock", with(HeaderTimestamp, "9223372036854775807"), ErrSignature},
		{"empty signature", with(HeaderSignature, ""), ErrSignature},
		{"no version", with(HeaderSignature, strings.TrimPrefix(good, "v1,")), ErrSignature},
		{"another version", with(HeaderSignature, "v1a"+strings.TrimPrefix(good, "v1")), ErrSignature},
		{"cut short", with(HeaderSignature, good[:len(good)-2]), ErrSignature},
		{"by a stranger", with(HeaderSignature, Sign(id, now, body, []Secret{NewSecret()})), ErrSignature},
	} {
		got, err := Verify(c.header, body, []Secret{secret, {}, old}, now)
		if !errors.Is(err, c.want) || (err == nil) != (got == id) {
			t.Errorf("%s: got %q, %v; want %v", c.name, got, err, c.want)
		}
	}
	if _, err := Verify(signed(now), body, nil, now); !errors.Is(err, ErrSignature) {
		t.Errorf("without secrets: %v", err)
	}
}
