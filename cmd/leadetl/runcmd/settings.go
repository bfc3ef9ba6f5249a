package runcmd

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/resolution/provider"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/sources"
)

// Who takes a setting, beside every run.
const (
	calls      cli.Use = cli.Marks << iota // only runs that ask who may cost something
	single                                 // of these, only for the service that --resolver names alone
	each                                   // an item of resolvers, too
	own                                    // not the workers of a run: they have their own
	aboutState                             // doctor, which with these alone reads the state
	ofSearch                               // only runs of searches
	ofList                                 // a list of searches, not a single one
	ofRows                                 // a single search, and the rows of a list that have no value
)

// who says for whom a setting is, in a list of all.
func who(s cli.Setting) (words string) {
	if s.Use&single != 0 {
		words = " [of the service that --resolver names alone]"
	}
	if s.Use&each != 0 {
		words += " [also of an item of resolvers]"
	}
	return words
}

// defaults are the settings of an empty command line.
func (f *runFlags) defaults() {
	o := client.DefaultOptions()
	f.dataset = DefaultJobFlags()
	f.encoding, f.minRows, f.state, f.workers = sources.Encodings[0], 1, wire.DefaultStateDir(), min(runtime.GOMAXPROCS(0), maxDefaultWorkers)
	f.maxRejects, f.failOn = cliflag.NewLimitShare(0.2), failOn{failed: true, rejects: true}
	f.remote.concurrency, f.remote.timeout, f.remote.giveUpAfter = o.Concurrency, o.Timeout, 15*time.Minute
	f.remote.rate, f.remote.callbacks.timeout = limit.None, 15*time.Minute
	f.remote.one = resolverSettings{variable: APIKeyVariable, keySetting: "--api-key-file", headerName: o.HeaderName, idempotent: cliflag.NewSwitch(purchase.DefaultKeyWindow)}
	f.cluster.lostAfter = 30 * time.Second
}

