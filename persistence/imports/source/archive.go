package source

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"turnstone/protocol"
)

// Limits of an archive.
const (
	maxDirectory = 32 << 20 // bytes of its directory, enough for about 250,000 files
	maxUnpacked  = 16 << 30 // bytes of all files that are read
	maxRatio     = 200      // of unpacked to packed bytes of one file
	ratioFrom    = 16 << 20 // unpacked bytes from which the ratio is checked: small files shrink well
)

// names are the files of an archive that have conversations: one file, a numbered list of files, or a file for each.
var names = regexp.MustCompile(`^(conversations([-_]\d+)?|conv_[0-9a-z]{26})\.json$`)

// unpacking is an archive that is read, with the bytes that may still be unpacked.
type unpacking struct {
	archive *zip.Reader
	source  *readerAt
	left    int64
}

// readArchive reads the files of an archive that have conversations, in the order of its directory. Of an archive of this
// service, it reads everything. At most limit bytes are unpacked.
func readArchive(from *readerAt, size, limit int64, now time.Time, to Handler) error {
	if err := checkDirectory(from, size); err != nil {
		return to.Problem(protocol.ImportUnreadable, "", "The archive is damaged: "+err.Error(), 1)
	}
	from.limit = maxDirectory
	archive, err := zip.NewReader(from, size)
	from.limit = 0
	if err != nil {
		return to.Problem(protocol.ImportUnreadable, "", "The archive is damaged: "+brief(err), 1)
	}
	u := &unpacking{archive, from, limit}
	var own *ownArchive
	if root, is := u.ownRoot(); is {
		own = &ownArchive{unpacking: u, to: to, now: now, root: root}
		if err := own.read(); err != nil || from.err != nil {
			return err
		}
	}
	var files *assets
	if own == nil {
		files = u.findAssets(now)
		if err := files.read(u, to, now); err != nil || from.err != nil {
			return err
		}
	}
	others := 0
	if own == nil {
		// What conversations belong to is first.
		if others, err = u.readOthers(files, now, to); err != nil || from.err != nil {
			return err
		}
	}
	for _, file := range archive.File {
		if !names.MatchString(path.Base(file.Name)) {
			if own != nil && !own.isKnown(file.Name) {
				others++
			}
			continue
		}
		if u.left <= 0 {
			if err := to.Problem(protocol.ImportArchiveLimit, file.Name, fmt.Sprintf("More than %d GiB were unpacked.", maxUnpacked>>30), 1); err != nil {
				return err
			}
			break
		}
		if err := u.unpack(file, to, func(content io.Reader) error { return readJSON(content, file.Name, files, now, to) }); err != nil {
			return err
		}
	}
	if files != nil {
		others -= files.attached()
	}
	if own != nil {
		others -= own.used
		if err := own.artifacts(); err != nil {
			return err
		}
	}
	if others > 0 {
		return to.Problem(protocol.ImportFilesSkipped, "", "", others)
	}
	return nil
}

// Limits of the files whose names do not show what they are.
const (
	maxOthers    = 20_000    // of one archive
	maxOtherSize = 256 << 10 // bytes that are looked at
)

// contents are members of the formats that are read.
var contents = regexp.MustCompile(`"(mapping|chat_messages|prompt_template|conversations_memory|project_memories|chat|history|conversationId|messagesTree|safeHtmlItem)"\s*:`)

// geminiPage is in an HTML file of activities; the name is in the names of products in every language.
var geminiPage = regexp.MustCompile(`(?s)outer-cell.*(?i:gemini|bard)|(?i:gemini|bard).*outer-cell`)

func mayHaveConversations(base string) bool {
	switch strings.ToLower(path.Ext(base)) {
	case ".json", ".jsonl", ".html", ".htm":
		return true
	}
	return false
}

// readOthers reads the files of an archive whose contents are of a known format, although their names do not show it. It returns the
// number of the others.
func (u *unpacking) readOthers(files *assets, now time.Time, to Handler) (others int, err error) {
	looked := 0
	for _, file := range u.archive.File {
		base := path.Base(file.Name)
		if names.MatchString(base) || files.has(file) || file.FileInfo().IsDir() {
			continue
		}
		if others++; strings.HasPrefix(base, ".") || !mayHaveConversations(base) || looked >= maxOthers || u.left <= 0 {
			continue
		}
		looked++
		err := u.unpack(file, to, func(content io.Reader) error {
			text := bufio.NewReaderSize(content, maxOtherSize)
			start, _ := text.Peek(maxOtherSize) // an error comes again when the text is read
			page := isHTML(start)
			switch {
			case page && geminiPage.Match(start):
				others--
				files.parsed[file] = true
				return readHTML(text, file.Name, files, now, to)
			case !page && contents.Match(start):
				others--
				files.parsed[file] = true
				return readJSON(text, file.Name, files, now, to)
			}
			return nil
		})
		if err != nil {
			return others, err
		}
	}
	return others, nil
}

// unpack calls read with the content of a file of the archive.
func (u *unpacking) unpack(file *zip.File, to Handler, read func(io.Reader) error) error {
	content, err := file.Open()
	if err != nil {
		if u.source.err != nil {
			return u.source.err
		}
		return to.Problem(protocol.ImportUnreadable, file.Name, "The file cannot be unpacked.", 1)
	}
	unpacked := &unpacker{from: content, left: u.left, packed: int64(file.CompressedSize64)} // below the size of the archive, or the file cannot be read
	err = read(unpacked)
	_ = content.Close() // the file was only read
	if u.left -= unpacked.read; err == nil {
		err = u.source.err
	}
	return err
}

var errUnpacked = errors.New("it unpacks to too many bytes")

// unpacker limits the unpacked bytes of a file of an archive.
type unpacker struct {
	from               io.Reader
	read, left, packed int64
}

func (u *unpacker) Read(p []byte) (int, error) {
	if u.left <= 0 || u.read > ratioFrom && u.read/maxRatio > u.packed {
		return 0, errUnpacked
	}
	n, err := u.from.Read(p)
	u.read += int64(n)
	u.left -= int64(n)
	return n, err
}
