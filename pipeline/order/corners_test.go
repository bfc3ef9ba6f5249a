package order

import "testing"

// corners are orders whose rows were worked out by hand, by what can happen to a resolver.
var corners = map[string][]fact{
	"a match has everything wanted": {
		{"the next is not asked", "email phone", []string{"a: email=1 phone=1 credits=2", "b: email=2 credits=1"}, "a", "matched by=a email=1@a phone=1@a credits=2", "a=matched*"},
		{"nor if the match is stored", "email", []string{"a: email=1 credits=1 stored", "b: email=2"}, "", "matched by=a email=1@a credits=1", "a=matched"},
		{"nor if accept takes its value", "email", []string{"a accept=email_status:valid,risky: email=1 status=risky credits=1", "b: email=2"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"reference data ends the order too", "email", []string{"dir: email=1", "b: email=2 credits=1"}, "", "matched by=dir email=1@dir", "dir=matched"},
		{"later stored answers do not count", "email", []string{"a: email=1 credits=1 stored", "b: email=listed title=cook credits=7 stored"}, "", "matched by=a email=1@a credits=1", "a=matched"},
	},
	"a match lacks something": {
		{"who is for it is asked", "email phone", []string{"a: email=1 credits=1", "b for=email: email=2", "c for=phone: phone=1 credits=3"}, "a c", "matched by=a email=1@a phone=1@c credits=4", "a=matched* c=matched*"},
		{"all of them, until it is there", "email phone", []string{"a: none credits=1", "b for=phone: phone=1 credits=1", "c for=email: email=1 credits=1"}, "a b c", "matched by=b email=1@c phone=1@b credits=3", "a=no_match* b=matched* c=matched*"},
		{"an answer fills more than it was asked for", "email phone", []string{"a: none", "b for=phone: email=2 phone=1 credits=1", "c for=email: email=3"}, "a b", "matched by=b email=2@b phone=1@b credits=1", "a=no_match* b=matched*"},
		{"a stored answer of one that is not asked does not count", "email phone", []string{"a: email=1 credits=1", "b for=email: email=2 credits=7 stored", "c: phone=1 credits=1"}, "a c", "matched by=a email=1@a phone=1@c credits=2", "a=matched* c=matched*"},
		{"also one that an outage has bought", "email phone", []string{"b else=next: email=1 credits=1", "c for=email: email=2 phone=2 credits=1 stored mine"}, "b", "matched by=b email=1@b credits=1", "b=matched*"},
		{"reference data does not have it", "email", []string{"dir: none", "b: email=2 credits=1"}, "b", "matched by=b email=2@b credits=1", "dir=no_match b=matched*"},
		{"two reference data", "email", []string{"dir1: none", "dir2: email=2", "b: email=3"}, "", "matched by=dir2 email=2@dir2", "dir1=no_match dir2=matched"},
		{"reference data comes after a call", "email phone", []string{"a: email=1 credits=1", "dir: phone=1", "c: phone=2"}, "a", "matched by=a email=1@a phone=1@dir credits=1", "a=matched* dir=matched"},
		{"nobody has it", "email phone", []string{"a: email=1 credits=1", "b: email=2 credits=1"}, "a b", "matched by=a email=1@a credits=2", "a=matched* b=matched*"},
		{"the group that has all is taken whole", "company_name company_domain", []string{"a: company=Inn credits=1", "b: domain=b.example credits=1", "c: company=Mill domain=m.example credits=1"}, "a b c", "matched by=a company_domain=m.example@c company_name=Mill@c credits=3", "a=matched* b=matched* c=matched*"},
		{"halves are not mixed", "company_name company_domain", []string{"a: company=Inn credits=1", "b: domain=b.example credits=1"}, "a b", "matched by=a company_name=Inn@a credits=2", "a=matched* b=matched*"},
		{"the credits of one answer are not known", "", []string{"a: none credits=?", "b: email=1 credits=2"}, "a b", "matched by=b email=1@b credits=?", "a=no_match* b=matched*"},
		{"the resolution is that of who answered", "email", []string{"a: none id=r1 credits=1", "b: title=cook id=r2 credits=1", "c: email=1 id=r3 credits=1"}, "a b c", "matched by=b email=1@c job_title=cook@b id=r2 credits=3", "a=no_match* b=matched* c=matched*"},
	},
	"accept refuses a value": {
		{"the next is asked, and the value stays paid", "email", []string{"a accept=email_status:valid: email=1 status=risky credits=1", "b: email=2 credits=1"}, "a b", "matched by=a email=2@b credits=2", "a=matched* b=matched*"},
		{"all are refused", "email", []string{"a accept=email_status:valid: email=1 status=risky credits=1", "b accept=email_status:valid: email=2 status=risky credits=1"}, "a b", "matched by=a credits=2", "a=matched* b=matched*"},
		{"only the group that it guards is", "email", []string{"a accept=email_status:valid: email=1 status=risky title=baker credits=1", "b: email=2 title=cook credits=1"}, "a b", "matched by=a email=2@b job_title=baker@a credits=2", "a=matched* b=matched*"},
		{"a column guards itself", "job_title", []string{"a accept=job_title:baker: title=cook credits=1", "b: title=smith credits=1"}, "a b", "matched by=a job_title=smith@b credits=2", "a=matched* b=matched*"},
		{"stored values are looked at again", "email", []string{"a accept=email_status:valid: email=1 status=risky credits=1 stored", "b: email=2 credits=1"}, "b", "matched by=a email=2@b credits=2", "a=matched b=matched*"},
	},
	"no match": {
		{"the next is asked", "", []string{"a: none credits=1", "b: none", "c: email=1 credits=2"}, "a b c", "matched by=c email=1@c credits=3", "a=no_match* b=no_match* c=matched*"},
		{"a stored one is not asked again", "", []string{"a: none credits=1 stored", "b: email=1 credits=2"}, "b", "matched by=b email=1@b credits=3", "a=no_match b=matched*"},
		{"a stale one is", "", []string{"a: none stale; email=1 credits=1", "b: email=2"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"a stale match is renewed, whatever the others have said", "", []string{"a: email=1 stale; email=3 credits=1", "b: email=2 credits=1 stored"}, "a", "matched by=a email=3@a credits=1", "a=matched*"},
		{"also if it has no match now", "", []string{"a: email=1 stale; none credits=1", "b: email=2 credits=1 stored"}, "a", "matched by=b email=2@b credits=2", "a=no_match* b=matched"},
		{"and waits for a budget", "", []string{"a: email=1 stale; budget", "b: email=2 credits=1 stored"}, "a", "skipped budget:a", ""},
		{"a stale match that cannot be renewed waits", "", []string{"a: email=1 stale; outage", "b: email=2"}, "a", "skipped unavailable:a", ""},
		{"a stale match serves a run without calls", "offline ", []string{"a: email=1 credits=1 stale; outage", "b: email=2"}, "", "matched by=a email=1@a credits=1", "a=matched"},
		{"a key that it has no request for", "", []string{"a askable=no: email=9", "b: email=1 credits=1"}, "b", "matched by=b email=1@b credits=1", "b=matched*"},
		{"which nobody has", "", []string{"a askable=no: email=9", "b askable=no: email=9"}, "", "no_match not_askable", ""},
	},
	"an outage": {
		{"the key waits", "", []string{"a: outage", "b: email=1"}, "a", "skipped unavailable:a", ""},
		{"with what was found before", "email phone", []string{"a: email=1 credits=1", "b: outage", "c: phone=1"}, "a b", "skipped unavailable:b by=a email=1@a credits=1", "a=matched*"},
		{"not with what was found after", "email phone", []string{"a: outage", "b: email=2 credits=1 stored", "c: phone=1"}, "a", "skipped unavailable:a", ""},
		{"else the next is asked", "", []string{"a else=next: outage", "b: email=1 credits=1"}, "a b", "matched by=b email=1@b skipped=a:unavailable credits=1", "b=matched*"},
		{"the next run of the job asks again", "", []string{"a else=next: email=1 credits=1", "b: email=2 credits=1 stored mine"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"it has no match then", "", []string{"a else=next: none credits=1", "b: email=2 credits=1 stored mine"}, "a", "matched by=b email=2@b credits=2", "a=no_match* b=matched*"},
		{"it is still out", "", []string{"a else=next: outage", "b: email=2 credits=1 stored mine"}, "a", "matched by=b email=2@b skipped=a:unavailable credits=1", "b=matched*"},
		{"another job has asked the next", "", []string{"a else=next: email=1", "b: email=2 credits=1 stored"}, "", "matched by=b email=2@b credits=1", "b=matched"},
		{"without one, who is between stored answers is not asked", "email phone", []string{"a else=next: email=1 credits=1", "b: title=cook credits=1", "c: phone=1 title=baker credits=1 stored"}, "a", "matched by=a email=1@a phone=1@c job_title=baker@c credits=2", "a=matched* c=matched"},
		{"what one has bought there counts once it is over", "email phone", []string{"a else=next: email=1 credits=1", "b: title=cook credits=1 stored mine", "c: phone=1 title=baker credits=1 stored"}, "a", "matched by=a email=1@a phone=1@c job_title=cook@b credits=3", "a=matched* b=matched* c=matched"},
		{"also a miss", "email phone", []string{"a else=next: email=1 credits=1", "b: none credits=1 stored mine", "c: phone=1 credits=1 stored"}, "a", "matched by=a email=1@a phone=1@c credits=3", "a=matched* b=no_match* c=matched"},
		{"made again, it is the same", "email phone", []string{"a else=next: email=1 credits=1 stored", "b: none credits=1 stored", "c: phone=1 credits=1 stored"}, "", "matched by=a email=1@a phone=1@c credits=3", "a=matched b=no_match c=matched"},
		{"two are out", "", []string{"a else=next: outage", "b else=next: outage", "c: email=1 credits=1"}, "a b c", "matched by=c email=1@c skipped=a:unavailable;b:unavailable credits=1", "c=matched*"},
		{"all are out", "", []string{"a else=next: outage", "b else=next: outage"}, "a b", "no_match no_match skipped=a:unavailable;b:unavailable", ""},
		{"the last one waits", "", []string{"a else=next: outage", "b: outage"}, "a b", "skipped unavailable:b skipped=a:unavailable", ""},
	},
	"the budget or the credits end": {
		{"the key waits", "", []string{"a: budget", "b: email=1"}, "a", "skipped budget:a", ""},
		{"also for credits", "", []string{"a: none credits=1", "b: no_credits", "c: email=1"}, "a b", "skipped no_credits:b credits=1", "a=no_match*"},
		{"also where an outage goes to the next", "", []string{"a else=next: budget", "b: email=1"}, "a", "skipped budget:a", ""},
		{"and for credits", "", []string{"a else=next: no_credits", "b: email=1"}, "a", "skipped no_credits:a", ""},
		{"not if the others have said all", "", []string{"a: budget", "b: email=1 credits=1 stored"}, "", "matched by=b email=1@b credits=1", "b=matched"},
		{"who needs nobody else is done", "email", []string{"a: email=1 credits=1", "b: budget"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
	},
	"few matches": {
		{"later keys go to the next", "", []string{"a closed: email=1", "b: email=2 credits=1"}, "b", "matched by=b email=2@b skipped=a:min_match credits=1", "b=matched*"},
		{"stored answers count", "", []string{"a closed: email=1 credits=1 stored", "b: email=2"}, "", "matched by=a email=1@a credits=1", "a=matched"},
		{"the row is the same when it is made again", "", []string{"a closed: email=1", "b: email=2 credits=1 stored mine"}, "", "matched by=b email=2@b skipped=a:min_match credits=1", "b=matched*"},
		{"and without a call", "offline ", []string{"a closed: email=1", "b: email=2 credits=1 stored"}, "", "matched by=b email=2@b skipped=a:min_match credits=1", "b=matched"},
		{"also if nobody matches", "offline ", []string{"a closed: email=1", "b: none credits=1 stored"}, "", "no_match no_match skipped=a:min_match credits=1", "b=no_match"},
		{"an unknown call stays one", "", []string{"a closed: unknown stored", "b: email=1"}, "", "failed unknown_call:a", "a=unknown_call?9"},
		{"two are closed", "email phone", []string{"a closed: email=1", "b closed for=phone: phone=1", "c: email=2 credits=1"}, "c", "matched by=c email=2@c skipped=a:min_match;b:min_match credits=1", "c=matched*"},
	},
	"an unknown end": {
		{"the key stops", "", []string{"a: unknown", "b: email=1"}, "a", "failed unknown_call:a", "a=unknown_call?9*"},
		{"also in a later run", "", []string{"a: unknown stored", "b: email=1"}, "", "failed unknown_call:a", "a=unknown_call?9"},
		{"what was paid before counts", "", []string{"a: none credits=1", "b: unknown", "c: email=1"}, "a b", "failed unknown_call:b credits=1", "a=no_match* b=unknown_call?9*"},
		{"what was found before stays", "email phone", []string{"a: email=1 credits=1", "b: unknown", "c: phone=1"}, "a b", "failed unknown_call:b by=a email=1@a credits=1", "a=matched* b=unknown_call?9*"},
		{"else the next is asked, and it stays listed", "", []string{"a else=next: unknown", "b: email=1 credits=1"}, "a b", "matched by=b email=1@b skipped=a:unknown_call credits=1", "a=unknown_call?9* b=matched*"},
		{"the others have said all", "", []string{"a: unknown stored", "b: email=2 credits=1 stored"}, "", "matched by=b email=2@b credits=1", "a=unknown_call?9 b=matched"},
	},
	"the user wants unknown calls sent once more": {
		{"it has no match", "", []string{"a retry: unknown stored; none credits=1", "b: email=2 credits=1"}, "a b", "matched by=b email=2@b credits=2", "a=no_match* b=matched*"},
		{"the row is bad", "", []string{"a retry: unknown stored; refused", "b: email=2 credits=1"}, "a b", "matched by=b email=2@b credits=1", "a=refused* b=matched*"},
		{"else the next was asked", "", []string{"a retry else=next: unknown stored mine; email=1 credits=1", "b: email=2 credits=1 stored mine"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"another dataset has left it, and the next answer", "", []string{"a retry: unknown stored; email=1 credits=1", "b: email=2 credits=1 stored"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"it is unknown again", "", []string{"a retry: unknown stored; unknown", "b: email=2 credits=1 stored"}, "a", "matched by=b email=2@b credits=1", "a=unknown_call?9* b=matched"},
		{"also else", "", []string{"a retry else=next: unknown stored; unknown", "b: email=2 credits=1 stored"}, "a", "matched by=b email=2@b skipped=a:unknown_call credits=1", "a=unknown_call?9* b=matched"},
		{"the row does not need it", "", []string{"a: email=1 credits=1 stored", "b retry: unknown stored; email=2 credits=1"}, "b", "matched by=a email=1@a credits=1", "a=matched"},
		{"the row has stopped before it", "", []string{"a: unknown stored", "b retry: unknown stored; email=2 credits=1"}, "b", "matched by=b email=2@b credits=1", "a=unknown_call?9 b=matched*"},
		{"few matches have closed it", "", []string{"a closed retry: unknown stored; email=1 credits=1", "b: email=2 credits=1"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"what it was not asked, it is not asked", "", []string{"a: email=1 credits=1", "b retry: email=2"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
	},
	"an open call may be answered": {
		{"whatever others have said", "", []string{"a: parked stored; email=1 credits=1", "b: email=2 credits=1 stored"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"else it stays noted", "", []string{"a else=next: parked stored; parked", "b: email=2 credits=1 stored"}, "a", "matched by=b email=2@b skipped=a:no_callback credits=1", "a=no_callback?9* b=matched"},
	},
	"the row is bad": {
		{"the next is asked", "", []string{"a: refused", "b: email=1 credits=1"}, "a b", "matched by=b email=1@b credits=1", "a=refused* b=matched*"},
		{"a later run asks again", "", []string{"a: refused stored; email=1 credits=1", "b: email=2"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"nor does one whose later answers are enough", "", []string{"a: refused stored; email=1", "b: email=2 credits=1 stored"}, "", "matched by=b email=2@b credits=1", "b=matched"},
		{"the same does not", "", []string{"a: refused stored mine", "b: none"}, "b", "no_match no_match", "a=refused* b=no_match*"},
		{"all who are asked refuse", "", []string{"a: refused", "b askable=no: none", "c: refused"}, "a c", "failed refused:c", "a=refused* c=refused*"},
		{"the key is denied, and nothing is stored", "", []string{"a: none credits=1", "b: denied", "c: email=1"}, "a b", "failed refused:forbidden:b credits=1", "a=no_match*"},
		{"else it goes to the next", "", []string{"a else=next: denied", "b: email=1 credits=1"}, "a b", "matched by=b email=1@b skipped=a:refused credits=1", "b=matched*"},
		{"reference data that comes after refuses nothing either", "", []string{"a: refused", "dir: none"}, "a", "no_match no_match", "a=refused* dir=no_match"},
		{"nor where few matches have closed one between", "", []string{"a: refused", "b closed: email=1", "dir: none"}, "a", "no_match no_match skipped=b:min_match", "a=refused* dir=no_match"},
		{"reference data refuses nothing", "", []string{"dir: none", "a: refused"}, "a", "no_match no_match", "dir=no_match a=refused*"},
	},
	"a later answer does not come": {
		{"the key stops", "", []string{"a: parked", "b: email=1"}, "a", "failed no_callback:a", "a=no_callback?9*"},
		{"else the next is asked", "", []string{"a else=next: parked", "b: email=1 credits=1"}, "a b", "matched by=b email=1@b skipped=a:no_callback credits=1", "a=no_callback?9* b=matched*"},
		{"a later run looks on", "", []string{"a: parked stored; email=1 credits=1", "b: email=2"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"also after the next was asked", "", []string{"a else=next: parked stored mine; email=1 credits=1", "b: email=2 credits=1 stored mine"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"a run without calls does not look", "offline ", []string{"a: parked stored; email=1", "b: email=2"}, "", "failed no_callback:a", "a=no_callback?9"},
	},
	"a listed identifier": {
		{"ends the order", "email", []string{"a: email=listed credits=1", "b: email=2"}, "a", "suppressed listed credits=1", "a=matched*"},
		{"also in a value that is refused", "email", []string{"a accept=email_status:valid: email=listed status=risky credits=1", "b: email=2"}, "a", "suppressed listed credits=1", "a=matched*"},
		{"also in reference data", "email", []string{"dir: email=listed", "b: email=2"}, "", "suppressed listed", "dir=matched"},
		{"also of a stored answer that leaves nothing missing", "email", []string{"a: email=1", "b: email=listed credits=1 stored"}, "", "suppressed listed credits=1", "b=matched"},
	},
	"a verifier": {
		{"knows the value", "email", []string{"a: email=1 credits=1 stored", "v verifies=email accept=email_status:valid: valid=1 credits=1 stored"}, "", "matched by=a email=1@a credits=2", "a=matched v=matched"},
		{"has an unknown end", "email", []string{"a: email=1 credits=1", "v verifies=email accept=email_status:valid: unknown", "b: email=2"}, "a v", "failed unknown_call:v by=a email=1@a credits=1", "a=matched* v=unknown_call?9*"},
		{"else lets the value pass", "email", []string{"a: email=1 credits=1", "v else=next verifies=email accept=email_status:valid: unknown", "b: email=2"}, "a v", "matched by=a email=1@a skipped=v:unknown_call credits=1", "a=matched* v=unknown_call?9*"},
		{"is out", "email", []string{"a: email=1 credits=1", "v verifies=email accept=email_status:valid: outage", "b: email=2"}, "a v", "skipped unavailable:v by=a email=1@a credits=1", "a=matched*"},
		{"refuses the question", "email", []string{"a: email=1 credits=1", "v verifies=email accept=email_status:valid: refused", "b: email=2 credits=1"}, "a v b", "matched by=a email=2@b credits=2", "a=matched* v=refused* b=matched*"},
		{"is asked once about a value", "email", []string{"a: email=1 credits=1", "b: email=1 credits=1", "v verifies=email accept=email_status:valid: none credits=1"}, "a v b", "matched by=a credits=3", "a=matched* b=matched* v=no_match*"},
		{"is for phones", "email phone", []string{"a: email=1 phone=1 credits=1", "v verifies=phone accept=phone_status:valid: valid=2 credits=1", "b for=phone: phone=2 credits=1"}, "a v b", "matched by=a email=1@a phone=2@b credits=3", "a=matched* v=matched* b=matched*"},
		{"refutes stored values that would be enough", "email", []string{"a: email=1 credits=1", "b: email=2 credits=1 stored", "v verifies=email accept=email_status:valid: valid=1 credits=1 stored"}, "a", "matched by=a email=1@a credits=2", "a=matched* v=matched"},
		{"is not asked without calls", "offline email", []string{"a: email=1 credits=1 stored", "v verifies=email accept=email_status:valid: valid=1"}, "", "skipped not_stored:v by=a email=1@a credits=1", "a=matched"},
	},
	"a run without calls": {
		{"passes over whom it does not need", "offline ", []string{"a: email=1", "b: email=2 credits=1 stored"}, "", "matched by=b email=2@b credits=1", "b=matched"},
		{"skips what is not stored", "offline ", []string{"a: email=1", "b: none stored"}, "", "skipped not_stored:a", ""},
		{"does not say that it passed over", "offline ", []string{"a else=next: email=1", "b: email=2 credits=1 stored"}, "", "matched by=b email=2@b credits=1", "b=matched"},
		{"goes on where an outage does", "offline ", []string{"a else=next: email=1", "b: none credits=1 stored"}, "", "no_match no_match skipped=a:not_stored credits=1", "b=no_match"},
	},
	"another order of a finished job": {
		{"one was for what is not missing", "email phone", []string{"a for=phone: phone=2", "b: phone=1 credits=1 stored", "c: none credits=1 stored"}, "", "matched by=b phone=1@b credits=2", "b=matched c=no_match"},
		{"the second is first", "", []string{"b: email=2 credits=1 stored", "a: none credits=1 stored"}, "", "matched by=b email=2@b credits=1", "b=matched"},
		{"the first was enough", "", []string{"b: email=2", "a: email=1 credits=1 stored"}, "", "matched by=a email=1@a credits=1", "a=matched"},
		{"both were needed", "email phone", []string{"b: phone=1 credits=1 stored", "a: email=1 credits=1 stored"}, "", "matched by=b email=1@a phone=1@b credits=2", "b=matched a=matched"},
		{"two that were never asked are first", "", []string{"b: email=2", "c: email=3", "a: email=1 credits=1 stored"}, "", "matched by=a email=1@a credits=1", "a=matched"},
		{"and between", "email phone", []string{"a: email=9", "b: email=1 credits=1 stored", "c: phone=9", "d: phone=1 credits=1 stored"}, "", "matched by=b email=1@b phone=1@d credits=2", "b=matched d=matched"},
		{"something is missing", "email phone", []string{"b: phone=1 credits=1", "a: email=1 credits=1 stored"}, "b", "matched by=b email=1@a phone=1@b credits=2", "b=matched* a=matched"},
		{"what is there is refused now", "email", []string{"a: email=1 credits=1", "b accept=email_status:valid: email=2 status=risky credits=1 stored"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"reference data is new", "email", []string{"dir: email=1", "a: email=2 credits=1 stored"}, "", "matched by=dir email=1@dir", "dir=matched"},
	},
}

// TestCorners: what happens at each corner, by a table.
func TestCorners(t *testing.T) {
	for corner, facts := range corners {
		for _, f := range facts {
			f.name = corner + ": " + f.name
			f.check(t)
		}
	}
}
