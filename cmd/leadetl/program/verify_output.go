package program

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/pipeline/verify"
	"github.com/leadetl/leadetl/sinks/warehouse"
)

// verification is the printed result of verify.
type verification struct {
	dataset string
	result  *verify.Result
	took    time.Duration
	target  warehouse.Dialect // empty for none
	changes string            // how those since an earlier dataset were checked; empty without any
	issues  []warehouse.Issue
}

// fails counts the reasons why the target cannot load the dataset.
func (v verification) fails() (n int) {
	for _, issue := range v.issues {
		if issue.Fails {
			n++
		}
	}
	return n
}

func (v verification) print(to io.Writer) error {
	if r := v.result; !r.Whole() {
		out := bufio.NewWriter(to)
		for _, failure := range r.Failures {
			fmt.Fprintln(out, invisible.Escape(failure.String()))
		}
		if r.More > 0 {
			fmt.Fprintf(out, "… and %s more\n", figures.Grouped(int64(r.More)))
		}
		return out.Flush()
	}
	t := v.result.Manifest.Totals
	table := runview.Table{Title: v.dataset + ": verified"}
	rows := "of " + v.result.Manifest.Operation
	if v.result.Manifest.HasPlaces() {
		rows += ", in the order of the input"
	}
	table.Count("rows", t.Rows, rows)
	table.Count("matched", t.Matched, figures.Share(t.Matched, t.Rows))
	table.CountIfAny("malformed", t.Malformed, "lines in _rejects")
	table.Count("columns", int64(len(v.result.Columns)), "unpacked by two readers, every value compared")
	table.Count("files", int64(v.result.Files), "with their checksums, "+figures.Size(v.result.Bytes))
	if v.changes != "" {
		table.Text("changes", v.changes)
	}
	table.Text("took", v.speed())
	if err := table.Print(to); err != nil {
		return err
	}
	return v.printIssues(to)
}

// printIssues lists what the target does not accept.
func (v verification) printIssues(to io.Writer) error {
	if v.target == "" {
		return nil
	}
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, string(v.target))
	for _, issue := range v.issues {
		kind := "note "
		if issue.Fails {
			kind = "fails"
		}
		fmt.Fprintf(out, "  %s  %s\n", kind, invisible.Escape(issue.String()))
	}
	if advice := adviceOf(v.issues); advice != "" {
		fmt.Fprintf(out, "  note   %s\n", invisible.Escape(advice))
	}
	if len(v.issues) == 0 {
		fmt.Fprintln(out, "  no issues found")
	}
	return out.Flush()
}

func (v verification) speed() string {
	took := v.took.Round(10 * time.Millisecond).String()
	if v.took < time.Second {
		return took
	}
	return fmt.Sprintf("%s, %s rows/s", took, figures.Grouped(int64(float64(v.result.Rows)/v.took.Seconds())))
}

// verificationJSON is a verification in JSON output.
type verificationJSON struct {
	Dataset  string            `json:"dataset"`
	Whole    bool              `json:"whole"`
	Rows     int64             `json:"rows"`
	Files    int               `json:"files"`
	Bytes    int64             `json:"bytes"`
	Seconds  float64           `json:"seconds"`
	Failures []verify.Failure  `json:"failures"`
	More     int               `json:"more_failures,omitempty"`
	Target   string            `json:"target,omitempty"`
	Issues   []warehouse.Issue `json:"trips,omitempty"`
}

func (v verification) printJSON(to io.Writer) error {
	r := v.result
	failures := append([]verify.Failure{}, r.Failures...)
	return json.NewEncoder(to).Encode(verificationJSON{v.dataset, r.Whole(), r.Rows, r.Files, r.Bytes, v.took.Seconds(), failures, r.More, string(v.target), v.issues})
}
