package extract

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"turnstone/protocol"
)

// readBook reads an EPUB book: the chapters in the order of reading.
func readBook(t *text, c content) error {
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	chapters, err := chaptersOf(a)
	if err != nil {
		return err
	}
	if err := checkRights(a, chapters); err != nil {
		return err
	}
	missing := 0
	for _, name := range chapters {
		raw, cut, err := a.all(name, maxMarkup)
		switch {
		case errors.Is(err, errComplex):
			return err
		case err != nil: // the others can be read
			missing++
			continue
		}
		t.truncated = t.truncated || cut
		source := t.decode(raw, true)
		markdown, title := t.markdownOf(source)
		if strings.TrimSpace(markdown) == "" && strings.Contains(source, "<svg") {
			markdown = wordsOfPicture(source)
		}
		if err := t.begin(protocol.BlockChapter, title); err != nil {
			return err
		}
		if err := t.joined(markdown); err != nil {
			return err
		}
	}
	if missing == len(chapters) {
		return errDamaged
	}
	if missing > 0 {
		t.note(protocol.NoteMissingParts, missing)
	}
	return nil
}

// wordsOfPicture returns the words in a page of a book that is a picture, as far as its XML can be read.
func wordsOfPicture(source string) string {
	var b strings.Builder
	depth := 0 // of elements with words
	_ = walkXML(strings.NewReader(source), func(n node) error {
		switch {
		case n.opens("text"):
			depth++
		case n.end == "text":
			depth--
			b.WriteByte('\n')
		case depth > 0:
			b.Write(n.text)
		}
		return nil
	}) // what precedes an error is kept
	return b.String()
}

// chapterTypes are the media types of the pages of books, two of those before EPUB 2, and pictures with words.
var chapterTypes = []string{"application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/x-dtbook+xml", "image/svg+xml"}

// catalogueOf returns the name of the entry that lists the pages of a book.
func catalogueOf(a *archive) (string, error) {
	const container = "META-INF/container.xml"
	catalogue := ""
	if name := a.named(container); name != "" {
		err := a.walk(name, func(n node) error {
			if n.opens("rootfile") && catalogue == "" {
				catalogue = n.attr("full-path")
			}
			return nil
		})
		if errors.Is(err, errComplex) {
			return "", err
		}
	}
	if name := a.named(catalogue); name != "" {
		return name, nil
	}
	for _, name := range slices.Sorted(maps.Keys(a.entries)) {
		if strings.EqualFold(path.Ext(name), ".opf") {
			return name, nil
		}
	}
	return "", errDamaged
}

// chaptersOf returns the names of the pages of a book in the order of reading.
func chaptersOf(a *archive) ([]string, error) {
	catalogue, err := catalogueOf(a)
	if err != nil {
		return nil, err
	}
	pages := map[string]string{}
	var chapters []string
	err = a.walk(catalogue, func(n node) error {
		switch {
		case n.opens("item"):
			if slices.Contains(chapterTypes, strings.ToLower(n.attr("media-type"))) {
				target, _, _ := strings.Cut(n.attr("href"), "#")
				if name, err := url.PathUnescape(target); err == nil {
					name = path.Join(path.Dir(catalogue), name)
					pages[n.attr("id")] = cmp.Or(a.named(name), name)
				}
			}
		case n.opens("itemref"):
			if name, is := pages[n.attr("idref")]; is {
				chapters = append(chapters, name)
			}
		}
		return nil
	})
	if err == nil && len(chapters) == 0 {
		err = errDamaged
	}
	return chapters, err
}

// checkRights returns errEncrypted if a chapter is encrypted. Fonts may be, which does not prevent reading.
func checkRights(a *archive, chapters []string) error {
	const name = "META-INF/encryption.xml"
	if !a.has(name) {
		return nil
	}
	isChapter := map[string]bool{}
	for _, one := range chapters {
		isChapter[one] = true
	}
	return a.walk(name, func(n node) error {
		if n.opens("CipherReference") {
			if uri, err := url.PathUnescape(n.attr("URI")); err == nil && isChapter[path.Clean(uri)] {
				return errEncrypted
			}
		}
		return nil
	})
}
