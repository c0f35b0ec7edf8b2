package extract

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"

	"turnstone/protocol"
)

// notebook is a Jupyter notebook, of version 4 or of one of the sheets of version 3.
type notebook struct {
	Cells      []notebookCell `json:"cells"`
	Worksheets []struct {
		Cells []notebookCell `json:"cells"`
	} `json:"worksheets"`
	Metadata struct {
		Language struct {
			Name string `json:"name"`
		} `json:"language_info"`
		Kernel struct {
			Language string `json:"language"`
		} `json:"kernelspec"`
	} `json:"metadata"`
}

type notebookCell struct {
	Kind    string           `json:"cell_type"`
	Source  lines            `json:"source"`
	Input   lines            `json:"input"` // of version 3
	Level   int              `json:"level"`
	Outputs []notebookOutput `json:"outputs"`
}

type notebookOutput struct {
	Text      lines            `json:"text"`
	Data      map[string]lines `json:"data"`
	Traceback lines            `json:"traceback"`
	PNG       lines            `json:"png"` // of version 3
}

// lines is a text, or a list of its lines. Anything else is empty.
type lines string

// UnmarshalJSON implements json.Unmarshaler.
func (l *lines) UnmarshalJSON(raw []byte) error {
	var list []string
	var one string
	switch {
	case json.Unmarshal(raw, &one) == nil:
		*l = lines(one)
	case json.Unmarshal(raw, &list) == nil:
		*l = lines(strings.Join(list, ""))
	}
	return nil
}

var terminalCode = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// readNotebook reads the cells of a notebook, and those of its outputs that are text.
func readNotebook(t *text, c content) error {
	raw, err := io.ReadAll(io.LimitReader(c.reader(), maxMail))
	if err != nil {
		return err
	}
	var of notebook
	if json.Unmarshal([]byte(t.decode(raw, false)), &of) != nil {
		return errDamaged
	}
	cells := of.Cells
	for i := range of.Worksheets {
		cells = append(cells, of.Worksheets[i].Cells...)
	}
	if cells == nil && !strings.Contains(string(raw), `"cells"`) {
		return errDamaged // another kind of JSON
	}
	language := of.Metadata.Language.Name
	if language == "" {
		language = of.Metadata.Kernel.Language
	}
	for i := range cells {
		if err := t.cell(&cells[i], language); err != nil {
			return err
		}
	}
	return nil
}

func (t *text) cell(cell *notebookCell, language string) error {
	source := string(cell.Source) + string(cell.Input)
	switch {
	case strings.TrimSpace(source) == "":
	case cell.Kind == "code":
		source = fenced(language, source)
	case cell.Kind == "heading":
		source = strings.Repeat("#", max(1, min(cell.Level, 6))) + " " + source
	}
	if err := t.paragraphOf(source); err != nil {
		return err
	}
	for _, output := range cell.Outputs {
		shown := string(output.Text) + string(output.Data["text/plain"])
		if shown == "" {
			shown = string(output.Data["text/markdown"])
		}
		if markup := string(output.Data["text/html"]); shown == "" && markup != "" {
			shown, _ = t.markdownOf(markup)
		}
		if shown == "" {
			shown = string(output.Data["text/latex"])
		}
		shown += terminalCode.ReplaceAllString(string(output.Traceback), "")
		if pictures := output.pictures(); pictures > 0 || shown == "" && len(output.Data) > 0 {
			t.note(protocol.NoteUnreadMembers, max(1, pictures))
		}
		if strings.TrimSpace(shown) != "" {
			if err := t.paragraphOf(fenced("output", shown)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pictures returns how many pictures an output is.
func (o *notebookOutput) pictures() (n int) {
	for kind := range o.Data {
		if strings.HasPrefix(kind, "image/") {
			n++
		}
	}
	if o.PNG != "" {
		n++
	}
	return n
}

func fenced(language, source string) string {
	fence := "```"
	for strings.Contains(source, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(source, "\n") + "\n" + fence
}

// paragraphOf writes a piece with an empty line before it.
func (t *text) paragraphOf(piece string) error {
	if strings.TrimSpace(piece) == "" {
		return nil
	}
	if t.b.Len() > 0 {
		if err := t.write("\n"); err != nil {
			return err
		}
	}
	return t.joined(piece)
}
