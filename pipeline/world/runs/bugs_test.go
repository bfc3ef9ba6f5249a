package runs

import "github.com/leadetl/leadetl/internal/testkit/worldtest"

// planted are the bugs that whole runs have to find.
var planted = worldtest.Bugs{
	{"a journal is removed before _SUCCESS", "pipeline/finish/finish.go",
		"\tif err := d.Run.Output.Publish(m); err != nil {", "\t_ = d.Journal.Remove()\n\tif err := d.Run.Output.Publish(m); err != nil {"},
	{"_SUCCESS is written before the manifest", "sinks/publish.go",
		"\treturn data, d.place.Write(name, data)", "\tif err := d.place.Write(place.SuccessName, successOf(name, data)); err != nil {\n\t\treturn nil, err\n\t}\n\treturn data, d.place.Write(name, data)"},
	{"_SUCCESS of a dataset that is replaced is removed last", "sinks/publish.go",
		"\tcase place.SuccessName:\n\t\treturn 0", "\tcase place.SuccessName:\n\t\treturn 3"},
	{"on S3, what a kill leaves of a journal that is removed counts as lost", "internal/store/log.go",
		"if listed < l.next.Number-first {", "if listed < 0 {"},
	{"a recorded part is not looked at", "pipeline/begin/resume.go",
		"err := r.Output.CheckPart(p)", "err := error(nil)"},
	{"on S3, the header of a journal is removed with the rest", "pipeline/journal/progress.go",
		"\tif err := p.folder.state.files.Remove(p.ctx, p.folder.folder+headerFile); err != nil {\n\t\treturn err\n\t}\n", ""},
	{"what was suppressed is kept after the part is recorded", "pipeline/parts/part.go",
		"\tif found := m.suppress.Found(); found != nil {\n\t\tfor _, before := range m.ofRows {\n\t\t\tfound.Add(before.Found())\n\t\t}\n\t\tif err := m.decision.Journal.KeepFound(m.number, found); err != nil {\n\t\t\treturn fmt.Errorf(\"keep what is suppressed: %w\", err)\n\t\t}\n\t}\n\treturn m.work.Log.record(ctx, m.number, sinks.Part{File: file, Files: files, Rejects: rejects, Suppressed: leftOut, Asked: asked, Totals: m.totals, FirstReject: m.first, InputDigest: m.digest.Sum()})\n", "\terr = m.work.Log.record(ctx, m.number, sinks.Part{File: file, Files: files, Rejects: rejects, Suppressed: leftOut, Asked: asked, Totals: m.totals, FirstReject: m.first, InputDigest: m.digest.Sum()})\n\tif err != nil {\n\t\treturn err\n\t}\n\tif found := m.suppress.Found(); found != nil {\n\t\tfor _, before := range m.ofRows {\n\t\t\tfound.Add(before.Found())\n\t\t}\n\t\tif err := m.decision.Journal.KeepFound(m.number, found); err != nil {\n\t\t\treturn fmt.Errorf(\"keep what is suppressed: %w\", err)\n\t\t}\n\t}\n\treturn nil\n"},
	{"a dataset counts as finished that a power cut takes back", "internal/store/folder/folder.go",
		"\tif len(made) == 0 {\n\t\tif err := in.Sync(); err != nil {", "\tif len(made) == 0 {\n\t\tif err := error(nil); err != nil {"},
	{"a dataset is compared that is not as its manifest says", "pipeline/changes/changes.go",
		"err := s.checkRecords(ctx); err != nil {", "err := s.checkRecords(ctx); err != nil && ctx.Err() != nil {"},
	{"a part stays although what it has suppressed is lost", "pipeline/begin/resume.go",
		"lost, err = append(lost, number), nil", "err = nil"},
	{"a damaged record of a part counts", "internal/store/sealed.go",
		"\t\terr = fmt.Errorf(\"%s: %w\", s.Path(name), err)\n\t}\n\treturn at, next, data, err", "\t\tif err = fmt.Errorf(\"%s: %w\", s.Path(name), err); len(sealed) > 40 {\n\t\t\tdata, err = sealed[40:], nil\n\t\t}\n\t}\n\treturn at, next, data, err"},
	{"of several resolvers only the last one's spending is known", "pipeline/job/run.go",
		"\t\tsum += spent.Paid\n", "\t\tsum = spent.Paid\n"},
	{"a row without an identifier is asked about by its values where a key is wanted", "pipeline/order/walk.go",
		"if s.Person == nil && !w.key.isPerson {", "if s.Person == nil {"},
	{"a person is asked about again in another spelling", "pipeline/keys/persons.go",
		"has[name] = person.Canonical(name, cells.Value(from))", "has[name] = cells.Value(from)"},
}
