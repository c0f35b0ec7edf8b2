package doctor

import (
	"context"
	"fmt"

	"turnstone/providers/extract"
)

// readers checks the programs that read files. Most are optional.
func (p *installation) readers(context.Context) finding {
	f := finding{what: "programs that read files"}
	for _, one := range extract.Helpers {
		if !one.Installed() {
			f.notes = append(f.notes, fmt.Sprintf("no %s (%s): %s; apt-get install %s", one.Package, one.For, one.Without, one.Package))
		}
	}
	data := extract.PDFData
	if extract.Helpers[0].Installed() && !data.Installed() {
		f.err = fmt.Errorf("%s is missing, which is needed for %s", data.Package, data.For)
		f.remedy = "apt-get install " + data.Package
	}
	return f
}
