package evidence

import (
	"net/url"
	"regexp"
	"strings"
)

// doiBegin is the beginning of a page, in bytes, in which its DOI is searched for. What follows may be the DOIs of references.
const doiBegin = 2 << 10

var (
	doiPattern = regexp.MustCompile(`10\.\d{4,9}/[^\s"<>\\{}|^` + "`" + `]+`)
	// doiLabel precedes a DOI in a page. A DOI without it may be that of any other paper.
	doiLabel = regexp.MustCompile(`(?i)(?:\bdoi\b|doi\.org/)[\s:*_\[\](/]*(?:https?://)?(?:(?:dx\.)?doi\.org/)?$`)
	// doiViews are what publishers append to a DOI in the addresses of the views of a paper.
	doiViews = []string{".pdf", ".full", ".abstract", ".short", ".html", "/full", "/abstract", "/pdf", "/epdf", "/html", "/meta", "/summary", "/fulltext", "/full/html", "/full.pdf"}
)

// DOI returns the DOI of an address, or the one that a page states at its beginning: in lower case, without "doi:". A page that
// states several has none: they may be those of other papers.
func DOI(text string) string {
	if text = strings.TrimSpace(text); len(text) <= maxAddress && !strings.ContainsAny(text, " \t\r\n") {
		return addressDOI(text)
	}
	begin := text[:min(len(text), doiBegin)]
	found := ""
	for _, at := range doiPattern.FindAllStringIndex(begin, -1) {
		if at[1] == len(begin) && len(begin) < len(text) || !doiLabel.MatchString(begin[max(0, at[0]-40):at[0]]) {
			continue // it may be cut off, or is not labelled
		}
		doi := trimDOI(begin[at[0]:at[1]])
		if found != "" && doi != found {
			return ""
		}
		found = doi
	}
	return found
}

// addressDOI returns the DOI of an address, or of a text such as doi:10.1000/182.
func addressDOI(text string) string {
	if lower := strings.ToLower(text); strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") {
		u, err := url.Parse(text)
		if err != nil {
			return ""
		}
		if text = u.Path; doiPattern.FindString(text) == "" {
			text = u.Query().Get("doi")
		}
	}
	doi := trimDOI(doiPattern.FindString(text))
	for _, view := range doiViews {
		if rest, is := strings.CutSuffix(doi, view); is && strings.Index(rest, "/") < len(rest)-1 && strings.Contains(rest, "/") {
			return trimDOI(rest)
		}
	}
	return doi
}

// trimDOI removes the punctuation of the sentence around a DOI. A bracket that the DOI opened is a part of it.
func trimDOI(doi string) string {
	doi = strings.ToLower(doi)
	for doi != "" {
		last := doi[len(doi)-1]
		switch {
		case strings.IndexByte(".,;:!?'\"*_/", last) >= 0:
		case last == ')' && strings.Count(doi, ")") > strings.Count(doi, "("):
		case last == ']' && strings.Count(doi, "]") > strings.Count(doi, "["):
		default:
			return doi
		}
		doi = doi[:len(doi)-1]
	}
	return doi
}
