package client

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// err returns the refusal or the failure in an answer, nil without one.
// Services refuse with an object, a text, a list of details, a page of HTML or an
// empty body, so the status decides and the body only adds detail.
func (in envelope) err() error {
	a, body := in.answer, in.body
	switch {
	case in.isOver():
		return in.over()
	case a.isOK() && isAnswer(body):
		return nil
	}
	e := &resolution.CallError{Operation: a.operation, Status: a.status, Code: code(body), RequestID: in.about.RequestID, Sent: true, Pace: in.about.Pace, Body: a.body}
	switch {
	case a.isOK():
		return in.unsuccessful(e)
	case a.status >= 300 && a.status < 400:
		e.Class, e.Detail = resolution.Denied, "the service redirects, and redirects are not followed; use the address it redirects to"
	case a.status == http.StatusPaymentRequired, in.saysNoCredits(e.Code):
		e.Class = resolution.NoCredits
	case a.status == http.StatusTooManyRequests:
		e.Class = resolution.Limited
	case a.status == http.StatusForbidden && e.Pace.RetryAfter > 0:
		e.Class = resolution.Limited
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden, a.status == http.StatusProxyAuthRequired:
		e.Class, e.General = resolution.Denied, a.status == http.StatusProxyAuthRequired
	case a.status == http.StatusNotFound && len(body) == 0 && strings.Contains(a.header.Get("Content-Type"), "json"):
		e.Class, e.Detail = resolution.Protocol, "the answer is not a JSON object" // perhaps a miss, damaged on its way
	case a.status == http.StatusNotFound:
		e.Class, e.Detail = resolution.Denied, "the service has no such operation; is the address right? If 404 is its word for no match, say plain_404 miss"
		e.General = e.Code == "not_found" // of an unknown path of our own
	case a.status == http.StatusNotImplemented && in.isForeign():
		e.Class, e.Detail = resolution.Denied, "the server takes no such calls, and does not look like a Lead Resolution Service; is the address right?"
	case a.status == http.StatusMethodNotAllowed:
		e.Class, e.Detail = resolution.Denied, "the service has no such operation; is the address right?"
	case a.status == http.StatusGone:
		e.Class, e.Detail, e.General = resolution.Denied, settings[retired], e.Code == retired
	case a.status == http.StatusUnsupportedMediaType:
		e.Class, e.Detail = resolution.Denied, "the service does not accept JSON there; is the address right?"
	case a.status == http.StatusBadRequest && a.saysTLS():
		e.Class, e.Detail, e.General = resolution.Denied, "the service speaks TLS; write its address with https://", true
	case settings[e.Code] != "":
		e.Class, e.Detail, e.General = resolution.Denied, settings[e.Code], true
	case a.status == http.StatusRequestTimeout, a.status == http.StatusConflict, a.status == http.StatusTooEarly, a.status >= 500:
		e.Class, e.Unbilled = resolution.Unavailable, in.isUnbilled(e.Code)
	default:
		e.Class = resolution.Invalid
	}
	return e
}

// promptly is how long after a request a service or a proxy says that it does not
// process it. Routers say the same when an application that continues working does not
// answer them: after 30 s and more.
const promptly = time.Second

// isUnbilled reports whether a 503 or 408 surely comes from before the request was
// processed: it came at once, or says when to call again, or has a code of its own.
func (in envelope) isUnbilled(code string) bool {
	a := in.answer
	if a.status != http.StatusServiceUnavailable && a.status != http.StatusRequestTimeout {
		return false
	}
	ownCode := code != "" && code != strconv.Itoa(a.status) && !says(code, "timeout", "timed_out", "timed-out")
	return a.waited <= promptly || a.header.Get("Retry-After") != "" || ownCode
}

// retired is the code of an operation that is no more.
const retired = "operation_retired"

// settings are the codes of refusals that every other call would get too.
var settings = map[string]string{
	"callback_url_not_allowed": "the service does not post to this callback address; set another with --callback-url",
	"unsupported_version":      "the service does not speak this version of the interface",
	retired:                    "the service no longer has this operation",
}

// isAnswer reports whether the body of a 2xx is an answer. Some services send
// refusals with 2xx.
func isAnswer(body jsontree.Value) bool {
	success, is := jsontree.Truth(body.Get("success"))
	return len(body) > 0 && (!is || success || isNotReady(body))
}

// unsuccessful reads the refusal in a 2xx.
func (in envelope) unsuccessful(e *resolution.CallError) error {
	switch {
	case len(in.body) == 0 && in.answer.fault != nil:
		e.Class, e.Detail = resolution.Protocol, in.answer.fault.Error()
	case len(in.body) == 0:
		e.Class, e.Detail = resolution.Protocol, "the answer is not a JSON object"
	case in.saysNoCredits(e.Code):
		e.Class = resolution.NoCredits
	default:
		e.Class, e.Detail = resolution.Unavailable, "the service reports a failure"
	}
	return e
}

