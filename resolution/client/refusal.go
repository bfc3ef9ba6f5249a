package client

import (
	"net/http"
	"strings"
	"time"
)

// err reads the refusal in an answer; nil when there is none. Services refuse
// with an object, a text, a list of details, a page of HTML or nothing at all,
// so the status says what it is about, and the body only more.
func (a answer) err(body map[string]any) error {
	e := &Error{Operation: a.operation, Status: a.status, Code: code(body), RequestID: a.requestID(), Sent: true, Pace: pace(a.header, body, time.Now())}
	switch {
	case a.status >= 200 && a.status < 300:
		return a.unsuccessful(e, body)
	case a.status >= 300 && a.status < 400:
		e.Class, e.Detail = Denied, "the service redirects, which is not followed; name the address it is at"
	case a.status == http.StatusPaymentRequired, a.saysNoCredits(e.Code, body):
		e.Class = NoCredits
	case a.status == http.StatusTooManyRequests:
		e.Class = Limited
	case a.status == http.StatusForbidden && e.Pace.RetryAfter > 0:
		e.Class = Limited
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden, a.status == http.StatusProxyAuthRequired:
		e.Class = Denied
	case a.status == http.StatusNotFound, a.status == http.StatusMethodNotAllowed:
		e.Class, e.Detail = Denied, "the service has no such operation; is its address right?"
	case a.status == http.StatusGone:
		e.Class, e.Detail = Denied, "the service no longer has this operation"
	case a.status == http.StatusRequestTimeout, a.status == http.StatusConflict, a.status == http.StatusTooEarly, a.status >= 500:
		e.Class = Unavailable
	default:
		e.Class = Invalid
	}
	return e
}

// unsuccessful reads a 2xx, which may be a refusal all the same.
func (a answer) unsuccessful(e *Error, body map[string]any) error {
	if body == nil {
		e.Class, e.Detail = Protocol, "the answer is no JSON object"
		return e
	}
	success, is := body["success"].(bool)
	if !is || success || isNotReady(body) {
		return nil
	}
	e.Class, e.Detail = Unavailable, "the service reports a failure"
	if a.saysNoCredits(e.Code, body) {
		e.Class, e.Detail = NoCredits, ""
	}
	return e
}

// isNotReady reports whether an answer without success says that it only
// comes later.
func isNotReady(body map[string]any) bool {
	switch status(body) {
	case "queued", "processing", "pending", "in_progress", "running", "not_ready":
		return true
	}
	return says(text(body["message"]), "not ready", "still processing", "in progress", "try again later", "retry later")
}

// saysNoCredits reports whether a refusal is for want of credits, by code or
// by text.
func (a answer) saysNoCredits(code string, body map[string]any) bool {
	switch a.status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusTooManyRequests, http.StatusOK:
	default:
		return false
	}
	words := []string{"insufficient credit", "insufficient_credit", "not enough credit", "out of credit", "no credits", "credits exhausted",
		"insufficient balance", "insufficient_balance", "insufficient funds", "insufficient_funds", "quota exceeded: credits"}
	return says(code, words...) || says(reason(body), words...)
}

// code is the service's word for an error, "" where it has none or no word.
func code(body map[string]any) string {
	e := object(body["error"])
	for _, v := range []any{e["code"], body["code"], body["error_code"], e["type"], body["error"], body["type"]} {
		if word := text(v); word != "" && isWord(word, 64) {
			return strings.ToLower(word)
		}
	}
	return ""
}

// reason gathers the texts by which a body explains itself. It is looked
// through, never shown: it may repeat the request.
func reason(body map[string]any) string {
	e := object(body["error"])
	var b strings.Builder
	for _, v := range []any{body["message"], body["error"], body["detail"], body["title"], e["message"], e["detail"], e["title"]} {
		b.WriteString(text(v))
		b.WriteByte(' ')
	}
	for _, v := range list(body["detail"]) {
		b.WriteString(text(v))
		b.WriteString(text(object(v)["msg"]))
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

// isWord reports whether s can be shown: a code or an id, not a sentence or
// something out of the request.
func isWord(s string, most int) bool {
	return len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	})
}
