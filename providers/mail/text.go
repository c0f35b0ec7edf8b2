package mail

import (
	"embed"
	"strings"

	"turnstone/protocol"
)

// texts has a file for each language: a block for each kind of mail, which begins with a line "== kind", then the subject, an
// empty line and the text. Of the text, {service} is the address of the service and {link} that of the page with the token.
//
//go:embed texts/*.txt
var texts embed.FS

// defaultLanguage is used for languages without a file.
const defaultLanguage = "en"

var byLanguage = func() map[string]map[protocol.MailKind]text {
	files, err := texts.ReadDir("texts")
	if err != nil {
		panic(err) // the folder is embedded
	}
	all := map[string]map[protocol.MailKind]text{}
	for _, file := range files {
		content, err := texts.ReadFile("texts/" + file.Name())
		if err != nil {
			panic(err)
		}
		all[strings.TrimSuffix(file.Name(), ".txt")] = parseTexts(string(content))
	}
	return all
}()

type text struct{ subject, body string }

func parseTexts(content string) map[protocol.MailKind]text {
	found := map[protocol.MailKind]text{}
	for _, block := range strings.Split("\n"+content, "\n== ")[1:] {
		kind, rest, _ := strings.Cut(block, "\n")
		subject, body, _ := strings.Cut(rest, "\n\n")
		found[protocol.MailKind(kind)] = text{subject, strings.TrimSpace(body) + "\n"}
	}
	return found
}

// Text returns the subject and the text of a kind of mail. language is a BCP 47 tag, of which only the first part matters; link is
// empty for kinds without one.
func Text(kind protocol.MailKind, language, service, link string) (subject, body string) {
	primary, _, _ := strings.Cut(strings.ToLower(language), "-")
	found, known := byLanguage[primary]
	if !known {
		found = byLanguage[defaultLanguage]
	}
	one := found[kind]
	return one.subject, strings.NewReplacer("{service}", service, "{link}", link).Replace(one.body)
}
