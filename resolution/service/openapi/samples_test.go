package openapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// TestSamplesVerify runs the guide's programs that verify a callback on
// callbacks that another library signed.
func TestSamplesVerify(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	signer, err := webhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	const id, body = "msg_019a9f3c91d07b6e8f2a4c6e8091b3d5", `{"type":"resolution.completed","name":"Zoë"}`
	now := time.Now()
	sign := func(at time.Time) string {
		signature, err := signer.Sign(id, at, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	const other = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	cases := []struct {
		name, timestamp, signature, body string
		good                             bool
	}{
		{"signed", stamp(now), sign(now), body, true},
		{"signed with two secrets", stamp(now), other + " " + sign(now), body, true},
		{"another body", stamp(now), sign(now), body + " ", false},
		{"another secret", stamp(now), other, body, false},
		{"another version", stamp(now), strings.Replace(sign(now), "v1,", "v2,", 1), body, false},
		{"no signature", stamp(now), "", body, false},
		{"too old", stamp(now.Add(-time.Hour)), sign(now.Add(-time.Hour)), body, false},
		{"from the future", stamp(now.Add(time.Hour)), sign(now.Add(time.Hour)), body, false},
		{"another moment", stamp(now.Add(time.Second)), sign(now), body, false},
		{"no moment", "soon", sign(now), body, false},
	}
	for _, language := range []struct {
		fence, program, file, call string
	}{
		{"python", "python3", "sample.py", `
import sys
verify(sys.argv[1], {"webhook-id": sys.argv[2], "webhook-timestamp": sys.argv[3], "webhook-signature": sys.argv[4]}, sys.argv[5].encode())
`},
		{"js", "node", "sample.mjs", `
const [secret, id, timestamp, signature, body] = process.argv.slice(2);
verify(secret, { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature }, Buffer.from(body));
`},
	} {
		t.Run(language.fence, func(t *testing.T) {
			program, err := exec.LookPath(language.program)
			if err != nil {
				t.Skipf("no %s on PATH", language.program)
			}
			_, sample, found := strings.Cut(guide(), "```"+language.fence+"\n")
			sample, _, closed := strings.Cut(sample, "```")
			if !found || !closed {
				t.Fatal("the guide has no sample")
			}
			file := filepath.Join(t.TempDir(), language.file)
			if err := os.WriteFile(file, []byte(sample+language.call), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				said, err := exec.CommandContext(t.Context(), program, file, secret, id, c.timestamp, c.signature, c.body).CombinedOutput()
				if (err == nil) != c.good {
					t.Errorf("%s: taken is %t, want %t\n%s", c.name, err == nil, c.good, said)
				}
			}
		})
	}
}

func stamp(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
