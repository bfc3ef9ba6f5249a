package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/resolution"
)

// flow is a Sankey diagram of the lines of a run: columns of bars, connected by
// bands. The thickness of a band is its number of lines. The diagram fills the
// width of the page: X is in thousandths of the width, Y in pixels.
type flow struct {
	Head   string // label of the input
	Height float64
	Bars   []flowBar
	Bands  []band
	Inside []flowLabel // labels of the bars in the middle
	Ends   []flowLabel // labels of the bars at the end
	Text   string      // the same in words
}

type flowBar struct {
	Kind           string
	X, Top, Bottom float64
}

type band struct {
	Kind  string
	Path  string
	Title string
}

type flowLabel struct {
	X, Y  float64 // X in percent, Y of the center
	Name  string
	Count string
	Share string
	Title string
}

// tally counts what has one name. Its kind is a class of page.css.
type tally struct {
	kind, name string
	count      int64
}

const (
	flowFull        = 230. // height of all lines, in pixels
	flowLeast       = 2.   // height of the smallest group, in pixels
	flowGap         = 10.
	flowLabelHeight = 40. // height of a label with two lines, in pixels
)

// slot is the place of a bar in a column. Its space is at least as high as the
// bar.
type slot struct {
	height, space float64
	top           float64 // top of the bar
	in, out       float64 // how much of the bar is connected on each side
}

// rowsFlow draws the outcomes of the lines of a dataset.
func rowsFlow(r *Report) *flow {
	t := r.Totals
	answered := []tally{{"matched", "matched", t.Matched}, {"no-match", "no match", t.NoMatch}, {"failed", "failed", t.Failed}, {"skipped", "skipped", t.Skipped}}
	dropped := []tally{{"suppressed", "suppressed", t.Suppressed}, {"rejected", "rejected", t.Rejected}, {"malformed", "malformed", t.Malformed}}
	f := drawFlow(lines(t), ways(r), answered, dropped)
	if shown := percent(t.Matched, t.Rows); !unfinished(r) && t.Matched > 0 && f.Ends[0].Share == shown {
		f.Ends[0].Share = "" // a tile has it
	}
	f.Head = count(lines(t), "line") + " in"
	if t.Searches > 0 {
		f.Head = count(t.Rows, "row") + " of " + plural(t.Searches, "search", "searches")
	} else if t.SourceRows > 0 {
		f.Head = count(t.Rows, "row") + " of " + count(t.SourceRows, "input row")
	}
	f.Text = f.Head + ": " + f.Text
	return f
}

// ways counts how the answered rows of a dataset got their answers. It is empty
// if the report does not cover every row.
func ways(r *Report) []tally {
	s, t := r.Asked(), r.Totals
	if s == nil || t.Searches > 0 {
		return nil
	}
	fresh := answered(r.Fresh) + r.Fresh.Skipped
	unasked := fresh - s.Calls.Asked - s.Calls.Duplicates
	byAddress := resolution.Operation(r.Operation).Identifier() == resolution.IP
	if unasked < 0 || unasked > 0 && !byAddress {
		return nil // the run was stopped in the middle of a part
	}
	called := tally{"called", "called", s.Calls.Asked - s.Calls.Stored}
	if s.Offline {
		called.name = "not stored"
	}
	stored := tally{"stored", "stored", s.Calls.Stored}
	if r.Resolvers != nil {
		stored.name = "no call"
	}
	return present([]tally{
		called,
		stored,
		{"duplicates", "duplicates", s.Calls.Duplicates},
		{"unasked", "not asked", unasked},
		{"earlier", "earlier", answered(t) + t.Skipped - fresh},
	})
}

// questionsFlow draws the progress of a run that stopped before its parts were
// complete.
func questionsFlow(r *Report) *flow {
	c := r.Asked().Calls
	open := c.Asked - c.Closed
	f := drawFlow(c.Asked, present([]tally{{"called", "called", c.Closed - c.Skipped - c.Stored}, {"stored", "stored", c.Stored}}),
		[]tally{{"matched", "matched", c.Matched}, {"no-match", "no match", c.Closed - c.Matched - c.Failed - c.Skipped}, {"failed", "failed", c.Failed}},
		[]tally{{"skipped", "skipped", c.Skipped}, {"open", "open", open}})
	f.Head = count(c.Asked, "identifier") + " so far"
	f.Text = f.Head + ": " + f.Text
	return f
}

func present(ends []tally) []tally {
	return slices.DeleteFunc(ends, func(e tally) bool { return e.count <= 0 })
}

