// Package operator answers the operators of a service, and other services of
// the same owner, under /internal/ of the internal listener.
package operator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Challenge names the scheme of /internal/: the system key goes into the header
// x-sys-key, not into Authorization.
// Source: RFC 9110, 11.6.1: a 401 has a challenge.
const Challenge = `X-Sys-Key realm="leadetl internal"`

// errNoSystemKey answers a wrong or missing x-sys-key.
var errNoSystemKey = &wire.Problem{Kind: wire.InvalidCredentials, Challenge: Challenge,
	Detail: "The header x-sys-key does not hold the system key."}

// State is what operators see and change.
type State interface {
	DeleteOrganization(ctx context.Context, organization int64, now time.Time) error
	Reply(ctx context.Context, key [32]byte, now time.Time) (*state.Reply, error)
	Deliveries(ctx context.Context, organization int64, state, before string, limit int) ([]state.Delivery, error)
	AnyonesJob(ctx context.Context, id uuid.UUID) (*state.Job, error)
}

// Handler answers operators. All fields are required, except Key. Without Key,
// every request is refused.
type Handler struct {
	State State
	Key   secret.Text // the x-sys-key
	Now   func() time.Time
	account.Office
}

// Serve answers a request. path is the part after /internal/, escaped. If it
// returns an error, the caller still has to send it.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, path string) error {
	if h.Key.Empty() {
		return wire.ErrNothingHere
	}
	if !h.Key.Equal(secret.New(r.Header.Get("X-Sys-Key"))) {
		return errNoSystemKey
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		var err error
		if segments[i], err = url.PathUnescape(segment); err != nil {
			return wire.ErrNothingHere
		}
	}
	method, handle := h.route(segments)
	if handle == nil {
		return wire.ErrNothingHere
	}
	if r.Method != method {
		return wire.NotAllowed(method)
	}
	answer, err := handle(r)
	if err != nil {
		return account.Refused(err)
	}
	if stored, ok := answer.(*state.Reply); ok {
		wire.WriteReply(w, &wire.Reply{Body: stored.Body, Replayed: true})
	} else {
		wire.WriteReply(w, &wire.Reply{Body: encode(answer)})
	}
	return nil
}

func encode(answer any) []byte {
	var b bytes.Buffer
	wire.WriteJSON(&b, answer)
	return b.Bytes()
}

func (h *Handler) route(path []string) (method string, handle func(*http.Request) (any, error)) {
	switch {
	case len(path) == 1 && path[0] == "organizations":
		return http.MethodGet, h.listOrganizations
	case len(path) == 2 && path[0] == "organizations":
		return http.MethodDelete, func(r *http.Request) (any, error) { return h.deleteOrganization(r, path[1]) }
	case len(path) == 3 && path[0] == "organizations" && (path[2] == "suspend" || path[2] == "resume"):
		return http.MethodPost, func(r *http.Request) (any, error) {
			return changed(h.Suspend(r.Context(), path[1], path[2] == "suspend"))
		}
	case len(path) == 3 && path[0] == "organizations" && path[2] == "rename":
		return http.MethodPost, func(r *http.Request) (any, error) { return h.renameOrganization(r, path[1]) }
	case len(path) == 3 && path[0] == "organizations" && path[2] == "credits":
		return http.MethodPost, func(r *http.Request) (any, error) { return h.grantCredits(r, path[1]) }
	case len(path) == 1 && path[0] == "deliveries":
		return http.MethodGet, h.listDeliveries
	case len(path) == 3 && path[0] == "deliveries" && path[2] == "replay":
		return http.MethodPost, func(r *http.Request) (any, error) { return h.replayDelivery(r, path[1]) }
	case len(path) == 3 && path[0] == "resolutions" && path[2] == "cancel":
		return http.MethodPost, func(r *http.Request) (any, error) { return h.cancelResolution(r, path[1]) }
	}
	return "", nil
}

type organizationView struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"`
	Created   string      `json:"created_at"`
	Suspended string      `json:"suspended_at,omitempty"`
	Balance   balanceView `json:"balance"`
}

type balanceView struct {
	Available int64 `json:"available"`
	Reserved  int64 `json:"reserved"`
}

func (h *Handler) listOrganizations(r *http.Request) (any, error) {
	accounts, err := h.Of.Organizations(r.Context())
	list := []organizationView{}
	for _, a := range accounts {
		list = append(list, viewOf(a))
	}
	return map[string]any{"organizations": list}, err
}

func viewOf(a state.Account) organizationView {
	v := organizationView{ID: a.Organization.Public, Name: a.Organization.Name, Created: a.Organization.Created.UTC().Format(wire.TimeFormat), Balance: balanceView(a.Balance)}
	if at := a.Organization.Suspended; !at.IsZero() {
		v.Suspended = at.UTC().Format(wire.TimeFormat)
	}
	return v
}

// changed is the answer to a change of an organization.
func changed(of state.Organization, err error) (any, error) {
	return map[string]any{"id": of.Public}, err
}

func (h *Handler) renameOrganization(r *http.Request, organization string) (any, error) {
	var asked struct {
		Name string `json:"name"`
	}
	if _, err := readBody(r, &asked); err != nil {
		return nil, err
	}
	return changed(h.Rename(r.Context(), organization, asked.Name))
}

func (h *Handler) deleteOrganization(r *http.Request, organization string) (any, error) {
	return changed(h.Change(r.Context(), organization, func(of state.Organization) error {
		return h.State.DeleteOrganization(r.Context(), of.ID, h.Now())
	}))
}

