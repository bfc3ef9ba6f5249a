//go:build unix

package s3

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// TestPatienceEndsOnce: a run ends so long after the first request that S3 refuses for ever as
// s3_give_up_after says, whatever it still has to close.
func TestPatienceEndsOnce(t *testing.T) {
	t.Parallel()
	const patience, margin = 6 * time.Second, 5 * time.Second // of a busy machine
	_, url := clitest.StartService(t, badservice.DefaultOptions())

	down := s3test.Fault{Kind: s3test.Refuse, Status: http.StatusServiceUnavailable, Code: "SlowDown", Text: "no"}
	silent := s3test.Fault{Kind: s3test.Delayed, Delay: 15 * time.Second}
	all := func(*http.Request) bool { return true }
	for _, c := range []struct {
		name  string
		after int64 // requests that are answered
		fault s3test.Fault
		of    func(*http.Request) bool
	}{
		{"at once", 0, down, all}, {"as the state begins", 8, down, all}, {"as calls are made", 39, down, all}, {"at the end", 90, down, all},
		{"silent", 8, silent, all}, {"silent as calls are made", 49, silent, all},
		{"only writes", 20, down, s3test.IsWrite}, {"only writes later", 49, down, s3test.IsWrite}, {"only writes at the end", 60, down, s3test.IsWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := clitest.NewS3Job(t)
			var passed atomic.Int64
			var refused atomic.Pointer[time.Time]
			store.Proxy.Do(func(r *http.Request) s3test.Fault {
				if passed.Add(1) <= c.after || !c.of(r) {
					return s3test.Fault{}
				}
				now := time.Now()
				refused.CompareAndSwap(nil, &now)
				return c.fault
			})
			j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(20), "--quiet", "--set", "s3_give_up_after="+patience.String())
			j.State, j.Store = []string{"--state", "s3://leads/state/"}, store.Proxy.URL
			p := j.Start("--out", "s3://leads/out/", "--set", "rows_per_part=5")
			code := p.Code()
			if refused.Load() == nil {
				t.Fatalf("all was answered: exit code %d\n%s", code, p.Said)
			}
			if took := time.Since(*refused.Load()); code != cli.ExitTryAgain || took > patience+margin {
				t.Errorf("exit code %d, %s after the first refusal:\n%s", code, took.Round(time.Millisecond), p.Said)
			}
		})
	}
}