// table has all settings of a run.
func (f *runFlags) table() []cli.Group {
	const everyday, whole = cli.Everyday, cli.Whole
	d := &f.dataset
	on := "`address` of the Temporal server whose workers do the run: temporal://HOST:PORT/NAMESPACE; its key and certificates come from the TEMPORAL_ variables"
	if f.planning {
		on = "`address` of the Temporal server whose workers would do the run; plan checks that they could, and reads the input itself"
	}
	return slices.Concat([]cli.Group{
		{Title: "Input", Settings: []cli.Setting{
			{Name: "job", To: &f.jobFile, Use: everyday | own, Text: "YAML `file` with settings"},
			{Name: "set", To: &f.set, Use: whole | own | aboutState, Text: "`key=value` that replaces a key of the job file; repeatable; leadetl help settings lists all"},
			{Name: "operation", To: &f.operation, Use: cli.Key | own, Text: "`operation` of the job, unless it is an argument"},
			{Name: "in", To: &f.in, Use: everyday | whole, Text: "input `URI`: a path, a folder, a quoted glob, s3://bucket/key, or - for standard input; CSV or JSON Lines (.gz and .zst too) or, from files, Parquet; repeatable"},
			{Name: "wait-for-input", To: &f.arrival.Within, Use: cli.Key | own, Text: "`time` to wait until each --in has a file; then nothing of them may change for a minute, and without that in time the exit code is 5"},
			{Name: "wait-for-marker", To: &f.arrival.Marker, Use: cli.Key | own, Text: "`name` of a file that the writer leaves last beside the files of --in, such as _SUCCESS, which is waited for too"},
			{Name: "delimiter", To: &f.delimiter, Use: ofList, Text: "`character` between CSV fields, or \"tab\" (default: detected)"},
			{Name: "encoding", To: &f.encoding, Use: cli.Key | ofList, Text: "`encoding` of CSV files: " + strings.Join(sources.Encodings, ", ")},
			{Name: "skip-lines", To: &f.skipLines, Use: cli.Key | ofList, Text: "`number` of lines of a CSV file before its header"},
			{Name: "directory", To: &f.directory, Use: everyday, Text: "`folder` of reference data, made by leadetl directory import"},
			{Name: "where", To: &d.where, Use: whole, Text: "`COLUMN=VALUE` that a row must have to be in the dataset, compared as text; repeatable: all must hold"},
			{Name: "sample", To: &d.job.Sample, Text: "read the whole input, and run only this `number` of lines, spread over it (default: all)"},
			{Name: "identifier-text", To: &d.identifierText, Use: cli.Key, Text: "`what` cells may have around an identifier: any reads mailto:, Jane <jane@x.example>, for=1.2.3.4 and separators at the end; strict rejects them"},
			{Name: "include-providers", To: &d.job.IncludeProviders, Use: cli.Key, Text: "keep access providers, hosting and VPNs as companies"},
			{Name: "default-region", To: &d.job.DefaultRegion, Use: cli.Key, Text: "`region` of phone numbers without a country code"},
			{Name: "network-hosts", To: &d.job.NetworkHosts, Use: cli.Key, Text: "`hosts` whose profile URLs are recognized"},
		}},
		{Title: "Output", Settings: slices.Concat([]cli.Setting{
			{Name: "out", To: &f.out, Use: everyday, Text: "`folder` of the dataset, made if missing, or s3://bucket/prefix/"},
			{Name: "overwrite", To: &f.overwrite, Use: everyday, Text: "replace the dataset in --out"},
		}, d.ColumnSettings(), []cli.Setting{
			{Name: "rows-per-part", To: &d.job.RowsPerPart, Use: cli.Key, Text: fmt.Sprintf("input `rows` of each Parquet file (keyword_to_lead: %d)", job.SearchesPerPart)},
			{Name: "compression", To: &d.compression, Use: cli.Key, Text: "Parquet `codec`: snappy, zstd or none"},
			{Name: "max-rejects", To: &f.maxRejects, Use: everyday | own, Text: "exit with 3 when more lines than this `limit` are rejected or malformed: a count, or a share such as 1%, which fewer than " + strconv.Itoa(fewLines) + " lines never exceed"},
			{Name: "min-rows", To: &f.minRows, Use: cli.Key | own, Text: "exit with 3 when the input has less than this `number` of rows; 0 allows an input without rows"},
			{Name: "fail-on", To: &f.failOn, Use: everyday | own, Text: "exit with 3 for these `problems` of a finished dataset: failed, rejects, failed,rejects, or never", Words: []string{"failed", "rejects", "never"}},
			{Name: "state", To: &f.state, Use: cli.Machine | own | aboutState, Text: "`folder` for stored answers and the progress of unfinished runs, or s3://bucket/prefix/ (default: leadetl in XDG_STATE_HOME, or in ~/.local/state)"},
			{Name: "name", To: &f.name, Use: cli.Key, Text: "`name` of the job in --state, by which --changes-from previous, max_new_keys and the report find its earlier datasets (default: the operation and --out without partitions)"},
			{Name: "workers", To: &f.workers, Use: cli.Machine | own, Text: "`number` of look-ups and checksums at a time, and of parts of searches; columns are encoded on all cores; the dataset is the same for any number (default: the cores, at most 8)"},
		})},
	}, f.remote.groups(), []cli.Group{
		{Title: "Searches", Settings: f.search.settings()},
		{Title: "Suppression", Settings: append(f.suppress.Settings("to leave out of the dataset"),
			cli.Setting{Name: "suppressed-id", To: &d.job.SuppressedID, Use: cli.Key, Needs: "suppress", Text: "`column` with an id of your own: write it for each suppressed row, with the reason, to _suppressed in --out"},
			cli.Setting{Name: "drop-answers", To: &f.dropAnswers, Needs: "suppress", Text: "`folder`, also on S3, for the responses to California DROP lists in --suppress: one file, with its name, for the newest list of each kind"},
		)},
		{Title: "Changes", Settings: []cli.Setting{
			{Name: "changes-from", To: &f.changes.from, Use: everyday, Text: "write the rows that differ from an earlier `dataset` to _changes: its folder or URI, or previous, the last finished one of this operation and --out in --state"},
			{Name: "changes-by", To: &f.changes.with.By, Use: cli.Key, Needs: "changes-from", Text: "`column` of the input that identifies a row there, best your own id (default: key)"},
			{Name: "changes-compare", To: &f.changes.with.Compare, Use: cli.Key, Needs: "changes-from", Text: "`columns` to compare too: " + strings.Join(changes.NotCompared, ", ")},
			{Name: "changes-was", To: &f.changes.with.Was, Use: cli.Key, Needs: "changes-from", Text: "`columns` whose earlier values are written too, as was_COLUMN"},
		}},
		{Title: "S3", Settings: mark(cli.Key|own|aboutState, f.s3.Settings())},
		{Title: "Workers", Settings: []cli.Setting{
			{Name: "on", To: &f.cluster.on, Use: own, Text: on},
			{Name: "detach", To: &f.cluster.detach, Use: own, Needs: "on", Text: "with --on, submit the run and leave"},
			{Name: "lost-after", To: &f.cluster.lostAfter, Use: cli.Key | own, Needs: "on", Text: "with --on, `time` without a sign of life after which another worker takes over the steps of a worker"},
		}},
		{Title: "Logging", Settings: append(mark(own|aboutState, append([]cli.Setting{
			{Name: "quiet", To: &f.log.Quiet, Use: everyday, Text: "print errors and warnings only"},
		}, f.log.Settings()...)), mark(own, slices.Concat([]cli.Setting{
			{Name: "summary-json", To: &f.summaryJSON, Text: "`file` for the closing table as JSON, also of failed runs, with the exit code; - for standard output"},
		}, f.lineage.Settings(), []cli.Setting{
			{Name: "metrics-listen", To: &f.metricsListen, Use: cli.Key, Text: "`address` that serves /metrics for Prometheus and /healthz during the run, such as 127.0.0.1:9464"},
			{Name: "metrics-file", To: &f.metricsFile, Use: cli.Key, Text: "`file` that ends in .prom, into which these metrics are written every minute and at the end, for the textfile collector of node_exporter"},
		}))...)},
		{Title: "Notices", Settings: mark(own, f.notice.Settings())},
	})
}

