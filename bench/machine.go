package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine describes the machine of the measurement.
func machine() string {
	text := fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if model := procField("/proc/cpuinfo", "model name"); model != "" {
		text += " of " + model
	}
	if kB := procField("/proc/meminfo", "MemTotal"); kB != "" {
		var n float64
		if _, err := fmt.Sscan(kB, &n); err == nil {
			text += fmt.Sprintf(", %.0f GB memory", n/1e6)
		}
	}
	return text + ", " + runtime.Version()
}

// procField is the first value of a field in a file of `name: value` lines;
// empty if there is no such file.
func procField(file, name string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
