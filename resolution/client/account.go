package client

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// Account is what a service says about the account of the key.
type Account struct {
	// Told says that the service accepts the key and tells its credits. Not
	// every service does.
	Told    bool
	Credits int64 // that can be spent
	// Single and Create are how many calls about a record, and new searches, it takes a
	// second; 0 if it does not say.
	Single, Create float64
	Status         int       // of the answer
	Clock          time.Time // of the service; zero when it does not say
	// Foreign says that the answer does not look like one of a Lead Resolution
	// Service.
	Foreign bool
}

// Account asks for the account of the key, which costs nothing. It is no error
// that the service does not tell. Errors are those of Do.
func (c *Client) Account(ctx context.Context) (Account, error) {
	answer, w, err := c.send(ctx, request{method: http.MethodGet, path: "/account/balance"})
	if err != nil {
		return Account{}, err
	}
	w.Done()
	account := Account{Status: answer.status}
	account.Clock, _ = http.ParseTime(answer.header.Get("Date"))
	in := answer.envelope()
	switch answer.status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		account.Foreign = in.isForeign()
		return account, nil
	}
	if err := in.err(); err != nil {
		return account, err
	}
	credits, told := exchange.Number(in.body.Get("available"))
	account.Credits, account.Told = int64(credits), told
	limits := jsontree.Object(in.body.Get("rate_limits"))
	perSecond := func(class string) float64 {
		limit := jsontree.Object(limits.Get(class))
		requests, _ := exchange.Number(limit.Get("requests"))
		if seconds, _ := exchange.Number(limit.Get("seconds")); seconds > 0 {
			return max(requests/seconds, 0)
		}
		return 0
	}
	account.Single, account.Create = perSecond("single"), perSecond("create")
	return account, nil
}

// isForeign reports whether a refusal is that of some other server, or of a path
// that is none of the interface.
func (in envelope) isForeign() bool {
	if in.answer.status == http.StatusNotFound && jsontree.Text(jsontree.Object(in.body.Get("error")).Get("type")) == nothingHere {
		return true
	}
	header := in.answer.header
	return header.Get("Api-Version") == "" && !strings.HasPrefix(header.Get("Content-Type"), "application/problem+json") && code(in.body) == ""
}
