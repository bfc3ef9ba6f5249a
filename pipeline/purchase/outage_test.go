package purchase

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

// TestOutage has a service that is down: the log says once why, and so does
// the end of the run, or the log that it is back.
func TestOutage(t *testing.T) {
	const down = `level=WARN msg="the service is down: `
	for _, c := range []struct {
		name    string
		failure resolution.CallError
		fails   int // calls, then it answers
		giveUp  time.Duration
		through string
		logged  []string
		says    string // "" when it is back
	}{
		{
			"no listener", resolution.CallError{Class: resolution.Unavailable, Detail: "connection refused"}, 1e6, 15 * time.Minute, "",
			[]string{down + `unavailable: connection refused; trying one call at a time until it is back, or for the 15m of give_up_after" service=` + laterService},
			"the service is out of reach: " + laterService + " gave no answer for too long, at last: unavailable: connection refused",
		},
		{
			"no name, by a proxy", resolution.CallError{Class: resolution.Unavailable, Detail: "the service's name cannot be resolved"}, 1e6, time.Hour, "the proxy of HTTPS_PROXY",
			[]string{down + `unavailable: the service's name cannot be resolved; trying one call at a time until it is back, or for the 1h of give_up_after" service=` + laterService + ` by="the proxy of HTTPS_PROXY"`},
			"the service is out of reach: " + laterService + " by the proxy of HTTPS_PROXY gave no answer for too long, at last: unavailable: the service's name cannot be resolved",
		},
		{
			"a page of its own", resolution.CallError{Class: resolution.Protocol, Status: 200, Detail: "the answer is no JSON object"}, 1e6, 90 * time.Second, "",
			[]string{down + `protocol: status 200: the answer is no JSON object; trying one call at a time until it is back, or for the 1m30s of give_up_after" service=` + laterService},
			"the service is out of reach: " + laterService + " did not answer successfully for too long, at last: protocol: status 200: the answer is no JSON object",
		},
		{
			"for a while", resolution.CallError{Class: resolution.Unavailable, Status: 503, Sent: true, Unbilled: true, RequestID: "req_1"}, 14, 0, "",
			[]string{
				down + `unavailable: status 503; trying one call at a time until it is back" service=` + laterService,
				`level=INFO msg="the service is back" service=` + laterService,
			},
			"",
		},
		{"a hiccup", resolution.CallError{Class: resolution.Unavailable, Detail: "connection refused"}, 9, 0, "", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				calls := 0
				service := answering(func(string) (int, string, error) {
					if calls++; calls > c.fails {
						return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`, nil
					}
					return 0, "", &c.failure
				})
				var logged strings.Builder
				log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
					if attr.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return attr
				}}))
				options := pace.DefaultOptions()
				options.GiveUp = c.giveUp
				b, _, err := Open(t.Context(), &Remote{
					Service: service, Read: client.Read, Name: laterService, Through: c.through, Answers: store, Pace: pace.New(options),
					Concurrency: 1, Keys: NewKeyWindow(DefaultKeyWindow), Budget: NoBudget, Counters: &stats.CallCounters{},
				}, resolution.NetworkToPhone, "night", log)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(b.Close)
				_, err = ask(t, b, "a key")
				if (c.says == "") != (err == nil) || err != nil && (!errors.Is(err, ErrUnreachable) || err.Error() != c.says) {
					t.Errorf("it ends with\n%v, want\n%s", err, c.says)
				}
				want := ""
				if len(c.logged) > 0 {
					want = strings.Join(c.logged, "\n") + "\n"
				}
				if logged.String() != want {
					t.Errorf("the log has\n%s, want\n%s", logged.String(), want)
				}
			})
		})
	}
}
