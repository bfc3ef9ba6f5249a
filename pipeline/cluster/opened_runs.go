package cluster

import (
	"context"
	"errors"
	"sync"
	"time"
)

// keepOpen is how long a run stays open without a step at work: opening reads
// settings, inputs and the output again.
const keepOpen = 30 * time.Second

// openedRuns are the runs that this process has opened, one opening for all
// steps at work.
type openedRuns struct {
	// open opens a run. Its context ends with the process, not with a step.
	open func(ctx context.Context, job Job, begin bool) (*Opened, error)
	life context.Context

	mu   sync.Mutex
	runs map[Job]*openedRun
	done sync.WaitGroup // closings
}

// openedRun is one of them.
type openedRun struct {
	ready chan struct{} // closed when run or err is set
	run   *Opened
	err   error
	users int
	idle  *time.Timer // nil while there are users
}

// use returns a run, opened if it is not yet. Only with begin may it be one that
// no process has begun. release must be called once.
func (o *openedRuns) use(ctx context.Context, job Job, begin bool) (run *Opened, release func(), err error) {
	o.mu.Lock()
	r := o.runs[job]
	if r == nil {
		r = &openedRun{ready: make(chan struct{})}
		o.runs[job] = r
		o.done.Add(1)
		go o.opening(job, r, begin)
	}
	r.users++
	if r.idle != nil {
		r.idle.Stop()
		r.idle = nil
	}
	o.mu.Unlock()
	release = func() { o.release(job, r) }
	select {
	case <-r.ready:
		err = r.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return r.run, release, nil
}

// opening opens a run. A run that did not open is forgotten, so that the next step
// tries again.
func (o *openedRuns) opening(job Job, r *openedRun, begin bool) {
	defer o.done.Done()
	r.run, r.err = o.open(o.life, job, begin)
	if r.err != nil {
		o.mu.Lock()
		delete(o.runs, job)
		o.mu.Unlock()
	} else {
		o.done.Add(1) // until it is closed
	}
	close(r.ready)
}

// release gives a run back. It closes after a while without users.
func (o *openedRuns) release(job Job, r *openedRun) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.users--
	if r.users > 0 || o.runs[job] != r {
		return
	}
	r.idle = time.AfterFunc(keepOpen, func() { o.closeIdle(job, r) })
}

// closeIdle closes a run, unless a step has begun to use it.
func (o *openedRuns) closeIdle(job Job, r *openedRun) {
	o.mu.Lock()
	if r.idle == nil || r.users > 0 || o.runs[job] != r {
		o.mu.Unlock()
		return
	}
	delete(o.runs, job)
	o.mu.Unlock()
	<-r.ready
	if r.err == nil {
		_ = r.run.Close() // all that it wrote is in the state
		o.done.Done()
	}
}

// close closes all runs. No step is at work any more.
func (o *openedRuns) close() error {
	o.mu.Lock()
	runs := o.runs
	o.runs = map[Job]*openedRun{}
	o.mu.Unlock()
	var errs []error
	for _, r := range runs {
		<-r.ready
		if r.err == nil {
			errs = append(errs, r.run.Close())
			o.done.Done()
		}
	}
	o.done.Wait()
	return errors.Join(errs...)
}
