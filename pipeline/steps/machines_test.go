package steps

import (
	"reflect"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/report"
)

// TestMachines: the report has what each worker has done, also one that opened the
// run twice, and one that was killed. A worker that is late leaves nothing behind.
func TestMachines(t *testing.T) {
	m := newMachines(t)
	ctx := t.Context()
	first, err := OpenSized(ctx, m.run(nil), m.state(), 300)
	if err != nil {
		t.Fatal(err)
	}
	second, again, uncounted := m.join(), m.join(), m.join()
	fine := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fine(first.TakePart(ctx, "one"))
	fine(second.TakePart(ctx, "two"))
	fine(again.TakePart(ctx, "one"))
	fine(m.join().TakePart(ctx, "three"))
	for file := range len(m.uris) {
		fine(first.Survey(ctx, file))
		fine(first.Worked(ctx, "survey", time.Second))
	}
	d, err := second.Divide(ctx)
	fine(err)
	fine(second.Worked(ctx, "divide", 0))
	for window := range d.Windows {
		_, err := again.Make(ctx, window)
		fine(err)
		fine(again.Worked(ctx, "make", time.Millisecond))
		fine(uncounted.Worked(ctx, "make", time.Hour)) // it takes no part
	}
	result, err := second.Finish(ctx)
	fine(err)
	files, windows := int64(len(m.uris)), int64(len(d.Windows))
	want := []report.Machine{
		{Number: 1, Steps: map[string]int64{"survey": files, "make": windows}, BusySeconds: float64(files) + float64(windows)/1000},
		{Number: 2, Steps: map[string]int64{"divide": 1}},
		{Number: 3, Steps: map[string]int64{}},
	}
	if got := result.Report.Machines; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	fine(first.Worked(ctx, "make", time.Second))
	fine(m.join().TakePart(ctx, "four"))
	if left := m.left(); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
