package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution/service/account"
)

// A session ends some time after its last request, and at the latest some time
// after the sign-in.
const (
	sessionIdle = 15 * time.Minute
	sessionLife = 2 * time.Hour
	maxSessions = 10_000
)

// session is the session of a signed-in user. Its caller is looked up again for
// every request.
type session struct {
	caller   account.Caller
	csrf     string // that its forms carry
	began    time.Time
	lastUsed time.Time

	mu    sync.Mutex
	notes []note
}

// note is something that one page shows, and no later one.
type note struct {
	name    string
	content any
}

// maxNotes bounds the notes that nobody asked for yet.
const maxNotes = 100

// keep keeps content for the page that asks for it by the name that it returns.
func (x *session) keep(content any) (name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notes = append(x.notes, note{rand.Text(), content})
	x.notes = x.notes[max(len(x.notes)-maxNotes, 0):]
	return x.notes[len(x.notes)-1].name
}

// take returns what was kept under a name, once.
func (x *session) take(name string) any {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.notes, func(n note) bool { return n.name == name })
	if i < 0 {
		return nil
	}
	content := x.notes[i].content
	x.notes = slices.Delete(x.notes, i, i+1)
	return content
}

// sessions are kept in memory, so a restart ends them.
type sessions struct {
	cookie string // its name
	secure bool   // the cookie is sent over HTTPS only
	now    func() time.Time

	mu   sync.Mutex
	held map[[32]byte]*session // by hash of the cookie's value
}

// start makes a session and sets its cookie. It returns false when there are too
// many.
func (s *sessions) start(w http.ResponseWriter, caller account.Caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for id, x := range s.held {
		if x.ended(now) {
			delete(s.held, id)
		}
	}
	if len(s.held) >= maxSessions {
		return false
	}
	value := rand.Text() + rand.Text()
	if s.held == nil {
		s.held = map[[32]byte]*session{}
	}
	s.held[sha256.Sum256([]byte(value))] = &session{caller: caller, csrf: rand.Text(), began: now, lastUsed: now}
	s.set(w, value, 0)
	return true
}

func (s *sessions) set(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteStrictMode,
	})
}

func (x *session) ended(now time.Time) bool {
	return now.Sub(x.lastUsed) >= sessionIdle || now.Sub(x.began) >= sessionLife
}

// of returns the session of a request, nil without one.
func (s *sessions) of(r *http.Request) *session {
	c, err := r.Cookie(s.cookie)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, now := sha256.Sum256([]byte(c.Value)), s.now()
	x := s.held[id]
	if x == nil || x.ended(now) {
		delete(s.held, id)
		return nil
	}
	x.lastUsed = now
	return x
}

// whyNone is what the sign-in page is told about a request without a session: a
// visitor who never signed in has no cookie, and no session that has ended.
func (s *sessions) whyNone(r *http.Request) string {
	if _, err := r.Cookie(s.cookie); err != nil {
		return ""
	}
	return "?ended"
}

// end ends the session of a request.
func (s *sessions) end(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(s.cookie); err == nil {
		s.mu.Lock()
		delete(s.held, sha256.Sum256([]byte(c.Value)))
		s.mu.Unlock()
	}
	s.set(w, "", -1)
}

// isForm reports whether a form was sent from a page of this session.
func (x *session) isForm(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.PostFormValue("csrf")), []byte(x.csrf)) == 1
}
