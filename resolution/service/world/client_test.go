package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// given is what is known of a thing that was asked for: a call, or a grant.
type given struct {
	body     []byte   // the answer, if there was one
	ids      []string // of its resolution; several of a loose call
	result   []byte   // of a search
	doubtful int      // requests of which nobody knows what became
	underWay int
	broke    bool      // it was refused for want of credits
	asked    time.Time // the earliest that the clock said when it was asked for
	// forgotten says that its idempotency key may be forgotten: it is not asked for again. stray is
	// how often it may have been given then beside what is known.
	forgotten bool
	stray     int
	searched  int // how often a search was tried
	// unfound is a search that is cancelled or has failed, and costs nothing; mayBe is one of
	// which nobody knows that.
	unfound, mayBe bool
}

// of returns what is known of a thing. The caller holds the lock.
func (h *history) of(name string) *given {
	if h.given[name] == nil {
		h.given[name] = &given{}
	}
	return h.given[name]
}

func (c *call) name() string { return fmt.Sprint("call ", c.number) }

func (g *grant) name() string { return fmt.Sprint("grant ", g.number) }

// client calls the service of one life.
type client struct {
	*history
	service *service.Service
	number  int
}

// maxTries is how often a client asks for one thing in a life.
const maxTries = 4

// work asks for all things in an order of the client.
func (c client) work(ctx context.Context) {
	c.world.Pause("client", c.lives, c.number)
	n := len(c.plan.calls)
	for i := range n {
		if c.number%2 == 1 {
			i = n - 1 - i
		}
		which := c.plan.calls[(i+c.number*5)%n]
		for try := 0; try < maxTries && ctx.Err() == nil && c.ask(ctx, which, try); try++ {
			c.rest(ctx, "again", which.number, try)
		}
		c.rest(ctx, "next", which.number)
	}
	for _, g := range c.plan.grants {
		for try := 0; try < maxTries && ctx.Err() == nil && c.grant(ctx, g, try); try++ {
			c.rest(ctx, "grant again", g.number, try)
		}
	}
}

