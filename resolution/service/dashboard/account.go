package dashboard

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// overviewDays is how many days the overview shows.
const overviewDays = 30

// use is a sum of usage.
type use struct {
	Name, ID                            string
	Requests, Limited, Charges, Credits int64
}

func (u *use) add(more state.Usage) {
	u.Requests += more.Requests
	u.Limited += more.Limited
	u.Charges += more.Charges
	u.Credits += more.Credits
}

// sums adds up usage by the key of each line, sorted by key.
func sums(all []state.Usage, key func(state.Usage) string) []use {
	by := map[string]*use{}
	for _, u := range all {
		name := key(u)
		if by[name] == nil {
			by[name] = &use{Name: name}
		}
		by[name].add(u)
	}
	var list []use
	for _, name := range slices.Sorted(maps.Keys(by)) {
		list = append(list, *by[name])
	}
	return list
}

// most orders usage by credits and requests, and adds up all but the first as others: a page
// shows few of many.
func most(all []use, others string) []use {
	slices.SortStableFunc(all, func(a, b use) int {
		return cmp.Or(cmp.Compare(b.Credits, a.Credits), cmp.Compare(b.Requests, a.Requests))
	})
	if len(all) <= listed {
		return all
	}
	rest := use{Name: figures.Grouped(int64(len(all)-listed)) + " " + others}
	for _, u := range all[listed:] {
		rest.Requests, rest.Limited, rest.Charges, rest.Credits = rest.Requests+u.Requests, rest.Limited+u.Limited, rest.Charges+u.Charges, rest.Credits+u.Credits
	}
	return append(all[:listed:listed], rest)
}

type overview struct {
	Balance                   state.Balance
	Days                      int
	Total, Today, Month       use
	MonthName                 string
	Left                      string // how long the credits last, in words
	Chart                     *chart
	ByOperation, ByKey, ByDay []use
}

func (a *Account) overview(v *visit) error {
	ctx := v.r.Context()
	if err := a.Desk.StoreRequests(ctx); err != nil {
		return err
	}
	o := overview{Days: overviewDays}
	today := a.Now().UTC().Truncate(24 * time.Hour)
	from := today.AddDate(0, 0, 1-overviewDays)
	month := today.AddDate(0, 0, 1-today.Day())
	o.MonthName = month.Format("January")
	balance, err := a.State.Balance(ctx, v.caller.Account.ID)
	if err != nil {
		return err
	}
	all, err := a.State.Usage(ctx, v.caller.Account.ID, earlier(from, month), today)
	if err != nil {
		return err
	}
	o.Balance = balance
	for _, u := range all {
		if !u.Day.Before(month) {
			o.Month.add(u)
		}
	}
	all = slices.DeleteFunc(all, func(u state.Usage) bool { return u.Day.Before(from) })
	o.Left = left(balance.Available, all, today)
	for _, u := range all {
		o.Total.add(u)
		if u.Day.Equal(today) {
			o.Today.add(u)
		}
	}
	o.Chart = spending(all, from, overviewDays, "operation")
	o.ByOperation = sums(all, func(u state.Usage) string { return u.Operation })
	o.ByKey = most(sums(all, func(u state.Usage) string { return u.KeyLabel + "\n" + u.Key }), "other keys")
	for i, u := range o.ByKey {
		o.ByKey[i].Name, o.ByKey[i].ID, _ = strings.Cut(u.Name, "\n")
	}
	o.ByDay = sums(all, func(u state.Usage) string { return u.Day.Format(time.DateOnly) })
	slices.Reverse(o.ByDay)
	return v.show("overview", "Overview", "", o)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// left says how long credits last if they are spent as they were since the first day of
// spending, "" without any spending.
func left(credits int64, all []state.Usage, today time.Time) string {
	var spent int64
	first := today
	for _, u := range all {
		if spent += u.Credits; u.Credits > 0 {
			first = earlier(first, u.Day)
		}
	}
	if spent == 0 {
		return ""
	}
	const most = 1000
	days := float64(credits) * (today.Sub(first).Hours()/24 + 1) / float64(spent)
	if days > most {
		return "more than 1,000 days left at this pace"
	}
	return figures.Plural(int64(days), "day") + " left at this pace"
}
