package program_test

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestSinceRemovesWhoOptedOut: 10,000 people who opted out, each listed in one of many spellings, are in no
// file but remove, which has all of them who were in the earlier file, whether the run left them out or the export.
func TestSinceRemovesWhoOptedOut(t *testing.T) {
	const people, stay, fresh = 10_000, 500, 300
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	spell := []func(plain, google string) string{
		func(plain, _ string) string { return plain },
		func(plain, _ string) string { return strings.ToUpper(plain) },
		func(_, google string) string { return google },
		func(_, google string) string { return strings.Replace(google, "@", "+list@", 1) },
		func(_, google string) string { return google[:1] + "." + google[1:] },
		func(plain, _ string) string { sum := md5.Sum([]byte(plain)); return hex.EncodeToString(sum[:]) },
		func(plain, _ string) string {
			sum := sha1.Sum([]byte(plain))
			return strings.ToUpper(hex.EncodeToString(sum[:]))
		},
		func(plain, _ string) string { sum := sha256.Sum256([]byte(plain)); return hex.EncodeToString(sum[:]) },
		func(plain, _ string) string {
			sum := sha256.Sum256([]byte(plain))
			return base64.StdEncoding.EncodeToString(sum[:])
		},
		func(_, google string) string {
			sum := sha256.Sum256([]byte(google))
			return strings.ToUpper(hex.EncodeToString(sum[:]))
		},
		func(_, google string) string {
			sum := sha256.Sum256([]byte(google))
			return base64.RawURLEncoding.EncodeToString(sum[:])
		},
	}
	var earlier, now, optOuts strings.Builder
	earlier.WriteString("email\n")
	now.WriteString("email\n")
	gone, digests := map[string]bool{}, func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	for i := range people {
		plain := fmt.Sprintf("canary.%d+news@gmail.com", i)
		fmt.Fprintln(&optOuts, spell[i%len(spell)](plain, fmt.Sprintf("canary%d@gmail.com", i)))
		fmt.Fprintln(&now, plain)
		gone[digests(plain)] = i%5 > 0
		if i%5 > 0 { // the others were never in a file
			fmt.Fprintln(&earlier, plain)
		}
	}
	for i := range stay + fresh {
		text := fmt.Sprintf("person.%d@mail.example", i)
		fmt.Fprintln(&now, text)
		if i < stay {
			fmt.Fprintln(&earlier, text)
		}
	}
	for name, text := range map[string]string{"earlier.csv": earlier.String(), "now.csv": now.String(), "optouts.txt": optOuts.String()} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	clitest.RunRaw(t, "run", "email_to_hem", "--in", at("earlier.csv"), "--out", at("earlier"), "--state", at("state"), "--quiet")
	lists := []string{"--suppress", at("optouts.txt")}
	for by, c := range map[string]struct{ run, export []string }{"run": {run: lists}, "export": {export: lists}} {
		dataset := at("now by " + by)
		export := func(out string, more ...string) {
			clitest.RunRaw(t, slices.Concat([]string{"export", dataset, "--out", at(by + "/" + out), "--quiet"}, more, c.export)...)
		}
		clitest.RunRaw(t, slices.Concat([]string{"run", "email_to_hem", "--in", at("now.csv"), "--out", dataset, "--state", at("state"), "--quiet"}, c.run)...)
		export("changes", "--for", "x", "--since", at("earlier"))
		export("whole", "--for", "x")
		export("table", "--select", "hem_sha256", "--where", "outcome=matched")
		for folder, want := range map[string]struct{ gone, others int }{
			"changes/remove": {people - people/5, 0}, "changes/add": {0, fresh}, "whole": {0, stay + fresh}, "table": {0, 1 + stay + fresh}, // with a header
		} {
			text, err := os.ReadFile(at(by + "/" + folder + "/export-00000.csv"))
			if err != nil {
				t.Fatal(err)
			}
			optedOut, others := 0, 0
			for _, digest := range strings.Fields(string(text)) {
				switch was, out := gone[digest]; {
				case out && was:
					optedOut++
				case out:
					t.Errorf("by %s: %s has somebody who opted out and was in no file", by, folder)
				default:
					others++
				}
			}
			if optedOut != want.gone || others != want.others {
				t.Errorf("by %s: %s has %d people who opted out and %d others, want %+v", by, folder, optedOut, others, want)
			}
		}
	}
}