// rest waits for a moment of its own.
func (c client) rest(ctx context.Context, of ...any) {
	of = append(of, "rest", c.lives, c.number)
	wait := time.Duration(1 + c.world.Draw(of...)%uint64(300*time.Millisecond))
	if c.world.Below(3, append(of, "at once")...) == 0 {
		wait /= 1000
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

// reply is an answer of the service; status 0 is none.
type reply struct {
	status int
	header http.Header
	body   []byte
	json   struct {
		Resolution struct{ ID, Status string }
		Error      struct{ Code string }
	}
}

// send sends a request in this process, and returns what the caller gets: nothing if the
// machine dies first, or the caller has left.
func (c client) send(ctx context.Context, handler http.Handler, path, body string, header map[string]string, of ...any) (r reply) {
	of = append(of, c.lives, c.number)
	ctx, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	if c.world.Chance(c.plan.hasty, append(of, "hasty")...) {
		defer time.AfterFunc(time.Duration(c.world.Below(3_000_000, append(of, "leaves")...)), leave).Stop()
	}
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	for name, value := range header {
		request.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	defer func() {
		if broken := recover(); broken != nil && broken != http.ErrAbortHandler {
			panic(broken)
		}
	}()
	_, refused := c.disk.Full()
	c.mu.Lock()
	sets := c.sets
	c.mu.Unlock()
	handler.ServeHTTP(recorder, request)
	c.mu.Lock()
	moved := sets != c.sets // and nobody knows what the clock said: the caller has left
	c.mu.Unlock()
	if c.world.Alive() != nil || ctx.Err() != nil || moved {
		return r
	}
	r.status, r.header, r.body = recorder.Code, recorder.Header(), recorder.Body.Bytes()
	if err := json.Unmarshal(r.body, &r.json); err != nil {
		c.wrongly("%s answers what is not JSON: %v", path, err)
	}
	if full, now := c.disk.Full(); r.status >= 500 && c.world.Faults() == 0 && !full && now == refused {
		c.wrongly("%s fails on a good machine: %s", path, r.body)
	}
	if r.status == http.StatusInternalServerError {
		c.wrongly("%s fails as if it could not pass: %s", path, r.body)
	}
	c.world.Note("%v: %d %s", of, r.status, r.json.Error.Code)
	return r
}

// The paths of the operations.
var paths = map[resolution.Operation]string{
	resolution.Enrichment: "/lead/enrichment", resolution.NetworkToPhone: "/lead/resolution/network_to_phone", resolution.KeywordToLead: "/resolve/keyword_to_lead",
}

// bodyOf is the body of a call.
func (h *history) bodyOf(which *call) string {
	port := 9000
	if !h.plan.oneReceiver {
		port += which.number
	}
	asked := fmt.Sprintf(`"network_url":"https://%s"`, profile(which.number))
	if which.operation == resolution.KeywordToLead {
		asked = fmt.Sprintf(`"keywords":["keyword-%d"],"limit":%d`, which.number, leadsAsked)
	}
	if which.callback {
		asked += fmt.Sprintf(`,"callback_url":"http://127.0.0.1:%d/%d"`, port, which.number)
	}
	return "{" + asked + "}"
}

// ask asks for a call, or does something else with it if it is answered. It reports whether to
// ask again.
func (c client) ask(ctx context.Context, which *call, try int) (again bool) {
	c.mu.Lock()
	g := c.of(which.name())
	answered := g.body != nil
	may := which.loose || c.mayAsk(g)
	c.mu.Unlock()
	if !may {
		return false
	}
	header := map[string]string{"Authorization": "Bearer " + which.key.text}
	if !which.loose {
		header["Idempotency-Key"] = which.name()
	}
	of := []any{"ask", which.number, try}
	if which.key.expired(c.clock.Now().Add(certain)) {
		return c.call(ctx, which, header, of)
	}
	switch c.world.Below(6, append(of, "what", c.lives, c.number)...) {
	case 0: // with a key that nobody has
		header["Authorization"] = "Bearer " + which.key.text + "x"
		c.refused(c.send(ctx, c.service.Public(), paths[which.operation], c.bodyOf(which), header, of...), http.StatusUnauthorized, "wrong credentials")
		return true
	case 1: // with the idempotency key of something else
		if answered && !which.loose {
			other := strings.Replace(c.bodyOf(which), "-", "-0", 1)
			c.refused(c.send(ctx, c.service.Public(), paths[which.operation], other, header, of...), http.StatusUnprocessableEntity, "an idempotency key of another body")
			return true
		}
	case 2:
		if answered && which.operation == resolution.KeywordToLead && c.world.Below(3, append(of, "cancels", c.lives, c.number)...) == 0 {
			return c.cancel(ctx, which, of)
		}
		fallthrough
	case 3:
		if answered {
			return c.askAgain(ctx, which, of)
		}
	}
	if which.loose && answered {
		return false
	}
	return c.call(ctx, which, header, of)
}

// refused checks that a request is refused as it has to be.
func (c client) refused(r reply, status int, what string) {
	if r.status != status && r.status != 0 && r.status < 500 && r.status != http.StatusConflict && r.status != http.StatusTooManyRequests {
		c.wrongly("%s: the answer is %d %s", what, r.status, r.json.Error.Code)
	}
}

// call asks for a call.
func (c client) call(ctx context.Context, which *call, header map[string]string, of []any) (again bool) {
	c.mu.Lock()
	g := c.of(which.name())
	g.underWay++
	c.mu.Unlock()
	r := c.send(ctx, c.service.Public(), paths[which.operation], c.bodyOf(which), header, of...)
	c.mu.Lock()
	defer c.mu.Unlock()
	g.underWay--
	now := c.clock.Now()
	limited := r.status == http.StatusTooManyRequests && r.json.Error.Code == "rate_limited"
	if r.status > 0 && which.operation != resolution.KeywordToLead && (!limited || bytes.Contains(r.body, []byte("bytes"))) {
		which.key.of.refused = time.Time{}
	}
	switch {
	case which.key.expired(now) && r.status == http.StatusUnauthorized:
		saw(anExpiredKey)
		return false
	case which.key.expired(now.Add(-certain)) && r.status == http.StatusOK:
		c.note(fmt.Sprintf("call %d is answered, and its key has expired", which.number))
	case limited:
		c.note(c.tooMany(which.key.of, r))
	case g.forgotten:
		g.doubtful++
		return false
	case r.status == http.StatusOK:
		c.note(g.take(which, r, c.cost(which)))
		g.broke = false
		return c.world.Below(2, append(of, "asks twice", c.lives, c.number)...) == 0
	case r.status == 0, r.status >= 500:
		g.doubtful++
	case r.json.Error.Code == "insufficient_credits":
		g.broke = true
		return false
	case r.json.Error.Code != "idempotency_key_in_flight" && r.json.Error.Code != "too_many_active_resolutions":
		c.note(fmt.Sprintf("call %d is refused: %s", which.number, r.body))
	}
	return true
}

// take notes the answer to a call, and returns what is wrong with it.
func (g *given) take(which *call, r reply, cost int64) string {
	spent := r.header.Get("X-Credits-Spent")
	replayed := r.header.Get("Idempotent-Replayed") != ""
	if left, err := strconv.ParseInt(r.header.Get("X-Credits-Remaining"), 10, 64); err != nil || left < 0 {
		return fmt.Sprintf("the answer to call %d leaves %q credits", which.number, r.header.Get("X-Credits-Remaining"))
	}
	if which.operation == resolution.KeywordToLead {
		cost = 0
	} else if bytes.Contains(r.body, []byte(phone(which.number))) != (cost > 0) {
		return fmt.Sprintf("call %d has the answer to another", which.number)
	}
	if first := g.body == nil; first || which.loose {
		g.body, g.ids = r.body, append(g.ids, r.json.Resolution.ID)
		if replayed && (which.loose || g.doubtful == 0 && g.underWay == 0) {
			return fmt.Sprintf("the first answer to call %d is said to be an old one", which.number)
		}
		if !replayed && spent != fmt.Sprint(cost) {
			return fmt.Sprintf("call %d costs %d, and its answer says %s", which.number, cost, spent)
		}
		return ""
	}
	if !bytes.Equal(g.body, r.body) || !replayed || spent != "0" {
		return fmt.Sprintf("call %d is answered anew for %s credits: %s and %s", which.number, spent, g.body, r.body)
	}
	return ""
}

// askAgain asks for an answer by its resolution.
func (c client) askAgain(ctx context.Context, which *call, of []any) (again bool) {
	c.mu.Lock()
	g := c.of(which.name())
	id := g.ids[0]
	c.mu.Unlock()
	path := "/lead/resolution/result"
	if which.operation == resolution.KeywordToLead {
		path = "/resolve/keyword_to_lead/result"
	}
	r := c.send(ctx, c.service.Public(), path, fmt.Sprintf(`{"resolution_id":%q}`, id), map[string]string{"Authorization": "Bearer " + which.key.text}, of...)
	c.mu.Lock()
	defer c.mu.Unlock()
	status := state.Status(r.json.Resolution.Status)
	switch {
	case r.status == 0, r.status >= 500:
	case which.loose:
		if r.status != http.StatusNotFound {
			c.note(fmt.Sprintf("the answer to call %d is kept: %d", which.number, r.status))
		}
	case r.status != http.StatusOK:
		c.note(fmt.Sprintf("the answer to call %d is not kept: %d %s", which.number, r.status, r.json.Error.Code))
	case which.operation != resolution.KeywordToLead:
		if !bytes.Equal(g.body, r.body) {
			c.note(fmt.Sprintf("the answer to call %d is another when it is asked for again: %s and %s", which.number, g.body, r.body))
		}
	case (status == state.Cancelled || status == state.Failed) && g.mayBe && g.result == nil:
		g.unfound = true
	case g.unfound, status == state.Cancelled, status == state.Failed, g.result != nil && status != state.Completed:
		c.note(fmt.Sprintf("search %d is %s", which.number, status))
	case status != state.Completed:
	case g.result == nil:
		g.result = r.body
	case !bytes.Equal(g.result, r.body):
		c.note(fmt.Sprintf("the result of call %d is another when it is asked for again: %s and %s", which.number, g.result, r.body))
	}
	return false
}

// cancel cancels a search.
func (c client) cancel(ctx context.Context, which *call, of []any) (again bool) {
	c.mu.Lock()
	g := c.of(which.name())
	g.mayBe = true
	id, ended := g.ids[0], g.result != nil
	c.mu.Unlock()
	r := c.send(ctx, c.service.Public(), "/account/resolutions/cancel", fmt.Sprintf(`{"resolution_id":%q}`, id), map[string]string{"Authorization": "Bearer " + which.key.text}, of...)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.status == 0, r.status >= 500:
	case r.status == http.StatusOK && !ended && !g.unfound:
		g.unfound = true
	case r.json.Error.Code != "already_finished":
		c.note(fmt.Sprintf("search %d is cancelled: %d %s", which.number, r.status, r.body))
	}
	return false
}

// grant gives credits.
func (c client) grant(ctx context.Context, which *grant, try int) (again bool) {
	c.mu.Lock()
	g := c.of(which.name())
	if !c.mayAsk(g) {
		c.mu.Unlock()
		return false
	}
	g.underWay++
	c.mu.Unlock()
	r := c.send(ctx, c.service.Internal(), "/internal/organizations/"+which.of.public+"/credits", fmt.Sprintf(`{"credits":%d,"note":%q}`, which.credits, which.name()),
		map[string]string{"X-Sys-Key": systemKey, "Idempotency-Key": which.name()}, "grant", which.number, try)
	c.mu.Lock()
	defer c.mu.Unlock()
	g.underWay--
	switch {
	case g.forgotten:
		g.doubtful++
		return false
	case r.status == 0, r.status >= 500:
		g.doubtful++
		return true
	case r.status != http.StatusOK:
		c.note(fmt.Sprintf("grant %d is refused: %d %s", which.number, r.status, r.json.Error.Code))
	case g.body == nil:
		g.body = r.body
	case !bytes.Equal(g.body, r.body):
		c.note(fmt.Sprintf("grant %d is confirmed anew: %s and %s", which.number, g.body, r.body))
	}
	return c.world.Below(2, "grants twice", which.number, try, c.lives, c.number) == 0
}
