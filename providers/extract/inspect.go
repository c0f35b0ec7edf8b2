package extract

import (
	"archive/zip"
	"io"

	"turnstone/protocol"
)

// inspections maps the media types of archives, and of the documents that are archives, to the functions that find out
// whether the entries that matter are encrypted in another way than that of ZIP. A PDF is inspected by pdftotext.
var inspections = map[string]func(*archive) error{
	"application/zip": nil,
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   nil,
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         nil,
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": nil,
	"application/vnd.oasis.opendocument.text":                                   checkManifest,
	"application/vnd.oasis.opendocument.spreadsheet":                            checkManifest,
	"application/vnd.oasis.opendocument.presentation":                           checkManifest,
	"application/epub+zip": checkBook,
}

// canBeEncrypted reports whether contents of a media type can be encrypted.
func canBeEncrypted(mediaType string) bool {
	_, is := inspections[mediaType]
	return is || mediaType == pdf
}

// inspect reads what says whether a content is encrypted: the reason is protocol.TextEncrypted if it is.
func inspect(of io.ReaderAt, size int64, mediaType string) *protocol.Extraction {
	if err := checkEncryption(content{of, size}, mediaType); err != nil {
		return failed(err)
	}
	return &protocol.Extraction{State: protocol.TextNone}
}

func checkEncryption(c content, mediaType string) error {
	if c.isOLE() {
		return errEncrypted
	}
	z, err := zip.NewReader(c.ReaderAt, c.size)
	if err != nil {
		return fail(protocol.TextDamaged, err)
	}
	for _, f := range z.File {
		if f.Flags&encryptedEntry != 0 {
			return errEncrypted
		}
	}
	check := inspections[mediaType]
	if check == nil {
		return nil
	}
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	return check(a)
}

func checkBook(a *archive) error {
	chapters, err := chaptersOf(a)
	if err != nil {
		return err
	}
	return checkRights(a, chapters)
}
