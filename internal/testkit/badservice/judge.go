package badservice

import (
	"crypto/sha256"
	"crypto/subtle"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// fate is how a call ends.
type fate struct {
	kind  Fate
	reply *reply // nil if none is sent
}

// promise is a used idempotency key and its answer, if it has one yet.
type promise struct {
	fingerprint [sha256.Size]byte
	reply       *reply // nil while the call is in progress
	made        time.Time
}

// sent is an answer that was made, and the key of its question.
type sent struct {
	key   string
	reply *reply
}

// judge decides how a call ends, and charges for it.
func (s *Service) judge(r *http.Request, q *question, refusal *reply) *fate {
	if f := s.before(r, q, refusal); f != nil {
		return f
	}
	if s.options.Latency > 0 {
		// Not canceled when the caller disconnects: like many services, this one
		// still charges the call.
		time.Sleep(s.options.Latency)
	}
	d, f := s.settle(q)
	if f != nil {
		return f
	}
	answered := d.render(q, s.options)
	if d.later {
		s.callbacks.post(s.options.Secret, q, d, s.finished(q, d))
	}
	return s.after(q, d, answered)
}

// finished is the body of a callback.
func (s *Service) finished(q *question, d *decision) map[string]any {
	if d.search == nil {
		return d.envelope(q, time.Now())
	}
	body := map[string]any{"success": true, "resolution": resolutionOf(q, "completed", time.Now()), "payload": q.sent}
	s.finish(q, d.search, body)
	return body
}

// before may end a call before it is processed; nil lets it pass.
func (s *Service) before(r *http.Request, q *question, refusal *reply) *fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isDenied(r):
		return &fate{Denied, refuse(http.StatusUnauthorized, "invalid_credentials", "The API key is not valid.")}
	case s.limit != nil && !s.limit.Allow(), s.chance(Limited, s.faults.Limited):
		return &fate{Limited, s.tooMany()}
	case refusal != nil:
		return &fate{Refused, refusal}
	case s.chance(Unavailable, s.faults.Unavailable):
		return &fate{Unavailable, unavailable()}
	case s.chance(ResetBefore, s.faults.ResetBefore):
		return &fate{kind: ResetBefore}
	}
	return s.remembered(q)
}

// isDenied checks a call's credentials. The caller holds the lock.
func (s *Service) isDenied(r *http.Request) bool {
	if s.denyFrom > 0 {
		s.denyFrom--
	} else if s.deny != 0 {
		s.deny--
		return true
	}
	shown := []byte(r.Header.Get("Authorization"))
	return s.options.APIKey != "" && subtle.ConstantTimeCompare(shown, []byte("Bearer "+s.options.APIKey)) == 0
}

// remembered checks a call's idempotency key. It returns nil for the first call
// with a key, and for a call without one. The caller holds the lock.
func (s *Service) remembered(q *question) *fate {
	if !s.options.HonourKeys || q.idempotencyKey == "" || q.kind == result {
		return nil
	}
	name := q.path + "\x00" + q.idempotencyKey
	p, window := s.kept[name], s.options.KeyWindow
	switch {
	case p == nil || window > 0 && time.Since(p.made) > window:
		s.kept[name] = &promise{fingerprint: q.fingerprint, made: time.Now()}
		return nil
	case p.fingerprint != q.fingerprint:
		return &fate{Reused, refuse(http.StatusUnprocessableEntity, "idempotency_key_reused", "The key was used for another request.")}
	case p.reply == nil:
		busy := refuse(http.StatusConflict, "idempotency_key_in_flight", "The first request is under way.")
		busy.header.Set("Retry-After", "1")
		return &fate{InFlight, busy}
	}
	again := p.reply.clone()
	again.header.Set("Idempotent-Replayed", "true")
	if !s.options.Unpriced {
		again.header.Set("X-Credits-Spent", "0")
	}
	return s.mangle(q, again, Replayed)
}

// decision is the answer to a question.
type decision struct {
	credits  int64
	lead     map[string]any // nil means no match
	later    bool           // answer with status processing, and later by callback
	twice    bool           // send the callback twice
	delay    time.Duration  // until the callback
	spelling *rand.Rand     // nil means the spelling of the interface
	search   *search        // of a keyword call
}

// Lead is what the service knows about a key; nil without a match.
func (s *Service) Lead(operation, key string) map[string]any {
	if !isShare(hashOf("matched", operation, key), s.options.Matched) {
		return nil
	}
	return leadOf(operation, key)
}

