package scripted

import (
	"bytes"
	"fmt"
	"image"
	_ "image/jpeg" // registers the format
	_ "image/png"  // registers the format
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"turnstone/actors/llm"
	"turnstone/protocol/clip"
)

// The form in which package actors/modelinput shows files.
var (
	fileSection = regexp.MustCompile(`(?s)\n*<file number="(\d+)"([^>]*)>\n(.*?)\n</file>`)
	fileName    = regexp.MustCompile(`name="((?:[^"\\]|\\.)*)"`)
	fileID      = regexp.MustCompile(` id="(file_[0-9a-z]+)"`)
	pageMark    = regexp.MustCompile(`^\[(?:page|sheet|slide|chapter) (\d+)\]$`)
)

// file is a file that a message contains. number is empty for a picture, which cannot be cited.
type file struct{ number, name, text, id string }

// marker returns the citation of the file, with a page like :17; empty if it cannot be cited.
func (f file) marker(page string) string {
	if f.number == "" {
		return ""
	}
	return " [" + f.number + page + "]"
}

var pictureMark = regexp.MustCompile(`^(?:This file is picture|The pages 1 to \d+ of this file are the pictures) (\d+) `)

// filesOf returns the text of a message without its files, and the files. The text of a picture is its size.
func filesOf(message llm.Message) (string, []file) {
	text, files := cutFiles(message.Text)
	for i := range files {
		mark := pictureMark.FindStringSubmatch(files[i].text)
		if mark == nil {
			continue
		}
		at, err := strconv.Atoi(mark[1])
		if err != nil || at > len(message.Pictures) || at == 0 {
			continue
		}
		files[i].number, files[i].text = "", "A picture that cannot be read."
		if header, format, err := image.DecodeConfig(bytes.NewReader(message.Pictures[at-1].Content)); err == nil {
			files[i].text = fmt.Sprintf("A picture of %d × %d pixels (%s).", header.Width, header.Height, format)
		}
	}
	return text, files
}

// cutFiles returns a text without the files in it, and the files.
func cutFiles(text string) (string, []file) {
	if !strings.Contains(text, "<file number=") {
		return text, nil
	}
	var files []file
	for _, found := range fileSection.FindAllStringSubmatch(text, -1) {
		name := "the file"
		if named := fileName.FindStringSubmatch(found[2]); named != nil {
			name = named[1]
		}
		one := file{number: found[1], name: name, text: found[3]}
		if id := fileID.FindStringSubmatch(found[2]); id != nil {
			one.id = id[1]
		}
		files = append(files, one)
	}
	return strings.TrimSpace(fileSection.ReplaceAllString(text, "")), files
}

// fromFiles answers with the sentence of the files that has most of the words of the question, and cites it. It returns "" if
// no sentence has any.
func fromFiles(files []file, question string) string {
	asked := map[string]bool{}
	for _, word := range strings.Fields(strings.ToLower(question)) {
		if word = strings.TrimFunc(word, notLetter); utf8.RuneCountInString(word) > 3 {
			asked[word] = true
		}
	}
	most, best := 0, ""
	for _, f := range files {
		page := ""
		for line := range strings.SplitSeq(f.text, "\n") {
			if mark := pageMark.FindStringSubmatch(line); mark != nil {
				page = ":" + mark[1]
				continue
			}
			for sentence := range strings.SplitSeq(line, ". ") {
				if n := countAsked(sentence, asked); n > most {
					most = n
					best = fmt.Sprintf("“%s” says: %s%s", f.name, clip.Ellipsis(strings.TrimSpace(sentence), 400), f.marker(page))
				}
			}
		}
	}
	return best
}

func countAsked(sentence string, asked map[string]bool) int {
	found := map[string]bool{}
	for _, word := range strings.Fields(strings.ToLower(sentence)) {
		if word = strings.TrimFunc(word, notLetter); asked[word] {
			found[word] = true
		}
	}
	return len(found)
}

// fromFound answers with what a tool has found in files.
func fromFound(result, asked string) string {
	_, files := cutFiles(result)
	if len(files) == 0 {
		return "None of the files has these words: " + clip.Ellipsis(asked, 160)
	}
	if quoted := fromFiles(files, asked); quoted != "" {
		return quoted
	}
	return sayFiles(files)
}

// sayFiles answers a question that has no word in common with the files.
func sayFiles(files []file) string {
	var names []string
	for _, f := range files {
		if f.number == "" {
			return fmt.Sprintf("“%s”: %s", f.name, f.text)
		}
		names = append(names, fmt.Sprintf("“%s”%s", f.name, f.marker("")))
	}
	return "I have read " + strings.Join(names, " and ") + ". Ask me for something in it, in its own words, and I will quote the sentence that fits best."
}
