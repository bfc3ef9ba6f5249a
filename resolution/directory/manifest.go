package directory

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/shellword"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// manifestName is the file that names the files of the directory. Replacing it is the
// commit point of an import.
const manifestName = "directory.json"

// manifestFormat grows when older programs cannot read the files. Manifests of older
// formats are read, because they name the files to import again.
const manifestFormat = 6

func (e entry) columnar() bool { return strings.HasSuffix(e.File, "."+values.DirectoryFormat) }

// checkFormats refuses files of earlier programs in dir, with the command that imports them again.
func (m manifest) checkFormats(dir string) error {
	var old []string
	command := "leadetl directory import --directory " + shellword.Quote(dir)
	for _, k := range Kinds {
		if e, ok := m.Kinds[k]; ok && !e.columnar() {
			old = append(old, string(k))
			command += fmt.Sprintf(" --%s %s", k, shellword.Quote(cmp.Or(e.Source, "FILE")))
		}
	}
	if old == nil {
		return nil
	}
	return fmt.Errorf("%w: an earlier version of leadetl imported %s into %s; the rules have changed, so import again, with the paths of the files and the other flags of that import: %s",
		resolution.ErrInvalid, strings.Join(old, ", "), dir, command)
}

type manifest struct {
	Format     int            `json:"format"`
	Generation int64          `json:"generation"` // grows with every import
	Kinds      map[Kind]entry `json:"kinds"`
	// Joins is the file of the companies of people and of owners of IP ranges; nil if there are none.
	Joins *entry `json:"joins,omitempty"`
	// Retired are the replaced searches, the oldest first.
	Retired []retired `json:"retired,omitempty"`
}

// entry is an imported kind. It has counts, but no data.
type entry struct {
	File     string    `json:"file"`     // name in the folder
	Source   string    `json:"source"`   // base name of the imported file
	Rows     int64     `json:"rows"`     // imported lines; networks of an MMDB
	Keys     int64     `json:"keys"`     // distinct keys among them, see KindStat.Keys
	Bytes    int64     `json:"bytes"`    // size of File
	SHA256   string    `json:"sha256"`   // of File
	Content  string    `json:"content"`  // sha256 of the normalised rows
	Imported time.Time `json:"imported"` // UTC
	// PhoneRules are those that described the phones of people.
	PhoneRules string `json:"phone_rules,omitempty"`
	// OrgTypes are the kinds that the import named for words of org_type, and UnknownWords
	// the words that are no known kind.
	OrgTypes     map[string]string `json:"org_types,omitempty"`
	UnknownWords []orgtype.Count   `json:"unknown_words,omitempty"`
}

func readManifest(dir string) (manifest, [sha256.Size]byte, error) {
	var m manifest
	path := filepath.Join(dir, manifestName)
	text, err := os.ReadFile(path)
	if err != nil {
		return m, [sha256.Size]byte{}, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, [sha256.Size]byte{}, fmt.Errorf("%w: %s: %w", resolution.ErrInvalid, path, err)
	}
	if m.Format < 1 || m.Format > manifestFormat {
		return m, [sha256.Size]byte{}, format.Check(path, m.Format, manifestFormat, "import again, into another folder")
	}
	odd := func(e entry) bool { return e.File != filepath.Base(e.File) || !dataFile.MatchString(e.File) }
	for kind, e := range m.Kinds {
		if odd(e) {
			return m, [sha256.Size]byte{}, fmt.Errorf("%w: %s names an odd file for %s", resolution.ErrInvalid, path, kind)
		}
	}
	if m.Joins != nil && odd(*m.Joins) {
		return m, [sha256.Size]byte{}, fmt.Errorf("%w: %s names an odd file for %s", resolution.ErrInvalid, path, joins)
	}
	for _, r := range m.Retired {
		if odd(r.entry) {
			return m, [sha256.Size]byte{}, fmt.Errorf("%w: %s names an odd file for retired %s", resolution.ErrInvalid, path, Searches)
		}
	}
	return m, sha256.Sum256(text), nil
}

// readOrBeginManifest is readManifest for a folder that may not be a directory yet. Then it
// writes an empty manifest before any data. So the data of a killed import differ from
// data that lost their manifest, which must not be removed.
func readOrBeginManifest(dir string) (m manifest, begun bool, err error) {
	m, _, err = readManifest(dir)
	if m.Kinds == nil {
		m.Kinds = map[Kind]entry{}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return m, false, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return m, false, err
	}
	for _, f := range files {
		if dataFile.MatchString(f.Name()) {
			return m, false, fmt.Errorf("%w: %s has %s but no %s, which says what is in it: put that back, or remove the data files to begin anew",
				resolution.ErrInvalid, dir, f.Name(), manifestName)
		}
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), ".") {
			return m, false, fmt.Errorf("%w: %s holds other files (%s); choose an empty or new folder for the directory", resolution.ErrInvalid, dir, f.Name())
		}
	}
	m.Format = manifestFormat
	return m, true, m.write(dir)
}

func (m manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, manifestName), append(text, '\n'))
}

// dataFile matches the names of data files: kind, generation, format. A name is never used
// again, so a reader that opens a file late gets the right one or none.
var dataFile = regexp.MustCompile(`^(people|companies|ip-ranges|searches|visits|joins)-[0-9]{6,}\.(sqlite|mmdb|columns|spool|cols[0-9]*)$`)

func dataFileName(k Kind, generation int64, format string) string {
	return fmt.Sprintf("%s-%06d.%s", k, generation, format)
}

// sweep removes data files that m does not name: replaced ones, and those of a killed
// import. It leaves files with other names alone.
func (m manifest) sweep(dir string) error {
	named := map[string]bool{}
	for _, e := range m.Kinds {
		named[e.File] = true
	}
	if m.Joins != nil {
		named[m.Joins.File] = true
	}
	for _, r := range m.Retired {
		named[r.File] = true
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		name := f.Name()
		if atomicfile.IsNameless(name) {
			errs = append(errs, os.Remove(filepath.Join(dir, name)))
			continue
		}
		if atomicfile.IsTemp(name) {
			name = name[1 : len(name)-len(filepath.Ext(name))]
			if name == manifestName || dataFile.MatchString(name) {
				errs = append(errs, os.Remove(filepath.Join(dir, f.Name())))
			}
			continue
		}
		if dataFile.MatchString(name) && !named[name] {
			errs = append(errs, os.Remove(filepath.Join(dir, name)))
		}
	}
	return errors.Join(errs...)
}
