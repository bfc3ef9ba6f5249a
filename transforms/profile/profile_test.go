package profile

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The network's own addresses, all of them published or observed forms.
// Source: vectors/profile_urls.csv of the identity rules.
var networkFacts = []struct {
	name, in, key string
	kind          Kind
}{
	{"country, case", "https://uk.linkedin.com/in/Jane-Doe-82a505", "linkedin.com/in/jane-doe-82a505", Person},
	{"www, trailing slash", "http://www.linkedin.com/in/jane-doe-82a505/", "linkedin.com/in/jane-doe-82a505", Person},
	{"no scheme, upper", "LINKEDIN.COM/IN/JANE-DOE-82A505", "linkedin.com/in/jane-doe-82a505", Person},
	{"query and fragment", "https://www.linkedin.com/in/jane-doe-82a505?trk=public_profile&originalSubdomain=uk#about", "linkedin.com/in/jane-doe-82a505", Person},
	{"locale after the slug", "https://www.linkedin.com/in/jane-doe-82a505/en", "linkedin.com/in/jane-doe-82a505", Person},
	{"page below the slug", "https://www.linkedin.com/in/jane-doe-82a505/details/experience/", "linkedin.com/in/jane-doe-82a505", Person},
	{"mobile path", "https://www.linkedin.com/m/in/jane-doe-82a505", "linkedin.com/in/jane-doe-82a505", Person},
	{"mobile lite path", "https://www.linkedin.com/mwlite/in/jane-doe-82a505", "linkedin.com/in/jane-doe-82a505", Person},
	{"mobile host", "https://m.linkedin.com/in/jane-doe-82a505", "linkedin.com/in/jane-doe-82a505", Person},
	{"deep link of the app", "linkedin://in/jane-doe-82a505", "linkedin.com/in/jane-doe-82a505", Person},
	{"encoded without need", "www.linkedin.com/in/jane%2Ddoe%2D82a505", "linkedin.com/in/jane-doe-82a505", Person},
	{"encoded UTF-8", "https://fr.linkedin.com/in/andr%C3%A9-dupont", "linkedin.com/in/andré-dupont", Person},
	{"encoded and decomposed", "https://fr.linkedin.com/in/andre%CC%81-dupont", "linkedin.com/in/andré-dupont", Person},
	{"encoded, lower hex", "https://fr.linkedin.com/in/andr%c3%a9-dupont", "linkedin.com/in/andré-dupont", Person},
	{"pub reverses its numbers", "https://uk.linkedin.com/pub/jane-doe/a7/576/b50?trk=x", "linkedin.com/in/jane-doe-b50576a7", Person},
	{"pub pads the second", "https://uk.linkedin.com/pub/jane-doe/58/75/162", "linkedin.com/in/jane-doe-16207558", Person},
	{"pub pads the third", "https://www.linkedin.com/pub/jane-doe/29/314/b", "linkedin.com/in/jane-doe-00b31429", Person},
	{"pub does not pad the first", "http://uk.linkedin.com/pub/jane-doe/9/159/486/", "linkedin.com/in/jane-doe-4861599", Person},
	{"member id keeps its case", "https://www.linkedin.com/in/ACoAAABCdEfGhIjKlMnOpQrStUvWxYz0123456", "linkedin.com/in/ACoAAABCdEfGhIjKlMnOpQrStUvWxYz0123456", Person},
	{"company", "https://www.linkedin.com/company/Acme-Inc/", "linkedin.com/company/acme-inc", Company},
	{"company, page below", "https://www.linkedin.com/company/acme-inc/about/?viewAsMember=true", "linkedin.com/company/acme-inc", Company},
	{"company by number", "https://www.linkedin.com/company/1035", "linkedin.com/company/1035", Company},
	{"school", "https://www.linkedin.com/school/test-university/", "linkedin.com/school/test-university", School},
	{"showcase", "https://www.linkedin.com/showcase/acme-labs/", "linkedin.com/showcase/acme-labs", Showcase},
	{"company beyond ASCII", "https://cn.linkedin.com/company/%E4%B8%AD%E5%9B%BD", "linkedin.com/company/中国", Company},

	// Not of the vectors.
	{"angle brackets and space", " <https://www.linkedin.com/in/jane-doe> \r\n", "linkedin.com/in/jane-doe", Person},
	{"byte order mark", "\uFEFFlinkedin.com/in/jane-doe", "linkedin.com/in/jane-doe", Person},
	{"no scheme but slashes", "//www.linkedin.com/in/jane-doe", "linkedin.com/in/jane-doe", Person},
	{"user and port", "https://me:secret@www.linkedin.com:443/in/jane-doe", "linkedin.com/in/jane-doe", Person},
	{"port without scheme", "www.linkedin.com:443/in/jane-doe", "linkedin.com/in/jane-doe", Person},
	{"root dot", "https://www.linkedin.com./in/jane-doe", "linkedin.com/in/jane-doe", Person},
	{"country and www", "https://www.uk.linkedin.com/in/jane-doe", "linkedin.com/in/jane-doe", Person},
	{"doubled slashes", "https://www.linkedin.com//in//jane-doe", "linkedin.com/in/jane-doe", Person},
	{"address in the query", "linkedin.com/in/jane-doe?u=https://x.example/", "linkedin.com/in/jane-doe", Person},
	{"what follows the slug is not read", "linkedin.com/in/jane-doe/%zz%FF", "linkedin.com/in/jane-doe", Person},
	{"other member id", "linkedin.com/in/ACwAAABc", "linkedin.com/in/ACwAAABc", Person},
	{"not a member id", "linkedin.com/in/ACxAAABc", "linkedin.com/in/acxaaabc", Person},
	{"dotted capital I", "linkedin.com/in/%C4%B0pek", "linkedin.com/in/ipek", Person},
	{"composed in lower case only", "linkedin.com/in/J%CC%8Cana", "linkedin.com/in/ǰana", Person},
	{"joiner inside a name", "linkedin.com/in/%D8%B9%D9%84%DB%8C%E2%80%8C%D8%B1%D8%B6%D8%A7", "linkedin.com/in/علی\u200cرضا", Person},
	{"pub in capitals", "linkedin.com/PUB/Jane-Doe/A7/576/B50", "linkedin.com/in/jane-doe-b50576a7", Person},
	{"link of a mail", "https://www.linkedin.com/comm/in/jane-doe", "linkedin.com/in/jane-doe", Person},
	{"underscore", "linkedin.com/in/jane_doe", "linkedin.com/in/jane_doe", Person},
	{"apostrophe beyond ASCII", "linkedin.com/in/o%E2%80%99connor", "linkedin.com/in/o’connor", Person},
	{"signs beyond ASCII", "linkedin.com/in/%E2%9C%94-jane-%E2%9C%94", "linkedin.com/in/✔-jane-✔", Person},

	// An address or a page behind /in/. Source: public reports of doubled prefixes.
	{"doubled", "https://www.linkedin.com/in/https://www.linkedin.com/in/ann-one", "linkedin.com/in/ann-one", Person},
	{"doubled, country", "https://www.linkedin.com/in/https://de.linkedin.com/in/Bob-Two?trk=x", "linkedin.com/in/bob-two", Person},
	{"doubled, one slash", "https://www.linkedin.com/in/https:/www.linkedin.com/in/ann-one/", "linkedin.com/in/ann-one", Person},
	{"doubled, http, capitals", "https://www.linkedin.com/IN/HTTP://www.LinkedIn.com/in/Ann-One", "linkedin.com/in/ann-one", Person},
	{"doubled, encoded", "https://www.linkedin.com/in/https%3A%2F%2Fwww.linkedin.com%2Fin%2Fann-one%3Ftrk%3Dx", "linkedin.com/in/ann-one", Person},
	{"doubled, encoded, lower hex", "linkedin.com/in/http%3a%2f%2fwww.linkedin.com%2fin%2fandr%c3%a9/?trk=x", "linkedin.com/in/andré", Person},
	{"doubled, colon encoded", "linkedin.com/in/https%3A//www.linkedin.com/in/ann-one", "linkedin.com/in/ann-one", Person},
	{"doubled, without scheme", "linkedin.com/in/linkedin.com/in/ann-one", "linkedin.com/in/ann-one", Person},
	{"doubled, mobile host", "linkedin.com/in/m.linkedin.com/in/ann-one/details", "linkedin.com/in/ann-one", Person},
	{"doubled, slashes alone", "linkedin.com/in///uk.linkedin.com/pub/ann-one/16/788/187", "linkedin.com/in/ann-one-18778816", Person},
	{"doubled, colon lost", "https://www.linkedin.com/in/https//www.linkedin.com/in/ann-one", "linkedin.com/in/ann-one", Person},
	{"doubled, colon lost, http", "linkedin.com/in/http/linkedin.com/in/ann-one", "linkedin.com/in/ann-one", Person},
	{"three times", "linkedin.com/in/https://linkedin.com/in/https://linkedin.com/in/ann", "linkedin.com/in/ann", Person},
	{"deep link", "linkedin://in/https://www.linkedin.com/in/ann-one", "linkedin.com/in/ann-one", Person},
	{"member id", "linkedin.com/in/https://linkedin.com/in/ACoAAABc", "linkedin.com/in/ACoAAABc", Person},
	{"in twice", "https://www.linkedin.com/in/in/ann-one", "linkedin.com/in/ann-one", Person},
	{"pub behind in", "http://au.linkedin.com/in/pub/ann-one/16/788/187", "linkedin.com/in/ann-one-18778816", Person},
	{"mobile behind in", "linkedin.com/in/mwlite/in/ann-one", "linkedin.com/in/ann-one", Person},
	{"company behind in", "linkedin.com/in/company/acme", "linkedin.com/company/acme", Company},
	{"company pasted", "linkedin.com/in/https://www.linkedin.com/company/acme", "linkedin.com/company/acme", Company},
	{"page of another host", "linkedin.com/in/https://people.example/view?b=2&a=1", "people.example/view?a=1&b=2", Other},
	{"page of another host, encoded", "linkedin.com/in/https%3A%2F%2Fpeople.example%2Fview%3Fid%3D1?trk=x", "people.example/view?id=1", Other},
	{"page of another host, www", "linkedin.com/in/www.people.example/ada?id=1", "people.example/ada?id=1", Other},

	// Text around a copied address.
	{"parameter without ?", "https://www.linkedin.com/in/jane-doe&trk=abc", "linkedin.com/in/jane-doe", Person},
	{"parameter of HTML", "https://www.linkedin.com/in/jane-doe&amp;trk=abc", "linkedin.com/in/jane-doe", Person},
	{"parameter, encoded", "https://www.linkedin.com/in/jane-doe%26trk%3Dabc", "linkedin.com/in/jane-doe", Person},
	{"full stop", "https://www.linkedin.com/in/jane-doe.", "linkedin.com/in/jane-doe", Person},
	{"bracket", "https://www.linkedin.com/in/jane-doe)", "linkedin.com/in/jane-doe", Person},
	{"bracket, comma-free end", "https://www.linkedin.com/in/jane-doe).", "linkedin.com/in/jane-doe", Person},
	{"quote", "https://www.linkedin.com/in/jane-doe'", "linkedin.com/in/jane-doe", Person},
	{"quote, encoded", "https://www.linkedin.com/in/jane-doe%22", "linkedin.com/in/jane-doe", Person},
	{"curly quote and ellipsis", "https://www.linkedin.com/in/jane-doe”…", "linkedin.com/in/jane-doe", Person},
	{"exclamation", "https://www.linkedin.com/in/jane-doe!/", "linkedin.com/in/jane-doe", Person},
	{"at sign", "https://www.linkedin.com/in/@jane-doe", "linkedin.com/in/jane-doe", Person},
	{"at sign, encoded", "https://www.linkedin.com/in/%40jane-doe", "linkedin.com/in/jane-doe", Person},
	{"invisible end", "https://www.linkedin.com/in/jane-doe%E2%80%8B%EF%B8%8F", "linkedin.com/in/jane-doe", Person},
	{"blank of Braille", "https://www.linkedin.com/in/jane-doe\u2800", "linkedin.com/in/jane-doe", Person},
	{"pub, bracket", "linkedin.com/pub/jane-doe./a7/576/b50", "linkedin.com/in/jane-doe-b50576a7", Person},
}

