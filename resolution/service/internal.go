package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// serveInternal answers one request on the internal listener.
func (s *Service) serveInternal(w http.ResponseWriter, r *http.Request) {
	id := requestID(r.Header)
	wire.CommonHeader(w.Header(), id)
	path := trim(r.URL.EscapedPath())
	s.guard(w, r, id, "internal", func() error {
		switch {
		case path == "/metrics":
			s.metrics.handler().ServeHTTP(w, r)
			return nil
		case path == "/healthz", path == "/readyz":
			return s.serveStatic(w, r, path)
		case strings.HasPrefix(path, "/internal/"):
			return s.serveSystem(w, r, path[len("/internal/"):])
		}
		return errNothingHere
	})
}

// systemChallenge names the scheme of /internal/*, which is of this service
// alone: the system key goes into the header x-sys-key, not into
// Authorization. Source: RFC 9110, 11.6.1: a 401 has a challenge.
const systemChallenge = `X-Sys-Key realm="leadetl internal"`

// errNoSystem is the answer to a wrong x-sys-key, and to none.
var errNoSystem = &wire.Problem{Kind: wire.InvalidCredentials, Challenge: systemChallenge,
	Detail: "The header x-sys-key does not hold the system key."}

// serveSystem answers what only the holder of the system key may ask. path is
// what follows /internal/, escaped.
func (s *Service) serveSystem(w http.ResponseWriter, r *http.Request, path string) error {
	if s.options.SystemKey.Empty() {
		return errNothingHere
	}
	if !s.options.SystemKey.Equal(secret.New(r.Header.Get("X-Sys-Key"))) {
		return errNoSystem
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		var err error
		if segments[i], err = url.PathUnescape(segment); err != nil {
			return errNothingHere
		}
	}
	method, handle := s.systemHandler(segments)
	if handle == nil {
		return errNothingHere
	}
	if r.Method != method {
		return notAllowed(method)
	}
	answer, err := handle(r)
	if err != nil {
		return systemProblem(err)
	}
	var b bytes.Buffer
	wire.WriteJSON(&b, answer)
	wire.WriteBody(w, http.StatusOK, wire.JSONType, b.Bytes())
	return nil
}

func (s *Service) systemHandler(path []string) (method string, handle func(*http.Request) (any, error)) {
	switch {
	case len(path) == 1 && path[0] == "organizations":
		return http.MethodGet, s.listOrganizations
	case len(path) == 3 && path[0] == "organizations" && path[2] == "credits":
		return http.MethodPost, func(r *http.Request) (any, error) { return s.grantCredits(r, path[1]) }
	case len(path) == 1 && path[0] == "deliveries":
		return http.MethodGet, s.listDeliveries
	case len(path) == 3 && path[0] == "deliveries" && path[2] == "replay":
		return http.MethodPost, func(r *http.Request) (any, error) { return s.replayDelivery(r, path[1]) }
	case len(path) == 3 && path[0] == "resolutions" && path[2] == "cancel":
		return http.MethodPost, func(r *http.Request) (any, error) { return s.cancelResolution(r, path[1]) }
	}
	return "", nil
}

// systemProblem tells the errors of the state to those who administer it.
func systemProblem(err error) error {
	if too, is := errors.AsType[*state.InsufficientError](err); is {
		return insufficient(too.Required, too.Balance)
	}
	switch {
	case errors.Is(err, state.ErrNotFound):
		return wire.Refuse(wire.NotFound, "There is no such thing here.")
	case errors.Is(err, state.ErrGone):
		return wire.Refuse(wire.ResolutionExpired, "The body of this delivery is no longer kept.")
	case errors.Is(err, state.ErrFinished):
		return wire.Refuse(wire.AlreadyFinished, "The resolution is finished.")
	case errors.Is(err, resolution.ErrInvalid):
		return wire.Refuse(wire.ValidationError, "The request is out of bounds.")
	}
	return err
}

type organizationView struct {
	ID      string      `json:"id"`
	Name    string      `json:"name"`
	Created string      `json:"created_at"`
	Balance balanceView `json:"balance"`
}

type balanceView struct {
	Available int64 `json:"available"`
	Reserved  int64 `json:"reserved"`
}

