package directory

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
)

// Person is one line of people.
type Person struct {
	// Contact is what there is to say; Emails holds the plain addresses.
	resolution.Contact
	// NetworkURL is the key.
	NetworkURL string
	// EmailKeys are the person's emails in the source's order: plain
	// addresses, or digests as lower-case hex where the owner had no more.
	EmailKeys []string
	// CompanyDomain is the key of the company, "" when unknown.
	CompanyDomain string
}

// Person finds a person by profile key; nil when there is none.
func (d *Directory) Person(ctx context.Context, key string) (*Person, error) {
	if d.people == nil {
		return nil, ctx.Err()
	}
	p, _, err := d.people.find(ctx, d.people.byKey, key)
	return p, err
}

// PersonByEmail finds a person by an email's key: a plain address, or the
// lower-case hex of a digest of one (any of md5, sha1, sha256 of the plain
// form, sha256 of the uid2 and google forms). emailKey is the person's email
// it stands for. nil when there is none.
//
// An address is found as it is only, plain or as its sha256: an address that
// is merely another's uid2 form may be anybody's.
func (d *Directory) PersonByEmail(ctx context.Context, key string) (p *Person, emailKey string, err error) {
	digest, address, ok := question(key)
	if d.people == nil || !ok {
		return nil, "", ctx.Err()
	}
	p, at, err := d.people.find(ctx, d.people.byDigest, digest)
	if p == nil || err != nil {
		return nil, "", err
	}
	if at >= len(p.EmailKeys) {
		return nil, "", errors.New("people: a digest is of no email")
	}
	emailKey = p.EmailKeys[at]
	if address != "" && emailKey != address && emailKey != hex.EncodeToString(digest) {
		return nil, "", nil
	}
	return p, emailKey, nil
}

type peopleReader struct {
	*sqliteFile
	byKey, byDigest *sql.Stmt
}

func openPeople(path string) (*peopleReader, error) {
	f, err := openSQLite(path)
	if err != nil {
		return nil, err
	}
	r := &peopleReader{sqliteFile: f}
	// One text for all columns: the driver's work for a column is several times
	// that of cutting it out of a text (60 µs a person became 30, and 90
	// allocations 31).
	stored := "concat_ws(char(31), " + strings.Join(peopleStored[:len(peopleStored)-1], ", ") + ", coalesce(last_seen_at, ''))"
	r.byKey, err = f.db.Prepare("SELECT 0, " + stored + " FROM people WHERE network_url = ?")
	if err == nil {
		r.byDigest, err = f.db.Prepare("SELECT email, " + stored + " FROM digests JOIN people ON id = person WHERE digest = ?")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// find runs one of the two statements. The query itself takes microseconds
// and is not interrupted: watching a context would cost more than it.
func (r *peopleReader) find(ctx context.Context, by *sql.Stmt, key any) (p *Person, email int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	var stored string
	err = by.QueryRow(key).Scan(&email, &stored)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var f [peopleFields]string
	if !cut(stored, f[:]) {
		return nil, 0, errors.New("people: a cell holds what separates cells; import them again")
	}
	p = &Person{NetworkURL: f[0], EmailKeys: imports.List(f[7]), CompanyDomain: f[13]}
	p.FirstName, p.LastName, p.Headline, p.JobTitle, p.Seniority, p.Department = f[1], f[2], f[3], f[4], f[5], f[6]
	p.Address = resolution.Address{Street: f[9], ZipCode: f[10], City: f[11], State: f[12]}
	p.FullName = strings.TrimSpace(p.FirstName + " " + p.LastName)
	for _, key := range p.EmailKeys {
		if strings.Contains(key, "@") {
			p.Emails = append(p.Emails, resolution.ContactEmail{Email: key})
		}
	}
	if len(p.Emails) > 0 {
		p.Email = p.Emails[0].Email
	}
	for _, number := range imports.List(f[8]) {
		p.Phones = append(p.Phones, resolution.ContactPhone{Phone: number})
	}
	if f[14] != "" {
		micros, err := strconv.ParseInt(f[14], 10, 64)
		if err != nil {
			return nil, 0, errors.New("people: last_seen_at is no moment")
		}
		at := time.UnixMicro(micros).UTC()
		p.LastSeenAt = &at
	}
	return p, email, nil
}
