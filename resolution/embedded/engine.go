// Package embedded answers the operations of the interface from a directory, in this
// process.
//
// The one thing to know before using it: an Engine has the directory it was made with and
// nothing else. So it is as current as that directory, safe from many goroutines, and has
// no Close.
package embedded

import (
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
)

// Options are the settings of an Engine.
type Options struct {
	// IncludeProviders also answers with companies that are access or hosting
	// providers, carriers, CDNs or VPNs.
	IncludeProviders bool
	// Listed reports whether an identifier is suppressed; nil suppresses no one. A
	// person with a suppressed identifier in the directory is never found. It is
	// called from many goroutines.
	Listed func(kind resolution.Identifier, value string) bool
}

// Engine is a resolution.Resolver and Searcher.
type Engine struct {
	directory *directory.Directory // may be nil
	options   Options
}

// New makes an engine. With a nil directory, emails have their hashes, and everything else
// is not_found.
func New(d *directory.Directory, o Options) *Engine {
	e := &Engine{directory: d, options: o}
	if d != nil && o.Listed != nil {
		d.Searches().LeaveOut(e.hidesWho)
	}
	return e
}

// The reasons of answers without a match. There are also ip_class:… for addresses that are
// never looked up, and org_type:… for providers.
const (
	NotFound  = "not_found"  // the directory does not know the key
	NoEmail   = "no_email"   // it knows the person, but no email
	NoPhone   = "no_phone"   // it knows the person, but no phone number
	NoCompany = "no_company" // it knows the range, but not its company
)
