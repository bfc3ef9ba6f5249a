package badservice

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// canonicalSearch is a keyword request as JSON, without the members that do not
// change the answer. It is "" when the request has no search.
func canonicalSearch(sent map[string]any) string {
	asked := maps.Clone(sent)
	delete(asked, "callback_url")
	delete(asked, "metadata")
	if list, is := asked["keywords"].([]any); !is || len(list) == 0 {
		return ""
	}
	text, err := json.Marshal(asked) // members come in their names' order
	if err != nil {
		panic(err) // it came from JSON
	}
	return string(text)
}

// search is the answer to a keyword question.
type search struct {
	operation string
	total     int // leads on all pages
	leads     []any
	unit      int64 // credits of a lead
	page      int
	limit     int
	body      map[string]any // of this answer
}

// job is a search that was created.
type job struct {
	operation string
	search    *search
	polls     int // how many more polls find it unfinished
}

// searchOf finds a search's leads. Their number depends only on the search, not
// on the requested page.
func searchOf(q *question) *search {
	whole := maps.Clone(q.sent)
	for _, name := range []string{"page", "limit", "limit_of_hems", "deanonymize", "super_enrichment"} {
		delete(whole, name)
	}
	key := canonicalSearch(whole)
	s := &search{operation: q.name, total: int(binary.BigEndian.Uint16(hashOf("search", key))) % 250, unit: 1, page: atLeastOne(q.sent["page"], 1), limit: atLeastOne(q.sent["limit"], 100)}
	deanonymize, _ := q.sent["deanonymize"].(bool)
	enrich, _ := q.sent["super_enrichment"].(bool)
	if deanonymize {
		s.unit++
	}
	if enrich {
		s.unit++
	}
	keywords, _ := q.sent["keywords"].([]any)
	for i := (s.page - 1) * s.limit; i < min(s.total, s.page*s.limit) && q.name == "keyword_to_lead"; i++ {
		s.leads = append(s.leads, foundLead(key, i, keywords, deanonymize, enrich))
	}
	status := "processing"
	if q.name == "keyword_to_lead_count" {
		status = "queued"
	}
	s.body = map[string]any{"success": true, "message": "The resolution has started", "resolution": resolutionOf(q, status, time.Now()), "payload": q.sent}
	return s
}

// atLeastOne reads a JSON number as a count, with a default.
func atLeastOne(v any, without int) int {
	if n, is := v.(float64); is && n >= 1 {
		return int(n)
	}
	return without
}

// foundLead is the i-th lead of a search, the most recent first.
func foundLead(search string, i int, keywords []any, deanonymize, enrich bool) map[string]any {
	id := hex(hashOf("found", search, fmt.Sprint(i))[:16])
	all := leadOf("enrichment", "network.example/in/"+id)
	lead := map[string]any{
		"lead_id": "lead_" + id, "lead_type": "b2b", "matched_keywords": keywords[:1], "job_title": all["job_title"], "address": all["address"],
		"searched_at": timestamp(time.Unix(1_790_000_000-int64(i)*60, 0)), "hashed_emails": all["hashed_emails"],
	}
	if deanonymize {
		for _, name := range []string{"first_name", "last_name", "full_name", "email", "phone", "network_url"} {
			lead[name] = all[name]
		}
	}
	if enrich {
		lead["company"] = all["company"]
	}
	return lead
}

// credits is the cost of the search. Each delivered lead has a price; a count
// costs 1.
func (s *search) credits() int64 {
	if s.operation == "keyword_to_lead_count" {
		return 1
	}
	return int64(len(s.leads)) * s.unit
}

// poll answers a result call.
func (s *Service) poll(q *question) (*decision, *fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[q.key]
	if j == nil || j.operation != q.name {
		return nil, &fate{Refused, refuse(http.StatusNotFound, "resolution_not_found", "There is no such resolution.")}
	}
	body := map[string]any{"success": true, "message": "Resolution completed", "resolution": resolutionOf(q, "completed", time.Now()), "payload": q.sent}
	if j.polls > 0 {
		j.polls--
		body["message"] = "Resolution is still processing, retry later"
		body["resolution"] = resolutionOf(q, j.search.body["resolution"].(map[string]any)["status"].(string), time.Now())
		unfinished := newReply(http.StatusOK, body)
		unfinished.header.Set("Retry-After", "0.1")
		if s.options.Hidden {
			unfinished = s.notThereYet()
		}
		return nil, s.mangle(q, unfinished, Answered)
	}
	s.finish(q, j.search, body)
	return nil, s.mangle(q, newReply(http.StatusOK, body), Answered)
}

// notThereYet is a 404 of a result that is made. The caller holds the lock.
func (s *Service) notThereYet() *reply {
	r := refuse(http.StatusNotFound, "resolution_not_found", "There is no such resolution.")
	switch s.turn("hidden", 3) {
	case 0:
		r = refuse(http.StatusNotFound, "not_ready", "The resolution is still processing.")
	case 1:
		r.header.Set("Retry-After", "0.1")
	}
	return r
}

// finish adds the result of a search to the body that brings it.
func (s *Service) finish(q *question, found *search, body map[string]any) {
	body["credits"] = map[string]any{"spent": found.credits()}
	if q.name == "keyword_to_lead_count" {
		count := map[string]any{"hashed_email_count": 3 * found.total, "is_approximate": false}
		if isShare(hashOf("odd", q.key), s.options.Odd) {
			count = odd(count, q.key).(map[string]any)
		}
		count["count"] = found.total
		body["lead"] = count
	} else {
		pages := (found.total + found.limit - 1) / found.limit
		leads := found.leads
		if leads == nil {
			leads = []any{}
		}
		if isShare(hashOf("odd", q.key), s.options.Odd) {
			leads = odd(leads, q.key).([]any)
		}
		body["lead"] = map[string]any{
			"leads":      leads,
			"pagination": map[string]any{"page": found.page, "limit": found.limit, "total": found.total, "total_pages": pages, "has_more": found.page < pages},
		}
	}
}
