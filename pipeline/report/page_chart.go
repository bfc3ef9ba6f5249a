package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/figures"
)

// chart shows values over the duration of a run. It fills the width of the
// page: X is in thousandths of the width, Y in pixels.
type chart struct {
	Title  string
	Text   string // for screen readers
	Height float64
	Areas  []area
	Lines  []gridLine // horizontal lines, highest first
	Ticks  []tick     // on the time axis
	Hovers []hover
	Table  struct { // its steps are longer if there are many
		Heads []string
		Rows  [][]string
	}
	Sum string // to the right of the title
}

type area struct {
	Kind, Name string
	Path       string
	Edge       string // the upper edge, if there is only one area
	Note       string
}

type gridLine struct {
	Y     float64
	Label string
}

type tick struct {
	X     float64 // percent
	Label string
	Last  bool
}

// hover is a strip of a chart with a tooltip.
type hover struct {
	X, Width float64
	Title    string
}

const (
	chartHeight = 150.
	minSteps    = 3   // a chart needs at least as many
	maxSeconds  = 1e9 // a longer run means a damaged report
	maxHovers   = 120
	maxRows     = 40
)

// values is the series of one area, with one number per step.
type values struct {
	kind, name string
	numbers    []float64
}

// timeline converts the steps of a series to seconds and to X.
type timeline struct {
	step, end float64
	steps     int
}

func newTimeline(r *Report) timeline {
	s := r.Series
	n := max(len(s.RowsPerSecond), len(s.CallsPerSecond))
	return timeline{s.StepSeconds, max(r.Seconds, float64(n-1)*s.StepSeconds+s.StepSeconds/1000), n}
}

func (t timeline) from(step int) float64 { return float64(step) * t.step }
func (t timeline) to(step int) float64   { return min(float64(step+1)*t.step, t.end) }
func (t timeline) x(seconds float64) float64 {
	return tenth(1000 * seconds / t.end)
}

// sum adds what is so much per second, over some steps.
func (t timeline) sum(perSecond []float64, from, to int) (sum float64) {
	for i := from; i < to && i < len(perSecond); i++ {
		sum += perSecond[i] * (t.to(i) - t.from(i))
	}
	return sum
}

// charts shows the rates and waits of a run over time. A very short run has no
// charts.
func charts(r *Report) []*chart {
	t := newTimeline(r)
	if t.steps < minSteps || t.step <= 0 || t.end > maxSeconds {
		return nil
	}
	var made []*chart
	if r.Asked() != nil && slices.Max(append(r.Series.CallsPerSecond, 0)) > 0 {
		made = append(made, rateChart(t, "Calls per second", "calls", r.Series.CallsPerSecond))
	}
	if c := waitsChart(t, r); c != nil {
		made = append(made, c)
	}
	// With a service, rows are counted in batches, which does not give a useful
	// curve.
	if r.Asked() == nil && slices.Max(append(r.Series.RowsPerSecond, 0)) > 0 {
		made = append(made, rateChart(t, "Rows per second", "rows", r.Series.RowsPerSecond))
	}
	return made
}

func rateChart(t timeline, title, noun string, numbers []float64) *chart {
	top := niceCeiling(slices.Max(numbers))
	c := newChart(t, title, top, axisRate, []values{{noun, noun, numbers}}, func(f float64) string { return rate(f) + " " + noun + "/s" })
	c.Areas[0].Edge = edge(t, make([]float64, t.steps), numbers, top)
	c.Sum = "mean " + rate(t.sum(numbers, 0, t.steps)/t.end) + ", max " + rate(slices.Max(numbers))
	c.Text = fmt.Sprintf("%s over %s: %s", title, took(t.end), c.Sum)
	return c
}

// axisRate formats a rate for the axis, where space is limited.
func axisRate(perSecond float64) string {
	if perSecond >= 10_000 {
		return figures.Short(int64(perSecond))
	}
	return figures.Decimal(perSecond)
}

// waitReasons is the order in which a chart stacks the reasons why calls wait,
// from the bottom.
var waitReasons = []struct{ reason, kind, name string }{
	{"concurrency", "wait-concurrency", "a place in flight"},
	{"rate", "wait-rate", "the rate"},
	{"look_ahead", "wait-look-ahead", "the service's limit"},
	{"retry_after", "wait-retry-after", "a pause the service asked for"},
	{"dead", "wait-dead", "a service that was down"},
}

func waitName(reason string) (kind, name string) {
	for _, w := range waitReasons {
		if w.reason == reason {
			return w.kind, w.name
		}
	}
	return "wait-other", words(reason)
}

