package service

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func TestKeys(t *testing.T) {
	f := newFixture(t)
	now := time.Now()
	expired := f.newKey(state.Key{Organization: f.organization.ID, Expires: now.Add(-time.Second)})
	lasting := f.newKey(state.Key{Organization: f.organization.ID, Expires: now.Add(time.Hour)})
	revoked := f.newKey(state.Key{Organization: f.organization.ID})
	keys, err := f.store.Keys(t.Context(), state.KeyChoice{Organization: f.organization.ID})
	f.must(err)
	f.must(f.store.RevokeKey(t.Context(), keys[0].Public, false, now))
	for _, c := range []struct {
		name, authorization string
		status              int
		code                string
	}{
		{"a key", "Bearer " + f.key, 200, ""},
		{"another of its organization", "Bearer " + lasting, 200, ""},
		{"the scheme in lower case", "bearer " + f.key, 200, ""},
		{"more space", "Bearer  " + f.key + " ", 200, ""},
		{"expired", "Bearer " + expired, 401, "expired_credentials"},
		{"revoked", "Bearer " + revoked, 401, "invalid_credentials"},
		{"unknown", "Bearer " + credential.NewKey(false).Reveal(), 401, "invalid_credentials"},
		{"malformed", "Bearer lrk_live_x", 401, "invalid_credentials"},
		{"a letter off", "Bearer " + f.key[:len(f.key)-1] + "~", 401, "invalid_credentials"},
		{"a token, without an issuer", "Bearer a.b.c", 401, "invalid_credentials"},
		{"two keys", "Bearer " + f.key + " " + f.key, 401, "invalid_credentials"},
		{"no key", "Bearer", 401, "missing_credentials"},
		{"no scheme", f.key, 401, "missing_credentials"},
	} {
		a := f.post(enrichment, askAda, "Authorization", c.authorization)
		if a.status != c.status || a.code() != c.code || (a.header.Get("WWW-Authenticate") != "") != (c.status == 401) {
			t.Errorf("%s: %d %s", c.name, a.status, a.raw)
		}
		for _, secret := range []string{f.key, revoked, expired} {
			if strings.Contains(string(a.raw), secret) {
				t.Errorf("%s: the answer repeats a key", c.name)
			}
		}
	}
}

// TestBadKeysAnswerAlike: whoever guesses learns nothing of how near it was.
func TestBadKeysAnswerAlike(t *testing.T) {
	f := newFixture(t)
	revoked := f.newKey(state.Key{Organization: f.organization.ID})
	keys, err := f.store.Keys(t.Context(), state.KeyChoice{Organization: f.organization.ID})
	f.must(err)
	f.must(f.store.RevokeKey(t.Context(), keys[0].Public, false, time.Now()))
	var first answer
	for i, key := range []string{revoked, credential.NewKey(false).Reveal(), "lrk_live_malformed", "x"} {
		a := f.post(enrichment, askAda, "Authorization", "Bearer "+key, "X-Request-Id", "same")
		for _, h := range []http.Header{a.header, first.header} {
			h.Del("Date")
		}
		if i == 0 {
			first = a
		} else if a.status != first.status || string(a.raw) != string(first.raw) || fmt.Sprint(a.header) != fmt.Sprint(first.header) {
			t.Errorf("%v %s\n%v %s", a.header, a.raw, first.header, first.raw)
		}
	}
}

// TestNewKeyAtOnce: a key is good from the moment it was made, without a
// worker's help.
func TestNewKeyAtOnce(t *testing.T) {
	f := newFixture(t)
	f.post(enrichment, askAda)
	_, f.key = f.newOrganization("Newcomer", 10)
	if a := f.post(enrichment, askAda); a.status != http.StatusOK || a.header.Get("X-Credits-Remaining") != "8" {
		t.Errorf("%d %s", a.status, a.raw)
	}
}

