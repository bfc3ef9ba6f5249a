package observe

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/openlineage"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sources"
)

// lineageKeyVariable is the variable from which OpenLineage clients read the
// collector's key.
const lineageKeyVariable = "OPENLINEAGE_API_KEY"

const (
	// firstRunning and runningEvery are the times of progress events.
	firstRunning = time.Second
	runningEvery = 30 * time.Second
	// maxLineageInputs bounds the inputs in an event, and maxLineageFields the columns of
	// inputs that are named as origins of columns.
	maxLineageInputs = 1000
	maxLineageFields = 10_000
)

// Told sends events about a run to a collector. Nil sends nothing.
type Told struct {
	run    *job.Run
	sender *openlineage.Sender
	id     openlineage.Run
	job    openlineage.Job
	inputs []openlineage.Dataset
	output openlineage.Dataset

	stop chan struct{}
	told sync.WaitGroup
}

// Lineage is the collector that is told in OpenLineage events what a run reads and writes.
type Lineage struct{ url, namespace string }

// Settings are those of the collector.
func (f *Lineage) Settings() []cli.Setting {
	f.namespace = "leadetl"
	return []cli.Setting{
		{Name: "openlineage-url", To: &f.url, Use: cli.Key, Text: "`address` of a collector that is told in OpenLineage events what the run reads and writes; its key is read from " + lineageKeyVariable},
		{Name: "openlineage-namespace", To: &f.namespace, Use: cli.Key, Text: "`name` of the namespace of the job in these events"},
	}
}

// IsGiven reports whether a collector is told.
func (f *Lineage) IsGiven() bool { return f.url != "" }

// Check checks the settings before a run.
func (f *Lineage) Check() error {
	if !f.IsGiven() {
		return nil
	}
	if _, err := openlineage.Address(f.url); err != nil {
		return fmt.Errorf("openlineage_url: %w", err)
	}
	if f.namespace == "" {
		return errors.New("openlineage_namespace is empty; give a name such as leads")
	}
	return nil
}

// Begin sends an event that a run starts, and further events with its
// progress.
func (f *Lineage) Begin(run *job.Run) (*Told, error) {
	if !f.IsGiven() {
		return nil, nil
	}
	address, err := openlineage.Address(f.url)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	c, err := job.ChooseColumns(run.Job, run.Input, run.Source())
	if err != nil {
		return nil, err
	}
	l := &Told{run: run, stop: make(chan struct{})}
	name, version, _ := strings.Cut(cli.ProgramVersion(), " ")
	l.id = openlineage.Run{ID: id.String(), Facets: map[string]any{"processing_engine": openlineage.ProcessingEngine(name, version)}}
	l.output = outputDataset(run, c.Layout)
	l.job = openlineage.Job{
		Namespace: f.namespace, Name: string(run.Job.Operation) + "." + path.Base("/"+l.output.Name),
		Facets: map[string]any{"jobType": openlineage.JobType("LEADETL", "RUN")},
	}
	files := run.Input.Files()
	for _, file := range files[:min(len(files), maxLineageInputs)] {
		l.inputs = append(l.inputs, inputDataset(file, f.namespace))
	}
	if from := columnsFrom(files, l.inputs, c.Layout.Inputs()); from != nil {
		l.output.Facets["columnLineage"] = openlineage.ColumnLineage(from)
	}
	if !run.Order.IsOne() {
		for _, s := range run.Order.Steps {
			l.inputs = append(l.inputs, openlineage.Dataset{Namespace: f.namespace, Name: "resolver/" + s.Name})
		}
	}
	var key secret.Text
	if text := os.Getenv(lineageKeyVariable); text != "" {
		key = secret.New(text)
	}
	l.sender = openlineage.NewSender(address, key, run.Log)
	l.sender.Send(l.event(openlineage.Start, nil))
	l.told.Go(func() {
		wait := firstRunning
		for {
			select {
			case <-l.stop:
				return
			case <-time.After(wait):
			}
			wait = runningEvery
			l.sender.Send(l.event(openlineage.Running, openlineage.OutputStatistics(run.Progress.Snapshot().Done.Rows, 0, 0)))
		}
	})
	return l, nil
}

