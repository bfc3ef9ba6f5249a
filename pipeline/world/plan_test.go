package world

import (
	"fmt"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// plan is what a seed decides of a world before its first life.
type plan struct {
	operation   resolution.Operation // about a record, or a page of a search
	keys        []string
	askers      int // goroutines that ask all keys
	concurrency int
	crashes     int // lives that crash, unless they end before
	span        int // steps of a life before its crash, at most
	damaged     int // the first life after which a file of the state is damaged, if there is one; 0 if none is

	honours bool          // the service knows idempotency keys
	window  time.Duration // for how long; 0 is for ever
	said    time.Duration // for how long it says; 0 says nothing
	prices  bool          // it says what an answer cost
	dear    bool          // that is more than the user says
	faulty  float64       // the share of requests that it fails
	later   float64       // the share of answers that it posts
	fails   float64       // the share of those that it gives up, and does not bill
	spoils  float64       // the share of those that cannot be read when they are posted first
	misses  bool          // a miss is a 404, and costs nothing

	refuses   float64       // the share of keys that it refuses, beside others
	outage    fault         // what happens to all requests while it is down; "" if it never is
	downEvery time.Duration // it is down for a third of this

	batch        int           // how many calls a request has at most, 0 of a service without batches
	billsRetries bool          // it bills each request that reaches it, as the user knows
	every        time.Duration // between two looks for answers that come later

	runs           int   // that take turns with the same keys
	credits, calls int64 // budgets of each run, -1 without one
	allowance      int64 // of all runs, -1 without one
	retry          bool  // the user sends unknown calls again in the end
	newKey         bool  // under a new idempotency key
	patience       time.Duration

	rate      float64     // of calls, that the user wants
	ownWindow pace.Window // in which the user wants no more calls

	logBytes    int64
	maxBatch    int
	rowsPerFile int
	generations int
	diskFails   float64
	diskSlow    time.Duration
	storeSlow   time.Duration // before a change of the store

	firstMisses, badRows int // so many stop a run
	attempts             int // after so many failures a call is given up
	deadAfter            int // so many failures in a row make the service dead

	several bool // services are asked in an order
	first   int  // the number of the first key, of one of them
	// verifies says that it is asked about emails that others have found.
	verifies bool

	onS3         bool // the state is there, and each life is that of another machine
	terms        bool // which are started one after another, with rising terms
	sealSegments int64
	bucketFails  float64
	bucketAway   float64
	bucketSlow   float64
	bucketStale  float64
}

func newPlan(w *worldtest.World, l worldtest.Limits, of string) plan {
	in := func(what string, from, to int) int { return from + w.Below(to-from+1, "plan"+of, what) }
	often := func(what string, one int) bool { return w.Below(one, "plan"+of, what) == 0 }
	p := plan{
		askers: in("askers", 1, 4), concurrency: in("concurrency", 1, 4),
		crashes: min(in("crashes", 0, 5), l.Crashes), span: []int{8, 30, 120}[in("span", 0, 2)],
		honours: often("honours", 2), prices: often("prices", 2), retry: often("retry", 2), newKey: often("new key", 4),
		misses: often("misses", 4), runs: 1 + in("two runs", 0, 3)/3, credits: -1, calls: -1, allowance: -1, patience: time.Duration(in("patience", 5, 180)) * time.Second,
	}
	p.operation = resolution.NetworkToPhone
	if often("search", 4) {
		p.operation, p.misses = resolution.KeywordToLead, false
	}
	keys := in("keys", 1, 12)
	if often("many keys", 24) {
		keys = in("how many keys", 20, 60)
	}
	for i := range min(keys, l.Keys) {
		p.keys = append(p.keys, p.key(i))
	}
	if p.honours && often("window", 2) {
		p.window = time.Hour
		p.said = []time.Duration{0, time.Hour, 20 * time.Minute}[in("said", 0, 2)]
	}
	if !often("faultless", 4) {
		p.faulty = float64(in("faulty", 1, 6)) / 10
	}
	if often("later", 2) {
		p.later = float64(in("much later", 1, 9)) / 10
		p.fails, p.spoils = float64(in("fails", 0, 3))/10, float64(in("spoils", 0, 3))/10
	}
	if !p.operation.IsKeyword() && often("batches", 3) {
		p.batch, p.billsRetries, p.misses = in("batch", 2, 5), often("bills retries", 4), false
		p.every = time.Duration(in("every", 1, 30)) * time.Second
		p.honours = p.honours && !p.billsRetries
	}
	if often("budget", 3) {
		p.credits = int64(in("credits", 0, price*len(p.keys)))
	}
	if often("calls", 6) {
		p.calls = int64(in("most calls", 0, len(p.keys)))
	}
	if often("allowance", 6) {
		p.allowance = int64(in("allowed credits", 0, price*len(p.keys)))
	}
	if often("rate", 6) {
		p.rate = float64(in("calls in ten seconds", 1, 60)) / 10
	}
	if often("own window", 6) {
		p.ownWindow = pace.Window{Count: in("most in a window", 5, 12), Per: time.Duration(in("window", 2, 90)) * time.Second, Keys: often("of keys", 2)}
	}
	if often("few attempts", 3) {
		p.attempts = in("attempts", 1, 3)
	}
	if often("soon dead", 3) {
		p.deadAfter = in("dead after", 1, 3)
	}
	if often("refuses many", 6) {
		p.refuses = 0.7
	}
	if often("outages", 4) {
		p.outage = []fault{unreachable, unbilled, before, lost, denied, noCredits}[in("down as", 0, 5)]
		p.downEvery = []time.Duration{time.Minute, 20 * time.Minute, 3 * time.Hour}[in("down every", 0, 2)]
	}
	if often("few misses", 6) {
		p.firstMisses = in("first misses", 2, 3)
	}
	if often("few bad rows", 4) {
		p.badRows = in("bad rows", 1, 2)
	}
	if often("small logs", 4) {
		p.logBytes = int64(in("log bytes", 1, 1500))
	}
	if often("few rows in a file", 3) {
		p.rowsPerFile = in("rows in a file", 1, 3)
	}
	if often("few generations", 2) {
		p.generations = in("generations", 1, 3)
	}
	if often("small batches", 4) {
		p.maxBatch = in("batch of the store", 1, 4)
	}
	if often("bad disk", 5) {
		p.diskFails = float64(in("disk fails", 1, 20)) / 100
	}
	if often("slow disk", 2) {
		p.diskSlow = time.Duration(in("disk slow", 1, 30)) * time.Millisecond
	}
	if often("slow store", 2) {
		p.storeSlow = time.Duration(in("store slow", 1, 30)) * time.Millisecond
	}
	if often("on S3", 4) {
		p.onS3, p.terms, p.sealSegments = true, often("terms", 3), int64(in("segments", 2, 12))
		if often("long log", 2) {
			p.sealSegments = 5000
		}
		if !often("good store", 4) {
			p.bucketFails = float64(in("store fails", 0, 25)) / 100
		}
		if often("store away", 4) {
			p.bucketAway = 0.02
		}
		if often("slow requests", 3) {
			p.bucketSlow = 0.02
		}
		if often("stale lists", 4) {
			p.bucketStale = 0.2
		}
		if !p.billsRetries && often("short window", 2) { // shorter than many a nap
			p.honours, p.window, p.said = true, 20*time.Minute, 0
		}
	}
	if p.crashes > 0 && often("damaged", 2) {
		p.damaged = in("damaged after", 1, p.crashes)
	}
	p.several = !p.onS3 && often("several", 2)
	p.dear = !p.several && p.batch == 0 && p.later == 0 && p.prices && p.credits < 0 && p.allowance < 0 && often("dear", 4)
	return p
}

// query is the search of a number, whose page has as many leads as a match costs credits.
func query(number int) search.Query {
	return search.Query{Keywords: []string{fmt.Sprint("keyword-", number)}, Limit: price, Page: 1}
}

// key is the key of a number.
func (p plan) key(number int) string {
	if p.operation.IsKeyword() {
		return query(number).Key()
	}
	return fmt.Sprintf("network.example/in/person-%d", number)
}

// price is what the user says that a call costs.
func (p plan) price() purchase.Price {
	switch {
	case p.operation.IsKeyword():
		return purchase.Price{Match: 1}
	case p.dear:
		return purchase.Price{Match: price - 1}
	}
	return purchase.Price{Match: price}
}