func (s *Service) listOrganizations(r *http.Request) (any, error) {
	accounts, err := s.state.Organizations(r.Context())
	list := []organizationView{}
	for _, a := range accounts {
		list = append(list, organizationView{a.Public, a.Name, a.Created.UTC().Format(wire.TimeFormat), balanceView(a.Balance)})
	}
	return map[string]any{"organizations": list}, err
}

// grantCredits gives an organization credits, or takes some when the number
// is negative.
func (s *Service) grantCredits(r *http.Request, organization string) (any, error) {
	var asked struct {
		Credits int64  `json:"credits"`
		Note    string `json:"note"`
	}
	if err := readSystem(r, &asked); err != nil {
		return nil, err
	}
	if asked.Credits == 0 {
		return nil, invalid([]request.Problem{{Pointer: "/credits", Code: "required", Detail: "credits has to be a number other than 0"}})
	}
	found, err := s.state.FindOrganization(r.Context(), organization)
	if err != nil {
		return nil, err
	}
	change := s.state.Grant
	if asked.Credits < 0 {
		change = s.state.Adjust
	}
	b, err := change(r.Context(), found.ID, asked.Credits, asked.Note, s.now())
	if err != nil {
		return nil, err
	}
	if a := s.rosters.present.Load().byID[found.ID]; a != nil {
		a.available.Store(b.Available)
	}
	return map[string]any{"id": found.Public, "balance": balanceView(b)}, nil
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

// listDeliveries lists the newest callbacks, at most limit of them (100), of
// one organization or of one state where that is asked for.
func (s *Service) listDeliveries(r *http.Request) (any, error) {
	query := r.URL.Query()
	limit := 100
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			return nil, wire.Refuse(wire.ValidationError, "limit has to be a number from 1 to 1000.")
		}
		limit = n
	}
	switch query.Get("state") {
	case "", state.Pending, state.Delivered, state.Dead:
	default:
		return nil, wire.Refuse(wire.ValidationError, "state is one of %s, %s and %s.", state.Pending, state.Delivered, state.Dead)
	}
	var organization int64
	if name := query.Get("organization"); name != "" {
		found, err := s.state.FindOrganization(r.Context(), name)
		if err != nil {
			return nil, err
		}
		organization = found.ID
	}
	deliveries, err := s.state.Deliveries(r.Context(), organization, query.Get("state"), limit)
	if err != nil {
		return nil, err
	}
	names, err := s.organizationNames(r)
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

func (s *Service) organizationNames(r *http.Request) (map[int64]string, error) {
	if err := s.rosters.refresh(r.Context()); err != nil {
		return nil, err
	}
	names := map[int64]string{}
	for id, a := range s.rosters.present.Load().byID {
		names[id] = a.public
	}
	return names, nil
}

func (s *Service) replayDelivery(r *http.Request, webhook string) (any, error) {
	if err := s.state.ReplayDelivery(r.Context(), webhook, s.now()); err != nil {
		return nil, err
	}
	s.sender.Wake()
	return map[string]any{"id": webhook, "state": state.Pending}, nil
}

// cancelResolution ends an unfinished keyword search.
func (s *Service) cancelResolution(r *http.Request, resolution string) (any, error) {
	id, ok := request.ParseID(resolution)
	if !ok {
		return nil, errNothingHere
	}
	job, err := s.state.AnyonesJob(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": request.FormatID(id), "status": state.Cancelled}, s.cancel(r, job)
}

func (s *Service) cancel(r *http.Request, job *state.Job) error {
	at := s.now()
	if job.Status.Finished() {
		return state.ErrFinished
	}
	job.Status = state.Cancelled
	post, err := finishedCallback(job, at)
	if err != nil {
		return err
	}
	if err := s.state.CancelJob(r.Context(), job.ID, at, post); err != nil {
		return err
	}
	if post != nil {
		s.sender.Wake()
	}
	return nil
}

// maxSystemBody bounds the bodies of /internal/*, in bytes.
const maxSystemBody = 64 << 10

// readSystem reads a body of ours: one object as request.Parse takes it, of
// no other members than those asked for.
func readSystem(r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxSystemBody))
	if err != nil {
		return unreadable(r, err)
	}
	if _, err := request.Parse(body); err != nil {
		return malformed(err)
	}
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\uFEFF"))))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return wire.Refuse(wire.MalformedJSON, "The body is not an object of the fields that are asked for.")
	}
	return nil
}