// End sends an event with the result of the run, which ended with err. A
// dataset with problems that --fail-on names counts as complete.
func (l *Told) End(result *finish.Result, err error) {
	if l == nil {
		return
	}
	close(l.stop)
	l.told.Wait()
	state := openlineage.Fail
	switch code := cli.ExitCode(err); {
	case code == cli.ExitDone || code == cli.ExitRejects:
		state = openlineage.Complete
	case code == cli.ExitInterrupted:
		state = openlineage.Abort
	default:
		l.id.Facets["errorMessage"] = openlineage.ErrorMessage(cli.Reason(err))
	}
	var statistics any
	if result != nil {
		statistics = openlineage.OutputStatistics(outputSize(result))
	}
	l.sender.Close(l.event(state, statistics))
}

// outputSize returns the size of the dataset.
func outputSize(r *finish.Result) (rows, bytes, files int64) {
	if r.Manifest == nil {
		return r.Totals.Rows, 0, 0
	}
	for _, part := range r.Manifest.Parts {
		for _, file := range part.Data() {
			rows, bytes, files = rows+file.Rows, bytes+file.Bytes, files+1
		}
	}
	return rows, bytes, files
}

// event makes an event about the run, with the known facts of the output.
func (l *Told) event(state string, statistics any) openlineage.Event {
	output := l.output
	if statistics != nil {
		output.OutputFacets = map[string]any{"outputStatistics": statistics}
	}
	return openlineage.New(state, l.id, l.job, l.inputs, []openlineage.Dataset{output})
}

// outputDataset is the dataset without partition folders, so that every night
// of a job has the same dataset.
func outputDataset(run *job.Run, layout *columns.Layout) openlineage.Dataset {
	d := named(schema.AbovePartitions(run.Output.Dir(), run.Job.Partitions))
	var fields []openlineage.Field
	for _, c := range layout.Columns() {
		fields = append(fields, openlineage.Field{Name: c.Name, Type: c.Type, Description: c.Meaning.Text})
	}
	for _, p := range run.Job.Partitions {
		fields = append(fields, openlineage.Field{Name: p.Name, Type: "STRING"})
	}
	if name := layout.Partition(); name != "" {
		fields = append(fields, openlineage.Field{Name: name, Type: "STRING"})
	}
	d.Facets = map[string]any{"schema": openlineage.Schema(fields)}
	return d
}

// columnsFrom says which columns of the inputs each kept column of the output is; nil if
// there are none, or too many for an event.
func columnsFrom(files []sources.File, inputs []openlineage.Dataset, kept map[string]string) map[string][]openlineage.InputField {
	if len(kept) == 0 || len(inputs)*len(kept) > maxLineageFields {
		return nil
	}
	from := map[string][]openlineage.InputField{}
	for i, in := range inputs {
		names := files[i].Columns
		if files[i].NamesMayBeData() {
			continue
		}
		for output, input := range kept {
			at := slices.Index(names, input)
			if at < 0 {
				at = slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, input) })
			}
			if at >= 0 {
				from[output] = append(from[output], openlineage.InputField{Namespace: in.Namespace, Name: in.Name, Field: names[at]})
			}
		}
	}
	return from
}

// inputDataset is an input with its columns. It omits columns that look like
// data.
func inputDataset(file sources.File, namespace string) openlineage.Dataset {
	d := openlineage.Dataset{Namespace: namespace, Name: file.URI} // standard input, or searches from flags
	if file.Size >= 0 {
		d = named(file.URI)
	}
	if !file.NamesMayBeData() {
		var fields []openlineage.Field
		for _, c := range file.Columns {
			fields = append(fields, openlineage.Field{Name: c})
		}
		d.Facets = map[string]any{"schema": openlineage.Schema(fields)}
	}
	return d
}

// named returns the dataset at a path or an s3:// URI.
func named(place string) openlineage.Dataset {
	if at, err := objects.Parse(place); err == nil {
		return openlineage.Dataset{Namespace: "s3://" + at.Bucket, Name: cmp.Or(strings.Trim(at.Key, "/"), "/")}
	}
	if absolute, err := filepath.Abs(place); err == nil {
		place = absolute
	}
	return openlineage.Dataset{Namespace: "file", Name: filepath.ToSlash(place)}
}
