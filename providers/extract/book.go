package extract

import (
	"net/url"
	"path"

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
	for _, name := range chapters {
		raw, cut, err := a.all(name, maxMarkup)
		if err != nil {
			return err
		}
		t.truncated = t.truncated || cut
		markdown, title, err := markdownOf(t.decode(raw, true))
		if err != nil {
			return err
		}
		if err := t.begin(protocol.BlockChapter, title); err != nil {
			return err
		}
		if err := t.joined(markdown); err != nil {
			return err
		}
	}
	return nil
}

// chaptersOf returns the names of the pages of a book in the order of reading.
func chaptersOf(a *archive) ([]string, error) {
	var catalogue string
	err := a.walk("META-INF/container.xml", func(n node) error {
		if n.opens("rootfile") && catalogue == "" {
			catalogue = n.attr("full-path")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	pages := map[string]string{}
	var chapters []string
	err = a.walk(catalogue, func(n node) error {
		switch {
		case n.opens("item"):
			if kind := n.attr("media-type"); kind == "application/xhtml+xml" || kind == "text/html" {
				if name, err := url.PathUnescape(n.attr("href")); err == nil {
					pages[n.attr("id")] = path.Join(path.Dir(catalogue), name)
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
