package world

import "github.com/leadetl/leadetl/internal/worldtest"

// reach is what the worlds have to reach. What is counted is statements, so the product knows
// nothing of it.
var reach = worldtest.Reach{
	Packages: []string{"pipeline/purchase", "pipeline/answers", "pipeline/order", "pipeline/pace"},
	Least:    0.9,
	Rare: worldtest.Branches{
		{"a log is full", "pipeline/answers/log.go", "\t\tif err := s.rotate()"},
		{"a move of a log into the database failed, and is repeated", "pipeline/answers/log.go", "err = s.move(s.mem.previous)"},
		{"a record is not stored", "pipeline/answers/log.go", "results[i] = err"},
		{"a log of an earlier process is brought into the database", "pipeline/answers/log.go", "errors.Join(tx.checkNames(g)"},
		{"a call of a process that died becomes unknown", "pipeline/answers/log.go", "return tx.markUnknown()"},
		{"answers wait for more than one statement", "pipeline/answers/sqlite_tx.go", "if err := g.answers.Flush(g.Tx)"},
		{"a list or an import has several pages", "pipeline/answers/transfer.go", "\t\t\t\terr = take()"},
		{"an imported answer ends an open call", "pipeline/answers/transfer.go", "closed = append(closed"},
		{"an answer arrives twice", "pipeline/purchase/deliveries.go", "case errors.Is(err, answers.ErrNoCall):\n\t\treturn l.unknown(ctx, d)"},
		{"a call that had failed gets its answer", "pipeline/purchase/deliveries.go", "err := l.remote.Answers.Put(ctx, call.Question, a)"},
		{"a failure comes while a request is out", "pipeline/purchase/deliveries.go", "return errTooEarly"},
		{"an idempotency key is too old to be sent", "pipeline/purchase/retry.go", "case errors.Is(err, errKeyTooOld):\n\t\t\tc.buyer.warnTooOld()"},
		{"a call is given up after many failures", "pipeline/purchase/retry.go", "gone || failures >= c.buyer.remote.attempts() {\n\t\t\treturn c.giveUp()"},
		{"an answer that comes later is late", "pipeline/purchase/await.go", "!b.outage.isDown():\n\t\t\treturn failed(b.codec.late)"},
		{"a page cannot be read again and again", "pipeline/purchase/await.go", "return c.orStop(failed(outcome.ReasonUnavailable)"},
		{"a page is gone", "pipeline/purchase/await.go", "isGone(failure):\n\t\t\ta, err := c.endPoll"},
		{"a call is too late to leave", "pipeline/purchase/call.go", "\t\tc.late++"},
		{"a budget holds no call more", "pipeline/purchase/budget.go", "case e.Left <= 0:\n\t\treturn"},
		{"a service goes down", "pipeline/purchase/outage.go", "o.down = true"},
		{"a service comes back", "pipeline/purchase/outage.go", "o.down = false"},
		{"the first answers are all misses", "pipeline/purchase/misses.go", "return why"},
		{"the first rows are all bad", "pipeline/purchase/call.go", "err = c.buyer.stopFor(allBad("},
		{"a service refuses all", "pipeline/purchase/refusals.go", ">= limit {\n\t\treturn true"},
		{"a key waits for the verdict on a resolver", "pipeline/order/gates.go", "g.held[i] = on"},
		{"a resolver is judged", "pipeline/order/gates.go", "g.decide(i, t)"},
		{"a verifier refuses a value", "pipeline/order/walk.go", "w.refused[from] |= 1 << v.group"},
		{"a resolver is passed over", "pipeline/order/walk.go", "\tw.skipped = append(w.skipped, s.Name+\":\"+reason)"},
		{"a bucket of a service is told from a window", "pipeline/pace/lookahead.go", "case f.rises >= streak, over && !restored:\n\t\tf.refills = true"},
		{"a sliding window is recognized", "pipeline/pace/lookahead.go", "f.sliding = true"},
		{"a refusal comes by chance", "pipeline/pace/controller.go", "c.isByChance(now), c.isLone(call, o):\n\t\treturn false"},
		{"a dead service is given up", "pipeline/pace/probe.go", "return l.since.Add(o.GiveUp)"},
		{"a window of the user is full", "pipeline/pace/window.go", "over -= w.marks[i].n"},
		{"on S3, a machine was replaced", "pipeline/objectstate/log.go", "w.ended = fmt.Errorf("},
		{"on S3, files of answers are merged", "pipeline/objectstate/merge.go", "files, err := s.writeGeneration(ctx, of, m.lastGeneration()+1"},
		{"on S3, a manifest is there already", "pipeline/objectstate/manifest.go", "at, objects.ErrLockLost)"},
	},
	Unreached: map[string]string{},
}
