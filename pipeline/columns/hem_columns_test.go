package columns_test

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/transforms/email"
)

var everyProfile = []email.Profile{email.UID2, email.Google}

// cellBatch is a batch of email_to_hem as the pipeline makes it of these
// cells, before anybody is asked.
func cellBatch(cells ...string) *columns.Batch {
	b := emptyBatch(len(cells))
	for i, cell := range cells {
		a, err := email.Parse([]byte(cell))
		if err != nil {
			b.Outcomes[i], b.Reasons[i] = outcome.Rejected, err.Error()
		} else {
			b.Keys.Data = a.AppendKey(b.Keys.Data)
		}
		b.Keys.End()
		b.Emails = append(b.Emails, a)
	}
	return b
}

// hashesOf are the hashes, by column, of the keys of a batch as the embedded engine answers
// them one by one.
func hashesOf(t interface{ Fatal(...any) }, b *columns.Batch) []map[string]any {
	engine := resolution.NewSingle(embedded.New(nil, embedded.Options{}))
	all := make([]map[string]any, b.Len())
	for i := range all {
		all[i] = map[string]any{}
		if b.Outcomes[i] == outcome.Rejected {
			continue
		}
		answer, err := engine.Resolve(context.Background(), resolution.Request{Operation: resolution.EmailToHEM, Key: string(b.Keys.At(i))})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range answer.Lead.HashedEmails {
			all[i]["hem_"+h.Type] = h.Email
		}
	}
	return all
}

const (
	md5Of    = "b58996c504c5638798eb6b511e6f49af"
	sha1Of   = "63a710569261a24b3766275b7000ce8d7b32e2f7"
	sha256Of = "b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514"
	base64Of = "tMmiiTI7IaAcPpQPFQ65uMVCWH8av9jw4cwf/F5HVRQ="
)

// What becomes of a cell. Sources: the digests of user@example.com and the
// uid2 rows are published at unifiedid.com (normalization and encoding) and
// in uid2-operator's InputNormalizationTest, the google rows in Google's
// data-manager-python tests/formatter_test.py (their base64 as hex).
func TestHEMsOfCells(t *testing.T) {
	const noHEM = `{}`
	for _, c := range []struct{ cell, want string }{
		{"user@example.com", `{"hem_md5": "` + md5Of + `", "hem_sha1": "` + sha1Of + `", "hem_sha256": "` + sha256Of + `",
			"hem_uid2_sha256_base64": "` + base64Of + `", "hem_google_sha256": "` + sha256Of + `"}`},
		{" USER@Example.com\u00a0", `{"hem_md5": "` + md5Of + `", "hem_sha1": "` + sha1Of + `", "hem_sha256": "` + sha256Of + `",
			"hem_uid2_sha256_base64": "` + base64Of + `", "hem_google_sha256": "` + sha256Of + `"}`},
		{strings.ToUpper(md5Of), `{"hem_md5": "` + md5Of + `"}`},
		{sha1Of, `{"hem_sha1": "` + sha1Of + `"}`},
		{sha256Of, `{"hem_sha256": "` + sha256Of + `"}`},
		{base64Of, `{"hem_sha256": "` + sha256Of + `"}`},
		{"", noHEM},
		{"not an address", noHEM},
		{"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", noHEM}, // of the empty string
	} {
		batch := cellBatch("first@mail.example", c.cell, "last@mail.example")
		rec := builder(t, columns.Settings{Operation: resolution.EmailToHEM, HEMProfiles: everyProfile}).Record(batch)
		requireFacts(t, without(facts(t, rec)[1]), c.want)
	}
}

func TestProfiles(t *testing.T) {
	for _, c := range []struct{ cell, uid2, google string }{
		{"JANE.SAOIRSE@gmail.com", "ku4mBX7Z3qJTXWyLFB1INzkyR2WZGW4ANSJUiW21iI8=", "92ee26057ed9dea2535d6c8b141d48373932476599196e00352254896db5888f"},
		{"JaneSaoirse+Work@gmail.com", "ku4mBX7Z3qJTXWyLFB1INzkyR2WZGW4ANSJUiW21iI8=", ""},
		{"JaneSaoirse+Work@example.com", "KKruSBUjDNO069iMUVImVQZm6RrAGZKeOtrD9mwogYA=", "28aaee4815230cd3b4ebd88c515226550666e91ac019929e3adac3f66c288180"},
		{"TEst.TEST@Test.com ", "dvECjPKZHya0/SIhSGwP0m8SgTv1vzLxPULUOsm880M=", "76f1028cf2991f26b4fd2221486c0fd26f12813bf5bf32f13d42d43ac9bcf343"},
		{"test.test@gmail.com", "LkLfFrut8Tc3h/fIvYDiBKSbaMiau/DtaLBPQYszdMw=", "2e42df16bbadf1373787f7c8bd80e204a49b68c89abbf0ed68b04f418b3374cc"},
		{"Jefferson.LOVES.Hiking@googlemail.com", "", "2824967181c781aced84c32bf8bb51fc6401202eeff88263776f63c99df9314c"},
		{"+@gmail.com", "null", ""},
		{md5Of, "null", "null"},
		{"nobody", "null", "null"},
	} {
		batch := cellBatch("first@mail.example", c.cell, "last@mail.example")
		rec := builder(t, columns.Settings{Operation: resolution.EmailToHEM, HEMProfiles: everyProfile}).Record(batch)
		row := facts(t, rec)[1]
		for column, want := range map[string]string{"hem_uid2_sha256_base64": c.uid2, "hem_google_sha256": c.google} {
			got, there := row[column]
			switch {
			case want == "": // not published
			case want == "null" && there, want != "null" && got != want:
				t.Errorf("%s %s: %v, want %s", c.cell, column, got, want)
			}
		}
	}
}

