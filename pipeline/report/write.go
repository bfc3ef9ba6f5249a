package report

import (
	"encoding/json"
	"fmt"

	"github.com/leadetl/leadetl/sinks"
)

// Write writes a report and its page to the dataset's folder.
func (r *Report) Write(to *sinks.Dataset) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	page, err := Render(data)
	if err != nil {
		return err
	}
	if err := to.WriteReport(data, page); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
