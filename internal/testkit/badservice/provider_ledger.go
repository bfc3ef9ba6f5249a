package badservice

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// Asked is a key of a request that a Provider has read.
type Asked struct {
	Key     string
	Billed  bool
	Credits int64
	Fate    Fate
}

// ReadLedger reads the file of a ledger: none is there before the first request, and the last line
// may be missing in part after a kill.
func ReadLedger(path string) (book []Asked, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(data) {
		var a Asked
		if json.Unmarshal(line, &a) == nil {
			book = append(book, a)
		}
	}
	return book, err
}

// Ledger returns what was asked, in order.
func (p *Provider) Ledger() []Asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.book)
}

// Requests counts the requests about keys.
func (p *Provider) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// Bills counts the bills of each key.
func Bills(book []Asked) map[string]int {
	bills := map[string]int{}
	for _, a := range book {
		if a.Billed {
			bills[a.Key]++
		}
	}
	return bills
}

// SpentOf adds up the credits of a ledger.
func SpentOf(book []Asked) (credits int64) {
	for _, a := range book {
		credits += a.Credits
	}
	return credits
}

// FatesOf counts the keys of a ledger by how their requests ended.
func FatesOf(book []Asked) map[Fate]int {
	fates := map[Fate]int{}
	for _, a := range book {
		fates[a.Fate]++
	}
	return fates
}

// note writes what became of the keys of a request, before its answer leaves. The caller holds the
// lock.
func (p *Provider) note(all ...Asked) {
	var lines []byte
	for _, a := range all {
		p.book = append(p.book, a)
		p.spent += a.Credits
		line, err := json.Marshal(a)
		if err != nil {
			panic(err) // it is always one that can be marshalled
		}
		lines = append(append(lines, line...), '\n')
	}
	if p.file != nil {
		if _, err := p.file.Write(lines); err != nil {
			panic(err) // the test cannot go on
		}
	}
}
