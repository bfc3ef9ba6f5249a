package badservice

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// timestamp formats a time as the interface does.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// envelope is the finished answer to a single-record question, in the spelling
// of the interface.
func (d *decision) envelope(q *question, at time.Time) map[string]any {
	e := map[string]any{"success": true, "message": "Resolution completed", "data": d.lead != nil, "lead": map[string]any{}, "payload": q.sent}
	if strings.HasSuffix(q.name, "_to_hem") {
		e["lead"] = map[string]any{"hashed_emails": []any{}}
	}
	if d.lead != nil {
		e["lead"] = d.lead
	}
	if q.name != "ip_to_company" {
		e["resolution"] = resolutionOf(q, "completed", at)
	}
	return e
}

// resolutionOf is the member resolution.
func resolutionOf(q *question, status string, at time.Time) map[string]any {
	r := map[string]any{"id": q.id(), "status": status, "requested_at": timestamp(at)}
	if q.callback != "" {
		r["callback_url"] = q.callback
	}
	return r
}

// render makes the answer to send, and to repeat under its idempotency key.
func (d *decision) render(q *question, o Options) *reply {
	var r *reply
	if o.Unnamed {
		unnamed := *q
		unnamed.sent = map[string]any{}
		q = &unnamed
	}
	switch {
	case q.kind != single:
		r = newReply(http.StatusOK, d.search.body)
	case d.later:
		r = newReply(http.StatusOK, map[string]any{"success": true, "message": "Resolution is processing", "resolution": resolutionOf(q, "processing", time.Now()), "payload": q.sent})
	case d.spelling != nil:
		r = d.spelled(q)
	default:
		r = newReply(http.StatusOK, d.envelope(q, time.Now()))
	}
	switch {
	case o.Unpriced:
	case q.kind == creation: // its result call has the answer
		r.header.Set("X-Credits-Spent", "0")
	default:
		r.header.Set("X-Credits-Spent", strconv.FormatInt(d.credits, 10))
	}
	if q.kind == single && q.name != "ip_to_company" {
		r.header.Set("X-Resolution-Id", q.id())
	}
	r.header.Set("X-Request-Id", "req_"+hex(hashOf("request", q.id(), q.idempotencyKey)[:8]))
	return r
}

// spelled writes the answer in one of the other spellings that services use.
func (d *decision) spelled(q *question) *reply {
	e := d.envelope(q, time.Now())
	if d.lead == nil {
		return missed(e, d.spelling)
	}
	lead := map[string]any{}
	for name, v := range d.lead {
		lead[name] = v
	}
	d.respell(lead)
	delete(e, "lead")
	delete(e, "data")
	switch d.spelling.IntN(5) {
	case 0:
		e["lead"] = lead
	case 1:
		e["data"] = lead
	case 2:
		e["data"] = map[string]any{"lead": lead}
	case 3:
		e["result"] = lead
	case 4:
		e["found"], e["lead"] = true, lead
	}
	if resolution, has := e["resolution"].(map[string]any); has {
		switch d.spelling.IntN(4) {
		case 0:
			resolution["status"] = "COMPLETED"
		case 1:
			delete(e, "resolution")
			e["resolution_id"], e["status"] = resolution["id"], "Done"
		case 2: // the id is in a header alone
			delete(resolution, "id")
		}
	}
	e["new_in_a_later_version"] = []any{map[string]any{"score": 7}}
	r := newReply(http.StatusOK, e)
	switch d.spelling.IntN(6) {
	case 0:
		r.body = append([]byte("\ufeff"), r.body...)
	case 1:
		r.body = fmt.Appendf(nil, "[%s]", r.body)
	case 2:
		r.body = bytes.Replace(r.body, []byte(`"score":7`), []byte(`"score":NaN`), 1)
	case 3: // although the caller did not ask for it
		r.compress()
	}
	return r
}

// respell writes a lead's members in other spellings.
func (d *decision) respell(lead map[string]any) {
	if list, has := lead["hashed_emails"].([]any); has {
		way := d.spelling.IntN(4)
		var other []any
		for _, item := range list {
			item := item.(map[string]any)
			hash, kind := item["email"].(string), item["type"].(string)
			switch way {
			case 0:
				other = append(other, map[string]any{"email": strings.ToUpper(hash), "type": strings.ToUpper(kind)})
			case 1:
				dashed := strings.NewReplacer("sha", "SHA-", "md5", "MD5").Replace(kind)
				other = append(other, map[string]any{"email": hash, "type": dashed})
			case 2:
				other = append(other, map[string]any{"value": hash, "algorithm": kind})
			case 3: // only its length shows its type
				other = append(other, hash)
			}
		}
		lead["hashed_emails"] = other
	}
	if company, has := lead["company"].(map[string]any); has {
		other := map[string]any{}
		for name, v := range company {
			other[name] = v
		}
		switch year := company["year_founded"]; d.spelling.IntN(3) {
		case 0:
			other["year_founded"] = fmt.Sprint(year)
		case 1:
			other["year_founded"] = number(fmt.Sprintf("%d.0", year))
		}
		lead["company"] = other
	}
	if n, has := lead["confidence"].(float64); has {
		lead["confidence"] = fmt.Sprint(n)
	}
	if phone, has := lead["phone"].(string); has && d.spelling.IntN(2) == 0 {
		lead["phone"] = map[string]any{"number": phone}
	}
}

// number is a JSON number as it is written.
type number string

func (n number) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// missed writes a miss in one of the spellings that services use.
func missed(e map[string]any, spelling *rand.Rand) *reply {
	delete(e, "data")
	switch spelling.IntN(7) {
	case 0:
		return refuse(http.StatusNotFound, "lead_not_found", "No lead was found.")
	case 1:
		e["lead"] = nil
	case 2:
		delete(e, "lead")
		if e["resolution"] == nil {
			e["status"] = "no_match"
		}
	case 3:
		e["lead"] = map[string]any{}
	case 4:
		e["data"] = false
		delete(e, "lead")
	case 5:
		e["found"] = false
		delete(e, "lead")
	case 6:
		e["lead"] = map[string]any{"hashed_emails": []any{}}
	}
	return newReply(http.StatusOK, e)
}
