package world

import "github.com/leadetl/leadetl/internal/testkit/worldtest"

// mutated is the code that holds the promise on money.
var mutated = worldtest.Mutated{
	Folders: []string{"pipeline/purchase", "pipeline/answers", "pipeline/pace", "pipeline/journal", "internal/groupcommit", "internal/atomicfile", "internal/disk"},
	Equivalent: [][4]string{
		{"internal/groupcommit/connection.go", "Connect", "db.SetMaxOpenConns(1) becomes db.SetMaxOpenConns(2)", "One connection is taken, and kept."},
		{"internal/groupcommit/groupcommit.go", "Writer[G].commit", "return is left out", "The callers have their results; another one stays unread."},
		{"internal/groupcommit/queue.go", "Queue[T].Place", "make(chan error, 1) becomes make(chan error, 2)", "One result is sent."},
		{"internal/groupcommit/queue.go", "Queue[T].gather", "for range 2 { // once in 61 times Go's scheduler goes on with this goroutine before the others runtime.Gosched() // returns at once if no other goroutine can run } becomes for range 3 { // once in 61 times Go's scheduler goes on with this goroutine before the others runtime.Gosched() // returns at once if no other goroutine can run }", "It lets the others run once more."},
		{"pipeline/answers/log.go", "recent.rotate", "make(chan error, 1) becomes make(chan error, 2)", "One result is sent before it is received."},
		{"pipeline/journal/state.go", "State.lockNights", "time.Sleep(10 * time.Millisecond) is left out", "It only spares the processor."},
		{"pipeline/journal/pieces.go", "package", "8 << 20 becomes 8 << 21", "Pieces of any size are read."},
		{"pipeline/pace/adapt.go", "meter.advance", "slot-m.slot >= int64(len(m.counts)) becomes slot-m.slot > int64(len(m.counts))", "The loop behind it clears all counts, too."},
		{"pipeline/pace/bucket.go", "bucket.wait", "return 0 is left out", "A bucket without a limit has any number of tokens after a pause, and calls wait for the pause anyway."},
		{"pipeline/pace/controller.go", "Controller.obstacle", "wait > 0 becomes wait > 1", "Nothing waits for a nanosecond."},
		{"pipeline/pace/leave.go", "leaving.lead", "l.takes/8 becomes l.takes/9", "It is the weight of an average, which settles at the same value."},
		{"pipeline/pace/lookahead.go", "forecast.learn", "f.rises, f.dry = f.rises+1, 0 becomes f.rises, f.dry = f.rises+1, 1", "It is a guess, as good after one answer less."},
		{"pipeline/pace/lookahead.go", "forecast.learn", "rise >= float64(f.maxLeft)/2 becomes rise > float64(f.maxLeft)/2", "It is a guess, as good of exactly half as of a little more."},
		{"pipeline/pace/lookahead.go", "history.sure", "return 0 becomes return 1", "There is a sample whenever it is asked."},
		{"pipeline/pace/spacing.go", "spacing.wait", "early > 0 becomes early > 1", "Nothing waits for a nanosecond."},
		{"pipeline/purchase/await.go", "package", "5 * time.Second becomes 6 * time.Second", "It says how seldom a page is looked for."},
		{"pipeline/purchase/await.go", "call.lookIn", "every > 0 becomes every > 1", "Nothing looks every nanosecond."},
		{"pipeline/purchase/codec.go", "codec.forPages", "return resolution.Reply{}, err is left out", "All keys of pages can be read: Query.Key has made them."},
		{"pipeline/purchase/retry.go", "sleep", "defer timer.Stop() is left out", "The timer ends by itself."},
		{"pipeline/purchase/request.go", "request.ask", "o.Kind < r.outcome.Kind becomes o.Kind <= r.outcome.Kind", "Of equal outcomes any may be told."},
	},
}
