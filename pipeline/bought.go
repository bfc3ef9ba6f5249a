package pipeline

import (
	"net/netip"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/ipaddr"
)

// bought fills Leads, Outcomes, Reasons and Receipts of the rows with a key
// with what the buyer gets. It is called for many batches at once.
func (m *partMaker) bought(b *columns.Batch) error {
	n := b.Len()
	b.Leads = make([]*resolution.Lead, n)
	b.Receipts = make([]outcome.Receipt, n)
	if b.IPClasses != nil {
		b.OrgTypes = make([]string, n) // no service says
	}
	keys, question := questions(b, func(i int) bool { return asks(b, i) })
	answers, err := m.buyer.Answer(keys)
	if err != nil {
		return err
	}
	rows := 0
	for i, q := range question {
		if q < 0 {
			continue
		}
		rows++
		a := answers[q]
		b.Outcomes[i], b.Reasons[i], b.Leads[i], b.Receipts[i] = a.Outcome, a.Reason, a.Lead, a.Receipt
	}
	m.Remote.Meter.Duplicates(int64(rows - len(keys)))
	return nil
}

// asks reports whether a service is asked about a row's key. It is not asked
// about addresses that are not public.
func asks(b *columns.Batch, i int) bool {
	if len(b.Addrs) == 0 {
		return true
	}
	if reason := neverAsked(b.Addrs[i]); reason != "" {
		b.Outcomes[i], b.Reasons[i] = outcome.NoMatch, reason
		return false
	}
	return true
}

// neverAsked is why an address is not asked about, "" when it is.
func neverAsked(addr netip.Addr) string {
	if _, ok := ipaddr.LookupAddr(addr); ok {
		return ""
	}
	return "ip_class:" + string(ipaddr.ClassOf(addr))
}