// groups are the settings of who is called.
func (f *remoteFlags) groups() []cli.Group {
	const everyday, whole = cli.Everyday, cli.Whole
	return []cli.Group{
		{Title: "Answers", Settings: []cli.Setting{
			{Name: "resolver", To: &f.resolvers, Use: everyday | whole, Text: "`source` of answers: embedded, the address of a service (called through the proxy in HTTPS_PROXY if set), or the name of a provider; repeated, they are asked one after another for what is missing (default: embedded)", Words: append([]string{EmbeddedResolver}, provider.ShippedNames()...)},
			{Name: "api-key-file", To: &f.one.keyFile, Use: everyday | calls | single | own, Text: "`file` with the service's API key (default: the environment variable " + APIKeyVariable + ")"},
			{Name: "service-name", To: &f.one.stored, Use: calls | single, Text: "`name` of the service in stored answers, the same for all its addresses (default: the address in --resolver)"},
			{Name: "buy-again", To: &f.buyAgain, Use: calls, Text: "buy answers that are stored under another name of the service, instead of stopping"},
			{Name: "header-name", To: &f.one.headerName, Use: cli.Key | calls | single, Text: "`header` that carries the key; Authorization carries it as a bearer token"},
			{Name: "ca-file", To: &f.caFile, Use: cli.Key | calls | own, Text: "`file` of certificates (PEM) to trust in place of the system's"},
			{Name: "refresh-older-than", To: &f.one.refresh, Use: calls | single | each, Text: "buy stored matches again that are older than this (default: never)"},
			{Name: "refresh-no-match-older-than", To: &f.one.refreshNoMatch, Use: calls | single | each, Text: "buy stored answers without a match again that are older than this (default: never)"},
			{Name: "offline", To: &f.offline, Use: calls, Text: "use stored answers only; other rows are skipped, and settings of calls have no effect"},
			{Name: "idempotent", To: &f.one.idempotent, Use: calls | each, Text: "the service honors Idempotency-Key for this `time`, as leadetl serve does: calls without an answer are sent again with the same key while it is younger"},
			{Name: "retry-unknown", To: &f.retryUnknown, Use: calls, Text: "send the unknown calls of earlier runs again; they may be billed twice"},
			{Name: "new-key", To: &f.newKey, Use: calls, Needs: "retry-unknown", Text: "with --retry-unknown, send them under a new Idempotency-Key, for a service that repeats a stored failure; they may be billed twice"},
			{Name: "ask-all", To: &f.askAll, Use: calls, Needs: "sample", Text: "ask every resolver about every key of the sample, also if nothing is missing; leadetl plan --orders then compares orders of them; needs a budget"},
			{Name: "plain-404", To: &f.one.plain404, Use: cli.Key | calls | single, Text: "what a 404 without a code means: `miss` or stop (default: a miss, once the service has answered another key)"},
		}},
		{Title: "Budget and pace", Settings: []cli.Setting{
			{Name: "max-credits", To: &f.maxCredits, Use: everyday | calls | each, Text: "`number` of credits the dataset may cost, restarts and repairs included (default: no limit)"},
			{Name: "max-credits-per", To: &f.maxCreditsPer, Use: cli.Key | calls, Text: "`days=number` of credits that all jobs of the state may cost in so many days, today included (UTC): 30d=50000 (default: no limit)"},
			{Name: "max-credits-per-key", To: &f.perKey, Use: cli.Key | calls, Text: "`number` of credits that the answers of a row may cost: resolvers whose highest price would pass it are left out (default: no limit)"},
			{Name: "max-calls", To: &f.maxCalls, Use: calls | each, Text: "`number` of keys that may be looked up at the service for the dataset, restarts and repairs included (default: no limit)"},
			{Name: "max-new-keys", To: &f.maxNewKeys, Use: cli.Key | calls, Text: "`share` of the identifiers that may have no stored answer, such as 10%, once the job has finished a dataset: else stop before the first call (default: no limit)"},
			{Name: "max-duration", To: &f.maxDuration, Use: calls, Text: "`time` after which no more calls are sent (default: no limit)"},
			{Name: "credit-cost", To: &f.one.creditCost, Use: cli.Key | calls | single, Text: "most `credits` that one call can cost (default: the price of the operation)"},
			{Name: "rate", To: wire.Rate{Rate: &f.rate}, Use: everyday | calls | single | each, Text: "most calls sent, such as 100/s or 600/min (default: as many as the service accepts)"},
			{Name: "concurrency", To: &f.concurrency, Use: calls | each, Text: "`number` of calls in flight"},
			{Name: "timeout", To: &f.timeout, Use: cli.Key | calls | each, Text: "`time` that a call may take"},
			{Name: "give-up-after", To: &f.giveUpAfter, Use: cli.Key | calls, Text: "stop when the service cannot be reached, or refuses all calls, for this `time`; 0 waits forever"},
		}},
		{Title: "Callbacks", Settings: []cli.Setting{
			{Name: "callback-url", To: &f.callbackURL, Use: calls, Text: "`address` sent to the service as callback_url"},
			{Name: "callback-listen", To: &f.callbacks.listen, Use: calls, Text: "`address` (host:port) to receive callbacks on; also sent as callback_url unless --callback-url is given"},
			{Name: "callback-secret-file", To: &f.callbacks.secretFile, Use: cli.Key | calls, Needs: "callback-listen", Text: "`file` with the secret that signs callbacks (default: the environment variable " + CallbackSecretVariable + ")"},
			{Name: "callback-tls-cert", To: &f.callbacks.tlsCert, Use: cli.Key | calls, Needs: "callback-listen", Text: "`file` with the certificate of --callback-listen (PEM)"},
			{Name: "callback-tls-key", To: &f.callbacks.tlsKey, Use: cli.Key | calls, Needs: "callback-listen", Text: "`file` with its private key (PEM)"},
			{Name: "callback-timeout", To: &f.callbacks.timeout, Use: cli.Key | calls, Text: "`time` to wait for a callback"},
		}},
	}
}