// drawFlow draws all lines from their ways, if known, to their ends. Dropped
// lines bypass the ways.
func drawFlow(all int64, ways, answered, dropped []tally) *flow {
	answered, dropped = present(answered), present(dropped)
	heights := func(ends []tally) (list []float64, sum float64) {
		for _, e := range ends {
			h := max(flowLeast, flowFull*float64(e.count)/float64(max(all, 1)))
			list, sum = append(list, h), sum+h
		}
		return list, sum
	}
	wayHeights, waySum := heights(ways)
	endHeights, endSum := heights(answered)
	dropHeights, dropSum := heights(dropped)
	through := max(waySum, endSum) // they differ if small groups are drawn larger than their share
	fit(wayHeights, through-waySum)
	fit(endHeights, through-endSum)

	f := &flow{}
	source := []*slot{newSlot(through+dropSum, 0)}
	last := newSlots(flowLabelHeight, endHeights, dropHeights)
	columns := [][]*slot{source, last}
	xs := []float64{0, 1000}
	if len(ways) > 0 && len(answered) > 0 {
		between := slices.Concat(newSlots(flowLabelHeight, wayHeights), newSlots(0, dropHeights))
		joint := newSlots(0, []float64{through}, dropHeights)
		columns, xs = [][]*slot{source, between, joint, last}, []float64{0, 300, 660, 1000}
	}
	for _, c := range columns {
		f.Height = max(f.Height, columnHeight(c))
	}
	for _, c := range columns {
		place(c, f.Height)
	}

	joined := source[0]
	if len(columns) == 4 {
		joined = columns[2][0]
		for i, w := range ways {
			s := columns[1][i]
			title := w.name + " " + figures.Grouped(w.count)
			f.bar(w.kind, xs[1], s)
			f.band(w.kind, title, xs[0], source[0], xs[1], s)
			f.band(w.kind, title, xs[1], s, xs[2], joined)
			f.Inside = append(f.Inside, flowLabel{X: xs[1] / 10, Y: s.top + s.height/2, Name: w.name, Count: figures.Grouped(w.count), Title: wayTitles[w.kind]})
		}
		f.bar("joint", xs[2], joined)
	}
	for i, e := range answered {
		f.band(e.kind, e.name+" "+figures.Grouped(e.count), xs[len(xs)-2], joined, 1000, last[i])
	}
	for i, e := range dropped {
		for n := range len(columns) - 1 {
			from, to := columns[n][max(0, len(columns[n])-len(dropped)+i)], columns[n+1][len(columns[n+1])-len(dropped)+i]
			if n == 0 {
				from = source[0]
			}
			f.band(e.kind, e.name+" "+figures.Grouped(e.count), xs[n], from, xs[n+1], to)
		}
	}
	f.bar("source", 0, source[0])
	var words []string
	for i, e := range slices.Concat(answered, dropped) {
		s := last[i]
		f.bar(e.kind, 1000, s)
		label := flowLabel{Y: s.top + s.height/2, Name: e.name, Count: figures.Grouped(e.count), Share: percent(e.count, all), Title: endTitles[e.kind]}
		f.Ends = append(f.Ends, label)
		words = append(words, fmt.Sprintf("%s %s (%s)", label.Name, label.Count, label.Share))
	}
	f.Text = strings.Join(words, ", ")
	return f
}

// wayTitles and endTitles explain the labels of a flow.
var (
	wayTitles = map[string]string{
		"called":     "identifiers that were sent to the service",
		"stored":     "identifiers that a stored answer answered",
		"duplicates": "rows with an identifier of another row",
		"unasked":    "addresses that no service knows anything about, such as private ones",
		"earlier":    "rows of parts that earlier runs made",
	}
	endTitles = map[string]string{
		"matched":    "something was found",
		"no-match":   "nothing was found",
		"failed":     "no usable answer came",
		"skipped":    "not asked",
		"suppressed": "on a suppression list",
		"rejected":   "the identifier is invalid",
		"malformed":  "lines that could not be read as rows",
		"open":       "no answer yet; the next run continues with them",
	}
)

func newSlot(height, least float64) *slot { return &slot{height: height, space: max(height, least)} }

func newSlots(least float64, heights ...[]float64) (slots []*slot) {
	for _, h := range slices.Concat(heights...) {
		slots = append(slots, newSlot(h, least))
	}
	return slots
}

// fit adds missing to the largest height.
func fit(heights []float64, missing float64) {
	if len(heights) > 0 {
		at := slices.Index(heights, slices.Max(heights))
		heights[at] += missing
	}
}

func columnHeight(slots []*slot) float64 {
	sum := flowGap * float64(max(len(slots)-1, 0))
	for _, s := range slots {
		sum += s.space
	}
	return sum
}

// place arranges the slots of a column from top to bottom, centered vertically.
func place(slots []*slot, height float64) {
	y := (height - columnHeight(slots)) / 2
	for _, s := range slots {
		s.top = y + (s.space-s.height)/2
		y += s.space + flowGap
	}
}

func (f *flow) bar(kind string, x float64, s *slot) {
	f.Bars = append(f.Bars, flowBar{kind, x, tenth(s.top), tenth(s.top + s.height)})
}

// band connects two slots. It is as thick as the free part of both.
func (f *flow) band(kind, title string, x0 float64, from *slot, x1 float64, to *slot) {
	h := min(from.height-from.out, to.height-to.in)
	y0, y1, mid := from.top+from.out, to.top+to.in, (x0+x1)/2
	from.out += h
	to.in += h
	path := fmt.Sprintf("M%g %.1fC%g %.1f %g %.1f %g %.1fV%.1fC%g %.1f %g %.1f %g %.1fZ",
		x0, y0, mid, y0, mid, y1, x1, y1, y1+h, mid, y1+h, mid, y0+h, x0, y0+h)
	f.Bands = append(f.Bands, band{kind, path, title})
}