// saysTLS reports whether a server says in plain text that it speaks TLS. The
// texts are those of Go's net/http, nginx and Apache httpd.
func (a response) saysTLS() bool {
	return says(string(a.body[:min(len(a.body), 4096)]), "an http request to an https server", "plain http request was sent to https port", "speaking plain http to an ssl-enabled server port")
}

// isNotReady reports whether an answer without success says that it only
// comes later.
func isNotReady(body jsontree.Value) bool {
	switch status(body) {
	case "queued", "processing", "pending", "in_progress", "running", "not_ready":
		return true
	}
	return says(jsontree.Text(body.Get("message")), "not ready", "still processing", "in progress", "try again later", "retry later")
}

// isTooEarly reports whether a 404 says that the answer will come later: in
// words, or by when to ask again.
func (in envelope) isTooEarly() bool {
	a := in.answer
	if a.status != http.StatusNotFound {
		return false
	}
	if in.about.Pace.RetryAfter > 0 || isNotReady(in.body) || isNotReady(jsontree.Object(in.body.Get("data"))) {
		return true
	}
	words := []string{"not ready", "not_ready", "not finished", "not yet", "is pending", "is queued", "processing", "in progress", "in_progress", "try again later", "retry later"}
	switch c := code(in.body); {
	case c == "pending", c == "queued", c == "running", says(c, words...), says(reason(in.body), words...):
		return true
	}
	return len(in.body) == 0 && len(a.body) <= 4096 && says(string(a.body), words...)
}

// saysNoCredits reports whether a refusal says, by its code or its text, that the
// account is out of credits.
func (in envelope) saysNoCredits(code string) bool {
	switch in.answer.status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusTooManyRequests, http.StatusOK:
	default:
		return false
	}
	words := []string{"insufficient credit", "insufficient_credit", "not enough credit", "out of credit", "no credits", "credits exhausted",
		"insufficient balance", "insufficient_balance", "insufficient funds", "insufficient_funds", "quota exceeded: credits"}
	return says(code, words...) || says(reason(in.body), words...) || in.saysUsedUp(code)
}

// saysUsedUp reports whether a refusal says that what the account may use in a month,
// or by its plan, is used up. A limit of a shorter time is none of that: it asks for a
// short wait, or names the time or the rate.
func (in envelope) saysUsedUp(code string) bool {
	if in.answer.status != http.StatusTooManyRequests && in.answer.status != http.StatusForbidden {
		return false
	}
	told := strings.NewReplacer("_", " ", "-", " ").Replace(code + " " + reason(in.body))
	switch {
	case says(told, "per second", "per minute", "per hour", "per day", "/s", "/min", "/hour", "daily", "concurren"),
		!says(told, "exceed", "reached", "exhaust", "used up", "used all", "depleted", "ran out", "run out", "insufficient"):
		return false
	case says(told, "month", "billing period", "billing cycle"):
		return true
	case says(told, "rate limit"), in.about.Pace.RetryAfter > 0 && in.about.Pace.RetryAfter < time.Hour:
		return false
	}
	return says(told, "quota", "usage limit", "plan limit", "limit of your plan", "your plan's limit", "credit", "allowance")
}

// code is the service's error code, "" when it has none.
func code(body jsontree.Value) string {
	e := jsontree.Object(body.Get("error"))
	for _, v := range []jsontree.Value{e.Get("code"), body.Get("code"), body.Get("error_code"), e.Get("type"), body.Get("error"), body.Get("type")} {
		if word := jsontree.Text(v); word != "" && exchange.IsWord(word, 64) {
			return strings.ToLower(word)
		}
	}
	return ""
}

// reason collects the messages in a body. They are searched but never shown,
// because they may repeat the request.
func reason(body jsontree.Value) string {
	e := jsontree.Object(body.Get("error"))
	var b strings.Builder
	for _, v := range []jsontree.Value{body.Get("message"), body.Get("error"), body.Get("detail"), body.Get("title"), e.Get("message"), e.Get("detail"), e.Get("title")} {
		b.WriteString(jsontree.Text(v))
		b.WriteByte(' ')
	}
	for v := range jsontree.List(body.Get("detail")).All() {
		b.WriteString(jsontree.Text(v))
		b.WriteString(jsontree.Text(jsontree.Object(v).Get("msg")))
		b.WriteByte(' ')
	}
	return b.String()
}

func says(s string, words ...string) bool {
	s = strings.ToLower(s)
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
