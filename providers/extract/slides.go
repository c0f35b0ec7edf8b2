package extract

import (
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
	if err := readShapes(t, a, slide); err != nil {
		return err
	}
	related, err := a.relations(slide)
	if err != nil {
		return err
	}
	for _, one := range related {
		if one.kind == "notesSlide" && a.has(one.target) {
			return readShapes(t, a, one.target)
		}
	}
	return nil
}

// readShapes writes the paragraphs and tables of a slide. It leaves out fields, as the number of the slide.
func readShapes(t *text, a *archive, part string) error {
	var line strings.Builder
	inText, inField, cells := false, false, 0
	return a.walk(part, func(n node) error {
		switch {
		case n.opens("t"):
			inText = true
		case n.end == "t":
			inText = false
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
		case n.end == "p", n.end == "tr":
			piece := line.String()
			line.Reset()
			return t.joined(piece)
		case n.text != nil && inText && !inField:
			line.Write(n.text)
		}
		return nil
	})
}