// TestFloodOfBadKeys: bad keys do not become reads of the database, and never
// hinder good ones.
func TestFloodOfBadKeys(t *testing.T) {
	f := newFixture(t, func(o *Options) {
		o.Limits.FailedAuth = limit.Rate{Events: 30, Per: time.Minute, Burst: 30}
		now := time.Now()
		o.Now = func() time.Time { return now }
	})
	f.post(enrichment, askAda)
	counts := map[int]int{}
	for range 50 {
		a := f.post(enrichment, askAda, "Authorization", "Bearer "+credential.NewKey(false).Reveal())
		counts[a.status]++
		if a.status == http.StatusTooManyRequests && (a.code() != "rate_limited" || a.header.Get("Retry-After") != "2") {
			t.Errorf("%v %s", a.header, a.raw)
		}
	}
	if counts[401] != 30 || counts[429] != 20 {
		t.Errorf("%v, want 30 of 401 and 20 of 429", counts)
	}
	if a := f.post(enrichment, askAda); a.status != http.StatusOK {
		t.Errorf("a good key from the same address: %d %s", a.status, a.raw)
	}
	// All 20 doubts of this moment are spent: a new key is not looked for.
	_, fresh := f.newOrganization("Too New", 10)
	if a := f.post(enrichment, askAda, "Authorization", "Bearer "+fresh); a.status == http.StatusOK {
		t.Error("the database was read again")
	}
	f.must(f.service.roster.Refresh(t.Context())) // as Serve does every 250 ms
	if a := f.post(enrichment, askAda, "Authorization", "Bearer "+fresh); a.status != http.StatusOK {
		t.Errorf("after a refresh: %d %s", a.status, a.raw)
	}
}

// issuer makes tokens and the file that vouches for them.
type issuer struct {
	key  ed25519.PrivateKey
	file string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{private, filepath.Join(t.TempDir(), "jwks.json")}
	set := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","alg":"EdDSA","use":"sig","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	if err := os.WriteFile(i.file, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *issuer) token(t *testing.T, organization string, expires time.Time) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": "https://issuer.example", "aud": "leads", "sub": "somebody", "jti": "1", "org_id": organization,
		"iat": expires.Add(-time.Hour).Unix(), "exp": expires.Unix(),
	})
	token.Header["kid"], token.Header["typ"] = "k", "at+jwt"
	signed, err := token.SignedString(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestTokens(t *testing.T) {
	issuer := newIssuer(t)
	var log bytes.Buffer
	f := newFixture(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		tokens, err := credential.OpenTokens(t.Context(), credential.TokenOptions{JWKSFile: issuer.file, Issuer: "https://issuer.example", Audience: "leads"})
		if err != nil {
			t.Fatal(err)
		}
		o.Tokens = tokens
	})
	soon, past := time.Now().Add(30*time.Minute), time.Now().Add(-10*time.Minute)
	for _, c := range []struct {
		name, token string
		status      int
		code        string
	}{
		{"a token", issuer.token(t, f.organization.Public, soon), 200, ""},
		{"an API key beside tokens", f.key, 200, ""},
		{"expired", issuer.token(t, f.organization.Public, past), 401, "expired_credentials"},
		{"of no organization", issuer.token(t, "org_0000000000000000", soon), 401, "invalid_credentials"},
		{"another issuer's", newIssuer(t).token(t, f.organization.Public, soon), 401, "invalid_credentials"},
		{"cut off", issuer.token(t, f.organization.Public, soon)[:100], 401, "invalid_credentials"},
	} {
		a := f.post(enrichment, askAda, "Authorization", "Bearer "+c.token)
		if a.status != c.status || a.code() != c.code {
			t.Errorf("%s: %d %s", c.name, a.status, a.raw)
		}
	}
	// Why is for the operator alone.
	metrics := string(f.do(http.MethodGet, f.internal+"/metrics", "").raw)
	for _, reason := range []string{"expired", "there is no such organization", "algorithm not allowed, or not signed by the key it names", "malformed"} {
		if !strings.Contains(log.String(), `msg="token refused" request=req_`) || !strings.Contains(log.String(), reason) ||
			!strings.Contains(metrics, `leadetl_failed_auth_total{reason="token: `+reason+`"} 1`) {
			t.Errorf("%q is not told:\n%s\n%s", reason, log.String(), metrics)
		}
	}
}

// TestRosterKeepsAccounts: what is known of an organization outlives a change
// of credentials.
func TestRosterKeepsAccounts(t *testing.T) {
	f := newFixture(t)
	f.must(f.service.roster.Refresh(t.Context()))
	before := f.service.roster.ByID(f.organization.ID)
	key := f.newKey(state.Key{Organization: f.organization.ID})
	var refreshing sync.WaitGroup
	for range 4 {
		refreshing.Go(func() {
			if err := f.service.roster.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	refreshing.Wait()
	if caller, found := f.service.roster.ByKey(f.options.Pepper.Hash(key)); !found || caller.Account != before || f.service.roster.ByID(f.organization.ID) != before {
		t.Errorf("%t, %p and %p, want %p", found, caller.Account, f.service.roster.ByID(f.organization.ID), before)
	}
}
