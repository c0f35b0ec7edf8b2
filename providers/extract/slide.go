package extract

import (
	"errors"
	"strings"

	"turnstone/protocol"
)

// readSlides reads a PPTX presentation: the slides in their order, each followed by its notes.
func readSlides(t *text, c content) error {
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	main, err := a.mainPart()
	if err != nil {
		return err
	}
	parts, err := a.relations(main)
	if err != nil {
		return err
	}
	var slides []string
	isPresentation := false
	err = a.walk(main, func(n node) error {
		switch {
		case n.opens("presentation"):
			isPresentation = true
		case n.opens("sldId"):
			slides = append(slides, parts[n.attrOf("/relationships", "id")].target)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !isPresentation {
		return errDamaged // another kind of Office document
	}
	for _, slide := range slides {
		if err := readSlide(t, a, slide); err != nil {
			return err
		}
	}
	return nil
}

func readSlide(t *text, a *archive, slide string) error {
	if err := t.begin(protocol.BlockSlide, ""); err != nil {
		return err
	}
	if !a.has(slide) {
		t.note(protocol.NoteMissingParts, 1)
		return nil
	}
	switch err := readShapes(t, a, slide); {
	case errors.Is(err, errNotShown):
		t.note(protocol.NoteHidden, 1)
		return nil
	case err != nil:
		return err
	}
	related, err := a.relations(slide)
	if err != nil {
		return err
	}
	for _, kind := range []string{"diagramData", "chart", "notesSlide", "comments"} {
		for _, name := range partsOf(related, kind) {
			if err := readAside(t, a, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// readAside reads a part with shapes or a chart that belongs to another one, which can be read without it.
func readAside(t *text, a *archive, name string) error {
	if !a.has(name) {
		t.note(protocol.NoteMissingParts, 1)
		return nil
	}
	return readShapes(t, a, name)
}

var errNotShown = errors.New("the slide is not shown")

// readShapes writes the paragraphs and tables of a slide, or of a part that belongs to it, and the stored names and values of a chart. It leaves out fields, as the number of the
// slide, and what repeats a shape for old versions. The error is errNotShown if a presentation does not show the slide.
func readShapes(t *text, a *archive, part string) error {
	var line strings.Builder
	var in formula
	inText, inField, cells, hidden := false, false, 0, 0
	err := a.walk(part, func(n node) error {
		if n.start != nil && hidden == 0 {
			line.WriteString(in.open(n))
		} else if n.end != "" && hidden == 0 {
			line.WriteString(in.close(n.end))
		}
		switch {
		case n.start != nil && hidden > 0, n.opens("Fallback"):
			hidden++
		case n.end != "" && hidden > 0:
			hidden--
		case hidden > 0:
		case n.opens("sld") && (n.attr("show") == "0" || n.attr("show") == "false"):
			return errNotShown
		case n.opens("cm"):
			line.WriteString("[Comment] ")
		case n.opens("text"): // of a comment
			inText = true
		case n.end == "text":
			inText = false
			piece := line.String()
			line.Reset()
			return t.joined(piece)
		case n.opens("t"), n.opens("v"):
			inText = true
		case n.end == "t":
			inText = false
		case n.end == "v": // of a chart
			inText = false
			line.WriteByte('\t')
		case n.opens("fld"):
			inField = true
		case n.end == "fld":
			inField = false
		case n.opens("br"):
			line.WriteByte('\n')
		case n.opens("tc"):
			cells++
		case n.end == "tc":
			cells--
			line.WriteByte('\t')
		case n.end == "p" && cells > 0:
			line.WriteByte(' ')
		case n.end == "p", n.end == "tr", n.end == "strCache", n.end == "numCache":
			piece := line.String()
			line.Reset()
			return t.joined(piece)
		case n.text != nil && inText && !inField:
			line.Write(n.text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.joined(line.String())
}
