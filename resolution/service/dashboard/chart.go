package dashboard

import (
	"fmt"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// chart is a bar for each day, stacked by operation. It fills the width of the
// page: a day is 10 units wide, and its height is 100.
type chart struct {
	Text   string // for screen readers
	Width  int
	Bars   []bar
	Legend []legend
	Top    int64
	Days   [3]string // the first, the middle and the last
}

type bar struct {
	X, Y, Height float64
	Color        int
	Title        string
}

type legend struct {
	Color   int
	Name    string
	Credits int64
}

// colors is how many colours the style has for operations.
const colors = 10

// spending draws the credits of each day, by what Operation of the usage names. It is
// nil when none were spent.
func spending(use []state.Usage, from time.Time, days int, by string) *chart {
	byDay := make([]map[string]int64, days)
	total := map[string]int64{}
	for _, u := range use {
		n := int(u.Day.Sub(from) / (24 * time.Hour))
		if u.Credits == 0 || n < 0 || n >= days {
			continue
		}
		if byDay[n] == nil {
			byDay[n] = map[string]int64{}
		}
		byDay[n][u.Operation] += u.Credits
		total[u.Operation] += u.Credits
	}
	if len(total) == 0 {
		return nil
	}
	var operations []string
	for name := range total {
		operations = append(operations, name)
	}
	slices.Sort(operations)
	c := &chart{Width: days * 10}
	var sum int64
	for i, name := range operations {
		c.Legend = append(c.Legend, legend{i % colors, name, total[name]})
		sum += total[name]
	}
	for _, day := range byDay {
		var spent int64
		for _, credits := range day {
			spent += credits
		}
		c.Top = max(c.Top, spent)
	}
	c.Top = ceiling(c.Top)
	for n, day := range byDay {
		below := 0.
		for i, name := range operations {
			height := 100 * float64(day[name]) / float64(c.Top)
			if height == 0 {
				continue
			}
			c.Bars = append(c.Bars, bar{float64(n)*10 + 1, 100 - below - height, height, i % colors,
				fmt.Sprintf("%s, %s: %s", from.AddDate(0, 0, n).Format(time.DateOnly), name, figures.Plural(day[name], "credit"))})
			below += height
		}
	}
	for i, n := range []int{0, days / 2, days - 1} {
		c.Days[i] = from.AddDate(0, 0, n).Format("2 Jan")
	}
	c.Text = fmt.Sprintf("%s in %d days, by %s; a table below has the numbers", figures.Plural(sum, "credit"), days, by)
	return c
}

// ceiling rounds n up to 1, 2 or 5 times a power of ten.
func ceiling(n int64) int64 {
	for power := int64(1); ; power *= 10 {
		for _, f := range []int64{1, 2, 5} {
			if f*power >= n {
				return f * power
			}
		}
	}
}
