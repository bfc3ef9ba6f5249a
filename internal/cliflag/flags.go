package cliflag

import "github.com/spf13/pflag"

// Names are the flags that a command line or a settings file may set.
func Names(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && f.Name != "help-all" {
			names = append(names, f.Name)
		}
	})
	return names
}

// ExpectedValue says what values a flag accepts, after a wrong one.
func ExpectedValue(e *pflag.InvalidValueError) string {
	switch e.GetFlag().Value.Type() {
	case "int", "int64":
		return "write a whole number"
	case "bool":
		return "write true or false"
	case "duration":
		return "write a time such as 30s or 8h"
	}
	return e.Unwrap().Error()
}