func TestNetworkPages(t *testing.T) {
	for _, f := range networkFacts {
		got, err := DefaultRules().Parse(f.in)
		if err != nil || got != (URL{f.key, f.kind}) {
			t.Errorf("%s: Parse(%q) = %v, %v, want %q, %v", f.name, f.in, got, err, f.key, f.kind)
		}
		again, err := DefaultRules().Parse(f.key)
		if err != nil || again != got {
			t.Errorf("%s: Parse(%q) = %v, %v, want itself", f.name, f.key, again, err)
		}
	}
}

func TestElsewhere(t *testing.T) {
	for _, f := range []struct{ name, in, key string }{
		{"as it is", "network.example/in/ada-example", "network.example/in/ada-example"},
		{"general steps", " https://www.Network.example:8443/m//In/Ada-Example/?utm_source=x#top ", "network.example/in/ada-example"},
		{"mobile host", "http://m.network.example/in/ada-example", "network.example/in/ada-example"},
		{"no country is taken off", "https://uk.network.example/in/ada", "uk.network.example/in/ada"},
		{"www is the site", "https://www.example/ada", "www.example/ada"},
		{"what follows stays", "network.example/in/ada/Details", "network.example/in/ada/Details"},
		{"case of another shape stays", "https://people.example/U/AdaB", "people.example/U/AdaB"},
		{"decoded and composed", "people.example/andre%CC%81", "people.example/andré"},
		{"signs stay encoded", "people.example/a%20b%2fc%3F%252c", "people.example/a%20b%2Fc%3F%252c"},
		{"address in the query of a page of the shape", "network.example/in/ada?from=https%3A%2F%2Fx.example", "network.example/in/ada?from=https%3A%2F%2Fx.example"},
		{"in twice stays", "network.example/in/in/ada", "network.example/in/in/ada"},

		// The query may be the person.
		{"person in the query", "https://www.facebook.com/profile.php?id=100001", "facebook.com/profile.php?id=100001"},
		{"on a mobile host", "https://m.facebook.com/profile.php?id=100001&ref=bookmarks", "facebook.com/profile.php?id=100001"},
		{"name in the query", "https://news.ycombinator.com/user?id=Ann", "news.ycombinator.com/user?id=Ann"},
		{"port and user", "https://me:secret@crm.example:8443/view?contact=1#top", "crm.example/view?contact=1"},
		{"value alone", "board.example/read.php?1423", "board.example/read.php?1423"},
		{"no path", "https://people.example?p=12", "people.example/?p=12"},
		{"page of the shape", "network.example/in/view?id=1", "network.example/in/view?id=1"},
		{"sorted by name", "x.example/v?c=3&a=1&b=2", "x.example/v?a=1&b=2&c=3"},
		{"same names in their order", "x.example/v?id=2&a=1&id=1", "x.example/v?a=1&id=2&id=1"},
		{"bytes as typed", "x.example/v?B=%7e+%C3%a9&a=X%26y=z", "x.example/v?B=%7e+%C3%a9&a=X%26y=z"},
		{"empty ones go", "x.example/v?&&a=1&&b=2&", "x.example/v?a=1&b=2"},
		{"fragments without a name", "x.example/v?a=1#about", "x.example/v?a=1"},
		{"campaign in the fragment", "x.example/ada#utm_source=y", "x.example/ada"},
		{"marked text", "x.example/ada#:~:text=Ada,a=1", "x.example/ada"},
		{"only ?", "x.example/v?", "x.example/v"},
		{"only &", "x.example/v?&&", "x.example/v"},
		{"tracking goes", "x.example/ada?utm_source=a&utm_id=b&gclid=c&fbclid=d&msclkid=e&mc_cid=f&mc_eid=g&trk=h&ref=i", "x.example/ada"},
		{"tracking in other spellings", "x.example/v?UTM_Source=a&id=1&utm%5Fmedium=b&GCLID=c&amp;utm_term=d&FBclid", "x.example/v?id=1"},
		{"tracking may lead on", "x.example/ada?utm_source=linkedin.com&ref=https://y.example", "x.example/ada"},
		{"names like tracking stay", "x.example/v?refid=1&trkid=2&utm=3&mcid=4", "x.example/v?mcid=4&refid=1&trkid=2&utm=3"},
		{"semicolons are no separators", "x.example/v?b=1;a=2", "x.example/v?b=1;a=2"},
		{"commas", "x.example/v?at=1.5,2.5&id=3", "x.example/v?at=1.5,2.5&id=3"},
		{"question mark in the query", "x.example/v?b=1?a=2&a=3", "x.example/v?a=3&b=1?a=2"},
		{"some parameters without a value", "x.example/v?id=7&x=&y=null", "x.example/v?id=7&x=&y=null"},
		{"host beyond ASCII, query", "https://BÜCHER.example/p?ID=é", "bücher.example/p?ID=é"},
		{"host beyond ASCII", "https://BÜCHER.example/ada", "bücher.example/ada"},
	} {
		got, err := DefaultRules().Parse(f.in)
		if err != nil || got != (URL{f.key, Other}) {
			t.Errorf("%s: Parse(%q) = %v, %v, want %q", f.name, f.in, got, err, f.key)
		}
		again, err := DefaultRules().ParsePerson(f.key)
		if err != nil || again != f.key {
			t.Errorf("%s: ParsePerson(%q) = %q, %v, want itself", f.name, f.key, again, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, f := range []struct {
		name, in string
		want     error
	}{
		// Source: vectors/profile_urls.csv of the identity rules.
		{"sales id, not to be converted offline", "https://www.linkedin.com/sales/lead/ACwAAABCdEfGhIjKlMnOpQrStUvWxYz0123456,NAME_SEARCH,abcd", ErrInvalid},
		{"no slug", "https://www.linkedin.com/in/", ErrInvalid},
		{"network as a prefix", "https://linkedin.com.evil.example/in/jane", ErrInvalid},
		{"network as a suffix without dot", "https://notlinkedin.com/in/jane", ErrInvalid},
		{"post", "https://www.linkedin.com/feed/update/urn:li:activity:123", ErrInvalid},
		{"bare slug", "jane-doe-82a505", ErrInvalid},
		{"redirect", "https://www.google.com/url?q=https%3A%2F%2Fwww.linkedin.com%2Fin%2Fjane", ErrInvalid},

		// Nobody's address. Source: public reports of placeholders.
		{"undefined", "https://www.linkedin.com/in/undefined", ErrEmpty},
		{"undefined, page below", "https://www.linkedin.com/in/undefined/details/", ErrEmpty},
		{"null in capitals", "linkedin.com/in/NULL", ErrEmpty},
		{"None", "https://uk.linkedin.com/in/None?trk=x", ErrEmpty},
		{"n/a", "linkedin.com/in/n/a", ErrEmpty},
		{"n/a, encoded", "linkedin.com/in/N%2FA", ErrInvalid},
		{"NaN", "linkedin.com/in/NaN", ErrEmpty},
		{"own page", "https://www.linkedin.com/in/me/", ErrEmpty},
		{"own page, below", "https://www.linkedin.com/in/me/edit", ErrEmpty},
		{"page that is gone", "https://www.linkedin.com/in/unavailable/", ErrEmpty},
		{"hyphen", "https://www.linkedin.com/in/-", ErrEmpty},
		{"hyphens", "https://www.linkedin.com/in/--", ErrEmpty},
		{"undefined with a tail", "https://www.linkedin.com/in/undefined&trk=x", ErrEmpty},
		{"undefined, doubled", "linkedin.com/in/https://linkedin.com/in/undefined", ErrEmpty},
		{"undefined elsewhere", "network.example/in/undefined", ErrEmpty},
		{"undefined, no kind", "people.example/undefined", ErrEmpty},
		{"undefined in the query", "https://www.facebook.com/profile.php?id=undefined", ErrEmpty},
		{"nothing in the query", "https://www.facebook.com/profile.php?id=&utm_source=x", ErrEmpty},
		{"object", "linkedin.com/in/[object%20Object]", ErrInvalid},
		{"template", "linkedin.com/in/{{slug}}", ErrInvalid},
		{"parameter of a route", "linkedin.com/in/:slug", ErrInvalid},

		// No slug behind /in/.
		{"page kind alone", "linkedin.com/in/in", ErrInvalid},
		{"pub alone", "linkedin.com/in/pub/", ErrInvalid},
		{"pub behind in without numbers", "linkedin.com/in/pub/jane", ErrInvalid},
		{"scheme alone", "linkedin.com/in/https://", ErrInvalid},
		{"host alone", "linkedin.com/in/www.linkedin.com", ErrInvalid},
		{"pasted post", "linkedin.com/in/https://www.linkedin.com/feed/update/1", ErrInvalid},
		{"pasted, encoded twice", "linkedin.com/in/https%253A%252F%252Flinkedin.com%252Fin%252Fann", ErrInvalid},
		{"another scheme", "linkedin.com/in/javascript:void(0)", ErrInvalid},
		{"email", "linkedin.com/in/jane@example.com", ErrInvalid},
		{"file", "linkedin.com/in/index.html", ErrInvalid},
		{"lost bytes", "linkedin.com/in/jos\uFFFD", ErrInvalid},
		{"a sign before a scheme", "linkedin.com/in/@https://www.linkedin.com/in/ann", ErrInvalid},
		{"page kind before a parameter", "linkedin.com/in/in&trk=x", ErrInvalid},
		{"scheme without colon", "linkedin.com/in/https", ErrInvalid},
		{"old page of people", "linkedin.com/in/profile/view?id=1", ErrInvalid},
		{"its end", "https://www.linkedin.com/in/view?id=1", ErrInvalid},
		{"invisible inside", "linkedin.com/in/unde\u200Bfined", ErrInvalid},
		{"only signs", "linkedin.com/in/***", ErrInvalid},
		{"behind each other without end", strings.Repeat("linkedin.com/in/", 40) + "ann", ErrInvalid},

		{"route of a script", "https://people.example/users#/ada", ErrInvalid},
		{"old route of a script", "https://people.example/#!/ada", ErrInvalid},
		{"person in the fragment", "https://people.example/users#id=1", ErrInvalid},
		{"space in the query", "people.example/v?name=Jane Doe", ErrInvalid},
		{"invisible in the query", "people.example/v?a=\u200B1", ErrInvalid},
		{"variation selector in the host", "peo\uFE0Fple.example/ada", ErrInvalid},

		// Not of the vectors.
		{"nothing", "", ErrEmpty},
		{"only marks", " \u200B<>\uFEFF", ErrEmpty},
		{"null word", "NULL", ErrEmpty},
		{"null word with slash", "n/a", ErrEmpty},
		{"not UTF-8", "linkedin.com/in/andr\xe9", ErrInvalidUTF8},
		{"encoded Latin-1", "linkedin.com/in/andr%E9", ErrInvalidUTF8},
		{"encoded Latin-1 elsewhere", "people.example/andr%E9", ErrInvalidUTF8},
		{"broken escape", "linkedin.com/in/jane%2", ErrInvalid},
		{"encoded twice", "linkedin.com/in/andr%25C3%25A9", ErrInvalid},
		{"encoded query", "linkedin.com/in/jane%3Ftrk=x", ErrInvalid},
		{"space in the slug", "linkedin.com/in/jane doe", ErrInvalid},
		{"dots for a slug", "linkedin.com/in/..", ErrInvalid},
		{"list with commas", "linkedin.com/in/a, linkedin.com/in/b", ErrMultiple},
		{"list with semicolons", "https://linkedin.com/in/a;https://linkedin.com/in/b", ErrMultiple},
		{"list in lines", "https://linkedin.com/in/a\nhttps://linkedin.com/in/b", ErrMultiple},
		{"other scheme", "mailto:jane@example.com", ErrInvalid},
		{"other scheme with slashes", "ftp://linkedin.com/in/jane", ErrInvalid},
		{"scheme twice", "http://https://linkedin.com/in/jane", ErrInvalid},
		{"only the network", "https://www.linkedin.com", ErrInvalid},
		{"only a host", "https://ada.example/", ErrInvalid},
		{"kind without slug elsewhere", "network.example/in/", ErrInvalid},
		{"host of one label", "https://localhost/in/jane", ErrInvalid},
		{"host with a space", "linked in.com/in/jane", ErrInvalid},
		{"block of addresses", "10.0.0.0/24", ErrInvalid},
		{"email", "jane@example.com", ErrInvalid},
		{"list of namesakes", "linkedin.com/pub/dir/Jane/Doe", ErrInvalid},
		{"pub without numbers", "linkedin.com/pub/jane-doe", ErrInvalid},
		{"pub with words", "linkedin.com/pub/jane-doe/a/b/zz", ErrInvalid},
		{"archive", "https://web.archive.example/web/2020/https://www.linkedin.com/in/jane", ErrInvalid},
		{"cache", "https://cache.example/search?q=cache:linkedin.com/in/jane", ErrInvalid},
		{"redirect to anywhere", "https://go.example/r?to=http%3a%2f%2fx.example", ErrInvalid},
		{"redirect of the network", "https://www.linkedin.com/redir/redirect?url=https%3A%2F%2Fx.example", ErrInvalid},
	} {
		if got, err := DefaultRules().Parse(f.in); err != f.want {
			t.Errorf("%s: Parse(%q) = %v, %v, want %v", f.name, f.in, got, err, f.want)
		}
		if key, err := DefaultRules().ParsePerson(f.in); err != f.want || key != "" {
			t.Errorf("%s: ParsePerson(%q) = %q, %v, want %v", f.name, f.in, key, err, f.want)
		}
	}
}

func TestParsePerson(t *testing.T) {
	for _, f := range []struct {
		in, key string
		err     error
	}{
		{"https://uk.linkedin.com/in/Jane-Doe", "linkedin.com/in/jane-doe", nil},
		{"https://network.example/in/ada-example/", "network.example/in/ada-example", nil},
		{"https://people.example/ada", "people.example/ada", nil},
		{"https://people.example/company", "", ErrInvalid},
		{"https://www.linkedin.com/company/acme-inc", "", ErrNotProfile},
		{"https://www.linkedin.com/school/test-university", "", ErrNotProfile},
		{"https://www.linkedin.com/showcase/acme-labs", "", ErrNotProfile},
		{"https://network.example/company/acme-example", "", ErrNotProfile},
	} {
		if key, err := DefaultRules().ParsePerson(f.in); key != f.key || err != f.err {
			t.Errorf("ParsePerson(%q) = %q, %v, want %q, %v", f.in, key, err, f.key, f.err)
		}
	}
}

func TestOtherNetworks(t *testing.T) {
	rules := Rules{Hosts: []string{"network.example", "de.network.example"}}
	for _, f := range []struct {
		in   string
		want URL
		err  error
	}{
		{"https://uk.network.example/pub/Ada/1/2/3", URL{"network.example/in/ada-0030021", Person}, nil},
		{"https://www.de.network.example/in/Ada/en", URL{"de.network.example/in/ada", Person}, nil},
		{"network://in/ada", URL{"network.example/in/ada", Person}, nil},
		{"https://mynetwork.example/in/ada", URL{}, ErrInvalid},
		{"https://www.linkedin.com/in/Jane", URL{"linkedin.com/in/jane", Other}, nil},
	} {
		if got, err := rules.Parse(f.in); got != f.want || err != f.err {
			t.Errorf("Parse(%q) = %v, %v, want %v, %v", f.in, got, err, f.want, f.err)
		}
	}
}

// TestVectors reads the file the tables above restate, where it is at hand.
func TestVectors(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "vectors", "profile_urls.csv"))
	if err != nil {
		t.Skip("the vectors are not beside the project")
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		in, canonical, kind := row[0], row[1], row[2]
		got, err := DefaultRules().Parse(in)
		if canonical == "" {
			if err != ErrInvalid {
				t.Errorf("Parse(%q) = %v, %v, want %v (%s)", in, got, err, ErrInvalid, row[3])
			}
			continue
		}
		if err != nil || got.Key != canonical || !strings.HasPrefix(kind, got.Kind.String()) {
			t.Errorf("Parse(%q) = %v, %v, want %q, %s", in, got, err, canonical, kind)
		}
	}
}
