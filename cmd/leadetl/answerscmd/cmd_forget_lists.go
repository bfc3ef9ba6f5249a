package answerscmd

import (
	"context"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// readLists reads lists of people. A digest does not tell which keys to look up, and an answer about one person
// may name another: so all stored answers are read.
func (f *forgetFlags) readLists(ctx context.Context, std cli.Streams) (lists wire.SuppressionLists, err error) {
	log := std.Log()
	flags := wire.Suppress{Lists: f.files}
	if flags.Reading.Objects, err = f.stored.s3.Open(ctx, log); err != nil {
		return lists, cli.UsageError(err)
	}
	if f.idColumn != "" {
		flags.Columns = []string{f.idColumn}
	}
	lists, err = flags.Read(ctx, f.defaultRegion, f.networkHosts)
	lists.Tell(log)
	return lists, err
}

// namesCall reports whether an open call, or its kept body, names a listed person. A body
// that cannot be unpacked is found, too: whom it names is unknown.
func namesCall(call *answers.OpenCall, who *suppression.Finder) bool {
	body, err := call.Body.Plain()
	return who.Names(call.Key) || err != nil || who.NamesInBody(body)
}
