package main

import (
	"fmt"
	"regexp"
	"strings"
)

// manPage makes a page of the help of all commands. help runs the program.
func (r *release) manPage(help func(args ...string) (string, error)) (string, error) {
	var page strings.Builder
	fmt.Fprintf(&page, ".TH LEADETL 1 %q \"leadetl %s\"\n.SH NAME\nleadetl \\- %s\n", r.time.Format("2006-01-02"), roff(r.version.String()), strings.ToLower(summary[:1])+summary[1:])
	var add func(command ...string) error
	add = func(command ...string) error {
		text, err := help(append(command, "--help")...)
		if err == nil && strings.Contains(text, "--help-all") && len(command) > 0 {
			text, err = help(append(command, "--help-all")...)
		}
		if err != nil {
			return err
		}
		title := "DESCRIPTION"
		if len(command) > 0 {
			title = "leadetl " + strings.Join(command, " ")
			text, _, _ = strings.Cut(text, "\nExit codes:\n") // they are those of all commands
		}
		fmt.Fprintf(&page, ".SH %q\n.nf\n%s.fi\n", title, roff(strings.TrimSpace(text)+"\n"))
		for _, sub := range subcommands(text) {
			if sub == "completion" || sub == "help" {
				continue
			}
			if err := add(append(command[:len(command):len(command)], sub)...); err != nil {
				return err
			}
		}
		return nil
	}
	err := add()
	return page.String(), err
}

var commandLine = regexp.MustCompile(`(?m)^  ([a-z]+) `)

// subcommands returns the names below "Commands:".
func subcommands(help string) (names []string) {
	_, list, _ := strings.Cut(help, "\nCommands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for _, m := range commandLine.FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	return names
}

var (
	request = regexp.MustCompile(`(?m)^([.'])`)
	beyond  = regexp.MustCompile(`[^\x00-\x7f]`)
)

// roff returns text that troff prints as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	text = beyond.ReplaceAllStringFunc(text, func(s string) string { return fmt.Sprintf(`\[u%04X]`, []rune(s)[0]) })
	return request.ReplaceAllString(text, `\&$1`)
}
