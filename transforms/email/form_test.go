package email

import "testing"

// forms are the profiles' forms of addresses; "" for none. former is the one of
// GoogleUntil202608.
var forms = []struct{ name, cell, plain, uid2, google, former string }{
	{"anywhere", "Jane.Doe+News@Example.com", "jane.doe+news@example.com", "jane.doe+news@example.com", "jane.doe+news@example.com", "jane.doe+news@example.com"},
	{"gmail", "Jane.Doe+News@Gmail.com", "jane.doe+news@gmail.com", "janedoe@gmail.com", "janedoe@gmail.com", "janedoe+news@gmail.com"},
	{"googlemail", "Jane.Doe+News@googlemail.com", "jane.doe+news@googlemail.com", "jane.doe+news@googlemail.com", "janedoe@googlemail.com", "janedoe+news@googlemail.com"},
	{"dots of the tag", "j.d+a.b@gmail.com", "j.d+a.b@gmail.com", "jd@gmail.com", "jd@gmail.com", "jd+ab@gmail.com"},
	{"two tags", "j.d+a+b@googlemail.com", "j.d+a+b@googlemail.com", "j.d+a+b@googlemail.com", "jd@googlemail.com", "jd+a+b@googlemail.com"},
	{"root dot", "J.D@gmail.com.", "j.d@gmail.com", "jd@gmail.com", "jd@gmail.com", "jd@gmail.com"},
	{"below gmail", "j.d+a@mail.gmail.com", "j.d+a@mail.gmail.com", "j.d+a@mail.gmail.com", "j.d+a@mail.gmail.com", "j.d+a@mail.gmail.com"},
	{"only a tag", "+news@gmail.com", "+news@gmail.com", "", "", "+news@gmail.com"},
	{"only a tag at googlemail", "+news@googlemail.com", "+news@googlemail.com", "+news@googlemail.com", "", "+news@googlemail.com"},
	{"only a tag elsewhere", "+news@example.com", "+news@example.com", "+news@example.com", "+news@example.com", "+news@example.com"},
	{"dots at edges", ".j..d.@gmail.com", ".j..d.@gmail.com", "jd@gmail.com", "jd@gmail.com", "jd@gmail.com"},
	{"dots and a tag", ".+a@gmail.com", ".+a@gmail.com", "", "", "+a@gmail.com"},
	{"dots at edges elsewhere", ".j..d.@docomo.ne.jp", ".j..d.@docomo.ne.jp", ".j..d.@docomo.ne.jp", ".j..d.@docomo.ne.jp", ".j..d.@docomo.ne.jp"},
	{"quoted", `"J.D+a"@gmail.com`, `"j.d+a"@gmail.com`, `"j.d+a"@gmail.com`, `"j.d+a"@gmail.com`, `"j.d+a"@gmail.com`},
	{"beyond ASCII", "ZOË.x+a@gmail.com", "zoë.x+a@gmail.com", "zoËx@gmail.com", "zoëx@gmail.com", "zoëx+a@gmail.com"},
	{"shorter in lower case", "\u212Aim.x@gmail.com", "kim.x@gmail.com", "\u212Aimx@gmail.com", "kimx@gmail.com", "kimx@gmail.com"},
	{"longer in lower case", "Ⱥ.x@gmail.com", "ⱥ.x@gmail.com", "Ⱥx@gmail.com", "ⱥx@gmail.com", "ⱥx@gmail.com"},
	// ToLower makes gmail.com of it, as it does where the others' code runs.
	{"domain that lowers to gmail", "j.d+a@gma\u0130l.com", "j.d+a@gmail.com", "j.d+a@gma\u0130l.com", "jd@gmail.com", "jd+a@gmail.com"},
	{"domain that does not", "j.d+a@gmaıl.com", "j.d+a@gmaıl.com", "j.d+a@gmaıl.com", "j.d+a@gmaıl.com", "j.d+a@gmaıl.com"},
}

func TestForms(t *testing.T) {
	for _, f := range forms {
		a, err := Parse([]byte(f.cell))
		if err != nil {
			t.Errorf("%s: Parse(%q): %v", f.name, f.cell, err)
			continue
		}
		for p, want := range map[Profile]string{Plain: f.plain, UID2: f.uid2, Google: f.google, GoogleUntil202608: f.former} {
			got, ok := a.AppendForm([]byte("before "), p)
			if string(got) != "before "+want || ok != (want != "") {
				t.Errorf("%s: AppendForm(%q, %v) = %q, %v, want %q", f.name, f.cell, p, got, ok, want)
			}
		}
	}
}
