package pace

import "time"

// Window is a limit of calls, or of keys, in any time of a length. Calls are not spaced under it:
// they leave at once until it is used up.
type Window struct {
	Count int
	Per   time.Duration
	Keys  bool // it counts keys
}

// window is a Window with what has left in it.
type window struct {
	Window
	marks []mark // by time
	used  int    // the sum of marks
}

// mark is what has left in a short time.
type mark struct {
	from, to time.Time
	n        int
}

const (
	// slack is how much longer a window is taken to be: calls do not take the same time to arrive.
	slack = time.Second
	// marksOf is how many marks a full window has at most.
	marksOf = 4096
)

// take counts a call with some keys.
func (w *window) take(at time.Time, keys int) {
	n := w.counts(keys)
	w.used += n
	if last := len(w.marks) - 1; last >= 0 && at.Sub(w.marks[last].from) < w.Per/marksOf {
		w.marks[last].to = at
		w.marks[last].n += n
		return
	}
	w.marks = append(w.marks, mark{at, at, n})
}

// takeBack undoes take for the last call, which had one key.
func (w *window) takeBack() {
	if last := len(w.marks) - 1; last >= 0 {
		w.used--
		w.marks[last].n--
	}
}

func (w *window) counts(keys int) int {
	if w.Keys {
		return keys
	}
	return 1
}

// opens is when a call with some keys fits that leaves after some others with as many; zero if it
// fits now.
func (w *window) opens(now time.Time, keys, others int) (at time.Time) {
	gone := 0
	for gone < len(w.marks) && !now.Before(w.end(gone)) {
		w.used -= w.marks[gone].n
		gone++
	}
	w.marks = w.marks[gone:]
	over := w.used + (others+1)*w.counts(keys) - w.Count
	for i := 0; i < len(w.marks) && over > 0; i++ {
		at = w.end(i)
		over -= w.marks[i].n
	}
	return at
}

func (w *window) end(i int) time.Time { return w.marks[i].to.Add(w.Per + slack) }

// Recall counts a call of an earlier process with some keys. Calls come in the order of their times,
// before the first Acquire.
func (c *Controller) Recall(at time.Time, keys int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takeWindows(at, keys)
}

func (c *Controller) takeWindows(at time.Time, keys int) {
	for i := range c.windows {
		c.windows[i].take(at, keys)
	}
}

// opens is when all windows have room.
func (c *Controller) opens(now time.Time, keys, others int) (at time.Time) {
	for i := range c.windows {
		if opens := c.windows[i].opens(now, max(keys, 1), others); opens.After(at) {
			at = opens
		}
	}
	return at
}