// What a service's answer changes about hem_*: nothing of an address that is
// known, and the hashes that a digest alone does not tell.
func TestHEMsOfAnsweredCells(t *testing.T) {
	const (
		ofAddress = `"hem_md5": "` + md5Of + `", "hem_sha1": "` + sha1Of + `", "hem_sha256": "` + sha256Of + `"`
		listed    = `"hashed_emails": [{"email": "m1", "type": "md5"}, {"email": "t1", "type": "sha256"}, {"email": "m2", "type": "md5"}]`
	)
	lead := &resolution.Lead{NetworkURL: "network.example/in/ada-example", HashedEmails: []resolution.HashedEmail{
		{Email: "m1", Type: "md5"}, {Email: "t1", Type: "sha256"}, {Email: "m2", Type: "md5"},
	}}
	for _, c := range []struct {
		name, cell string
		outcome    outcome.Outcome
		lead       *resolution.Lead
		want       string
	}{
		{"address, matched", "User@example.com", outcome.Matched, lead, ofAddress + "," + networkFacts + "," + listed},
		{"address, not found", "user@example.com", outcome.NoMatch, nil, ofAddress},
		{"address, unknown call", "user@example.com", outcome.Failed, nil, ofAddress},
		{"address, not stored", "user@example.com", outcome.Skipped, nil, ofAddress},
		{"md5, matched", md5Of, outcome.Matched, lead, `"hem_md5": "` + md5Of + `", "hem_sha256": "t1",` + networkFacts + "," + listed},
		{"sha1, matched", sha1Of, outcome.Matched, lead, `"hem_md5": "m1", "hem_sha1": "` + sha1Of + `", "hem_sha256": "t1",` + networkFacts + "," + listed},
		{"sha256, matched without hashes", sha256Of, outcome.Matched, &resolution.Lead{}, `"hem_sha256": "` + sha256Of + `"`},
		{"sha256, not found", sha256Of, outcome.NoMatch, nil, `"hem_sha256": "` + sha256Of + `"`},
		{"rejected", "not an address", outcome.Rejected, nil, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch := cellBatch("first@mail.example", c.cell, "last@mail.example")
			batch.Outcomes[1] = c.outcome
			batch.Answers = answersOf(nil, c.lead, lead)
			batch.Receipts = make([]outcome.Receipt, batch.Len())
			rec := builder(t, columns.Settings{Operation: resolution.EmailToHEM, Remote: true}).Record(batch)
			requireFacts(t, without(facts(t, rec)[1]), "{"+c.want+"}")
		})
	}
}

// anyCell is an address, a digest or something that is neither.
var anyCell = rapid.OneOf(
	rapid.StringMatching(`[A-Za-z.+]{1,70}@[a-z]{1,10}\.(com|example)`),
	rapid.StringMatching(`[A-Z.+a-z]{1,8}@(gmail|googlemail)\.com`),
	rapid.StringMatching(`[äöüA-Z]{1,12}@bücher\.example`),
	rapid.StringMatching(`[0-9A-Fa-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}`),
	rapid.StringMatching(`[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=`),
	rapid.SampledFrom([]string{"", "n/a", "a@b@c.example", "x y@mail.example", "d41d8cd98f00b204e9800998ecf8427e", "\xff@mail.example"}),
)

// Hashes worked out of the keys in columns equal those that the embedded engine answers the
// same keys with, and a builder that was used before makes what a fresh one makes.
func TestTwoWaysToHEMs(t *testing.T) {
	settings := columns.Settings{Operation: resolution.EmailToHEM}
	used := builder(t, settings)
	rapid.Check(t, func(rt *rapid.T) {
		cells := rapid.SliceOfN(anyCell, 0, 40).Draw(rt, "cells")
		if rapid.Bool().Draw(rt, "addresses only") { // the path without exceptions
			cells = rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,70}@mail\.example`), 0, 40).Draw(rt, "addresses")
		}
		batch := cellBatch(cells...)
		fromKeys, fresh := facts(t, used.Record(batch)), facts(t, builder(t, settings).Record(batch))
		if !reflect.DeepEqual(fromKeys, fresh) {
			rt.Fatalf("a used builder makes %v, a fresh one %v", fromKeys, fresh)
		}
		for i, want := range hashesOf(rt, batch) {
			if got := without(fromKeys[i]); !reflect.DeepEqual(got, want) {
				rt.Fatalf("%q: from the key %v, from the engine %v", cells[i], got, want)
			}
		}
	})
}

// FuzzTwoWaysToHEMs is the same of any bytes, a cell a line.
func FuzzTwoWaysToHEMs(f *testing.F) {
	f.Add([]byte("user@example.com\n" + md5Of + "\n\n" + base64Of))
	f.Add([]byte("a@b.co\n\"q q\"@b.co\nÄ@b.co"))
	settings := columns.Settings{Operation: resolution.EmailToHEM}
	f.Fuzz(func(t *testing.T, data []byte) {
		var cells []string
		for line := range bytes.Lines(data) {
			cells = append(cells, string(line))
		}
		batch := cellBatch(cells...)
		fromKeys := facts(t, builder(t, settings).Record(batch))
		for i, want := range hashesOf(t, batch) {
			if got := without(fromKeys[i]); !reflect.DeepEqual(got, want) {
				t.Errorf("%q: from the key %v, from the engine %v", cells[i], got, want)
			}
		}
	})
}