// settle makes the answer to a question and charges for it.
func (s *Service) settle(q *question) (*decision, *fate) {
	d := &decision{}
	most := q.price
	switch q.kind {
	case single:
		if isShare(hashOf("refused", q.key), s.options.Refused) {
			return nil, s.forget(q, &fate{Refused, refuse(http.StatusBadRequest, "validation_error", "The identifier "+q.key+" is not valid.")})
		}
		if d.lead = s.Lead(q.name, q.key); d.lead != nil {
			d.credits = q.price
			if d.lead["match_level"] == "company" {
				d.credits = 1
			}
			if isShare(hashOf("odd", q.key), s.options.Odd) {
				d.lead = odd(d.lead, q.name, q.key).(map[string]any)
			}
		}
	case creation:
		d.search = searchOf(q)
		d.credits = d.search.credits()
		most = max(d.credits, q.price)
	case result:
		return s.poll(q)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.charge(q, most, d.credits) {
		return nil, s.drop(q, &fate{NoCredits, s.noCredits()})
	}
	if q.kind == creation {
		if s.jobs[q.id()] == nil {
			s.jobs[q.id()] = &job{operation: q.name, search: d.search, polls: s.options.Polls}
		}
	}
	if q.name == "keyword_to_lead_count" && q.callback != "" && s.options.Echoed {
		told := *d.search // a look at the job says more
		told.body = q.sent
		d.later, d.search = true, &told
	}
	if q.kind == single {
		d.later = q.callback != "" && q.name != "ip_to_company" && s.chance(Later, s.faults.Later)
		d.twice = d.later && s.chance("twice", s.faults.Twice)
		d.delay = time.Duration(s.dice.IntN(200)) * time.Millisecond
		if s.chance("spelled", s.faults.Spelled) {
			d.spelling = rand.New(rand.NewPCG(s.dice.Uint64(), 0))
		}
	}
	return d, nil
}

// after stores an answer under its idempotency key and decides how it is sent.
func (s *Service) after(q *question, d *decision, answered *reply) *fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.kept[q.path+"\x00"+q.idempotencyKey]; p != nil && q.kind != result {
		p.reply = answered
	}
	kind := Answered
	if d.later {
		kind = Later
	}
	return s.mangle(q, answered, kind)
}

// mangle sends an answer, perhaps with a fault. The caller holds the lock.
func (s *Service) mangle(q *question, answered *reply, kind Fate) *fate {
	other := s.last[q.path]
	s.last[q.path] = &sent{q.key, answered}
	switch {
	case other != nil && other.key != q.key && other.reply.status == http.StatusOK && s.chance(Mixed, s.faults.Mixed):
		return &fate{Mixed, other.reply}
	case answered.status == http.StatusOK && s.chance(Doubled, s.faults.Doubled):
		return &fate{[]Fate{Doubled, DoubledLate}[s.turn("doubled", 2)], answered}
	case s.chance(Failed, s.faults.Failed):
		return &fate{Failed, refuse(http.StatusInternalServerError, "internal_error", "Something went wrong.")}
	case s.chance(ResetAfter, s.faults.ResetAfter):
		return &fate{kind: ResetAfter}
	case s.chance(Truncated, s.faults.Truncated):
		cut := answered.clone()
		cut.body = cut.body[:len(cut.body)/2]
		// A truncated 404 with the right length would look like a web server's
		// 404.
		cut.breaksOff = cut.status != http.StatusOK || s.turn("truncated", 2) == 1
		return &fate{Truncated, cut}
	case answered.status == http.StatusOK && s.chance(WrongTypes, s.faults.WrongTypes):
		wrong := answered.clone()
		wrong.body = mistyped[s.turn("mistyped", len(mistyped))]
		return &fate{WrongTypes, wrong}
	case s.chance(Slow, s.faults.Slow):
		slow := answered.clone()
		slow.dribbles = true
		return &fate{Slow, slow}
	}
	return &fate{kind, answered}
}

// forget makes an idempotency key usable again, because only answers are kept.
func (s *Service) forget(q *question, f *fate) *fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop(q, f)
}

// drop is forget for a caller that holds the lock.
func (s *Service) drop(q *question, f *fate) *fate {
	delete(s.kept, q.path+"\x00"+q.idempotencyKey)
	return f
}

// tooMany is a 429, with the wait in one of many forms or without it. The
// caller holds the lock.
func (s *Service) tooMany() *reply {
	r := refuse(http.StatusTooManyRequests, "rate_limited", "Too many requests.")
	now := time.Now()
	switch s.turn("429", 11) {
	case 0:
		r.header.Set("Retry-After", "1")
	case 1:
		r.header.Set("Retry-After", now.Add(time.Second).UTC().Format(http.TimeFormat))
	case 2:
		r.header.Set("Retry-After", "0.2")
	case 3:
		r.header.Set("RateLimit", `"single";r=0;t=1`)
	case 4:
		r.header.Set("X-RateLimit-Remaining", "0")
		r.header.Set("X-RateLimit-Reset", "1")
	case 5:
		r.header.Set("X-RateLimit-Remaining", "0")
		r.header.Set("X-RateLimit-Reset", strconv.FormatInt(now.Unix()+1, 10))
	case 6:
		r.header.Set("X-RateLimit-Remaining", "0")
		r.header.Set("X-RateLimit-Reset", strconv.FormatInt(now.UnixMilli()+200, 10))
	case 7:
		r.body = []byte(`{"error":{"code":"rate_limited","retry_after":0.2}}`)
	case 8:
		r.header.Set("Retry-After", strconv.FormatInt(now.Unix()+1, 10))
	case 9:
		r.header.Set("Retry-After", strconv.FormatInt(now.UnixMilli()+200, 10))
	case 10: // no Retry-After
	}
	return r
}

// noCredits is the reply when the balance is spent. The caller holds the lock.
func (s *Service) noCredits() *reply {
	status := http.StatusPaymentRequired
	if n := len(s.options.NoCredits); n > 0 {
		status = s.options.NoCredits[s.turn("no credits", n)]
	}
	if status == http.StatusPaymentRequired {
		r := refuse(status, "", "Payment required.")
		r.header.Set("Content-Type", "text/plain")
		r.body = []byte("Payment Required\n")
		return r
	}
	return refuse(status, "insufficient_credits", "Not enough credits.")
}
