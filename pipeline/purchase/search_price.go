package purchase

import (
	"errors"
	"fmt"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// setAside adds to an error for want of credits what a page needs: a service
// holds the price of a full one back, and refuses while there are credits left.
func (p *purchase) setAside(err error) error {
	var failed *resolution.CallError
	page, notPage := search.ParseKey(p.question.Key)
	if p.buyer.codec.operation != resolution.KeywordToLead || notPage != nil || !errors.As(err, &failed) || failed.Class != resolution.NoCredits {
		return err
	}
	return fmt.Errorf("%w; for a page of limit %d up to %d credits are set aside at the service: give a smaller limit or more credits", err, page.Limit, p.charge.price)
}
