package certificate

import (
	"cmp"
	"fmt"
	"strings"
)

// maxShown values that are set are in the text; the JSON has them all.
const maxShown = 4

// Rows are what text and page say of functions: a name and what there is to it.
func (x *Functions) Rows() (rows [][2]string) {
	add := func(name, format string, args ...any) {
		rows = append(rows, [2]string{name, fmt.Sprintf(format, args...)})
	}
	if len(x.Pre) > 0 {
		add("decided by", "%s; %s", strings.Join(x.Pre, ", "), x.chainText())
		add("decided", "%d orders, %s", x.Decided, x.setText())
	}
	if len(x.Post) > 0 {
		add("records of", "%s: %d, %d of calls that failed; %d copies compared, %d linked to the one before", strings.Join(x.Post, ", "), x.Records, x.Failed, x.Copies, x.Linked)
		add("wrong of them", "%d entries with others in another copy, %d orders without one, %d not linked%s", x.Different, x.Missing, x.Broken, x.leftOutText())
		add("their control", "%s: %d records forged, %d found", x.Control.Result, x.Control.Done, x.Control.Found)
	}
	return rows
}

func (x *Functions) leftOutText() string {
	if len(x.LeftOut) == 0 {
		return ""
	}
	return "; not judged, since changed: " + strings.Join(x.LeftOut, ", ")
}

func (x *Functions) chainText() string {
	var short []string
	for _, c := range x.Chains {
		short = append(short, c[:min(len(c), 16)])
	}
	text := "chain " + strings.Join(short, ", then ")
	if x.Stamp == 0 {
		return text + "; orders have no stamp"
	}
	return fmt.Sprintf("%s; %d orders without its stamp (tag %d)", text, x.Unstamped, x.Stamp)
}

func (x *Functions) setText() string {
	var b strings.Builder
	for i, v := range x.Values {
		if i == maxShown {
			fmt.Fprintf(&b, ", and %d more values", len(x.Values)-maxShown)
			break
		}
		fmt.Fprintf(&b, ", %d with %d=%s", v.Orders, v.Tag, cmp.Or(v.Value, "(none)"))
	}
	return strings.TrimPrefix(cmp.Or(b.String(), ", no tag may be set"), ", ")
}
