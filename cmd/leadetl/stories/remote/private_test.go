//go:build unix

package remote

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestRemotePrivate runs a job under all faults and says everything that it
// can be made to say, on its way and of its end. None of it holds what was
// asked, what was answered, or a credential.
func TestRemotePrivate(t *testing.T) {
	t.Parallel()
	l := clitest.ProfileList(300)
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			o := badservice.DefaultOptions()
			o.Faults, o.Refused, o.Seed = badservice.Storm(), 0.05, 7
			s, url := clitest.StartService(t, o)
			metrics := clitest.FreeAddress(t)
			j := clitest.NewRemoteJob(t, "enrichment", url, l.CSV, "--set", "network_hosts=network.example", "--concurrency", "8", "--log-level", "debug", "--log-format", format,
				"--set", "metrics_listen="+metrics, "--callback-listen", clitest.FreeAddress(t), "--set", "rows_per_part=100")
			said := map[string]string{}

			s.Deny(100, -1)
			p := j.Run(cli.ExitUsage)
			said["output of a run that is denied"], said["log of a run that is denied"] = p.Printed.String(), p.Said.String()
			s.Deny(0, 0)

			p = j.Start("--idempotent")
			for look := time.Tick(10 * time.Millisecond); !p.Ended(); <-look {
				response, err := http.Get("http://" + metrics + "/metrics")
				if err == nil {
					text, _ := io.ReadAll(response.Body)
					response.Body.Close()
					if len(text) > 0 {
						said["metrics"] = string(text)
					}
				}
			}
			if code := p.Code(); code != cli.ExitRejects { // some keys are refused
				t.Fatalf("exit code %d:\n%s", code, clitest.Tail(p.Said.String()))
			}
			said["output"], said["log"] = p.Printed.String(), p.Said.String()
			for _, name := range []string{"_report.json", "_report.html", "_manifest.json"} {
				text, err := os.ReadFile(j.Path("out/" + name))
				if err != nil {
					t.Error(err)
				}
				said[name] = string(text)
			}
			for _, command := range []string{"list", "list --unknown", "list --json", "stat"} {
				said["answers "+command] = clitest.Run(t, append(append([]string{"answers"}, strings.Fields(command)...), "--state", j.Path("state"))...)
			}
			for what, text := range said {
				if text == "" && what != "output of a run that is denied" {
					t.Errorf("%s: nothing was said", what)
				}
				requirePrivate(t, what, text, l)
			}
			if s.Delivered() == 0 {
				t.Error("no answer came later")
			}
		})
	}
}

// randomIDs are the random identifiers of calls and answers, UUIDs among them.
var randomIDs = regexp.MustCompile(`[0-9a-f-]{16,}`)

// requirePrivate looks for what must not be said.
func requirePrivate(t *testing.T, what, text string, l *clitest.List) {
	t.Helper()
	text = strings.ToLower(text)
	unheard := []string{
		"canary", "ångström", "%c3%85", // the identifiers, and the API key
		strings.ToLower(strings.TrimPrefix(clitest.RemoteSecret, "whsec_")), "bearer",
		"mail.example", "202555", "edsger", "niklaus", "ole-johan", "specimen", "beispiel", "o'model", "bakery", "bakeries", "flour", "example street", "94105", // the answers
		"lead_not_found", "503 service temporarily", "see above", // the bodies
	}
	for _, key := range l.Keys {
		m, s1, s256 := md5.Sum([]byte(key)), sha1.Sum([]byte(key)), sha256.Sum256([]byte(key))
		unheard = append(unheard, hex.EncodeToString(m[:]), hex.EncodeToString(s1[:]), hex.EncodeToString(s256[:]), strings.ToLower(base64.StdEncoding.EncodeToString(s256[:])))
	}
	withoutIDs := randomIDs.ReplaceAllString(text, "")
	for _, word := range unheard {
		in := text
		if strings.Trim(word, "0123456789") == "" { // an identifier may have any digits
			in = withoutIDs
		}
		if at := strings.Index(in, word); at >= 0 {
			t.Errorf("%s holds %q: %s", what, word, around(in, at))
		}
	}
}

// around is the neighbourhood of a place in a text.
func around(text string, at int) string {
	return fmt.Sprintf("%q", text[max(0, at-80):min(len(text), at+80)])
}