// grantCredits adds credits, or removes them when the number is negative. With an
// Idempotency-Key it does so once: the reply is stored in the same transaction,
// and a repeated call gets it again.
func (h *Handler) grantCredits(r *http.Request, organization string) (any, error) {
	var asked struct {
		Credits int64  `json:"credits"`
		Note    string `json:"note"`
	}
	key, given, err := wire.IdempotencyKey(r.Header)
	if err != nil {
		return nil, err
	}
	object, err := readBody(r, &asked)
	if err != nil {
		return nil, err
	}
	if asked.Credits == 0 {
		return nil, wire.Invalid([]request.Problem{{Pointer: "/credits", Code: "required", Detail: "credits has to be a number other than 0"}})
	}
	found, err := h.Find(r.Context(), organization)
	if err != nil {
		return nil, err
	}
	view := func(b state.Balance) any {
		return map[string]any{"id": found.Public, "balance": balanceView(b)}
	}
	change := state.CreditChange{Organization: found.ID, Credits: asked.Credits, Note: asked.Note, At: h.Now()}
	if given {
		change.Reply = &state.Reply{
			Key:         sha256.Sum256([]byte("operator\n" + found.Public + "/credits\n" + key)), // differs from the keys of the public listener, which begin with the organization
			Fingerprint: sha256.Sum256(object.Canonical()),
			Status:      http.StatusOK,
		}
		change.Body = func(b state.Balance) []byte { return encode(view(b)) }
	}
	b, err := h.Credit(r.Context(), change)
	if errors.Is(err, state.ErrReplyStored) {
		return h.storedReply(r.Context(), change)
	}
	return view(b), err
}

// storedReply returns the reply to an earlier change with the same key.
func (h *Handler) storedReply(ctx context.Context, change state.CreditChange) (*state.Reply, error) {
	stored, err := h.State.Reply(ctx, change.Reply.Key, change.At)
	switch {
	case err != nil:
		return nil, err
	case stored == nil:
		return nil, fmt.Errorf("%w: the stored reply was removed meanwhile", resolution.ErrUnavailable)
	case stored.Fingerprint != change.Reply.Fingerprint:
		return nil, wire.ErrKeyReused
	}
	return stored, nil
}

type deliveryView struct {
	ID           string `json:"id"`
	Organization string `json:"organization"`
	Resolution   string `json:"resolution_id"`
	Receiver     string `json:"receiver"`
	State        string `json:"state"`
	Attempts     int    `json:"attempts"`
	Status       int    `json:"status,omitempty"`  // of the last answer
	Failure      string `json:"failure,omitempty"` // of the last attempt
	Created      string `json:"created_at"`
	Due          string `json:"due_at,omitempty"` // of the next attempt
	Finished     string `json:"finished_at,omitempty"`
}

// listDeliveries lists the newest callbacks, at most limit (default 100),
// optionally only those of one organization or of one state.
func (h *Handler) listDeliveries(r *http.Request) (any, error) {
	query := r.URL.Query()
	limit, which, problems := account.PageOf(query, "state", state.Pending, state.Delivered, state.Dead)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	var organization int64
	if name := query.Get("organization"); name != "" {
		found, err := h.Find(r.Context(), name)
		if err != nil {
			return nil, err
		}
		organization = found.ID
	}
	deliveries, err := h.State.Deliveries(r.Context(), organization, which, "", limit)
	if err != nil {
		return nil, err
	}
	names, err := h.Desk.Roster.Names(r.Context())
	if err != nil {
		return nil, err
	}
	list := []deliveryView{}
	for _, d := range deliveries {
		v := deliveryView{
			ID: d.WebhookID, Organization: names[d.Organization], Resolution: request.FormatID(d.Resolution), Receiver: d.Receiver,
			State: d.State, Attempts: d.Attempts, Status: d.Status, Failure: d.Failure, Created: d.Created.UTC().Format(wire.TimeFormat),
		}
		if d.State == state.Pending {
			v.Due = d.Due.UTC().Format(wire.TimeFormat)
		} else {
			v.Finished = d.Finished.UTC().Format(wire.TimeFormat)
		}
		list = append(list, v)
	}
	return map[string]any{"deliveries": list}, nil
}

func (h *Handler) replayDelivery(r *http.Request, webhook string) (any, error) {
	return map[string]any{"id": webhook, "state": state.Pending}, h.Desk.Replay(r.Context(), 0, webhook)
}

// cancelResolution ends an unfinished keyword search.
func (h *Handler) cancelResolution(r *http.Request, resolution string) (any, error) {
	id, ok := request.ParseID(resolution)
	if !ok {
		return nil, wire.ErrNothingHere
	}
	job, err := h.State.AnyonesJob(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": request.FormatID(id), "status": state.Cancelled}, h.Desk.Cancel(r.Context(), job)
}

// maxBody bounds a request's body, in bytes.
const maxBody = 64 << 10

// readBody reads a body: one object that request.Parse accepts, without unknown
// members.
func readBody(r *http.Request, into any) (request.Object, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return request.Object{}, wire.Unreadable(r, err)
	}
	object, err := request.Parse(body)
	if err != nil {
		return request.Object{}, wire.Malformed(err)
	}
	body = bytes.TrimPrefix(body, []byte("\uFEFF"))
	if err := json.Unmarshal(body, into, json.RejectUnknownMembers(true)); err != nil {
		return request.Object{}, wire.Refuse(wire.MalformedJSON, "The body is not an object of the fields that are asked for.")
	}
	return object, nil
}
