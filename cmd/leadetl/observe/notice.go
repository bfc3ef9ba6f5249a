// Package observe tells others how a run goes and ends.
package observe

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/internal/webhook"
	"github.com/leadetl/leadetl/pipeline/report"
)

const (
	// noticeWait bounds how long the end of a run waits for a hook.
	noticeWait = 5 * time.Second
	// maxCause bounds the cause in a notice, of which chats cut long ones.
	maxCause = 1000
	// leastOf is the least length of the part of an address that is from the environment.
	leastOf = 12
)

// Notice is the address that is told how a run ended.
type Notice struct {
	given secret.Text // by the setting
	file  string
	body  string
	hook  secret.Text // empty without one
}

// The forms of a notice.
const (
	asText    = "text"
	asSummary = "summary"
)

// Settings are those of a notice.
func (n *Notice) Settings() []cli.Setting {
	n.body = asText
	return []cli.Setting{
		{Name: "notify", To: hidden{&n.given}, Use: cli.Key, Text: "`address` of a webhook that is told how the run ended: of Slack, Mattermost or Google Chat; a secret, so write ${NAME} of an environment variable that holds it"},
		{Name: "notify-file", To: &n.file, Use: cli.Key, Text: "`file` with that address"},
		{Name: "notify-body", To: &n.body, Use: cli.Key, Text: "`what` is posted: text, as {\"text\": …}, or summary, the JSON of --summary-json"},
	}
}

// hidden is the value of a setting that is never shown.
type hidden struct{ to *secret.Text }

func (h hidden) Set(text string) error { *h.to = secret.New(text); return nil }
func (h hidden) Type() string          { return "string" }
func (h hidden) String() string {
	if h.to == nil || h.to.Empty() {
		return ""
	}
	return h.to.String()
}

// IsGiven reports whether anybody is told.
func (n *Notice) IsGiven() bool { return !n.given.Empty() || n.file != "" }

// Check checks the settings, and reads the address.
func (n *Notice) Check(ctx context.Context) error {
	forms := []string{asText, asSummary}
	switch {
	case n.body != asText && n.body != asSummary:
		return fmt.Errorf("notify_body is %q%s", n.body, suggest.OneOf(n.body, forms))
	case n.body != asText && !n.IsGiven():
		return errors.New("notify_body needs notify")
	case !n.given.Empty() && n.file != "":
		return errors.New("notify and notify_file name the same; leave one of them out")
	case !n.given.Empty() && !fromEnvironment(n.given.Reveal()):
		return errors.New("notify is a secret; write ${NAME} of an environment variable that holds it, or name a file that does with notify_file")
	}
	address, from := n.given, "notify"
	if n.file != "" {
		var err error
		if address, err = secret.Read(ctx, "", n.file); err != nil {
			return fmt.Errorf("notify_file: %w", err)
		}
		from = "notify_file"
	}
	if address.Empty() {
		return nil
	}
	if u, err := url.Parse(address.Reveal()); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%s: this is not the address of a webhook, which begins with https://", from) // without the secret
	}
	n.hook = address
	return nil
}

// fromEnvironment reports whether an address, or a part of it that is long enough to be secret, is the
// value of an environment variable.
func fromEnvironment(address string) bool {
	for _, pair := range os.Environ() {
		if _, value, _ := strings.Cut(pair, "="); len(value) >= leastOf && strings.Contains(address, value) {
			return true
		}
	}
	return false
}

// Tell posts how a run ended: err, and what its summary says. A hook that does not answer is a warning.
func (n *Notice) Tell(ctx context.Context, made *report.Report, summary any, err error, log *slog.Logger) {
	if n.hook.Empty() {
		_ = n.Check(ctx) // a run with wrong settings ends before it does that, and its error says what is wrong
	}
	if n.hook.Empty() {
		return
	}
	var body any = map[string]string{"text": noticeText(made, err)}
	if n.body == asSummary {
		body = summary
	}
	data, failed := json.Marshal(body)
	if failed == nil {
		failed = n.post(ctx, data)
	}
	if failed != nil {
		log.Warn("the end of the run could not be told to notify", "reason", hookProblem(failed))
	}
}

// post posts also after an interruption.
func (n *Notice) post(ctx context.Context, data []byte) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), noticeWait)
	defer done()
	client := webhook.New(n.hook, secret.Text{})
	defer client.Close()
	return client.Post(ctx, data)
}

// hookProblem says why a hook was not reached, without its host, which is part of the secret.
func hookProblem(err error) string {
	var lookup *net.DNSError
	var untrusted *tls.CertificateVerificationError
	status := webhook.StatusError(0)
	switch {
	case errors.As(err, &status), errors.Is(err, webhook.ErrLate):
		return err.Error()
	case errors.As(err, &lookup):
		return "its host is not found"
	case errors.As(err, &untrusted):
		return "its certificate is not trusted"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	}
	return "it cannot be reached"
}

// noticeText says how a run ended. Chats take < and @ in names of files as links and calls of people.
func noticeText(made *report.Report, err error) string {
	code := cli.ExitCode(err)
	text := "leadetl " + cmp.Or(made.Operation, "run")
	if made.Output != "" {
		text += " to " + made.Output
	}
	if code == cli.ExitDone {
		text += ": done"
	} else {
		text += fmt.Sprintf(": exit code %d", code)
	}
	var counts []string
	if t := made.Totals; t.Rows > 0 {
		counts = append(counts, figures.Plural(t.Rows, "row"), fmt.Sprintf("%s matched (%s)", figures.Grouped(t.Matched), figures.Share(t.Matched, t.Rows)))
		for _, of := range []struct {
			n    int64
			what string
		}{{t.Failed, "failed"}, {t.Rejected + t.Malformed, "rejected or malformed"}, {t.Skipped, "skipped"}} {
			if of.n > 0 {
				counts = append(counts, figures.Grouped(of.n)+" "+of.what)
			}
		}
	}
	if s := made.Asked(); s != nil {
		counts = append(counts, figures.Plural(s.Calls.Credits, "credit"))
	}
	if counts != nil {
		text += "\n" + strings.Join(counts, ", ")
	}
	if err != nil {
		cause := []rune(cli.Reason(err))
		if len(cause) > maxCause {
			cause = append(cause[:maxCause], '…')
		}
		text += fmt.Sprintf("\n%s\nNext: %s", string(cause), cli.Next(code))
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = invisible.Escape(line)
	}
	return strings.NewReplacer("<", "‹", ">", "›", "@", "@\u2060").Replace(strings.Join(lines, "\n"))
}
