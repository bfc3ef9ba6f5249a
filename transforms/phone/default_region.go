package phone

import (
	"fmt"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/language"
)

// CheckRegion refuses what is not the two capital letters of a region with numbers: by an unknown one,
// such as UK, every national number is invalid.
func CheckRegion(region string) error {
	regions := phonenumbers.GetSupportedRegions()
	if regions[region] {
		return nil
	}
	meant := ""
	if known, err := language.ParseRegion(region); err == nil && regions[known.Canonicalize().String()] {
		meant = fmt.Sprintf("; did you mean %q?", known.Canonicalize())
	}
	return fmt.Errorf("no region with phone numbers%s; give two capital letters, such as US or GB", meant)
}