func waitsChart(t timeline, r *Report) *chart {
	var stacked []values
	for _, w := range waitReasons {
		if numbers := r.Series.Waiting[w.reason]; len(numbers) == t.steps {
			stacked = append(stacked, values{w.kind, w.name, numbers})
		}
	}
	if len(stacked) == 0 {
		return nil
	}
	c := newChart(t, "Waiting before a call, share of the time", 1, share, stacked, share)
	var parts []string
	for i, v := range stacked {
		sum := t.sum(v.numbers, 0, t.steps)
		c.Areas[i].Note = took(sum)
		parts = append(parts, v.name+" "+took(sum))
	}
	c.Text = fmt.Sprintf("Waiting over %s: for %s", took(t.end), strings.Join(parts, ", for "))
	return c
}

func share(f float64) string { return fmt.Sprintf("%.0f%%", 100*f) }

// newChart stacks areas. axis formats the numbers of the grid; shown formats
// those of tooltips and of the table.
func newChart(t timeline, title string, top float64, axis func(float64) string, stacked []values, shown func(float64) string) *chart {
	c := &chart{Title: title, Height: chartHeight}
	for _, part := range []float64{1, 0.5, 0} {
		c.Lines = append(c.Lines, gridLine{chartHeight * (1 - part), axis(top * part)})
	}
	base := make([]float64, t.steps)
	for _, v := range stacked {
		c.Areas = append(c.Areas, area{Kind: v.kind, Name: v.name, Path: stepPath(t, base, v.numbers, top)})
		for i := range v.numbers {
			base[i] += v.numbers[i]
		}
	}
	c.Ticks = ticks(t.end)
	said := func(from, to int) []string {
		var cells []string
		for _, v := range stacked {
			cells = append(cells, shown(t.sum(v.numbers, from, to)/(t.to(to-1)-t.from(from))))
		}
		return cells
	}
	each(t.steps, maxHovers, func(from, to int) {
		text := clock(t.from(from)) + " to " + clock(t.to(to-1))
		for i, cell := range said(from, to) {
			if text += ": " + cell; len(stacked) > 1 || shown(0) == "0%" {
				text += " for " + stacked[i].name
			}
		}
		x := t.x(t.from(from))
		c.Hovers = append(c.Hovers, hover{x, tenth(t.x(t.to(to-1)) - x), text})
	})
	c.Table.Heads = []string{"From", "To"}
	for _, v := range stacked {
		c.Table.Heads = append(c.Table.Heads, strings.ToUpper(v.name[:1])+v.name[1:])
	}
	each(t.steps, maxRows, func(from, to int) {
		c.Table.Rows = append(c.Table.Rows, append([]string{clock(t.from(from)), clock(t.to(to - 1))}, said(from, to)...))
	})
	return c
}

// each splits n steps into at most most groups of equal length. The last group
// may be shorter.
func each(n, most int, do func(from, to int)) {
	length := (n + most - 1) / most
	for from := 0; from < n; from += length {
		do(from, min(from+length, n))
	}
}

// stepPath returns the path of an area of steps above a base.
func stepPath(t timeline, base, numbers []float64, top float64) string {
	var under strings.Builder
	last := math.NaN()
	for i := len(numbers) - 1; i >= 0; i-- {
		if at := chartY(base[i], top); at != last {
			if i < len(numbers)-1 {
				fmt.Fprintf(&under, "H%g", t.x(t.to(i)))
			}
			fmt.Fprintf(&under, "V%g", at)
			last = at
		}
	}
	return edge(t, base, numbers, top) + under.String() + "H0Z"
}

// edge returns the path of the upper edge of an area of steps above a base.
func edge(t timeline, base, numbers []float64, top float64) string {
	var path strings.Builder
	last := math.NaN()
	for i, n := range numbers {
		at := chartY(base[i]+n, top)
		if i == 0 {
			fmt.Fprintf(&path, "M0 %g", at)
		} else if at != last {
			fmt.Fprintf(&path, "H%gV%g", t.x(t.from(i)), at)
		}
		last = at
	}
	fmt.Fprintf(&path, "H%g", t.x(t.to(len(numbers)-1)))
	return path.String()
}

func chartY(f, top float64) float64 { return tenth(chartHeight * (1 - min(f/top, 1))) }

// niceCeiling returns a round number for the upper end of an axis.
func niceCeiling(most float64) float64 {
	if most <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, n := range []float64{1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8} {
		if most <= n*unit*(1+1e-9) {
			return n * unit
		}
	}
	return 10 * unit
}

// tickSteps are the possible distances between ticks, in seconds.
var tickSteps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600}

const maxTicks = 5

func ticks(end float64) (made []tick) {
	step := tickSteps[len(tickSteps)-1]
	for _, s := range tickSteps {
		if end/s <= maxTicks {
			step = s
			break
		}
	}
	for end/step > maxTicks {
		step *= 2
	}
	for n := range maxTicks + 1 {
		at := float64(n) * step
		if at > end {
			break
		}
		x := 100 * at / end
		made = append(made, tick{X: tenth(x), Label: clock(at), Last: x > 93})
	}
	return made
}