// mark adds marks to settings.
func mark(with cli.Use, settings []cli.Setting) []cli.Setting {
	for i := range settings {
		settings[i].Use |= with
	}
	return settings
}

// tableOf has the settings of a run by name.
type tableOf struct {
	all      *pflag.FlagSet
	settings []cli.Setting // of all
}

// register registers the settings of a run, and more that a command has, in f.
func (f *runFlags) register(c *cobra.Command, more ...cli.Group) {
	f.defaults()
	f.all = pflag.NewFlagSet("settings", pflag.ContinueOnError)
	groups := append(f.table(), more...)
	cli.Register(c, f.all, groups...)
	for _, g := range groups {
		f.settings = append(f.settings, g.Settings...)
	}
}

// given are the settings with marks that are given.
func (f *tableOf) given(with cli.Use) (some []cli.Setting) {
	for _, s := range f.settings {
		if s.Use&with == with && f.all.Changed(s.Name) {
			some = append(some, s)
		}
	}
	return some
}

// check refuses settings that are given without what they need.
func (f *runFlags) check(op resolution.Operation) error {
	given := f.given(0)
	if f.worker { // its own come from its variables
		given = slices.DeleteFunc(given, func(s cli.Setting) bool { return s.Use&own != 0 })
	}
	errs := []error{cli.CheckNeeds(f.all, given)}
	for _, s := range given {
		switch {
		case s.Use&ofSearch != 0 && !op.IsKeyword():
			errs = append(errs, fmt.Errorf("%s is for keyword_to_lead and keyword_to_lead_count", s))
		case s.Use&calls != 0 && !f.isRemote():
			errs = append(errs, fmt.Errorf("%s needs a service; name its address with --resolver", s))
		case s.Use&single != 0 && s.Use&calls != 0 && !f.isService():
			errs = append(errs, fmt.Errorf("%s is for one service, named by --resolver; others have their own settings in the job file under resolvers", s))
		}
	}
	return errors.Join(errs...)
}

// PrintSettings lists all settings of a run.
func PrintSettings(to io.Writer) error {
	var f runFlags
	f.defaults()
	_, err := io.WriteString(to, settingsHeader+cli.SettingsText(f.table(), who))
	return err
}

const settingsHeader = `Each of these is a key of the job file and of --set KEY=VALUE, with _ for -, and an
environment variable: --max-credits is max_credits and LEADETL_MAX_CREDITS. Those
without -- are no flags, job and set no keys. want, providers and resolvers are
keys of the job file alone.

`
